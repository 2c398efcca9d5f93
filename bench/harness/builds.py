# SPDX-License-Identifier: Apache-2.0
"""This build against another one of Gantry, in pairs, and the other one against itself beside it:
the second is the noise. For a change that must not cost speed."""

import os
import statistics

from . import calls, loads
from .figures import chart, series
from .rows import QUARTILE, Findings, Group, barred
from .stats import abba, geometric_mean, quantile, ratios
from .targets import BenchError, Gantry, run_json
from .tcp import Far, median_ns

LOADS = ["matrixMul@21", "matrixMul", "BlackScholes", "scan", "hotspot", "srad", "nw"]
NOISE = "the other build over itself"
# Runs of 1,000 of these calls spread more than others: 0.76 to 1.44 of each other in one campaign.
TCP_TIMES = 3
TCP_COUNT = 2000
TCP_CALLS = {"work_group_info": "a call that is answered", "enqueue": "enqueue without waiting"}


def row_of(what, measured):
    """Missed when three quarters of the pairs are slower than three quarters of the noise."""
    return barred(what, measured["new"], at_most=max(1.0, quantile(measured["old"], 0.75)),
                  text="within the noise", by=QUARTILE, beside=measured["old"])


def in_pairs(n, old, again, new, once):
    """n pairs of each; once gives {what: a time}. {what: {"new": ratios, "old": ratios}}"""
    pairs = {"new": abba(n, lambda: once(old), lambda: once(new)),
             "old": abba(n, lambda: once(old), lambda: once(again))}
    return {what: {key: ratios([(a[what], b[what]) for a, b in of]) for key, of in pairs.items()}
            for what in pairs["new"][0][0]}


def single_calls(context):
    command = [os.path.join(context.build, "bench/calls/bench-calls"), "--json"]

    def once(target):
        figures = run_json(target, command)["figures"]
        return {calls.label((f["name"], f["bytes"])): f["median_ns"] for f in figures}
    return once


def rounds_of(context, spec):
    program = os.path.join(context.build, "bench/loads/gantry-load")
    name, first = loads.prepare(program, spec, context.native, context.calibrate)
    command = [program, name, "--json", "--no-profile", "--size", str(first["size"]),
               "--seconds", str(context.seconds)]

    def once(target):
        done = run_json(target, command)
        return {spec: done["wall_ns"] / done["iterations"]}
    return once


def tcp_calls(context):
    def once(far):
        target = far.at(far.listening())
        return {text: median_ns(target, context, name, TCP_COUNT)
                for name, text in TCP_CALLS.items()}
    return once


def run(context):
    if not context.against:
        raise BenchError("there is no other build: give its staged tree with --against")
    stages = (context.against, context.against, context.stage)
    measured = {"Single calls": {}, "Loads": {}, "Calls over tcp": {}}
    with Gantry(stages[0], context.driver) as old, Gantry(stages[1], context.driver) as again, \
            Gantry(stages[2], context.driver) as new:
        measured["Single calls"] = in_pairs(context.pairs, old, again, new, single_calls(context))
        context.progress("single calls")
        for spec in context.loads or LOADS:
            once = rounds_of(context, spec)
            for target in (old, again, new):
                once(target)  # fills its kernel cache
            measured["Loads"] |= in_pairs(context.pairs, old, again, new, once)
            context.progress(spec)
    with Far(stages[0], context.driver, False) as old, Far(stages[1], context.driver, False) as again, \
            Far(stages[2], context.driver, False) as new:
        measured["Calls over tcp"] = in_pairs(TCP_TIMES * context.pairs, old, again, new,
                                              tcp_calls(context))
        context.progress("tcp")
    mean = {key: [geometric_mean([statistics.median(m[key]) for m in of.values()])
                  for of in measured.values()] for key in ("new", "old")}
    means = [barred(f"{title}: geometric mean", mean["new"][i], at_most=max(1.01, mean["old"][i]),
                    beside=mean["old"][i]) for i, title in enumerate(measured)]
    groups = [Group(rows=means, beside=NOISE)]
    groups += [Group(title, [row_of(what, m) for what, m in of.items()], NOISE)
               for title, of in measured.items()]
    drawn = chart("points", "", "Time over that of the other build", "over the other build", [
        series("this build", {w: m["new"] for of in measured.values() for w, m in of.items()}),
        series(NOISE, {w: m["old"] for of in measured.values() for w, m in of.items()})])
    return Findings(f"Builds: this one over {context.against_name}", groups, [drawn], raw=measured)
