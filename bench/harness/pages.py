# SPDX-License-Identifier: Apache-2.0
"""The engine that finds changed pages, by bench-pages: the filter before the hash, hashing and sending at
once, the loads' own pages."""

import os

from .figures import chart, limit, series
from .rows import Findings, Group, barred, figure, paper
from .targets import BenchError, run_json

LOADS = ["hotspot", "srad", "cfd", "nw", "scan", "histogram", "lavaMD", "pathfinder"]
MIX_BAR, ANY_BAR = 0.8, 1.02
STOP_BAR, PRECOPY_BAR = 1.1, 1.02


def filter_rows(rows):
    for row in rows:
        name, over = row["name"], row["ratio"]
        if "always" in name:
            yield figure(name, over)
        elif name.startswith("paper"):
            of_paper = paper("gMig, figure 11", 353.5 / 468.6) if name == "paper" else None
            yield barred(name.replace("paper", "gMig's mix"), over, at_most=MIX_BAR, paper=of_paper)
        else:
            yield barred(f"{name} changed", over, at_most=ANY_BAR)


def line_of(row):
    return f"{row['gbit_per_s']:g} Gbit/s" if row["gbit_per_s"] else "memory's speed"


def overlap_groups(overlap):
    rows = []
    for row in overlap["stop"]:
        rows.append(barred(f"{line_of(row)}: at once over the longer of hashing and sending", row["ratio"], at_most=STOP_BAR,
                           paper=paper("gMig, figure 15", 1054.3 / 772.8) if row["gbit_per_s"] == 10 else None))
        rows.append(figure(f"{line_of(row)}: one after the other over the longer", row["sequential"]))
    yield Group("The round that stops, over a modelled line", rows)
    rows = []
    for row in overlap["precopy"]:
        what = f"{line_of(row)}: sent and hashed over sent alone"
        rows.append(barred(what, row["ratio"], at_most=PRECOPY_BAR) if row["gbit_per_s"] else figure(what, row["ratio"]))
    yield Group("Pre-copy", rows)


def load_rows(loads):
    for load in loads:
        s = load["samples"][0]
        changed = s["sampled"] + s["missed"]
        yield figure(f"{load['load']}: changed, of {s['pages']} pages", 100 * changed / s["pages"], "%")
        if changed:
            yield figure(f"{load['load']}: of these told by the first byte", 100 * s["sampled"] / changed, "%")


def run(context):
    program = os.path.join(context.build, "bench/migrate/bench-pages")
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    pairs = ["--pairs", str(context.pairs)]
    size = ["--mib", "64"] if context.quick else []
    raw = {"hash": run_json(context.native, [program, "hash"]),
           "filter": run_json(context.native, [program, "filter", *pairs, *size]),
           "overlap": run_json(context.native, [program, "overlap", *pairs, *size]),
           "loads": [run_json(context.native, [program, "load", name]) for name in LOADS]}
    rows = list(filter_rows(raw["filter"]["rows"]))
    times = [figure(f"{row['name']}: {what}", row[key], "ns") for row in raw["filter"]["rows"]
             for what, key in (("hashing all", "off_ns"), ("with the filter", "on_ns"))]
    drawn = [chart("points", "", "Verifying a page with the filter over hashing all", "over hashing all", [
        series("here", {row["what"]: row for row in rows}),
        series("gMig", {row["what"]: row["paper"]["value"] for row in rows if "paper" in row}, paper=True)],
        [limit(MIX_BAR, f"at most {MIX_BAR} at gMig's mix")]),
        chart("points", "overlap", "Hashing and sending at once over the longer of the two", "over the longer", [
            series("at once", {line_of(row): row["ratio"] for row in raw["overlap"]["stop"]}),
            series("one after the other", {line_of(row): row["sequential"] for row in raw["overlap"]["stop"]}),
            series("gMig, at once", {"10 Gbit/s": 1054.3 / 772.8}, paper=True)], [limit(STOP_BAR, f"at most {STOP_BAR}")])]
    return Findings("Pages: the engine that finds what has changed", [
        Group("The filter before the hash: time of a page over hashing all", rows), Group("Times of a page of 4 KiB", times),
        *overlap_groups(raw["overlap"]), Group("The loads' own pages", list(load_rows(raw["loads"])))], drawn, raw=raw)
