# SPDX-License-Identifier: Apache-2.0
"""Crane's figures 5 to 8: what tracking costs in passthrough, and loads that are switched to
remote and back while they run."""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from fairness.machine import Program
from fairness.measures import rounds_until
from fairness.programs import LOADS as SHORT_ROUNDS
from harness.figures import chart, curve, curves, limit, series
from harness.loads import NOISE
from harness.passthrough import EACH_BAR, MEAN_BAR, Passthrough, measure, summary_rows
from harness.rows import barred, figure, paper
from harness.stats import abba, ratios
from harness.targets import BenchError, Gantry

LOADS = ["matrixMul", "hotspot", "srad", "cfd", "nw", "scan", "lavaMD", "BlackScholes"]
STAY_S = 1.0
STEP_NS = 50_000_000
REMOTE_BAR = 0.9
DOWNTIME_BAR_MS = 100
# Of `phases_ns` in gantry mode's answer, those that add up to the downtime (gantry-mode(1)).
STOP_PHASES = ("stand", "driver", "ends", "tables", "contents", "loaded", "commit")


class Tracking:
    title = "Passthrough with a migration's tracking, over the vendor's driver (Crane figure 5)"
    staged = True
    beside = NOISE
    # Crane's figure 5: SHOC's mean, and its worst program, x264.
    papers = {"geometric mean": paper("Crane, figure 5, SHOC", 1.0525),
              "worst": paper("Crane, figure 5, x264", 1.125)}

    def run(self, context):
        results = []
        with Passthrough(context.stage, context.driver) as target:
            for load in LOADS[:1] if context.quick else LOADS:
                context.progress(load)
                results.append(measure(context, target, load))
        return results

    def rows(self, d):
        yield from summary_rows(d, paper_mean=self.papers["geometric mean"],
                                paper_worst=self.papers["worst"])
        for r in d:
            yield figure(r["load"], r["passthrough"], beside=r["native"])

    def figures(self, d):
        yield chart("points", "", "Passthrough: time of a round over native (Crane figure 5)",
                    "over native", [
            series("passthrough", {r["load"]: r["passthrough"] for r in d}),
            series(NOISE, {r["load"]: r["native"] for r in d}),
            series("Crane", {"Crane, SHOC's mean": 1.0525, "Crane, x264": 1.125}, paper=True)],
            [limit(MEAN_BAR, f"mean at most {MEAN_BAR}"),
             limit(EACH_BAR, f"each at most {EACH_BAR}")])


