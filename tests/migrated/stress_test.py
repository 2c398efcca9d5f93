#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that compare each result with a model of their own, while their vGPUs are migrated again and again: not one byte may differ.

    stress_test.py STAGE STRESS ROUTE [--migrations N] [--kind KIND]...

ROUTE as in differential_test.py. Each kind of program runs until its vGPU has been migrated so often.
"""

import argparse
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))

import daemon  # noqa: E402
import mover  # noqa: E402

SKIP = 77
END_S = 240    # ends a wait that would never end
KINDS = ("images", "svm", "events", "programs", "cmdbufs")


def run(options, kind, daemons):
    """None, or a sentence."""
    env = daemons[0].program_env()
    env.pop("GANTRY_MODE", None)
    program = subprocess.Popen([options.stress, kind], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if program.stdout.readline().strip() != "goes":
            return "{} did not start".format(kind)
        with mover.ROUTES[options.route](options.stage, daemons) as moves:
            while sum(moves.done.values()) < options.migrations and program.poll() is None and not moves.faults:
                moves.stopping.wait(0.02)
        out, _ = program.communicate("end\n", timeout=END_S)
    finally:
        program.kill()
        program.wait()
    print("{}: {}, {} migrations, refused: {}".format(kind, " ".join(out.split("\n")), dict(moves.done), dict(moves.refused)), flush=True)
    if moves.faults:
        return "{}: a migration was refused: {}".format(kind, moves.faults[0])
    if program.returncode or not out.endswith("right\n"):
        return "{}: status {}: {}".format(kind, program.returncode, out)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=os.path.abspath)
    parser.add_argument("stress", type=os.path.abspath)
    parser.add_argument("route", choices=sorted(mover.ROUTES))
    parser.add_argument("--migrations", type=int, default=25)
    parser.add_argument("--kind", action="append", choices=KINDS, default=[])
    options = parser.parse_args()
    missing = daemon.stage_ready(options.stage)
    if missing:
        print("SKIP: " + missing)
        return SKIP
    over_tcp = options.route == "tcp"
    args = ["--listen", "tcp:127.0.0.1:0", "--insecure"] if over_tcp else []
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        daemons = [daemon.Daemon(options.stage, os.path.join(work, name), args=args, cache=daemon.shared_kernels("default"),
                                 passthrough=options.route == "mode") for name in ("ab" if options.route in ("unix", "tcp") else "a")]
        for each in daemons:
            each.__enter__()
        try:
            for kind in options.kind or KINDS:
                if over_tcp and kind == "svm":
                    continue   # not offered there
                said = run(options, kind, daemons)
                if said:
                    wrong.append(said)
        except BaseException:
            for each in daemons:
                each.kill()
            raise
        for each in daemons:
            each.__exit__(None, None, None)
        for said in wrong:
            print("FAIL " + said)
        if wrong:
            for each in daemons:
                print(each.last_words())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
