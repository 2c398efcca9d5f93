#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DymGPU's figures 7 to 9 in virtual time: `make bench-memory`. See docs/memory.md.

Simulates with `gantry sim`, so the figures are the same on every machine. Status 0 when all was
simulated, 1 when not, 2 for a usage error.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.campaign import Campaign, add_options  # noqa: E402
from harness.rows import Findings, Group  # noqa: E402
from memory.experiments import EXPERIMENTS  # noqa: E402

BATCHES, ORDERS, SECONDS = 5, 12, 200


class Context:
    def __init__(self, o):
        self.gantry = os.path.abspath(o.gantry)
        self.batches = 2 if o.quick else BATCHES
        self.orders = 2 if o.quick else ORDERS
        self.seconds = 40 if o.quick else SECONDS


def parse(arguments):
    p = argparse.ArgumentParser(description="Simulate DymGPU's figures 7 to 9.")
    add_options(p, "2 batches of 2 orders, 40 s each")
    p.add_argument("--only", type=lambda s: s.split(","), default=list(EXPERIMENTS),
                   help="experiments, separated by commas: " + ", ".join(EXPERIMENTS))
    p.add_argument("--gantry", help="the command (default: BUILD/stage/bin/gantry)")
    p.add_argument("--strict", action="store_true", help="a missed bar ends in status 1")
    o = p.parse_args(arguments)
    for name in o.only:
        if name not in EXPERIMENTS:
            p.error(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    o.gantry = o.gantry or os.path.join(o.build, "stage/bin/gantry")
    if not os.path.exists(o.gantry):
        p.error(f"there is no {o.gantry}: run `make stage` first")
    return o


def measure(context, names):
    groups, figures, raw = [], [], {}
    for name in names:
        print(f"  ... {name}", file=sys.stderr, flush=True)
        experiment = EXPERIMENTS[name]
        raw[name] = data = experiment.run(context)
        groups.append(Group(experiment.title, list(experiment.rows(data))))
        figures += experiment.figures(data)
    # The first picture stands for the result in a list.
    figures[0]["name"] = ""
    return Findings(
        "Device memory for more vGPUs than fit, in virtual time (DymGPU figures 7 to 9)", groups,
        figures,
        [f"Each figure is of {context.batches} batches; a batch is {context.orders} orders of "
         f"creating the vGPUs, {context.seconds} simulated seconds each. docs/memory.md describes "
         "the device, the loads, which are guesses, and the bound."], raw)


def main():
    o = parse(sys.argv[1:])
    context = Context(o)
    differs = [] if o.only == list(EXPERIMENTS) else [f"only {', '.join(o.only)}"]
    campaign = Campaign("bench", o, ["memory"], ["memory"], context.batches, context.seconds,
                        ["virtual time: no device"], differs)
    campaign.measure("memory", lambda: measure(context, o.only))
    return campaign.end(o.strict)


if __name__ == "__main__":
    sys.exit(main())
