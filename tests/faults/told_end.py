# SPDX-License-Identifier: Apache-2.0
"""A worker sends its program the notice of an event's end, and then writes that end where the program's
calls read it. A callback runs after both.

    told_end.py --build DIR

The worker stands between the two (src/base/fault.h): the build must have the points, -Dfaults=true.
"""

import argparse
import os
import select
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "../edges"), os.path.join(HERE, "../moves")]

from gantry import Gantry, Wrong, built_tree, wait_until  # noqa: E402
from moves_harness import held  # noqa: E402

SILENT_S = 0.2  # a callback that does not wait for the worker speaks within this time


def run(options, work):
    stage = built_tree(os.path.join(work, "tree"), options.build)
    edges = os.path.join(options.build, "tests/edges/edges")
    hold = {"GANTRY_HOLD": "worker-end-told"}
    with Gantry(stage, os.path.join(work, "gantryd"), env=hold) as gantry:
        with gantry.program([edges, "told_end"]) as p:
            wait_until(lambda: held(gantry) or p.process.poll() is not None, 60)
            if not held(gantry):
                raise Wrong("no worker stands at the point")
            select.select([p.process.stdout], [], [], SILENT_S)
            os.kill(held(gantry), signal.SIGCONT)
            if p.hear("status") != ["0"]:
                raise Wrong("a callback of an event's end saw the event before its end")
            p.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=os.path.abspath, help="the build folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gn-faults-") as work:
        try:
            run(options, work)
        except Wrong as e:
            print("told_end: {}".format(e))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
