# SPDX-License-Identifier: Apache-2.0
"""The loads, native against Gantry in pairs, and native against native beside it: the second is the noise.

What is compared is the time of a round inside the program, without its start and its kernels' compilation.
"""

import os
import statistics

from .figures import chart, limit, series
from .rows import Findings, Group, barred, figure
from .stats import abba, geometric_mean, ratios
from .targets import run_json

DEFAULT = ["matrixMul@21", "matrixMul", "matrixMul@1600", "BlackScholes", "scan", "histogram",
           "convolutionSeparable", "hotspot", "srad", "pathfinder", "nw", "fastWalshTransform", "cfd", "lavaMD"]

LONG_NS = 100_000
# (geometric mean at most, each at most) for kernels of LONG_NS and more, and for shorter ones
BARS = {True: (1.02, 1.05), False: (1.05, 1.15)}
NOISE = "native over native"


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

    result = {"load": spec, "gantry": [], "native_ns": []} | {
        key: first[key] for key in ("size", "kernel_ns", "async_per_10ms", "sync_per_10ms")}
    if context.gantry is not None:
        # Checked, and not measured: fills Gantry's kernel cache too.
        run_json(context.gantry, [program, name, "--json", "--check", "--iterations", "1", "--size", str(first["size"])])
        result["gantry"] = ratios(abba(context.pairs, lambda: once(context.native), lambda: once(context.gantry)))
    pairs = abba(context.pairs, lambda: once(context.native), lambda: once(context.native))
    return result | {"native": ratios(pairs), "native_ns": [ns for pair in pairs for ns in pair]}


def bar_rows(results):
    """Geometric mean and worst, of the loads' medians."""
    for is_long, what in ((True, "kernels of 100 us and more"), (False, "shorter kernels")):
        group = [r for r in results if (r["kernel_ns"] >= LONG_NS) == is_long]
        if not group:
            continue
        mean_bar, each_bar = BARS[is_long]
        noise = [statistics.median(r["native"]) for r in group]
        measured = [statistics.median(r["gantry"]) for r in group if r["gantry"]]
        mean, worst = (geometric_mean(measured), max(measured)) if measured else (None, None)
        yield barred(f"{what}: geometric mean", mean, at_most=mean_bar, beside=geometric_mean(noise))
        yield barred(f"{what}: worst", worst, at_most=each_bar, beside=max(noise))


def run(context):
    results = []
    for spec in context.loads or DEFAULT:
        results.append(measure_load(context, spec))
        context.progress(f"{spec}: " + ", ".join(f"{s} {statistics.median(results[-1][s]):.3f}"
                                                 for s in ("gantry", "native") if results[-1][s]))
    ratio_rows = [figure(r["load"], r["gantry"], beside=r["native"]) for r in results]
    about = [row for r in results for row in (
        figure(f"{r['load']}: a kernel", r["kernel_ns"], "ns"), figure(f"{r['load']}: a round", r["native_ns"], "ns"),
        figure(f"{r['load']}: asynchronous calls in 10 ms", r["async_per_10ms"], "calls"),
        figure(f"{r['load']}: synchronous calls in 10 ms", r["sync_per_10ms"], "calls"))]
    drawn = chart("points", "", "Time of a round over native", "over native", [
        series("Gantry", {r["load"]: r["gantry"] for r in results}), series(NOISE, {r["load"]: r["native"] for r in results})],
        [limit(BARS[True][1], f"at most {BARS[True][1]} (kernels of 100 us and more)")])
    return Findings("Loads: time of a round over native", [
        Group(rows=[*bar_rows(results), *ratio_rows], beside=NOISE), Group("The loads natively", about)], [drawn], raw=results)
