#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Launches in parts tell a program nothing: cut.c natively, and through a gantryd that cuts all it can.

    slicing_test.py STAGE CUT same       what it prints is the driver's, whatever the parts
    slicing_test.py STAGE CUT shared     two programs under a policy: the long one's launches are cut, and right
"""

import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))

import daemon   # noqa: E402

SKIP = 77
PATIENCE_S = 240
# One thread, so that what kernels print has one order; and the method that compiles barriers right.
DRIVER = {"POCL_WORK_GROUP_METHOD": "loops", "POCL_MAX_PTHREAD_COUNT": "1"}
WHAT = ("ids", "facts", "events", "whole")
# Parts of so many groups; how many launches are cut at least, and at most (None: any number).
KNOBS = {7: {"ids": (24, None), "facts": (1, 1), "events": (34, None), "whole": (0, 0)},
         500: {"ids": (6, None), "facts": (1, 1), "events": (32, None), "whole": (0, 0)}}
WRONG = re.compile(r"\b[1-9]\d* wrong,|wrong [1-9]")
CUT = re.compile(r"Launch of \d+ groups goes in parts")


def run(cut, what, env, *more):
    return subprocess.run([cut, what, *more], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S)


def native_env():
    return {**daemon.clean_env(), **DRIVER, "POCL_CACHE_DIR": daemon.shared_kernels("native-loops")}


def cut_in(gantry):
    """How many launches were cut so far; all that have ended are in the log by then."""
    return len(CUT.findall(gantry.log()))


def same(stage, cut):
    failures = []
    with tempfile.TemporaryDirectory() as work:
        expected = {what: run(cut, what, native_env()) for what in WHAT}
        for what, result in expected.items():
            if result.returncode or not result.stdout.endswith("end\n"):
                failures.append("{} natively: status {}\n{}".format(what, result.returncode, result.stdout))
            wrong = [line for line in result.stdout.splitlines() if WRONG.search(line)]
            if wrong:
                failures.append("{} natively: {}".format(what, wrong))
        for groups, bounds in KNOBS.items():
            settings = {**DRIVER, "GANTRY_SLICE_GROUPS": str(groups), "GANTRY_LOG": "debug"}
            for what in WHAT:
                name = "{} in parts of {}".format(what, groups)
                with daemon.Daemon(stage, os.path.join(work, name), env=settings, cache=daemon.shared_kernels("loops")) as gantry:
                    result = run(cut, what, gantry.program_env())
                # The daemon has ended, and its log with it.
                least, most = bounds[what]
                n = cut_in(gantry)
                if result.returncode or result.stdout != expected[what].stdout:
                    a, b = expected[what].stdout.splitlines(), result.stdout.splitlines()
                    differs = [(x, y) for x, y in zip(a, b) if x != y][:5]
                    failures.append("{}: status {}, {} lines for {}, {}".format(name, result.returncode, len(b), len(a), differs))
                if n < least or (most is not None and n > most):
                    failures.append("{}: {} launches were cut".format(name, n))
                print("{}: {} launches cut".format(name, n))
    return failures


def shared(stage, cut):
    """Whether a launch is cut depends on who waits when; that some are, of many, does not."""
    failures = []
    with tempfile.TemporaryDirectory() as work:
        settings = {**DRIVER, "GANTRY_LOG": "debug"}
        with daemon.Daemon(stage, work, args=["--policy", "fair"], env=settings, cache=daemon.shared_kernels("loops")) as gantry:
            programs = [subprocess.Popen([cut, "long", "12"], env=gantry.program_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         text=True) for _ in range(2)]
            for p in programs:
                text, _ = p.communicate(timeout=PATIENCE_S)
                lines = text.splitlines()
                if p.returncode or lines[:1] != ["ready"] or lines[-1:] != ["end"] or lines.count("round 0 wrong") != 12:
                    failures.append("status {}: {}".format(p.returncode, lines))
        n = cut_in(gantry)
        print("{} launches cut".format(n))
        if not n:
            failures.append("two programs with long kernels, and none was cut:\n" + gantry.log()[-4000:])
    return failures


def main():
    stage, cut, which = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    missing = daemon.stage_ready(stage)
    if missing:
        print("SKIP: " + missing)
        return SKIP
    failures = {"same": same, "shared": shared}[which](stage, cut)
    for failure in failures:
        print("FAIL " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
