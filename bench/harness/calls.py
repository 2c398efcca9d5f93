# SPDX-License-Identifier: Apache-2.0
"""Single calls by bench-calls, native and Gantry in turn; a figure is the median of each run's calls."""

import os
import statistics

from .figures import chart, series
from .rows import Findings, Group, barred, figure
from .stats import abba
from .targets import run_json

ENQUEUE_BAR_NS = 500
LAUNCH_BAR_NS = 3000

LABELS = {"image_formats": "query: image formats", "work_group_info": "query: work-group info",
          "create_sampler": "create and release a sampler",
          "create_buffer": "create and release a buffer", "event_status": "status of an event",
          "finish_idle": "clFinish, nothing pending", "enqueue": "enqueue without waiting",
          "launch": "empty kernel, launch and clFinish", "launch_parked": "the same, 5 ms apart (parked)"}


def label(figure):
    name, size = figure
    if name in LABELS:
        return LABELS[name]
    return {"read": "blocking read", "write": "blocking write"}[name] + f", {size} B"


def by_figure(runs, key):
    """{(name, bytes): each run's}"""
    collected = {}
    for run_ in runs:
        for f in run_["figures"]:
            collected.setdefault((f["name"], f["bytes"]), []).append(f[key])
    return collected


def row_of(of, native_ns, gantry_ns, wake_ns):
    name, columns = label(of), {"unit": "ns", "beside": native_ns}
    native = statistics.median(native_ns)
    if of[0] == "enqueue":
        return barred(name, gantry_ns, at_most=ENQUEUE_BAR_NS, **columns)
    if of[0] == "launch":
        return barred(name, gantry_ns, at_most=native + LAUNCH_BAR_NS, text="at most native + 3 us", **columns)
    if of[0] == "launch_parked":
        return barred(name, gantry_ns, at_most=native + wake_ns, text="at most native + one wake across cores", **columns)
    return figure(name, gantry_ns, **columns)


def run(context):
    command = [os.path.join(context.build, "bench/calls/bench-calls"), "--json"]
    wake = run_json(context.native, [os.path.join(context.build, "bench/calls/bench-wake"), "--json"])

    def on(target):
        return lambda: run_json(target, command)

    if context.gantry is None:
        native_runs, gantry_runs = [on(context.native)() for _ in range(context.turns)], []
    else:
        native_runs, gantry_runs = zip(*abba(context.turns, on(context.native), on(context.gantry)))
    native, gantry = by_figure(native_runs, "median_ns"), by_figure(gantry_runs, "median_ns")
    rows = [row_of(of, native[of], gantry.get(of), wake["across_cores_ns"]) for of in native]
    drawn = chart("bars", "", "Single calls", "ns", [
        series("Gantry", {row["what"]: row for row in rows if row["values"]}),
        series("native", {row["what"]: row["beside"] for row in rows})], log=True)
    wakes = [figure("one wake of a sleeping process, across cores", wake["across_cores_ns"], "ns"),
             figure("the same on one core", wake["same_core_ns"], "ns")]
    return Findings("Calls: what one costs in the program", [Group(rows=rows, beside="native"), Group("Wakes", wakes)], [drawn],
                    [f"Native and Gantry in turn, {context.turns} runs of bench-calls each; a figure is the median of a run's calls."],
                    {"wake": wake, "native": [*native_runs], "gantry": [*gantry_runs]})
