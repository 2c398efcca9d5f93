#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Gantry against the driver it serves: `make bench`. See docs/benchmarks.md.

Each section's result goes into docs/results as soon as it is measured. Ends with status 0 when everything asked
for was measured, 1 when something could not be (or, with --strict, when a bar was missed), 2 on a usage error.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True

from harness import attacks, builds, calls, data, loads, pages, passthrough, programs, ring, syscalls, tcp  # noqa: E402
from harness.campaign import Campaign, add_options  # noqa: E402
from harness.targets import BenchError, Gantry, Native  # noqa: E402

SECTIONS = {"ring": ring.run, "calls": calls.run, "data": data.run, "syscalls": syscalls.run_section, "loads": loads.run,
            "passthrough": passthrough.run_section, "programs": programs.run_section, "tcp": tcp.run, "pages": pages.run, "attacks": attacks.run}
OF_LOADS = ("loads", "passthrough")
OF_BUILDS = {"builds": builds.run}  # instead, with --against
PAIRS, SECONDS = 11, 2.0


class Context:
    """What the sections share."""

    def __init__(self, options, driver):
        self.build = os.path.abspath(options.build)
        self.stage = None if options.stage == "none" else os.path.abspath(options.stage)
        self.driver = driver
        self.quick = options.quick
        self.pairs = options.pairs or (3 if options.quick else PAIRS)
        self.seconds = options.seconds or (0.4 if options.quick else SECONDS)
        self.turns = 2 if options.quick else 5
        self.calibrate = options.calibrate
        self.loads = options.loads
        self.native = Native(driver)
        self.against = options.against
        self.against_name = options.against_name
        self.gantry = None

    @staticmethod
    def progress(text):
        print(f"  ... {text}", file=sys.stderr, flush=True)


def parse(arguments):
    p = argparse.ArgumentParser(description="Measure Gantry against the driver it serves.")
    add_options(p, "3 pairs of 0.4 s and fewer calls")
    p.add_argument("--stage", help="the staged tree, or 'none' for native figures only (default: BUILD/stage)")
    p.add_argument("--sections", help=f"which, separated by commas (default: {','.join(SECTIONS)})")
    p.add_argument("--loads", type=lambda s: s.split(","), help="NAME or NAME@KERNEL_US, separated by commas")
    p.add_argument("--pairs", type=int, help="pairs of runs a load (default: 11)")
    p.add_argument("--seconds", type=float, help="length of one run of a load (default: 2)")
    p.add_argument("--calibrate", action="store_true", help="size every load to its kernel time in the table here")
    p.add_argument("--threads", type=int, default=1, help="PoCL's threads; 0 leaves PoCL its default (default: 1)")
    p.add_argument("--against", metavar="STAGE", type=os.path.abspath,
                   help="compare with another build's staged tree: its section, and no other")
    p.add_argument("--against-name", metavar="NAME", default="another one", help="its commit, for the result")
    p.add_argument("--strict", action="store_true", help="a missed bar ends in status 1")
    o = p.parse_args(arguments)
    if o.stage is None:
        o.stage = os.path.join(o.build, "stage")
    o.available = OF_BUILDS if o.against else SECTIONS
    o.sections = (o.sections or ",".join(o.available)).split(",")
    for s in o.sections:
        if s not in o.available:
            p.error(f"no section {s!r}; there are {', '.join(o.available)}")
    if (o.pairs is not None and o.pairs < 1) or (o.seconds is not None and o.seconds <= 0) or o.threads < 0:
        p.error("--pairs, --seconds and --threads want positive numbers")
    if o.against and o.stage == "none":
        p.error("--against compares with a staged tree: leave --stage none out")
    for stage in (o.stage, o.against):
        if stage in (None, "none") or os.path.exists(os.path.join(stage, "bin/gantryd")):
            continue
        p.error(f"{stage} holds no bin/gantryd: run `make stage` there first")
    return o


def differs_by(options):
    """How this run departs from what the sections measure by themselves."""
    if options.stage == "none":
        yield "native figures only"
    if options.threads != 1:
        yield "PoCL's own number of threads" if options.threads == 0 else f"{options.threads} PoCL threads"
    if options.pairs is not None and options.pairs < PAIRS:
        yield f"{options.pairs} pairs instead of {PAIRS}"
    if options.seconds is not None and options.seconds != SECONDS:
        yield f"runs of {options.seconds:g} s instead of {SECONDS:g}"


def run_sections(options, context, campaign):
    for name in options.sections:
        differs = []
        if name in OF_LOADS:
            differs += [f"loads {', '.join(options.loads)}"] if options.loads else []
            differs += ["loads sized by their kernels' times"] if options.calibrate else []
        campaign.measure(name, lambda section=options.available[name]: section(context), differs)


def main():
    options = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="gantry-bench-cache-") as cache:
        driver = {"POCL_CACHE_DIR": cache}
        if options.threads > 0:
            driver["POCL_MAX_PTHREAD_COUNT"] = str(options.threads)
        context = Context(options, driver)
        campaign = Campaign("bench", options, options.available, options.sections, context.pairs, context.seconds,
                            [f"PoCL threads: {options.threads or 'its own number'}"], differs_by(options))
        if context.stage is None or context.against:
            run_sections(options, context, campaign)
        else:
            try:
                with Gantry(context.stage, driver) as context.gantry:
                    run_sections(options, context, campaign)
            except BenchError as e:
                campaign.fail(str(e))
    return campaign.end(options.strict)


if __name__ == "__main__":
    sys.exit(main())
