#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The papers' figures of migrations, on this machine: `make bench-move`. See docs/moves.md.

gMig's figures 5 to 16 and Crane's 5 to 8. Each experiment's result goes into docs/results as
soon as it is measured, so a campaign may be run in parts. Status 0 when everything asked for was
measured, 1 when not, 2 for a usage error.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fairness.machine import Cores  # noqa: E402
from harness.campaign import Campaign, add_options  # noqa: E402
from harness.rows import Findings, Group  # noqa: E402
from harness.targets import Native  # noqa: E402
from moves.experiments import EXPERIMENTS  # noqa: E402

PAIRS, SECONDS, BANDWIDTH = 11, 1.0, "512M"


class Context:
    def __init__(self, o, driver):
        self.build = os.path.abspath(o.build)
        self.stage = os.path.join(self.build, "stage")
        self.driver = driver
        self.native = Native(driver)
        self.quick = o.quick
        self.pairs = 2 if o.quick else o.pairs
        self.turns = 2 if o.quick else 5
        self.seconds = 0.2 if o.quick else o.seconds
        self.calibrate = False
        self.bandwidth = "64M" if o.quick else o.bandwidth
        self.bandwidth_bytes = int(self.bandwidth[:-1]) << 20
        self.cores = Cores()
        self.label = ""

    def progress(self, text):
        print(f"  ... {self.label}: {text}", file=sys.stderr, flush=True)


def parse(arguments):
    p = argparse.ArgumentParser(description="Measure the papers' figures of migrations.")
    add_options(p, "2 pairs, fewer loads, less memory")
    p.add_argument("--only", type=lambda s: s.split(","), default=list(EXPERIMENTS),
                   help="experiments, separated by commas: " + ", ".join(EXPERIMENTS))
    p.add_argument("--pairs", type=int, default=PAIRS,
                   help="pairs of runs, where there are pairs (default: 11)")
    p.add_argument("--seconds", type=float, default=SECONDS,
                   help="length of one run of a load (default: 1)")
    p.add_argument("--bandwidth", default=BANDWIDTH,
                   help="of what `speed` sends ahead, a second (default: 512M)")
    o = p.parse_args(arguments)
    for name in o.only:
        if name not in EXPERIMENTS:
            p.error(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    if o.pairs < 1 or o.seconds <= 0:
        p.error("--pairs and --seconds want positive numbers")
    if not (o.bandwidth[:-1].isdigit() and o.bandwidth[-1] == "M" and int(o.bandwidth[:-1])):
        p.error("--bandwidth wants mebibytes a second: 512M")
    if any(EXPERIMENTS[name].staged
           for name in o.only) and not os.path.exists(os.path.join(o.build, "stage/bin/gantryd")):
        p.error(f"{o.build}/stage holds no bin/gantryd: run `make stage` first")
    return o


def differs_by(o):
    """How this run departs from what the experiments measure by themselves."""
    if o.pairs < PAIRS:
        yield f"{o.pairs} pairs instead of {PAIRS}"
    if o.seconds != SECONDS:
        yield f"runs of {o.seconds:g} s instead of {SECONDS:g}"


def measure(context, name):
    context.label = name
    experiment = EXPERIMENTS[name]
    data = experiment.run(context)
    return Findings(experiment.title,
                    [Group(rows=list(experiment.rows(data)),
                           beside=getattr(experiment, "beside", ""))],
                    list(experiment.figures(data)),
                    [f"Where there are no pairs, each figure is of {context.turns} runs."],
                    raw=data)


def main():
    o = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="gn-bench-moves-cache-") as cache:
        context = Context(o, {"POCL_CACHE_DIR": cache, "POCL_MAX_PTHREAD_COUNT": "1"})
        campaign = Campaign("moves", o, EXPERIMENTS, o.only, context.pairs, context.seconds,
                            ["PoCL threads: 1"], differs_by(o))
        for name in o.only:
            differs = []
            if name == "speed" and o.bandwidth != BANDWIDTH:
                differs = [f"sent ahead at {o.bandwidth}/s instead of {BANDWIDTH}"]
            campaign.measure(name, lambda of=name: measure(context, of), differs)
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
