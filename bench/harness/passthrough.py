# SPDX-License-Identifier: Apache-2.0
"""The loads in passthrough, native against a vGPU in the program itself, in pairs; native against native beside it is the noise.

Everything is tracked as it is elsewhere, so that the vGPU could be moved: that is what the figure is the price of (Crane, figure 5).
"""

import math
import os
import re
import statistics
import subprocess

from .figures import chart, limit, series
from .loads import DEFAULT, NOISE, prepare
from .rows import Findings, Group, barred, figure
from .stats import abba, geometric_mean, ratios
from .targets import BenchError, Gantry, run, run_json

MEAN_BAR, EACH_BAR = 1.01, 1.03
CLPEAK = "clpeak"
# What it computes takes a minute a run, and says nothing of the calls before it.
CLPEAK_COMMAND = [CLPEAK, "--global-bandwidth", "--transfer-bandwidth", "--kernel-latency"]
CLPEAK_S = 300
# On a device that works on the host's memory these move nothing: a rate of nothing, inf at times.
CLPEAK_NOTHING = ("enqueueMapBuffer(for read)", "enqueueUnmap(after write)")


class Passthrough(Gantry):
    """The driver is in the program, which gets the driver's settings, too."""

    name = "passthrough"

    def environment(self):
        return super().environment() | self.driver | {"GANTRY_MODE": "passthrough"}

    def start(self):
        super().start()
        allowed = subprocess.run([os.path.join(self.stage, "bin/gantry"), "tenant", "set", "default", "--mode", "remote", "--mode",
                                  "passthrough", "--connect", self.address], capture_output=True, text=True, timeout=30)
        if allowed.returncode:
            self.stop()
            raise BenchError("passthrough is not allowed: " + allowed.stderr.strip())
        return self


def clpeak(where):
    """What clpeak prints, by name, as times: what it gives as a rate is turned over."""
    out, _ = run(where, CLPEAK_COMMAND, CLPEAK_S)
    figures = re.findall(r"^ +([\w ()-]+?) *: (\d+\.\d+|inf)( us)?$", out, re.MULTILINE)
    times = {name: float(value) if time else 1 / float(value) for name, value, time in figures if name not in CLPEAK_NOTHING}
    nothing = [name for name, time in times.items() if not 0 < time < math.inf]
    if not times or nothing:
        raise BenchError("clpeak printed no figure of use" + (f" for {nothing[0]}" if nothing else ""))
    return times


def clpeak_ratios(pairs):
    """A pair is as many figures; its ratio is their geometric mean."""
    figures = {name: ratios([(a[name], b[name]) for a, b in pairs]) for name in pairs[0][0]}
    whole = ratios([tuple(geometric_mean(times.values()) for times in pair) for pair in pairs])
    return whole, figures


def measure_clpeak(context, target):
    for where in (target, context.native):
        clpeak(where)  # compiles its kernels
    passthrough, figures = clpeak_ratios(abba(context.pairs, lambda: clpeak(context.native), lambda: clpeak(target)))
    native, native_figures = clpeak_ratios(abba(context.pairs, lambda: clpeak(context.native), lambda: clpeak(context.native)))
    return {"load": CLPEAK, "passthrough": passthrough, "native": native,
            "figures": {name: {"passthrough": figures[name], "native": native_figures[name]} for name in figures}}


def measure(context, target, spec):
    if spec == CLPEAK:
        return measure_clpeak(context, target)
    program = os.path.join(context.build, "bench/loads/gantry-load")
    name, first = prepare(program, spec, context.native, context.calibrate)
    size = ["--size", str(first["size"])]
    command = [program, name, "--json", "--no-profile", *size, "--seconds", str(context.seconds)]

    def once(where):
        done = run_json(where, command)
        return done["wall_ns"] / done["iterations"]

    run_json(target, [program, name, "--json", "--check", "--iterations", "1", *size])  # checked, not measured
    return {"load": spec, "size": first["size"], "kernel_ns": first["kernel_ns"],
            "passthrough": ratios(abba(context.pairs, lambda: once(context.native), lambda: once(target))),
            "native": ratios(abba(context.pairs, lambda: once(context.native), lambda: once(context.native)))}


def summary_rows(results, mean_bar=MEAN_BAR, each_bar=EACH_BAR, paper_mean=None, paper_worst=None):
    """Geometric mean and worst, of the medians."""
    medians = {side: [statistics.median(r[side]) for r in results] for side in ("passthrough", "native")}
    yield barred("geometric mean", geometric_mean(medians["passthrough"]), at_most=mean_bar,
                 beside=geometric_mean(medians["native"]), paper=paper_mean)
    yield barred("worst", max(medians["passthrough"]), at_most=each_bar, beside=max(medians["native"]), paper=paper_worst)


def run_section(context):
    if context.stage is None:
        raise BenchError("it needs a staged tree")
    results = []
    with Passthrough(context.stage, context.driver) as target:
        for spec in context.loads or [*DEFAULT, CLPEAK]:
            results.append(measure(context, target, spec))
            context.progress(f"{spec}: " + ", ".join(f"{s} {statistics.median(results[-1][s]):.3f}" for s in ("passthrough", "native")))
    groups = [Group(rows=[*summary_rows(results), *(figure(r["load"], r["passthrough"], beside=r["native"]) for r in results)],
                    beside=NOISE)]
    parts = [figure(name, f["passthrough"], beside=f["native"]) for r in results for name, f in r.get("figures", {}).items()]
    if parts:
        groups.append(Group("What clpeak prints, as times", parts, NOISE))
    drawn = chart("points", "", "Passthrough: time of a round over native", "over native", [
        series("passthrough", {r["load"]: r["passthrough"] for r in results}),
        series(NOISE, {r["load"]: r["native"] for r in results})], [limit(EACH_BAR, f"at most {EACH_BAR}")])
    return Findings("Passthrough: time of a round over native", groups, [drawn], raw=results)
