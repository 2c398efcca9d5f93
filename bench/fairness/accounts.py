# SPDX-License-Identifier: Apache-2.0
"""What is charged against what was used, and what charging and deciding cost."""

import json
import math
import os
import subprocess
import time

from harness.figures import chart, curve, curves, limit, series
from harness.rows import figure, paper
from harness.targets import BenchError

from . import measures as m
from .machine import SETTLE_NS, Scene
from .mix import Mix
from .programs import LOADS
from .rows import bar

# FairGV's table 2: the error in percent.
PAPER = {"matrixMul": 3, "BlackScholes": 1, "scan": 3, "convolutionSeparable": 2}


class Accounting:
    """FairGV's table 2. Two of the same program, so that somebody waits and is charged; each profiles its own launches."""

    title = "Charged time against profiling times (FairGV table 2)"

    @staticmethod
    def used(daemon):
        """{tenant: (charged, told by the worker)} in ns."""
        out = {}
        for v in daemon.ask("ls")["vgpus"]:
            out[v["tenant"]] = (sum(d["used_ns"] for d in v["devices"]), sum(d["device_ns"] for d in v["devices"]))
        return out

    def run(self, context, policy):
        result = {}
        for name, paper in PAPER.items():
            context.progress(name)
            program = (*(w for w in LOADS[name] if w != "--ahead"), "--sum-profile")
            charged, told, share = [], [], []
            with Scene(context, [(program, "a"), (program, "b")], {"a": {}, "b": {}}, policy, native=False) as scene:
                scene.together(0.3)
                for _ in range(context.quick_pairs if context.quick else context.pairs):
                    before = self.used(scene.daemon)
                    runs = scene.together(context.seconds)
                    after = self.used(scene.daemon)
                    # Launches outside the time that both ran are nobody's turn, so both are added up.
                    profiled = sum(r["profiled_ns"] for r in runs)
                    charged.append(sum(after[t][0] - before[t][0] for t in "ab") / profiled - 1)
                    told.append(sum(after[t][1] - before[t][1] for t in "ab") / profiled - 1)
                    share.append((after["a"][0] - before["a"][0]) / max(1, sum(after[t][0] - before[t][0] for t in "ab"))
                                 / (runs[0]["profiled_ns"] / profiled))
            result[name] = {"charged": charged, "told": told, "share": share}
        return result

    def rows(self, result):
        for name, r in result.items():
            yield bar(f"{name}: the worker's device time over profiled, less 1", percent(r["told"]), -3, 3, unit="%",
                      paper=paper("FairGV, table 2", PAPER[name]))
            yield figure(f"{name}: charged over profiled, less 1", percent(r["charged"]), "%")
            yield bar(f"{name}: part charged over part used", r["share"], 0.97, 1.03)

    def figures(self, by_policy):
        yield chart("bars", "", self.title, "error, %", [
            *(series(policy, {name: [abs(v) for v in percent(r["told"])] for name, r in result.items()}) for policy, result in by_policy),
            series("FairGV", PAPER, paper=True)], [limit(3, "at most 3 %")])


def percent(values):
    return [100 * v for v in values]


class AccountingCost:
    """What turns and their accounts cost two busy programs."""

    title = "Two of the same program, equal weights: what turns and accounting cost"
    sizes = {"matrixMul of 32 rows": (("matrixMul", "--size", "32", "--batch", "480", "--ahead"), 1.03),
             "matrixMul of 48 rows": (("matrixMul", "--size", "48", "--batch", "110", "--ahead"), 1.01),
             "matrixMul": (LOADS["matrixMul"], 1.01)}

    def run(self, context, policy):
        result = {}
        for label, (options, _) in self.sizes.items():
            context.progress(label)
            result[label] = Mix([(options, "a", 1), (options, "b", 1)], native=False).run(context, policy)
        return result

    def rows(self, result):
        for label, r in result.items():
            yield bar(f"{label}: overhead", r["overhead"], at_most=self.sizes[label][1])

    def figures(self, by_policy):
        yield chart("points", "", self.title, "aggregated overhead", [
            series(policy, {label: r["overhead"] for label, r in result.items()}) for policy, result in by_policy],
            [limit(1.01, "at most 1.01 (1.03 at 32 rows)")])


def cpu_ns(pid):
    """Processor time of a process, all threads."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        except (OSError, IndexError):
            continue
    return total


class Decisions:
    """A decision among 10 and among 10,000 vGPUs; what gantryd itself uses, busy and idle."""

    title = "The scheduler's cost"

    def costs(self, context, policy):
        command = [os.path.join(context.stage, "bin/gantry"), "sim", "--tenant", "a", "--time", "100ms", "--cost", "--policy", policy, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise BenchError(f"gantry sim: {done.stderr.strip()}")
        return {str(c["vgpus"]): c["real_ns"] for c in json.loads(done.stdout)["runs"][0]["cost"]}

    def run(self, context, policy):
        n = context.quick_pairs if context.quick else context.pairs
        costs = [self.costs(context, policy) for _ in range(n)]
        busy, idle = [], []
        with Scene(context, [(LOADS["srad"], "a"), (LOADS["matrixMul"], "b"), (LOADS["hotspot"], "c")], {"a": {}, "b": {}, "c": {}}, policy,
                   native=False) as scene:
            pid = scene.daemon.pid()
            scene.together(0.3)
            for _ in range(n):
                before, start = cpu_ns(pid), time.monotonic_ns()
                scene.together(context.seconds)
                busy.append((cpu_ns(pid) - before) / (time.monotonic_ns() - start))
                # The second in which figures are still noted is not idle.
                time.sleep(2.5)
                before, start = cpu_ns(pid), time.monotonic_ns()
                time.sleep(context.seconds)
                idle.append((cpu_ns(pid) - before) / (time.monotonic_ns() - start))
        return {"costs": costs, "busy": busy, "idle": idle}

    def rows(self, r):
        for n in r["costs"][0]:
            yield figure(f"a decision among {int(n):,} vGPUs", [c[n] for c in r["costs"]], "ns")
        growth = [c["10000"] / c["10"] for c in r["costs"]]
        yield bar("10,000 vGPUs over 10 (the logarithm grows 4 times)", growth, at_most=math.log(10000) / math.log(10))
        yield bar("gantryd, three busy programs: part of a core", r["busy"], at_most=0.05)
        yield bar("gantryd, three idle programs: part of a core", r["idle"], at_most=0.0001)

    def figures(self, by_policy):
        yield curves("", "What a decision takes", "vGPUs", "ns", [
            curve(policy, [(int(n), [c[n] for c in r["costs"]]) for n in r["costs"][0]]) for policy, r in by_policy], log_x=True)
