#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The differential suite while its programs' vGPUs are migrated all the time: every return code, query and result is what it is undisturbed.

    differential_test.py STAGE DIFFTEST ROUTE [--every N] [--part K] [--pause-us N] [--case FAMILY.NAME]...

ROUTE: local (to new workers), mode (into the program and out of it), unix (between two gantryds), tcp (the same over tcp), stop (into a file
and out of it). --every and --part: of N parts of the cases the K-th; otherwise all of them.
"""

import argparse
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
sys.path.insert(0, os.path.join(HERE, "..", "differential"))

import daemon  # noqa: E402
import gantry_test  # noqa: E402
import mover  # noqa: E402

SKIP = 77
# The cases run again until there were as many migrations as cases; a slow machine migrates few
# programs before they end.
PASSES = 12
COMPARE = os.path.join(HERE, "..", "differential", "compare.py")
# A program's binary, and the log of a failed build, which names a temporary file, are the driver's own each time that it builds.
LOOPS = {"POCL_WORK_GROUP_METHOD": "loops"}


def cases(difftest, every, part):
    listed = subprocess.run([difftest, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [name for i, name in enumerate(listed) if i % every == part % every and not name.startswith("native.")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=os.path.abspath)
    parser.add_argument("difftest")
    parser.add_argument("route", choices=sorted(mover.ROUTES))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--pause-us", default="2000")
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    missing = daemon.stage_ready(options.stage)
    if missing:
        print("SKIP: " + missing)
        return SKIP
    over_tcp = options.route == "tcp"
    args = ["--listen", "tcp:127.0.0.1:0", "--insecure"] if over_tcp else []
    n_daemons = 2 if options.route in ("unix", "tcp") else 1
    names = options.case or cases(options.difftest, options.every, options.part)
    with tempfile.TemporaryDirectory() as work:
        daemons = [daemon.Daemon(options.stage, os.path.join(work, name), env=LOOPS, args=args, cache=daemon.shared_kernels("loops"),
                                 passthrough=options.route == "mode") for name in "ab"[:n_daemons]]
        native = os.path.join(work, "native.txt")
        command = [sys.executable, COMPARE, "--difftest", options.difftest, "--quiet", "--lines", "400", "--cache",
                   daemon.shared_kernels("native-loops"), *(word for name in names for word in ("--case", name))]
        plain = {**daemon.clean_env(), **LOOPS, **daemon.discrete_env(work)}
        if "OCL_ICD_VENDORS" in plain:
            command += ["--native-vendors", plain["OCL_ICD_VENDORS"]]
        subprocess.run([*command, "--save", native], env=plain, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        for each in daemons:
            each.__enter__()
        try:
            env = {**plain, "GANTRY_CONNECT": daemons[0].tcp_address or daemons[0].address, "DIFFTEST_PAUSE_US": options.pause_us}
            results = []
            with mover.ROUTES[options.route](options.stage, daemons) as moves:
                while len(results) < PASSES and sum(moves.done.values()) < len(names):
                    results.append(subprocess.run(
                        [*command, "--baseline", native, "--vendors",
                         os.path.join(options.stage, "etc/OpenCL/vendors")],
                        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                        check=False))
        except BaseException:
            for each in daemons:
                each.kill()
            raise
        for each in daemons:
            each.__exit__(None, None, None)
    status = 0
    for result in results:
        if over_tcp:
            status |= gantry_test.judge_tcp(result.stdout)
        else:
            print(result.stdout, end="")
            status |= result.returncode
    print("{} migrations, refused: {}".format(dict(moves.done), dict(moves.refused)))
    for fault in sorted(set(moves.faults)):
        print("FAIL a migration was refused: " + fault)
    if sum(moves.done.values()) < len(names):
        print("FAIL fewer migrations than cases")
        status = 1
    if status or moves.faults:
        for each in daemons:
            print(each.last_words())
    return 1 if status or moves.faults else 0


if __name__ == "__main__":
    sys.exit(main())
