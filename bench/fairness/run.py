#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments on shares of the device, on this machine: `make bench-fairness`. See docs/fairness.md.

Each experiment's result goes into docs/results as soon as it is measured, so a long campaign may be run in parts. Status 0 when
everything asked for was measured, 1 when not, 2 for a usage error.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fairness.experiments import EXPERIMENTS  # noqa: E402
from fairness.machine import Cores  # noqa: E402
from fairness.programs import LOADS  # noqa: E402
from harness.campaign import Campaign, add_options  # noqa: E402
from harness.rows import Findings, Group  # noqa: E402
from harness.targets import BenchError  # noqa: E402


PAIRS, SECONDS = 11, 2.0


class Context:
    def __init__(self, o, driver):
        self.build = os.path.abspath(o.build)
        self.stage = os.path.abspath(o.stage)
        self.driver = driver
        self.quick = o.quick
        self.quick_pairs = 2
        self.pairs = o.pairs
        self.seconds = o.seconds or (0.6 if o.quick else SECONDS)
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
    add_options(p, "2 pairs of 0.6 s")
    p.add_argument("--stage", help="the staged tree (default: BUILD/stage)")
    p.add_argument("--only", type=words, default=list(EXPERIMENTS), help="experiments, separated by commas: " + ", ".join(EXPERIMENTS))
    p.add_argument("--policy", type=words, default=["fair"], help="policies, separated by commas (default: fair)")
    p.add_argument("--loads", type=words, help="fewer loads, where an experiment goes over several")
    p.add_argument("--pairs", type=int, default=PAIRS, help="pairs of runs (default: 11)")
    p.add_argument("--seconds", type=float, help="length of one run (default: 2)")
    p.add_argument("--no-native", action="store_true", help="nothing natively: a third faster, without the noise beside it")
    p.add_argument("--slice", type=int, metavar="MS", help="gantryd's --slice, to see what it does")
    p.add_argument("--device-core", type=int, help="the core that is the device (default: the first)")
    p.add_argument("--program-cores", type=lambda s: [int(c) for c in s.split(",")], help="the programs' cores (default: the others)")
    o = p.parse_args(arguments)
    o.stage = o.stage or os.path.join(o.build, "stage")
    for name in o.only:
        if name not in EXPERIMENTS:
            p.error(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    for name in o.loads or []:
        if name not in LOADS:
            p.error(f"no load {name!r}; there are {', '.join(LOADS)}")
    if o.pairs < 1 or (o.seconds is not None and o.seconds <= 0):
        p.error("--pairs and --seconds want positive numbers")
    if not os.path.exists(os.path.join(o.stage, "bin/gantryd")):
        p.error(f"{o.stage} holds no bin/gantryd: run `make stage` first")
    return o


def differs_by(o):
    """How this run departs from what the experiments measure by themselves."""
    if "fair" not in o.policy:
        yield f"policies {', '.join(o.policy)}"
    if o.pairs < PAIRS:
        yield f"{o.pairs} pairs instead of {PAIRS}"
    if o.seconds is not None and o.seconds != SECONDS:
        yield f"runs of {o.seconds:g} s instead of {SECONDS:g}"
    if o.no_native:
        yield "nothing natively"
    if o.slice:
        yield f"slices of {o.slice} ms"


def measure(context, name, policies):
    """The experiment under each policy; one that fails leaves the others'."""
    experiment = EXPERIMENTS[name]
    groups, by_policy = [], []
    for policy in policies:
        context.label = f"{name}, {policy}"
        try:
            result = experiment.run(context, policy)
        except BenchError as e:
            groups.append(Group(f"`{policy}`", error=str(e)))
            continue
        by_policy.append((policy, result))
        groups.append(Group(f"`{policy}`", list(experiment.rows(result))))
    return Findings(experiment.title, groups, list(experiment.figures(by_policy)) if by_policy else [], raw=dict(by_policy))


def main():
    o = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="gantry-fairness-cache-") as cache:
        context = Context(o, {"POCL_CACHE_DIR": cache, "POCL_MAX_PTHREAD_COUNT": "1"})
        cores = context.cores
        campaign = Campaign("fairness", o, EXPERIMENTS, o.only, context.quick_pairs if o.quick else context.pairs, context.seconds,
                            [f"core {cores.of_device} is the device, {', '.join(map(str, cores.programs))} the programs'"], differs_by(o))
        for name in o.only:
            some = [f"loads {', '.join(o.loads)}"] if o.loads and getattr(EXPERIMENTS[name], "by_load", False) else []
            campaign.measure(name, lambda of=name: measure(context, of, o.policy), some)
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
