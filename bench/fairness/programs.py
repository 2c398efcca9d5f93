# SPDX-License-Identifier: Apache-2.0
"""The programs of the experiments, as gantry-load's options."""

# A round of about 10 ms where a load leaves its length open, with the next one in the queue before its end, so that a window holds many and the
# device never waits for the program; the rest as FairGV's table 3 has it. lavaMD's two seconds a kernel would make a window of minutes: it is smaller, and so is nw.
LOADS = {
    "matrixMul": ("matrixMul", "--batch", "50", "--ahead"),
    "hotspot": ("hotspot", "--batch", "70", "--ahead"),
    "BlackScholes": ("BlackScholes",),
    "srad": ("srad", "--batch", "8"),
    "scan": ("scan",),
    "histogram": ("histogram",),
    "convolutionSeparable": ("convolutionSeparable",),
    "pathfinder": ("pathfinder",),
    "nw": ("nw", "--size", "1792"),
    "fastWalshTransform": ("fastWalshTransform",),
    "cfd": ("cfd",),
    "lavaMD": ("lavaMD", "--size", "3"),
    # All that it reads stays in a processor's second cache (0.8 of 5 MB): what turns cost it where they cost it no memory.
    "pathfinder of 2000 columns": ("pathfinder", "--size", "2000"),
}

# Natively in turns of a slice: rounds that end within one, and each waited for.
IN_TURNS = LOADS | {"matrixMul": ("matrixMul", "--batch", "29"), "hotspot": ("hotspot", "--batch", "45")}

# FairGV's figure 11: its background program has kernels of 21 to 1,605 us, by the size of its matrices.
BACKGROUND = {f"matrixMul of {size} rows": ("matrixMul", "--size", str(size), "--batch", str(batch), "--ahead")
              for size, batch in ((32, 480), (48, 110), (64, 50), (80, 25), (96, 14), (112, 9), (128, 6))}

# A kernel, its end waited for, and three numbers read: FairGV's srad makes 64 synchronous calls a millisecond.
CHATTY = ("spin", "--size", "2000", "--batch", "1", "--reads", "3")

# 200 us, each waited for.
SHORT = ("spin", "--size", "9400", "--batch", "1")
# A second, in as many groups of 4 us as make 1,500 of them a slice, and in so few that nobody can split it.
LONG_MANY_GROUPS = ("spin", "--size", "3000", "--groups", "250000", "--batch", "1")
LONG_FEW_GROUPS = ("spin", "--size", "47000000", "--batch", "1")
