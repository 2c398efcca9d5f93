# SPDX-License-Identifier: Apache-2.0
"""The loads in passthrough, native against a vGPU in the program itself, in pairs; native against native beside it is the noise.

Everything is tracked as it is elsewhere, so that the vGPU could be moved: that is what the figure is the price of (Crane, figure 5).
"""

import math
import os
import re
import subprocess

from .loads import DEFAULT, prepare
from .stats import abba, geometric_mean, ratios
from .table import Table, ns, ratio
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
    return {"load": CLPEAK, "size": None, "kernel_ns": None, "passthrough": passthrough, "native": native,
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


def sides(figure):
    """The cells of a figure's ratios."""
    return [cell for side in ("passthrough", "native")
            for cell in (ratio(figure[side]["median"]), f"{figure[side]['min']:.2f}..{figure[side]['max']:.2f}")]


def run_section(context):
    if context.stage is None:
        raise BenchError("it needs a staged tree")
    table = Table(f"Passthrough: time of a round over native, {context.pairs} pairs of {context.seconds:g} s",
                  ["kernel", "passthrough", "min..max", "native", "min..max"])
    results = []
    with Passthrough(context.stage, context.driver) as target:
        for spec in context.loads or [*DEFAULT, CLPEAK]:
            r = measure(context, target, spec)
            results.append(r)
            table.row(spec, ns(r["kernel_ns"]) if r["kernel_ns"] else "-", *sides(r))
            for name, figure in r.get("figures", {}).items():
                table.row(f"  {name}", "-", *sides(figure))
            context.progress(f"{spec}: " + ", ".join(f"{s} {r[s]['median']:.3f}" for s in ("passthrough", "native")))
    mean = geometric_mean([r["passthrough"]["median"] for r in results])
    worst = max(r["passthrough"]["median"] for r in results)
    table.row("geometric mean", "", ratio(mean), "", ratio(geometric_mean([r["native"]["median"] for r in results])), "",
              bar=f"at most {MEAN_BAR}", met=mean <= MEAN_BAR)
    table.row("worst", "", ratio(worst), "", ratio(max(r["native"]["median"] for r in results)), "",
              bar=f"at most {EACH_BAR}", met=worst <= EACH_BAR)
    return table, results
