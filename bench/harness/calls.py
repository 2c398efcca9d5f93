# SPDX-License-Identifier: Apache-2.0
"""Single calls by bench-calls, native and Gantry in turn; the median over the turns of each figure."""

import os
import statistics

from .stats import abba
from .table import Table, ns
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
    """{(name, bytes): median over the runs}"""
    collected = {}
    for run_ in runs:
        for f in run_["figures"]:
            collected.setdefault((f["name"], f["bytes"]), []).append(f[key])
    return {k: statistics.median(v) for k, v in collected.items()}


def run(context):
    command = [os.path.join(context.build, "bench/calls/bench-calls"), "--json"]
    table = Table(f"Calls: medians, {context.turns} turns each", ["native", "gantry", "p10..p90 on gantry"])

    wake = run_json(context.native, [os.path.join(context.build, "bench/calls/bench-wake"), "--json"])
    wake_ns = wake["across_cores_ns"]

    def on(target):
        return lambda: run_json(target, command)

    if context.gantry is None:
        native_runs, gantry_runs = [on(context.native)() for _ in range(context.turns)], []
    else:
        native_runs, gantry_runs = zip(*abba(context.turns, on(context.native), on(context.gantry)))
    native = by_figure(native_runs, "median_ns")
    gantry = by_figure(gantry_runs, "median_ns")
    low, high = by_figure(gantry_runs, "p10_ns"), by_figure(gantry_runs, "p90_ns")
    for figure, native_ns in native.items():
        value = gantry.get(figure)
        bar, met = "", None
        if figure[0] == "enqueue":
            bar, met = f"at most {ENQUEUE_BAR_NS} ns", None if value is None else value <= ENQUEUE_BAR_NS
        elif figure[0] == "launch":
            bar, met = "native + 3 us", None if value is None else value <= native_ns + LAUNCH_BAR_NS
        elif figure[0] == "launch_parked":
            bar, met = f"native + one wake ({ns(wake_ns)})", None if value is None else value <= native_ns + wake_ns
        spread = f"{ns(low[figure])}..{ns(high[figure])}" if figure in low else "-"
        table.row(label(figure), ns(native_ns), ns(value), spread, bar=bar, met=met)
    table.row("one wake of a sleeping process, across cores", ns(wake_ns))
    table.row("the same on one core", ns(wake["same_core_ns"]))
    return table, {"wake": wake, "native": [*native_runs], "gantry": [*gantry_runs]}
