# SPDX-License-Identifier: Apache-2.0
"""Transfers by `bench-calls --data`: bandwidth through Gantry over native, pair by pair."""

import os

from .calls import by_figure
from .stats import abba, ratios
from .table import Table, ratio
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
        return by_figure([run_json(target, command)], "median_ns")

    pairs = abba(context.pairs, lambda: figures(context.native), lambda: figures(context.gantry))
    noise = abba(context.pairs, lambda: figures(context.native), lambda: figures(context.native))
    table = Table(f"Data: bandwidth over native, {context.pairs} pairs", ["native", "gantry", "min..max", "native/native"])
    results = []
    for name, size in pairs[0][0]:
        # A time of native's over one of Gantry's is a bandwidth of Gantry's over native's.
        r = ratios([(gantry[name, size], native[name, size]) for native, gantry in pairs])
        same = ratios([(b[name, size], a[name, size]) for a, b in noise])
        gb_per_s = size / sorted(native[name, size] for native, _ in pairs)[len(pairs) // 2]
        least = bar_of(name, size)
        table.row(f"{LABELS[name]}, {size // KIB} KiB", f"{gb_per_s:.1f} GB/s", ratio(r["median"]),
                  f"{r['min']:.2f}..{r['max']:.2f}", ratio(same["median"]),
                  bar=f"at least {least}" if least else "", met=r["median"] >= least if least else None)
        results.append({"name": name, "bytes": size, "gantry": r, "native": same})
    return table, results
