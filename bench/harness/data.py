# SPDX-License-Identifier: Apache-2.0
"""Transfers by `bench-calls --data`: bandwidth through Gantry over native, pair by pair."""

import os

from .calls import by_figure
from .figures import chart, limit, series
from .rows import Findings, Group, barred, figure
from .stats import abba, ratios
from .targets import BenchError, run_json

KIB, MIB = 1 << 10, 1 << 20
LABELS = {"read": "blocking read", "write": "blocking write", "map": "map, change every byte, unmap",
          "map_pinned": "the same, CL_MEM_ALLOC_HOST_PTR"}


def bar_of(name, size):
    """The least part of native's bandwidth; None: no bar."""
    if name in ("map", "map_pinned"):
        return 0.95 if size >= MIB else None
    return 0.9 if size >= 4 * MIB else 0.6 if size >= MIB else None


def run(context):
    if context.gantry is None:
        raise BenchError("ratios need Gantry: give a staged tree")
    command = [os.path.join(context.build, "bench/calls/bench-calls"), "--data", "--json"]

    def figures(target):
        return {k: v[0] for k, v in by_figure([run_json(target, command)], "median_ns").items()}

    pairs = abba(context.pairs, lambda: figures(context.native), lambda: figures(context.gantry))
    noise = abba(context.pairs, lambda: figures(context.native), lambda: figures(context.native))
    rows, rates, drawn = [], [], {name: {} for name in LABELS}
    for name, size in pairs[0][0]:
        # A time of native's over one of Gantry's is a bandwidth of Gantry's over native's.
        over = ratios([(gantry[name, size], native[name, size]) for native, gantry in pairs])
        same = ratios([(b[name, size], a[name, size]) for a, b in noise])
        what, least = f"{LABELS[name]}, {size // KIB} KiB", bar_of(name, size)
        rows.append(barred(what, over, at_least=least, beside=same) if least else figure(what, over, beside=same))
        rates.append(figure(what, [size / native[name, size] for native, _ in pairs], "GB/s"))
        drawn[name][f"{size // KIB} KiB"] = over
    return Findings("Data: bandwidth over native", [Group(rows=rows, beside="native over native"), Group("Native bandwidth", rates)],
                    [chart("bars", "", "Bandwidth of transfers over native", "over native",
                           [series(LABELS[name], values) for name, values in drawn.items()],
                           [limit(0.9, "at least 0.9 (reads, writes from 4 MiB)")])],
                    raw={"pairs": [[named(side) for side in pair] for pair in pairs]})


def named(side):
    return {f"{name} {size}": ns for (name, size), ns in side.items()}
