#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suites and ends with one line, `N passed, N failed`.

    tools/run-tests.py [--build DIR] quick     unit tests and structure, in under a minute
    tools/run-tests.py [--build DIR] all       everything; then ASan+UBSan; then TSan for what has threads

Meson runs the tests; this script only decides which build runs which suites and adds up Meson's own results, so a test is counted
exactly when Meson counts it. docs/testing.md says what each suite is.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
# Of what a failed test said, in the summary: often nothing else is kept of a run.
SHOWN_LINES = 60
LAST_LINES = 15
SHOWN_COLUMNS = 400
# Where the reason begins, and how many lines it may have: what a sanitizer reports, what an assertion says, what a gantryd has logged.
REASONS = (
    (re.compile(r"ERROR: (Address|Leak|Thread|Memory)Sanitizer|WARNING: ThreadSanitizer|: runtime error: "), 18),
    (re.compile(r"^(FAIL|ERROR): |^FAIL |\[  ERROR   \]|Assertion .* failed"), 14),
    (re.compile(r"^--- gantryd .*, the end of its log$"), 13),
)


class Phase:
    """One build folder and the suites that make sense in it."""

    def __init__(self, title, folder, setup=(), only=(), without=(), stage=False, env=None, slower=1, parts=False):
        self.title = title
        self.folder = folder
        self.setup = list(setup)
        self.only = list(only)
        self.without = list(without)
        self.stage = stage
        self.env = env or {}
        self.slower = slower
        self.parts = parts   # Meson builds what the tests of these suites need, no more


def phases(kind, build):
    sanitized = ["-Dbuildtype=debugoptimized", "-Db_lundef=false"]
    # The real programs are not built with a sanitizer, so a sanitized library cannot be loaded into them; counts of instructions and
    # system calls mean nothing there either.
    not_sanitized = ["programs", "counts", "no-sanitizer"]
    if kind == "quick":
        return [Phase("quick", build, only=["unit", "structure"], without=["slow"], parts=True)]
    return [
        Phase("normal build", build, without=["soak"], stage=True),
        # What UBSan finds ends the process that it is in, whatever that process's environment says.
        Phase("ASan + UBSan", build + "-asan",
              setup=sanitized + ["-Db_sanitize=address,undefined", "-Dc_args=-fno-sanitize-recover=undefined", "-Dfaults=true"],
              without=not_sanitized, stage=True, slower=3,
              # LLVM gives the thread that compiles first a stack for signals, which ASan would unmap as its own when that thread ends.
              # A library's thread-local variables that happen to lie 16 bytes behind a page's start have gcc 12's LeakSanitizer take that
              # block's header for their bounds, and crash; without this it finds them all the same, as what the loader has allocated.
              env={"ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1:use_sigaltstack=0:intercept_tls_get_addr=0",
                   "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}),
        Phase("TSan", build + "-tsan", setup=sanitized + ["-Db_sanitize=thread"],
              only=["threads", "shm"], without=not_sanitized, slower=5, parts=True,
              env={"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}),
    ]


def run(command, env=None):
    print("$ " + " ".join(command), flush=True)
    return subprocess.run(command, env=env).returncode


def prepare(phase, meson):
    """Builds the product and all tests, unless Meson builds what the phase's tests need; the name of
    the step that failed, or None."""
    make = ["make", "--no-print-directory", "BUILD=" + phase.folder, "MESON=" + meson]
    if run(make + ["SETUP=" + " ".join(phase.setup), "with-tests"]) != 0:
        return "configure"
    if phase.parts:
        return None
    if run(make + ["build-tests"] + (["stage"] if phase.stage else [])) != 0:
        return "build"
    return None


def results(path):
    """Meson's log: one JSON object a line, one line a test."""
    try:
        with open(path, encoding="utf-8") as log:
            return [json.loads(line) for line in log if line.strip()]
    except FileNotFoundError:
        return []


def block_from(lines, first, n):
    """Numbers of the n lines from there, or, of a log, of the last n of it: up to the next that begins a reason."""
    end = first + 1
    while end < len(lines) and not any(begins.search(lines[end]) for begins, _ in REASONS):
        end += 1
    if lines[first].startswith("--- "):
        return [first] + list(range(max(first + 1, end - n + 1), end))
    return list(range(first, min(first + n, end)))


def excerpt(test):
    """What tells why a test failed, of its stderr or, when it said nothing there, of its stdout: first what begins as a reason does, each kind
    of it once, then the end. As many lines as the summary can bear."""
    lines = ((test.get("stderr") or "").strip() or (test.get("stdout") or "").strip()).splitlines()
    shown = set()
    for begins, n in REASONS:
        first = next((i for i, line in enumerate(lines) if begins.search(line)), None)
        if first is not None:
            shown.update(block_from(lines, first, n))
    for i in range(len(lines) - 1, max(-1, len(lines) - 1 - LAST_LINES), -1):
        shown.add(i)
    if len(shown) == min(LAST_LINES, len(lines)):   # nothing that is known
        shown.update(range(max(0, len(lines) - SHOWN_LINES), len(lines)))
    text, before = "", -1
    for i in sorted(shown):
        text += ("\n    ..." if i != before + 1 else "") + "\n    " + lines[i][:SHOWN_COLUMNS]
        before = i
    return text


def run_phase(phase, meson):
    """(passed, skipped, failed) as lists of names, the failed with what tells why; a build that fails counts as one failed test."""
    print("\n== {} ({})".format(phase.title, phase.folder), flush=True)
    broken = prepare(phase, meson)
    if broken:
        return [], [], ["{}: {}".format(phase.title, broken)]
    log = os.path.join(phase.folder, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    # Half of the time of most tests is waiting: one test more than there are processors.
    command = [meson, "test", "-C", phase.folder, "--print-errorlogs", "--timeout-multiplier", str(phase.slower),
               "--num-processes", str(os.cpu_count() + 1)]
    if not phase.parts:
        command.append("--no-rebuild")
    for suite in phase.only:
        command += ["--suite", suite]
    for suite in phase.without:
        command += ["--no-suite", suite]
    env = dict(os.environ)
    env.update(phase.env)
    status = run(command, env)
    passed, skipped, failed = [], [], []
    for test in results(log):
        name = "{}: {}".format(phase.title, test["name"])
        if test["result"] in PASSED:
            passed.append(name)
        elif test["result"] in SKIPPED:
            skipped.append(name)
        else:
            failed.append("{} ({}){}".format(name, test["result"].lower(), excerpt(test)))
    if status != 0 and not failed:
        failed.append("{}: meson test exited {}".format(phase.title, status))
    return passed, skipped, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--meson", default=os.environ.get("MESON", "meson"))
    parser.add_argument("kind", choices=["quick", "all"])
    args = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

    begin = time.monotonic()
    passed, skipped, failed = [], [], []
    # A driver is no other one in another build: what it has compiled for suites that are not about that, it compiles once.
    with tempfile.TemporaryDirectory(prefix="gn-kernels-", ignore_cleanup_errors=True) as kernels:
        os.chmod(kernels, 0o755)
        os.environ["GANTRY_TEST_KERNELS"] = kernels
        for phase in phases(args.kind, args.build):
            p, s, f = run_phase(phase, args.meson)
            passed += p
            skipped += s
            failed += f

    print("\n{:.0f} s".format(time.monotonic() - begin))
    for name in skipped:
        print("skipped  " + name)
    for name in failed:
        print("FAILED   " + name)
    if not passed and not failed:
        failed.append("nothing ran")
        print("FAILED   nothing ran")
    print("{} passed, {} failed".format(len(passed), len(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
