# SPDX-License-Identifier: Apache-2.0
"""Crane's figures 5 to 8: what tracking costs in passthrough, and loads that are switched to remote and back while they run."""

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
from harness.passthrough import Passthrough, measure
from harness.plot import bars, curves
from harness.stats import abba, geometric_mean, ratios
from harness.targets import BenchError, Gantry

from .rows import row

LOADS = ["matrixMul", "hotspot", "srad", "cfd", "nw", "scan", "lavaMD", "BlackScholes"]
STAY_S = 1.0
STEP_NS = 50_000_000


class Tracking:
    title = "Passthrough with all that a move needs written down, over the vendor's driver"
    figures = ("Crane 5",)
    staged = True

    def run(self, context):
        loads = LOADS[:1] if context.quick else LOADS
        with Passthrough(context.stage, context.driver) as target:
            results = {}
            for load in loads:
                context.progress(load)
                results[load] = measure(context, target, load)
        return {load: {side: r[side]["median"] for side in ("passthrough", "native")} for load, r in results.items()}

    def rows(self, d):
        mean = geometric_mean([r["passthrough"] for r in d.values()])
        worst = max(r["passthrough"] for r in d.values())
        yield row("Crane 5", "time over native, geometric mean", "1.0525 (SHOC)", f"{mean:.3f}", bar="at most 1.01", met=mean <= 1.01)
        yield row("Crane 5", "the worst", "1.125 (x264)", f"{worst:.3f}", bar="at most 1.03", met=worst <= 1.03)
        yield row("Crane 5", "native over native, geometric mean", "", f"{geometric_mean([r['native'] for r in d.values()]):.3f}")

    def scripts(self, d):
        yield "crane-5", bars("Crane figure 5: passthrough over native", "time over native", list(d), [
            (side, {load: r[side] for load, r in d.items()}) for side in ("passthrough", "native")], ideal=1)


class Switches:
    title = "Passthrough, remote and back, while the program runs"
    figures = ("Crane 6", "Crane 7", "Crane 8")
    staged = True

    def run(self, context):
        loads = LOADS[:1] if context.quick else LOADS
        with Passthrough(context.stage, context.driver) as daemon:
            return {load: self.once(context, daemon, load) for load in loads}

    def once(self, context, daemon, load):
        context.progress(load)
        program = os.path.join(context.build, "bench/loads/gantry-load")
        p = Program([program, *SHORT_ROUNDS[load], "--obey", "--no-profile"], daemon.environment(), context.cores.all, load).ready()
        try:
            vgpu = [v for v in daemon.ask("ls")["vgpus"] if v["pid"] == p.process.pid][0]
            # Once before: PoCL compiles a kernel when it is first launched in a process, if it is not in that one's cache, for up to half a second.
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
            return (rounds_until(run, min(b, last)) - rounds_until(run, a)) * 1e9 / (min(b, last) - a)

        return {"remote_over_passthrough": speed(between, back_began) / statistics.mean([speed(first, began), speed(ended, last)]),
                "out": out, "back": back, "memory_bytes": vgpu["memory_bytes"],
                "course": [[(t - first) / 1e9, speed(t, t + STEP_NS)] for t in range(first, last - STEP_NS, STEP_NS)]}

    def rows(self, d):
        for load, x in d.items():
            yield row("Crane 6", f"{load}: speed while remote, of passthrough", "a third, 20.1 of 60 frames (x264)",
                      f"{x['remote_over_passthrough']:.3f}", bar="at least 0.9", met=x["remote_over_passthrough"] >= 0.9)
        for way, paper in (("out", "100; 73; 1,570 (x264; FAHBench; DeepCL)"), ("back", "830; 520; 4,900")):
            took = [x[way]["downtime_ns"] / 1e6 for x in d.values()]
            yield row("Crane 7", f"stands still, {'to remote' if way == 'out' else 'back'}, median and most of {len(took)} loads (ms)", paper,
                      f"{statistics.median(took):.1f}; {max(took):.1f}", bar="at most 100", met=max(took) <= 100)
        for way, paper in (("out", "16; 1; 256 (x264; FAHBench; DeepCL)"), ("back", "16; 0; 256")):
            sent = [x[way]["bytes_sent"] / 2**20 for x in d.values()]
            yield row("Crane 8", f"sent {'to remote' if way == 'out' else 'back'}, median and most (MiB)", paper,
                      f"{statistics.median(sent):.1f}; {max(sent):.1f}")
        held = [x["memory_bytes"] / 2**20 for x in d.values()]
        yield row("Crane 8", "device memory, median and most (MiB)", "at most 1,024 (DeepCL)", f"{statistics.median(held):.1f}; {max(held):.1f}")

    def scripts(self, d):
        load = next(iter(d))
        yield "crane-6", curves(f"Crane figure 6: {load}, to remote and back", "s", "rounds a second", [(load, d[load]["course"])])
        for way, letter in (("out", "a"), ("back", "b")):
            phases = ("drain", "save", "load")
            yield f"crane-7{letter}", bars(f"Crane figure 7{letter}: the pause {'to remote' if way == 'out' else 'back'}", "ms", list(d), [
                (phase, {name: x[way]["phases_ns"][phase] / 1e6 for name, x in d.items()}) for phase in phases], stacked=True)
        yield "crane-8", bars("Crane figure 8: what is sent, and the device memory", "MiB", list(d), [
            ("to remote", {name: x["out"]["bytes_sent"] / 2**20 for name, x in d.items()}),
            ("back", {name: x["back"]["bytes_sent"] / 2**20 for name, x in d.items()}),
            ("memory", {name: x["memory_bytes"] / 2**20 for name, x in d.items()})])


