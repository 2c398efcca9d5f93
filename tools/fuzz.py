#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of a build made with -Dfuzz=true, each for a while, from its corpus on.

    tools/fuzz.py --build DIR [--seconds S] [TARGET]...

What is found lies in DIR/found/TARGET and is named at the end; new inputs that reach new code are kept in DIR/corpus/TARGET, and are
nobody's but this build's. Ends with one line, `N targets, M executions, K faults`. Status 1 when there are faults.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def run(build, name, seconds):
    """(executions, faults found) of one target."""
    kept = os.path.join(build, "corpus", name)
    found = os.path.join(build, "found", name)
    os.makedirs(kept, exist_ok=True)
    os.makedirs(found, exist_ok=True)
    command = [os.path.join(build, "tests/fuzz/fuzz-" + name), "-max_total_time={}".format(seconds), "-timeout=25", "-rss_limit_mb=4096",
               "-max_len=8192", "-print_final_stats=1", "-verbosity=0", "-artifact_prefix=" + found + "/", kept,
               os.path.join(ROOT, "tests/fuzz/corpus", name)]
    dictionary = os.path.join(ROOT, "tests/fuzz", name + ".dict")
    if os.path.exists(dictionary):
        command.insert(1, "-dict=" + dictionary)
    env = dict(os.environ)
    env.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:allocator_may_return_null=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    executions = re.search(r"stat::number_of_executed_units: (\d+)", text)
    if done.returncode:
        print(text[-6000:])
    return int(executions.group(1)) if executions else 0, done.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    corpus = os.path.join(ROOT, "tests/fuzz/corpus")
    targets = options.targets or sorted(os.listdir(corpus))
    executions, faults = 0, []
    for name in targets:
        n, fault = run(os.path.abspath(options.build), name, options.seconds)
        executions += n
        print("{}: {} executions{}".format(name, n, ", A FAULT: see {}/found/{}".format(options.build, name) if fault else ""), flush=True)
        if fault:
            faults.append(name)
    print("{} targets, {} executions, {} faults".format(len(targets), executions, len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
