# SPDX-License-Identifier: Apache-2.0
"""A program's speed, and its neighbour's, while its memory is sent ahead (gMig figure 8): PoCL
with one thread on one core is the device, everything else, the move included, is on the other,
and `--bandwidth` paces what is sent."""

import json
import os
import statistics
import subprocess
import time

from fairness.machine import Daemon, Program
from fairness.measures import rounds_until
from fairness.programs import LOADS
from harness.figures import chart, curve, curves, limit, series
from harness.rows import barred, figure, paper
from harness.targets import BenchError

TIMEOUT_S = 120
SETTLE_S = 1.5
SIZES = ("1024", "256", "54")
SMALL = ("64", "32", "16")


class Other:
    """The daemon on the programs' core; PoCL's one thread goes to the first."""

    def __init__(self, cores):
        self.of_device = ",".join(str(c) for c in cores.programs)
        self.all = cores.all


def rate(marks, begin_ns, end_ns):
    """Rounds a second between the marks of a window."""
    inside = [m for m in marks if begin_ns <= m[0] <= end_ns]
    if len(inside) < 2 or inside[-1][0] == inside[0][0]:
        raise BenchError("a window holds too few rounds")
    return (inside[-1][1] - inside[0][1]) * 1e9 / (inside[-1][0] - inside[0][0])


def moved(daemon, pid, bandwidth):
    vgpu = next(v["id"] for v in daemon.ask("ls")["vgpus"] if v["pid"] == pid)
    began = time.monotonic_ns()
    move = daemon.ask("migrate", vgpu, "local", "--bandwidth", bandwidth)["move"]
    ended = time.monotonic_ns()
    return {"began_ns": began, "stopped_ns": ended - move["downtime_ns"], "ended_ns": ended,
            "move": move}


class Speed:
    title = "Speed while memory is sent ahead, one core for all but the device (gMig figure 8)"
    staged = True

    def run(self, context):
        runs = [self.once(context)
                for _ in range(1 if context.quick else max(1, context.pairs // 3))]
        return {"runs": runs, "bandwidth": context.bandwidth}

    def once(self, context):
        sizes = SMALL if context.quick else SIZES
        moves = 1 if context.quick else 3
        with Daemon(context.stage, context.driver | {"POCL_AFFINITY": "1"}, Other(context.cores),
                    "fair", {}) as daemon:
            core = str(context.cores.programs[0])
            load = os.path.join(context.build, "bench/loads/gantry-load")
            neighbour = Program([load, *LOADS["matrixMul"], "--obey", "--no-profile"],
                                daemon.environment(), core, "the neighbour").ready()
            program = subprocess.Popen(["taskset", "-c", core,
                                        os.path.join(context.build, "bench/moves/changing"),
                                        *sizes],
                                       env=daemon.environment(), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            try:
                if program.stdout.readline().strip() != "ready":
                    raise BenchError("the program to be moved did not begin")
                moved(daemon, program.pid, context.bandwidth)  # the first one compiles
                first = time.monotonic_ns()
                seconds = moves * (SETTLE_S + 3 * int(sizes[0]) * 2**20 / context.bandwidth_bytes + 1) + SETTLE_S
                neighbour.order(seconds)
                time.sleep(SETTLE_S)
                done = []
                for _ in range(moves):
                    context.progress("a move")
                    done.append(moved(daemon, program.pid, context.bandwidth))
                    time.sleep(SETTLE_S)
                last = time.monotonic_ns()
                beside = neighbour.answer(TIMEOUT_S)
                out, _ = program.communicate("end\n", timeout=TIMEOUT_S)
            finally:
                program.kill()
                program.wait()
                neighbour.stop()
        theirs = [[beside["start_ns"] + t, n] for t, n in beside["marks"]]
        return self.figures_of(json.loads(out.splitlines()[1]), theirs, done, first, last)

    @staticmethod
    def figures_of(own, theirs, moves, first, last):
        """Each stretch ahead of a stop over what lies before and behind the move."""
        result = {"program": [], "neighbour": [], "after": [],
                  "downtime_ms": [m["move"]["downtime_ns"] / 1e6 for m in moves],
                  "precopy_ms": [m["move"]["precopy_ns"] / 1e6 for m in moves]}
        edges = [first, *(m["ended_ns"] for m in moves)], [*(m["began_ns"] for m in moves), last]
        for who, marks in (("program", own), ("neighbour", theirs)):
            quiet = [rate(marks, a, min(b, marks[-1][0])) for a, b in zip(*edges)]
            for i, m in enumerate(moves):
                result[who].append(rate(marks, m["began_ns"],
                                        m["stopped_ns"]) / statistics.mean(quiet[i:i + 2]))
        step = 100_000_000
        result["course"] = {
            who: [[(t - first) / 1e9,
                   (rounds_until(run, t + step) - rounds_until(run, t)) / (step / 1e9)]
                  for t in range(max(first, run["marks"][0][0]), min(last, marks[-1][0]) - step,
                                 step)]
            for who, marks in (("program", own), ("neighbour", theirs))
            for run in ({"start_ns": 0, "marks": [m for m in marks if m[0] >= first - 4 * step]},)}
        return result

    # Of each: its name in a figure, and the least part of its speed.
    sides = {"program": ("the program that is moved", 0.9), "neighbour": ("its neighbour", 0.95)}

    @staticmethod
    def values(d, key):
        return [v for run in d["runs"] for v in run[key]]

    def rows(self, d):
        for side, (name, least) in self.sides.items():
            yield barred(f"{name} while memory is sent ahead at {d['bandwidth'][:-1]} MiB/s, of its speed",
                         self.values(d, side),
                         at_least=least, paper=paper("gMig, figure 8", "not obviously less"))
        yield figure("downtime, on that one core", self.values(d, "downtime_ms"), "ms",
                     paper=paper("gMig, figure 8", 119))

    def figures(self, d):
        yield chart("points", "", f"Speed while memory is sent ahead at {d['bandwidth'][:-1]} MiB/s",
                    "of its speed before and after", [
            series("here", {name: self.values(d, side) for side, (name, _) in self.sides.items()})],
            [limit(least, f"at least {least}, {side}") for side, (_, least) in self.sides.items()])
        course = d["runs"][-1]["course"]
        yield curves("course",
                     "Rounds a second in the course of moves, of the last run (gMig figure 8)", "s",
                     "rounds a second over the most", [
                         curve(side,
                               [(t, v / max(1e-9, max(x for _, x in points))) for t, v in points])
                         for side, points in course.items()])
