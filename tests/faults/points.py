# SPDX-License-Identifier: Apache-2.0
"""A process dies at a named point (src/base/fault.h) where a kill at random would hardly ever hit it.

    points.py --build DIR POINT[:N]

POINT begins with who dies there: program, worker, template or daemon. What then must hold is what campaign.py asks for; and the point
must have been met, or nothing was tested. The build must have the points: -Dfaults=true.
"""

import argparse
import os
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../edges"))

from campaign import LOST_S, NO_LEAKS, tells_of_loss, counted  # noqa: E402
from gantry import Gantry, LeftBehind, Wrong, built_tree, descendants, gone, wait_until  # noqa: E402


class Point:
    def __init__(self, options, work):
        self.build = os.path.abspath(options.build)
        self.work = work
        self.name = options.point
        self.edges = os.path.join(self.build, "tests/edges/edges")
        self.stage = built_tree(os.path.join(work, "tree"), options.build)
        self.n = 0

    def gantry(self, **how):
        self.n += 1
        return Gantry(self.stage, os.path.join(self.work, "gantryd-{}".format(self.n)), cache=os.path.join(self.work, "cache"), **how)

    def told(self, p):
        """It ends by itself, after an error that tells of a loss."""
        began = time.monotonic()
        while p._read():
            pass
        status, said = p.process.wait(60), p.errors.decode(errors="replace").splitlines()
        if status != 1 or not tells_of_loss(said):
            raise Wrong("the program ended with status {}: {}".format(status, said))
        return time.monotonic() - began

    def program(self):
        with self.gantry() as gantry:
            with gantry.program([self.edges, "life"]) as p:
                p.end()
            before = gantry.settle_first()
            with gantry.program([self.edges, "steps", "1000000"]) as neighbour:
                neighbour.hear("ready")
                for case in ("churn", "pieces"):
                    with gantry.program([self.edges, case], env=dict(NO_LEAKS, GANTRY_FAULT=self.name)) as p:
                        while p._read():
                            pass
                        if p.process.wait(60) != -signal.SIGKILL:
                            raise Wrong("nobody got to {}: {} ended with status {}".format(self.name, case, p.process.returncode))
                    neighbour.tell()
                    neighbour.hear("step")
                neighbour.kill()
            gantry.settle(before)

    def worker(self):
        """Every worker of this gantryd dies there, so there is no neighbour; gantryd serves on."""
        with self.gantry(env={"GANTRY_FAULT": self.name}) as gantry:
            before = None
            for _ in range(3):
                with gantry.program([self.edges, "churn"], env=NO_LEAKS) as p:
                    self.told(p)
                if not wait_until(lambda: len(descendants(gantry.process.pid)) == 1 and not gantry.vgpus(), 60):
                    raise Wrong("more is left than a template: {}".format(gantry.traces()))
                # The first time the template may not have been up before.
                before = before or dict(counted(gantry.traces()), **{"descriptors of gantryd": gantry.at_start})
                self.nothing_left(gantry, before)
            if not any(word in gantry.log() for word in ("signal 9", "status 137")):
                raise Wrong("nobody got to {}: {}".format(self.name, gantry.log()))

    def template(self):
        with self.gantry(env={"GANTRY_FAULT": self.name}) as gantry:
            for _ in range(3):
                with gantry.program([self.edges, "life"], env=NO_LEAKS) as p:
                    self.told(p)
                if not wait_until(lambda: not gantry.vgpus() and not descendants(gantry.process.pid), 60):
                    raise Wrong("left behind: {}".format(gantry.traces()))
            if "template" not in gantry.log():
                raise Wrong("nobody got to {}: {}".format(self.name, gantry.log()))

    def daemon(self):
        gantry = self.gantry(env={"GANTRY_FAULT": self.name})
        gantry.__enter__()
        try:
            family = descendants(gantry.process.pid)
            with gantry.program([self.edges, "pieces" if "segment" in self.name else "life"], env=NO_LEAKS) as p:
                self.told(p)
            if gantry.process.wait(10) != -signal.SIGKILL:
                raise Wrong("nobody got to {}".format(self.name))
            if not wait_until(lambda: gone(family), LOST_S):
                raise Wrong("gantryd's death has not ended {}".format(family))
            again = self.gantry()
            os.rmdir(again.socket_dir)
            again.socket_dir, again.socket, again.address = gantry.socket_dir, gantry.socket, gantry.address
            with again:
                with again.program([self.edges, "life"]) as p:
                    p.end()
        finally:
            gantry.process.kill()
            gantry.process.wait()
            gantry.drain.wait()

    def nothing_left(self, gantry, before):
        now = {}

        def same():
            nonlocal now
            now = counted(gantry.traces())
            return now == before

        if not wait_until(same, 60):
            raise Wrong("left behind: {} instead of {}".format(now, before))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("point")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gn-faults-") as work:
        try:
            getattr(Point(options, work), options.point.split("-")[0])()
        except (Wrong, LeftBehind) as e:
            print("{}: {}".format(options.point, e))
            return 1
    print("{}: right".format(options.point))
    return 0


if __name__ == "__main__":
    sys.exit(main())