class Switches:
    title = "Passthrough, remote and back, while the program runs (Crane figures 6 to 8)"
    staged = True
    ways = {"out": "to remote", "back": "back"}
    # Crane's figures 7 (ms) and 8 (MiB): x264, FAHBench and DeepCL.
    paper_programs = ("x264", "FAHBench", "DeepCL")
    paper_ms = {"out": (100, 73, 1570), "back": (830, 520, 4900)}
    paper_mib = {"out": (16, 1, 256), "back": (16, 0, 256)}
    paper_speed = 20.1 / 60  # figure 6: x264, frames a second

    def run(self, context):
        loads = LOADS[:1] if context.quick else LOADS
        with Passthrough(context.stage, context.driver) as daemon:
            return {load: [self.once(context, daemon, load) for _ in range(context.turns)]
                    for load in loads}

    def once(self, context, daemon, load):
        context.progress(load)
        program = os.path.join(context.build, "bench/loads/gantry-load")
        p = Program([program, *SHORT_ROUNDS[load], "--obey", "--no-profile"], daemon.environment(),
                    context.cores.all, load).ready()
        try:
            vgpu = [v for v in daemon.ask("ls")["vgpus"] if v["pid"] == p.process.pid][0]
            # Once before: PoCL compiles a kernel when it is first launched in a process, if it is
            # not in that one's cache, for up to half a second.
            p.order(4 * STAY_S)
            daemon.ask("mode", vgpu["id"], "remote")
            time.sleep(STAY_S)
            daemon.ask("mode", vgpu["id"], "passthrough")
            p.answer(60)
            p.order(8 * STAY_S)
            time.sleep(STAY_S)
            began = time.monotonic_ns()
            out = daemon.ask("mode", vgpu["id"], "remote")["move"]
            between = time.monotonic_ns()
            time.sleep(STAY_S)
            back_began = time.monotonic_ns()
            back = daemon.ask("mode", vgpu["id"], "passthrough")["move"]
            ended = time.monotonic_ns()
            run = p.answer(60)
        finally:
            p.stop()
        first, last = run["start_ns"], run["start_ns"] + run["marks"][-1][0]
        if ended + STEP_NS > last:
            raise BenchError(f"{load}: the switches took longer than its run")

        def speed(a, b):
            b = min(b, last)
            return (rounds_until(run, b) - rounds_until(run, a)) * 1e9 / (b - a)

        passthrough = statistics.mean([speed(first, began), speed(ended, last)])
        return {"remote_over_passthrough": speed(between, back_began) / passthrough,
                "out": out, "back": back, "memory_bytes": vgpu["memory_bytes"],
                "course": [[(t - first) / 1e9, speed(t, t + STEP_NS)]
                           for t in range(first, last - STEP_NS, STEP_NS)]}

    @staticmethod
    def values(d, function):
        """{load: function of each run}"""
        return {load: [function(run) for run in runs] for load, runs in d.items()}

    def downtime(self, d, way):
        return self.values(d, lambda run: run[way]["downtime_ns"] / 1e6)

    def sent(self, d, way):
        return self.values(d, lambda run: run[way]["bytes_sent"] / 2**20)

    def memory(self, d):
        return self.values(d, lambda run: run["memory_bytes"] / 2**20)

    def speed(self, d):
        return self.values(d, lambda run: run["remote_over_passthrough"])

    def paper_text(self, values):
        return "; ".join(f"{name} {value:,}" for name, value in zip(self.paper_programs, values))

    def rows(self, d):
        for load, values in self.speed(d).items():
            yield barred(f"{load}: speed while remote, of passthrough", values, at_least=REMOTE_BAR,
                         paper=paper("Crane, figure 6, x264", self.paper_speed))
        for way, text in self.ways.items():
            of_paper = paper("Crane, figure 7", self.paper_text(self.paper_ms[way]))
            for load, values in self.downtime(d, way).items():
                yield figure(f"{load}: downtime {text}", values, "ms", paper=of_paper)
            yield barred(f"downtime {text}, the longest of all",
                         max(max(v) for v in self.downtime(d, way).values()),
                         at_most=DOWNTIME_BAR_MS, unit="ms")
        for way, text in self.ways.items():
            of_paper = paper("Crane, figure 8", self.paper_text(self.paper_mib[way]))
            for load, values in self.sent(d, way).items():
                yield figure(f"{load}: sent {text}", values, "MiB", paper=of_paper)
        for load, values in self.memory(d).items():
            yield figure(f"{load}: device memory", values, "MiB",
                         paper=paper("Crane, figure 8", "DeepCL at most 1,024"))

    def of_paper(self, values, way):
        labels = [f"Crane, {name}" for name in self.paper_programs]
        return series(f"Crane, {self.ways[way]}", dict(zip(labels, values)), paper=True)

    def figures(self, d):
        yield chart("points", "", "Speed while remote, of passthrough (Crane figure 6)",
                    "of passthrough", [
            series("here", self.speed(d)),
            series("Crane", {"Crane, x264": self.paper_speed}, paper=True)],
            [limit(REMOTE_BAR, f"at least {REMOTE_BAR}")])
        load = next(iter(d))
        yield curves("course", f"{load}, to remote and back, the last run (Crane figure 6)", "s",
                     "rounds a second",
                     [curve(load, d[load][-1]["course"])])
        yield chart("bars", "downtime", "Downtime of a switch (Crane figure 7)", "ms", [
            *(series(text, self.downtime(d, way)) for way, text in self.ways.items()),
            *(self.of_paper(self.paper_ms[way], way) for way in self.ways)],
            [limit(DOWNTIME_BAR_MS, f"at most {DOWNTIME_BAR_MS} ms")], log=True)
        for way, text in self.ways.items():
            yield chart("stacked", f"phases-{way}", f"Phases of the downtime {text}", "ms", [
                series(phase,
                       self.values(d, lambda run, w=way, p=phase: run[w]["phases_ns"][p] / 1e6))
                for phase in STOP_PHASES])
        yield chart("bars", "sent", "Sent by a switch, and the device memory (Crane figure 8)",
                    "MiB", [
            *(series(text, self.sent(d, way)) for way, text in self.ways.items()),
            series("device memory", self.memory(d)),
            *(self.of_paper(self.paper_mib[way], way) for way in self.ways)])


