# SPDX-License-Identifier: Apache-2.0
"""The ring by bench-ring: a null call, the bare ping-pong beneath it, a Unix socket instead of it, all in one run."""

import os
import statistics

from .table import Table, ns
from .targets import BenchError, run_json

# (what, bench-ring's key, the bar, whether the figure is to stay below it)
RATIOS = [
    ("null call over bare ping-pong", "null_call_to_pingpong", 2.0, True),
    ("Unix socket over null call", "unix_socket_to_null_call", 20.0, False),
]


def run(context):
    program = os.path.join(context.build, "bench/ring/bench-ring")
    table = Table(f"Ring: medians of {context.turns} runs, a processor each", ["one call", "best", "worst"])
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    runs = [run_json(context.native, [program, "--pin", "--json"]) for _ in range(context.turns)]

    def median(key):
        return statistics.median(r[key] for r in runs)

    for key in (k[:-len("_best_ns")] for k in runs[0] if k.endswith("_best_ns")):
        table.row(key.replace("_", " "), *(ns(median(key + end)) for end in ("_ns", "_best_ns", "_worst_ns")))
    for what, key, bar, below in RATIOS:
        value = median(key)
        table.row(what, f"{value:.2f}", bar=f"{'at most' if below else 'at least'} {bar:g}",
                  met=value <= bar if below else value >= bar)
    return table, runs
