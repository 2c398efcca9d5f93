# SPDX-License-Identifier: Apache-2.0
"""The loads, native against Gantry in pairs, and native against native beside it: the second is the noise.

What is compared is the time of a round inside the program; starting it and compiling its kernels are not in it.
"""

import os

from .stats import abba, geometric_mean, ratios
from .table import Table, ns, ratio
from .targets import run_json

DEFAULT = ["matrixMul@21", "matrixMul", "matrixMul@1600", "BlackScholes", "scan", "histogram",
           "convolutionSeparable", "hotspot", "srad", "pathfinder", "nw", "fastWalshTransform", "cfd", "lavaMD"]

LONG_NS = 100_000
# (geometric mean at most, each at most) for kernels of LONG_NS and more, and for shorter ones
BARS = {True: (1.02, 1.05), False: (1.05, 1.15)}


def prepare(program, spec, native, calibrate):
    """The size that is used on both sides, and the kernel time it has natively. Also fills the kernel cache."""
    name, _, kernel_us = spec.partition("@")
    command = [program, name, "--json", "--check", "--iterations", "1"]
    if kernel_us:
        command += ["--kernel-us", kernel_us]
    elif calibrate:
        command += ["--kernel-us", "table"]
    return name, run_json(native, command)


def measure_load(context, spec):
    program = os.path.join(context.build, "bench/loads/gantry-load")
    name, first = prepare(program, spec, context.native, context.calibrate)
    command = [program, name, "--json", "--no-profile", "--size", str(first["size"]), "--seconds", str(context.seconds)]

    def once(target):
        done = run_json(target, command)
        return done["wall_ns"] / done["iterations"]

    result = {"load": spec, "size": first["size"], "kernel_ns": first["kernel_ns"],
              "async_per_10ms": first["async_per_10ms"], "sync_per_10ms": first["sync_per_10ms"]}
    if context.gantry is not None:
        # Checked, and not measured: fills Gantry's kernel cache too.
        run_json(context.gantry, [program, name, "--json", "--check", "--iterations", "1", "--size", str(first["size"])])
        result["gantry"] = ratios(abba(context.pairs, lambda: once(context.native), lambda: once(context.gantry)))
    result["native"] = ratios(abba(context.pairs, lambda: once(context.native), lambda: once(context.native)))
    return result


def bar_rows(table, results):
    for is_long in (True, False):
        group = [r for r in results if (r["kernel_ns"] >= LONG_NS) == is_long]
        if not group:
            continue
        what = "kernels of 100 us and more" if is_long else "shorter kernels"
        mean_bar, each_bar = BARS[is_long]
        noise = geometric_mean([r["native"]["median"] for r in group])
        measured = [r["gantry"]["median"] for r in group if "gantry" in r]
        mean = geometric_mean(measured) if measured else None
        worst = max(measured) if measured else None
        table.row(f"{what}: geometric mean", "", "", ratio(mean), "", ratio(noise), "", bar=f"at most {mean_bar}",
                  met=None if mean is None else mean <= mean_bar)
        table.row(f"{what}: worst", "", "", ratio(worst), "", ratio(max(r["native"]["median"] for r in group)), "",
                  bar=f"at most {each_bar}", met=None if worst is None else worst <= each_bar)


def run(context):
    table = Table(f"Loads: time of a round over native, {context.pairs} pairs of {context.seconds:g} s",
                  ["kernel", "async/sync in 10 ms", "gantry", "min..max", "native", "min..max"])
    results = []
    for spec in context.loads or DEFAULT:
        r = measure_load(context, spec)
        results.append(r)
        cells = [ns(r["kernel_ns"]), f"{r['async_per_10ms']:.1f}/{r['sync_per_10ms']:.1f}"]
        for side in ("gantry", "native"):
            cells += [ratio(r[side]["median"]), f"{r[side]['min']:.2f}..{r[side]['max']:.2f}"] if side in r else ["-", "-"]
        table.row(spec, *cells)
        context.progress(f"{spec}: " + ", ".join(f"{s} {r[s]['median']:.3f}" for s in ("gantry", "native") if s in r))
    bar_rows(table, results)
    return table, results
