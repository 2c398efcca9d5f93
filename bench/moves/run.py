#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The papers' figures of moves, on this machine: `make bench-move`. See docs/moves.md.

gMig's figures 5 to 16 and Crane's 5 to 8, drawn (gnuplot; SVG and PNG) and in a table beside the papers' numbers. What an experiment gave is kept in a
file of its own, so a campaign may be run in pieces; every run ends with the table of all that is there. Status 0 when everything asked for
was measured, 1 when not, 2 for a usage error.
"""

import argparse
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fairness.machine import Cores  # noqa: E402
from harness import plot  # noqa: E402
from harness.machine import processor  # noqa: E402
from harness.table import MET, MISSED  # noqa: E402
from harness.targets import BenchError, Native  # noqa: E402
from moves.crane import Frames, Switches, Tracking  # noqa: E402
from moves.pages import Course, Filter, Hashes, Samples, Stops  # noqa: E402
from moves.speed import Speed  # noqa: E402

EXPERIMENTS = {"hashes": Hashes(), "stops": Stops(), "speed": Speed(), "samples": Samples(), "filter": Filter(), "course": Course(),
               "tracking": Tracking(), "switches": Switches(), "frames": Frames()}


class Context:
    def __init__(self, o, driver):
        self.build = os.path.abspath(o.build)
        self.stage = os.path.join(self.build, "stage")
        self.driver = driver
        self.native = Native(driver)
        self.quick = o.quick
        self.pairs = 1 if o.quick else o.pairs
        self.seconds = 0.2 if o.quick else o.seconds
        self.calibrate = False
        self.bandwidth = "64M" if o.quick else o.bandwidth
        self.bandwidth_bytes = int(self.bandwidth[:-1]) << 20
        self.cores = Cores()
        self.label = ""

    def progress(self, text):
        print(f"  ... {self.label}: {text}", file=sys.stderr, flush=True)


def parse(arguments):
    p = argparse.ArgumentParser(description="Redraw the papers' figures of moves.")
    p.add_argument("--build", default="build", help="the build folder, with a staged tree in it (default: build)")
    p.add_argument("--out", help="where results and figures go (default: BUILD/bench/moves/figures)")
    p.add_argument("--only", type=lambda s: s.split(","), default=list(EXPERIMENTS), help="experiments, by commas: " + ", ".join(EXPERIMENTS))
    p.add_argument("--pairs", type=int, default=11, help="pairs of runs, where there are pairs (default: 11)")
    p.add_argument("--seconds", type=float, default=1.0, help="length of one run of a load (default: 1)")
    p.add_argument("--bandwidth", default="512M", help="of what is sent ahead, in figure 8 (default: 512M)")
    p.add_argument("--quick", action="store_true", help="little of each: that it works, not a result")
    p.add_argument("--json", metavar="FILE", help="write the table there, too")
    p.add_argument("--report", action="store_true", help="run nothing; table and figures of what is there")
    o = p.parse_args(arguments)
    o.out = o.out or os.path.join(o.build, "bench/moves/figures")
    for name in o.only:
        if name not in EXPERIMENTS:
            p.error(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    if o.pairs < 1 or o.seconds <= 0:
        p.error("--pairs and --seconds want positive numbers")
    if not (o.bandwidth[:-1].isdigit() and o.bandwidth[-1] == "M" and int(o.bandwidth[:-1])):
        p.error("--bandwidth wants mebibytes a second: 512M")
    if not o.report and any(EXPERIMENTS[name].staged for name in o.only) and not os.path.exists(os.path.join(o.build, "stage/bin/gantryd")):
        p.error(f"{o.build}/stage holds no bin/gantryd: run `make stage` first")
    return o


def path_of(out, name):
    return os.path.join(out, name + ".json")


def measure(o):
    """Runs what is asked for; what could not be measured."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="gn-bench-moves-cache-") as cache:
        context = Context(o, {"POCL_CACHE_DIR": cache, "POCL_MAX_PTHREAD_COUNT": "1"})
        for name in o.only:
            context.label = name
            start = time.time()
            try:
                result = EXPERIMENTS[name].run(context)
            except BenchError as e:
                failures.append(f"{name}: {e}")
                print(f"NOT MEASURED: {failures[-1]}", file=sys.stderr, flush=True)
                continue
            kept = {"experiment": name, "quick": o.quick, "took_s": time.time() - start, "load_before": os.getloadavg()[0], "result": result}
            with open(path_of(o.out, name) + ".new", "w") as f:
                json.dump(kept, f)
            os.replace(path_of(o.out, name) + ".new", path_of(o.out, name))
    return failures


def report(out, names):
    """The table and the figures of what is there; (Markdown, rows)."""
    lines = [f"On {processor()}, {os.cpu_count()} cores.", ""]
    rows, scripts = [], []
    for name in names:
        try:
            with open(path_of(out, name)) as f:
                kept = json.load(f)
        except (OSError, ValueError):
            continue
        experiment = EXPERIMENTS[name]
        lines += [f"### {experiment.title}" + (" (a quick look, not a result)" if kept["quick"] else ""), "",
                  "| figure | | the paper | here | bar | |", "| --- | --- | --- | --- | --- | --- |"]
        for r in experiment.rows(kept["result"]):
            verdict = "" if r["met"] is None else MET if r["met"] else f"**{MISSED}**"
            lines.append(f"| {r['figure']} | {r['what']} | {r['paper']} | {r['here']} | {r['bar']} | {verdict} |")
            rows.append(r)
        lines.append("")
        scripts += experiment.scripts(kept["result"])
    files, complaint = plot.draw(out, scripts)
    if files:
        lines += ["Figures: " + ", ".join(os.path.relpath(f, out) for f in files) + f" in {out}.", ""]
    if complaint:
        lines += [complaint, ""]
    text = "\n".join(lines)
    with open(os.path.join(out, "report.md"), "w") as f:
        f.write(text)
    return text, rows


def main():
    o = parse(sys.argv[1:])
    os.makedirs(o.out, exist_ok=True)
    failures = [] if o.report else measure(o)
    text, rows = report(o.out, o.only)
    print(text)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"version": 1, "failures": failures, "rows": rows}, f, indent=1)
            f.write("\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