class AsGpu(Passthrough):
    """x264 asks for a GPU."""

    def options(self, folder):
        return ["--device", "pthread,present-as=gpu"]


class Frames:
    title = "x264 --opencl, all of it remote, over all of it in passthrough (Crane figure 6)"
    staged = True
    beside = "passthrough over passthrough"
    SIZE, FRAMES = "640x352", 50

    def run(self, context):
        missing = [name for name in ("x264", "ffmpeg") if not shutil.which(name)]
        if missing:
            raise BenchError(f"{missing[0]} is not installed")
        with tempfile.TemporaryDirectory(prefix="gn-bench-x264-") as folder, \
                AsGpu(context.stage, context.driver) as daemon:
            video = os.path.join(folder, "in.y4m")
            subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i",
                            f"testsrc2=size={self.SIZE}:rate=25", "-frames:v", str(self.FRAMES),
                            "-pix_fmt", "yuv420p", video], stdin=subprocess.DEVNULL, check=True,
                            timeout=120)
            sides = {"passthrough": daemon.environment(), "remote": Gantry.environment(daemon)}

            def once(side):
                context.progress(side)
                done = subprocess.run(["x264", "--opencl", "--opencl-clbin",
                                       os.path.join(folder, side), "--threads", "1",
                                       "--lookahead-threads", "1", "--no-progress", "-o",
                                       os.path.join(folder, "out.264"), video],
                                      env=sides[side], stdin=subprocess.DEVNULL,
                                      capture_output=True,
                                      text=True, timeout=300)
                rate = re.search(r"encoded (\d+) frames, ([\d.]+) fps", done.stderr)
                if (done.returncode or "OpenCL acceleration enabled" not in done.stderr or not rate
                        or int(rate[1]) != self.FRAMES):
                    raise BenchError(f"x264 in {side} did not encode with OpenCL: "
                                     f"{done.stderr[-300:]}")
                return float(rate[2])

            for side in sides:
                once(side)  # the first one compiles
            pairs = abba(context.pairs, lambda: once("passthrough"), lambda: once("remote"))
            return {"remote": ratios(pairs), "frames_per_s": [b for _, b in pairs],
                    "passthrough": ratios(abba(context.pairs, lambda: once("passthrough"),
                                               lambda: once("passthrough")))}

    def rows(self, d):
        yield barred("frames a second, remote over passthrough", d["remote"], at_least=REMOTE_BAR,
                     beside=d["passthrough"],
                     paper=paper("Crane, figure 6", Switches.paper_speed))
        yield figure("remote", d["frames_per_s"], "frames/s")

    def figures(self, d):
        yield chart("points", "", "x264: frames a second over passthrough (Crane figure 6)",
                    "over passthrough", [
            series("here", {"remote": d["remote"], "passthrough again": d["passthrough"]}),
            series("Crane", {"remote": Switches.paper_speed}, paper=True)],
            [limit(REMOTE_BAR, f"at least {REMOTE_BAR}")])
