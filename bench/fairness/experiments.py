# SPDX-License-Identifier: Apache-2.0
"""Every experiment by name. One has a title, run(context, policy) that measures, rows(result) that makes
a result's rows of it, and figures([(policy, result)]); by_load where it measures one load after the
other, and can be told which."""

from .accounts import Accounting, AccountingCost, Decisions
from .gvim import TwoDevices
from .mixed import Chatty, Long, Pair, Sleeper
from .programs import LOADS, LONG_FEW_GROUPS, LONG_MANY_GROUPS
from .slicing import Slicing
from .weights import Cap, Crowd, Lag, Weights

# What FairGV's text says of its figures 8 and 9; of single loads its figures alone tell.
FIGURE_8 = {"source": "FairGV 5.4.3", "mmr": 0.99, "overhead": 1.02, "loads": ("matrixMul", "hotspot", "BlackScholes", "srad")}
FIGURE_9 = {"source": "FairGV 5.4.4", "mmr": 0.97, "overhead": 1.02, "loads": ("BlackScholes", "srad")}

EXPERIMENTS = {
    "fig8": Weights("Three vGPUs of one program, weights 1:2:3 (FairGV figure 8)", [1, 2, 3], 0.98, list(LOADS), FIGURE_8, factor=2),
    "fig9": Weights("Six vGPUs of one program, weights 1:2:2:3:3:4 (FairGV figure 9)", [1, 2, 2, 3, 3, 4], 0.97,
                    ["BlackScholes", "srad", "matrixMul"], FIGURE_9, factor=4),
    "fig11-mm": Pair("matrixMul (207 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "matrixMul"),
    "fig11-hs": Pair("hotspot (133 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "hotspot"),
    "chatty": Chatty(),
    "long": Long("Kernels of 1 s in 250,000 groups against kernels of 200 us", LONG_MANY_GROUPS, True),
    "long-whole": Long("Kernels of 1 s that cannot be split against kernels of 200 us", LONG_FEW_GROUPS, False),
    "lag": Lag(),
    "crowd": Crowd(),
    "table2": Accounting(),
    "accounting": AccountingCost(),
    "table4": Slicing(),
    "cap": Cap(),
    "fig10": Sleeper(),
    "decisions": Decisions(),
    "gvim": TwoDevices(),
}
