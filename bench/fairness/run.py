#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments on shares of the device, on this machine: `make bench-fairness`. See docs/fairness.md.

Results of each experiment and policy are kept in a file of their own, so a long campaign may be run in pieces; every run ends with the
tables of all that is there. Status 0 when everything asked for was measured, 1 when not, 2 for a usage error.
"""

import argparse
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fairness import report  # noqa: E402
from fairness.experiments import EXPERIMENTS  # noqa: E402
from fairness.machine import Cores  # noqa: E402
from fairness.programs import LOADS  # noqa: E402
from harness.targets import BenchError  # noqa: E402


class Context:
    def __init__(self, o, driver):
        self.build = os.path.abspath(o.build)
        self.stage = os.path.abspath(o.stage)
        self.driver = driver
        self.quick = o.quick
        self.quick_pairs = 2
        self.pairs = o.pairs
        self.seconds = o.seconds or (0.6 if o.quick else 2.0)
        self.loads = o.loads
        self.native = not o.no_native
        self.cores = Cores(o.device_core, o.program_cores)
        self.daemon_options = ["--slice", str(o.slice)] if o.slice else []
        self.label = ""

    def progress(self, text):
        print(f"  ... {self.label}: {text}", file=sys.stderr, flush=True)


def words(text):
    return text.split(",")


def parse(arguments):
    p = argparse.ArgumentParser(description="Rerun the papers' experiments on shares of the device.")
    p.add_argument("--build", default="build", help="the build folder (default: build)")
    p.add_argument("--stage", help="the staged tree (default: BUILD/stage)")
    p.add_argument("--out", help="where results and figures go (default: BUILD/bench/fairness)")
    p.add_argument("--only", type=words, default=list(EXPERIMENTS), help="experiments, separated by commas: " + ", ".join(EXPERIMENTS))
    p.add_argument("--policy", type=words, default=["fair"], help="policies, separated by commas (default: fair)")
    p.add_argument("--loads", type=words, help="fewer loads, where an experiment goes over several")
    p.add_argument("--pairs", type=int, default=11, help="pairs of runs (default: 11)")
    p.add_argument("--seconds", type=float, help="length of one run (default: 2)")
    p.add_argument("--quick", action="store_true", help="2 pairs of 0.6 s: a look, not a result")
    p.add_argument("--no-native", action="store_true", help="nothing natively: a third faster, without the noise beside it")
    p.add_argument("--slice", type=int, metavar="MS", help="gantryd's --slice, to see what it does; better kept apart by --out")
    p.add_argument("--device-core", type=int, help="the core that is the device (default: the first)")
    p.add_argument("--program-cores", type=lambda s: [int(c) for c in s.split(",")], help="the programs' cores (default: the others)")
    p.add_argument("--json", metavar="FILE", help="write all figures there, too")
    p.add_argument("--report", action="store_true", help="run nothing; tables and figures of what is there")
    o = p.parse_args(arguments)
    o.stage = o.stage or os.path.join(o.build, "stage")
    o.out = o.out or os.path.join(o.build, "bench/fairness")
    for name in o.only:
        if name not in EXPERIMENTS:
            p.error(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    for name in o.loads or []:
        if name not in LOADS:
            p.error(f"no load {name!r}; there are {', '.join(LOADS)}")
    if o.pairs < 1 or (o.seconds is not None and o.seconds <= 0):
        p.error("--pairs and --seconds want positive numbers")
    if not o.report and not os.path.exists(os.path.join(o.stage, "bin/gantryd")):
        p.error(f"{o.stage} holds no bin/gantryd: run `make stage` first")
    return o


def measure(o, context):
    """Runs what is asked for; what could not be measured."""
    failures = []
    for policy in o.policy:
        for name in o.only:
            context.label = f"{name}, {policy}"
            print(context.label, file=sys.stderr, flush=True)
            start = time.time()
            kept = {"experiment": name, "policy": policy, "quick": o.quick, "command": sys.argv, "seconds": context.seconds,
                    "pairs": context.quick_pairs if o.quick else o.pairs, "load_before": os.getloadavg()[0]}
            try:
                kept["result"] = EXPERIMENTS[name].run(context, policy)
            except BenchError as e:
                failures.append(f"{context.label}: {e}")
                print(f"NOT MEASURED: {failures[-1]}", file=sys.stderr, flush=True)
                kept["error"] = str(e)
            kept["took_s"] = time.time() - start
            report.keep(o.out, kept)
            print(f"{context.label}: took {kept['took_s']:.0f} s", file=sys.stderr, flush=True)
    return failures


def main():
    o = parse(sys.argv[1:])
    os.makedirs(o.out, exist_ok=True)
    failures = []
    if not o.report:
        with tempfile.TemporaryDirectory(prefix="gantry-fairness-cache-") as cache:
            context = Context(o, {"POCL_CACHE_DIR": cache, "POCL_MAX_PTHREAD_COUNT": "1"})
            failures = measure(o, context)
    text, figures = report.write(o.out, o.only, o.policy)
    print(text)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"version": 1, "failures": failures, **figures}, f, indent=1)
            f.write("\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
