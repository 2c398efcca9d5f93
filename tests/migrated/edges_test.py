#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hard programs of tests/edges, which check their own results, while their vGPUs are migrated without pause.

    edges_test.py STAGE EDGES ROUTE [--case NAME]... [--period S]

ROUTE as in differential_test.py. Without --case each case runs once.
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
CASE_S = 600    # ends a case that would never end
CASES = ("one_queue", "whole_writes", "own_contexts", "churn", "dag", "live_events", "long_wait_list", "many_buffers", "deferred",
         "pieces", "big_source", "fork", "signals", "small_stacks")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=os.path.abspath)
    parser.add_argument("edges", type=os.path.abspath)
    parser.add_argument("route", choices=sorted(mover.ROUTES))
    parser.add_argument("--case", action="append", choices=CASES, default=[])
    parser.add_argument("--period", type=float, default=0)
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
            for case in options.case or CASES:
                env = daemons[0].program_env()
                env.pop("GANTRY_MODE", None)
                with mover.ROUTES[options.route](options.stage, daemons, options.period) as moves:
                    done = subprocess.run([options.edges, case], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True, timeout=CASE_S, check=False)
                print("{}: status {}, {} migrations, refused: {}".format(case, done.returncode, dict(moves.done), dict(moves.refused)), flush=True)
                if done.returncode:
                    wrong.append("{}: status {}: {}".format(case, done.returncode, done.stdout[-2000:]))
                wrong += ["{}: a migration was refused: {}".format(case, fault) for fault in sorted(set(moves.faults))]
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
