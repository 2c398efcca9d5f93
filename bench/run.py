#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Gantry against the driver it serves: prints a table, writes the figures as JSON. See docs/benchmarks.md.

Ends with status 0 when everything asked for was measured, 1 when something could not be (or, with --strict, when a bar
was missed), 2 on a usage error. Bars are printed with every figure that has one.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time

from harness import attacks, calls, data, loads, pages, passthrough, programs, ring, syscalls, tcp
from harness.table import MISSED, NOT_MEASURED
from harness.targets import BenchError, Gantry, Native

SECTIONS = {"ring": ring.run, "calls": calls.run, "data": data.run, "syscalls": syscalls.run_section, "loads": loads.run,
            "passthrough": passthrough.run_section, "programs": programs.run_section, "tcp": tcp.run, "pages": pages.run, "attacks": attacks.run}


class Context:
    """What the sections share."""

    def __init__(self, options, driver):
        self.build = os.path.abspath(options.build)
        self.stage = None if options.stage == "none" else os.path.abspath(options.stage)
        self.driver = driver
        self.quick = options.quick
        self.pairs = options.pairs or (3 if options.quick else 11)
        self.seconds = options.seconds or (0.4 if options.quick else 2.0)
        self.turns = 2 if options.quick else 5
        self.calibrate = options.calibrate
        self.loads = options.loads
        self.native = Native(driver)
        self.gantry = None

    @staticmethod
    def progress(text):
        print(f"  ... {text}", file=sys.stderr, flush=True)


def parse(arguments):
    p = argparse.ArgumentParser(description="Measure Gantry against the driver it serves.")
    p.add_argument("--build", default="build", help="the build folder (default: build)")
    p.add_argument("--stage", help="the staged tree, or 'none' for native figures only (default: BUILD/stage)")
    p.add_argument("--sections", default=",".join(SECTIONS), help="which, separated by commas (default: %(default)s)")
    p.add_argument("--loads", type=lambda s: s.split(","), help="NAME or NAME@KERNEL_US, separated by commas")
    p.add_argument("--pairs", type=int, help="pairs of runs a load (default: 11)")
    p.add_argument("--seconds", type=float, help="length of one run of a load (default: 2)")
    p.add_argument("--quick", action="store_true", help="3 pairs of 0.4 s and fewer calls: a look, not a result")
    p.add_argument("--calibrate", action="store_true", help="size every load to its kernel time in the table here")
    p.add_argument("--threads", type=int, default=1, help="PoCL's threads; 0 leaves PoCL its default (default: 1)")
    p.add_argument("--json", metavar="FILE", help="write the figures there")
    p.add_argument("--strict", action="store_true", help="a missed bar ends in status 1")
    o = p.parse_args(arguments)
    if o.stage is None:
        o.stage = os.path.join(o.build, "stage")
    o.sections = o.sections.split(",")
    for s in o.sections:
        if s not in SECTIONS:
            p.error(f"no section {s!r}; there are {', '.join(SECTIONS)}")
    if (o.pairs is not None and o.pairs < 1) or (o.seconds is not None and o.seconds <= 0) or o.threads < 0:
        p.error("--pairs, --seconds and --threads want positive numbers")
    if o.stage != "none" and not os.path.exists(os.path.join(o.stage, "bin/gantryd")):
        p.error(f"{o.stage} holds no bin/gantryd: run `make stage` first, or give --stage none")
    return o


def processor():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def run_sections(options, context):
    """({section: figures}, verdicts, failures); prints each section's table as it is done."""
    results, verdicts, failures = {}, [], []
    for name in options.sections:
        print(f"{name}:", file=sys.stderr, flush=True)
        try:
            table, results[name] = SECTIONS[name](context)
        except BenchError as e:
            failures.append({"section": name, "error": str(e)})
            print(f"{name}: NOT MEASURED: {e}\n", flush=True)
            continue
        verdicts += table.verdicts()
        print(table, flush=True)
    return results, verdicts, failures


def main():
    options = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="gantry-bench-cache-") as cache:
        driver = {"POCL_CACHE_DIR": cache}
        if options.threads > 0:
            driver["POCL_MAX_PTHREAD_COUNT"] = str(options.threads)
        context = Context(options, driver)
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        load_before = os.getloadavg()[0]
        if context.stage is None:
            results, verdicts, failures = run_sections(options, context)
        else:
            try:
                with Gantry(context.stage, driver) as context.gantry:
                    results, verdicts, failures = run_sections(options, context)
            except BenchError as e:
                results, verdicts, failures = {}, [], [{"section": "all", "error": str(e)}]
                print(f"NOT MEASURED: {e}")
    machine = {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release(),
               "load_before": load_before, "pocl_threads": options.threads or None}
    print(f"On {machine['processor']}, {machine['cores']} cores, load {load_before:.2f} before the run; PoCL threads: "
          f"{options.threads or 'default'}.")
    count = {v: sum(x["verdict"] == v for x in verdicts) for v in ("met", MISSED, NOT_MEASURED)}
    print(f"Bars: {count['met']} met, {count[MISSED]} missed, {count[NOT_MEASURED]} not measured."
          + (" A quick run: a look, not a result." if options.quick else ""))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"version": 1, "start": start, "command": sys.argv, "quick": options.quick, "machine": machine,
                       "bars": verdicts, "failures": failures, **results}, f, indent=1)
            f.write("\n")
    return 1 if failures or (options.strict and count[MISSED]) else 0


if __name__ == "__main__":
    sys.exit(main())