class AsGpu(Passthrough):
    """x264 asks for a GPU."""

    def options(self, folder):
        return ["--device", "pthread,present-as=gpu"]


class Frames:
    title = "x264 --opencl, the whole of it remote, over the whole of it in passthrough"
    figures = ("Crane 6",)
    staged = True
    SIZE, FRAMES = "640x352", 50

    def run(self, context):
        missing = [name for name in ("x264", "ffmpeg") if not shutil.which(name)]
        if missing:
            raise BenchError(f"{missing[0]} is not installed")
        with tempfile.TemporaryDirectory(prefix="gn-bench-x264-") as folder, AsGpu(context.stage, context.driver) as daemon:
            video = os.path.join(folder, "in.y4m")
            subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size={self.SIZE}:rate=25", "-frames:v", str(self.FRAMES),
                            "-pix_fmt", "yuv420p", video], stdin=subprocess.DEVNULL, check=True, timeout=120)
            sides = {"passthrough": daemon.environment(), "remote": Gantry.environment(daemon)}

            def once(side):
                context.progress(side)
                done = subprocess.run(["x264", "--opencl", "--opencl-clbin", os.path.join(folder, side), "--threads", "1",
                                       "--lookahead-threads", "1", "--no-progress", "-o", os.path.join(folder, "out.264"), video],
                                      env=sides[side], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=300)
                rate = re.search(r"encoded (\d+) frames, ([\d.]+) fps", done.stderr)
                if done.returncode or "OpenCL acceleration enabled" not in done.stderr or not rate or int(rate[1]) != self.FRAMES:
                    raise BenchError(f"x264 in {side} did not encode with OpenCL: {done.stderr[-300:]}")
                return float(rate[2])

            for side in sides:
                once(side)  # the first one compiles
            return {"remote": ratios(abba(context.pairs, lambda: once("passthrough"), lambda: once("remote"))),
                    "passthrough": ratios(abba(context.pairs, lambda: once("passthrough"), lambda: once("passthrough")))}

    def rows(self, d):
        for side, bar in (("remote", 0.9), ("passthrough", None)):
            r = d[side]
            rate = statistics.median(b for _, b in r["pairs"])
            yield row("Crane 6", f"x264: frames a second in {side} over passthrough, {len(r['pairs'])} pairs", "a third, 20.1 of 60 frames",
                      f"{r['median']:.3f} ({r['min']:.2f}..{r['max']:.2f}), {rate:.1f} a second", bar=f"at least {bar}" if bar else "",
                      met=r["median"] >= bar if bar else None)

    def scripts(self, d):
        yield "crane-6-x264", bars("Crane figure 6: x264, over passthrough", "frames a second, over passthrough", list(d), [
            ("median", {side: r["median"] for side, r in d.items()})], ideal=1)
