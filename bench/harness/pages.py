# SPDX-License-Identifier: Apache-2.0
"""The engine of moves by bench-pages: the filter before the hash, hashing and sending at once, the loads' own pages."""

import os

from .table import Table
from .targets import BenchError, run_json

LOADS = ["hotspot", "srad", "cfd", "nw", "scan", "histogram", "lavaMD", "pathfinder"]


def ns(value):
    return f"{value:.0f}"


def run(context):
    program = os.path.join(context.build, "bench/migrate/bench-pages")
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    pairs = ["--pairs", str(context.pairs)]
    size = ["--mib", "64"] if context.quick else []
    figures = {"hash": run_json(context.native, [program, "hash"]),
               "filter": run_json(context.native, [program, "filter", *pairs, *size]),
               "overlap": run_json(context.native, [program, "overlap", *pairs, *size]),
               "loads": [run_json(context.native, [program, "load", name]) for name in LOADS]}
    table = Table(f"Pages of a move, ns a page (4 KiB); ratios: medians of {context.pairs} interleaved pairs",
                  ["without", "with", "ratio", "p90"])
    for row in figures["filter"]["rows"]:
        ratio = row["ratio"]
        cells = (ns(row["off_ns"]), ns(row["on_ns"]), f"{ratio['median']:.3f}", f"{ratio['p90']:.3f}")
        if "always" in row["name"]:
            table.row(f"filter: {row['name']}", *cells)
        elif row["name"].startswith("paper"):
            table.row(f"filter: {row['name']}", *cells, bar="at most 0.8", met=ratio["median"] <= 0.8)
        else:
            table.row(f"filter: {row['name']} changed", *cells, bar="at most 1.02", met=ratio["median"] <= 1.02)
    for row in figures["overlap"]["stop"]:
        line = f"{row['gbit_per_s']:g} Gbit/s" if row["gbit_per_s"] else "memory"
        table.row(f"stop over {line}: longer of hash, send; both", ns(max(row["hash_ns"], row["send_ns"])), ns(row["overlapped_ns"]),
                  f"{row['ratio']['median']:.3f}", f"{row['ratio']['p90']:.3f}", bar="at most 1.1", met=row["ratio"]["median"] <= 1.1)
        table.row("  one after the other", "", ns(row["sequential_ns"]), f"{row['sequential']['median']:.3f}",
                  f"{row['sequential']['p90']:.3f}")
    for row in figures["overlap"]["precopy"]:
        line = f"{row['gbit_per_s']:g} Gbit/s" if row["gbit_per_s"] else "memory"
        bar = {"bar": "at most 1.02", "met": row["ratio"]["median"] <= 1.02} if row["gbit_per_s"] else {}
        table.row(f"pre-copy over {line}: sent; and hashed", ns(row["send_ns"]), ns(row["hashed_ns"]), f"{row['ratio']['median']:.3f}",
                  f"{row['ratio']['p90']:.3f}", **bar)
    for load in figures["loads"]:
        s = load["samples"][0]
        changed = s["sampled"] + s["missed"]
        table.row(f"{load['load']}: {s['pages']} pages, {changed} changed (side by side: {load['run']:.0f}), told by the first byte",
                  "", "", f"{s['sampled'] / changed:.3f}" if changed else "-", "")
    return table, figures
