#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that exceed a device's memory together, on the emulated discrete GPU: residency periods
against a swap at each turn. `make bench-oversubscribe`.

The programs launch kernels over all of their memory in a loop (tests/memory/holds.c) and compare
every byte with a model in the end. Status 0 when all was measured, 1 when not, 2 for a usage error.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "../../tests/discrete"))

from device_state import Device  # noqa: E402
from harness.campaign import Campaign, add_options  # noqa: E402
from harness.figures import chart, series  # noqa: E402
from harness.rows import Findings, Group, barred, figure  # noqa: E402
from harness.targets import BenchError, Gantry  # noqa: E402

SHARE = 0.10
SLACK = 0.03    # of the time in copies: a period is in progress when the measurement ends
ANSWER_S = 300
# Buffers in MiB; each program has a mebibyte more for results.
MIXES = {"3 of 300 MiB": (3, ("192", "107")), "6 of 256 MiB": (6, ("128", "127"))}
WAYS = {"periods": f"{100 * SHARE:g}%", "each turn": "0"}


class Swapping(Gantry):
    """A gantryd on an emulated device of 512 MiB."""

    def __init__(self, context, share):
        self.share = share
        self.icd, self.bus = context.icd, context.bus
        super().__init__(context.stage, {}, ready_s=120)

    def options(self, folder):
        os.chmod(folder, 0o755)     # workers may be of another user
        device = Device(self.icd, folder, f"capacity=512M,bus={self.bus}")
        self.driver = device.env() | {"POCL_CACHE_DIR": os.path.join(folder, "cache")}
        path = os.path.join(folder, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write("[device pthread]\nmemory = 512M\nslot = 16M\n")
        return ["--config", path, "--oversubscribe", "--swap-memory", "2G",
                "--swap-share", self.share]

    def state(self):
        """Device time of each program by its pid, and the time in swaps, in ns."""
        used = {v["pid"]: v["devices"][0] for v in self.ask("ls")["vgpus"]}
        return time.monotonic_ns(), used, self.ask("devices")["devices"][0]


class Worker:
    """holds: filled, then in rounds from the first line on, until the next one."""

    def __init__(self, gantry, path, sizes):
        self.process = subprocess.Popen(
            [path, "--pause", "--told", "--often", "0", *sizes], env=gantry.environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def hear(self, word):
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
        line = self.process.stdout.readline().split() if ready else ["nothing"]
        if line[:1] != [word]:
            raise BenchError(f"a program said {' '.join(line)!r}, not {word!r}")
        return line[1:]

    def tell(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.communicate()


def measure_once(context, n, sizes, share):
    """Ratios of the time, the longest round in ns, and the smallest over the greatest use."""
    with Swapping(context, share) as gantry:
        workers = []
        try:
            for _ in range(n):
                workers.append(Worker(gantry, context.holds, sizes))
            for worker in workers:
                worker.hear("holds")
            for worker in workers:
                worker.tell()
            began, used, device = gantry.state()
            time.sleep(context.seconds)
            ended, used_then, device_then = gantry.state()
            for worker in workers:
                worker.tell()
            rounds = [worker.hear("right") for worker in workers]
        finally:
            for worker in workers:
                worker.end()
    took = ended - began
    each = [used_then[pid]["device_ns"] - used[pid]["device_ns"] for pid in used]
    if not max(each):
        raise BenchError("no program has used the device")
    return {"useful": sum(each) / took,
            "copies": (device_then["copying_ns"] - device["copying_ns"]) / took,
            "swaps": device_then["swaps"] - device["swaps"],
            "longest_ns": max(int(ms) for _, ms in rounds) * 1e6,
            "mmr": min(each) / max(each)}


def rows_of(data):
    """data: of a mix, {way: runs}."""
    def of(way, key, factor=1):
        return [factor * run[key] for run in data[way]]

    yield figure("time in commands", of("periods", "useful", 100), "%",
                 beside=of("each turn", "useful", 100))
    yield barred("time in commands over that of a swap at each turn",
                 [p / t for p, t in zip(of("periods", "useful"), of("each turn", "useful"))],
                 at_least=2)
    yield barred("time in copies", of("periods", "copies", 100), unit="%",
                 at_most=100 * (SHARE + SLACK), beside=of("each turn", "copies", 100))
    yield figure("swaps", of("periods", "swaps"), beside=of("each turn", "swaps"))
    yield figure("longest round", of("periods", "longest_ns"), "ns",
                 beside=of("each turn", "longest_ns"))
    yield figure("min-max ratio of shares", of("periods", "mmr"), beside=of("each turn", "mmr"))


def measure(context):
    data = {}
    for mix, (n, sizes) in MIXES.items():
        data[mix] = {way: [] for way in WAYS}
        for run in range(context.runs):
            for way, share in WAYS.items():
                data[mix][way].append(measure_once(context, n, sizes, share))
                print(f"  ... {mix}, {way}, {run + 1} of {context.runs}: "
                      f"{json.dumps(data[mix][way][-1])}", file=sys.stderr, flush=True)
    groups = [Group(mix, list(rows_of(of)), "a swap at each turn") for mix, of in data.items()]
    drawn = chart("bars", "", "Device time, 512 MiB", "%", [
        series(f"{name}, {way}", {mix: [100 * run[key] for run in of[way]]
                                  for mix, of in data.items()})
        for key, name in (("useful", "in commands"), ("copies", "in copies")) for way in WAYS])
    return Findings("Programs that exceed a device's memory together", groups, [drawn],
                    [f"An emulated GPU (PoCL) of 512 MiB behind a bus of {context.bus} bytes a "
                     f"second, slots of 16 MiB; {context.seconds} s a run. Host memory is slower "
                     "than the bus here, so that a copy takes longer than on a device."], data)


def parse(arguments):
    p = argparse.ArgumentParser(description="Measure programs that exceed a device's memory.")
    add_options(p, "one run of 20 s of each")
    p.add_argument("--seconds", type=int, help="of a run (default: 120)")
    p.add_argument("--runs", type=int, help="of each (default: 3)")
    p.add_argument("--bus", default="12G", help="bytes a second each way (default: 12G)")
    o = p.parse_args(arguments)
    o.seconds = o.seconds or (20 if o.quick else 120)
    o.runs = o.runs or (1 if o.quick else 3)
    o.stage = os.path.join(o.build, "stage")
    o.holds = os.path.abspath(os.path.join(o.build, "tests/memory/holds"))
    o.icd = os.path.join(o.build, "tests/discrete/libdiscrete-icd.so")
    for path, made_by in ((o.stage, "stage"), (o.holds, "build-tests"), (o.icd, "build-tests")):
        if not os.path.exists(path):
            p.error(f"there is no {path}: run `make {made_by}` first")
    return o


def main():
    o = parse(sys.argv[1:])
    campaign = Campaign("bench", o, ["oversubscribe"], ["oversubscribe"], o.runs, o.seconds)
    campaign.measure("oversubscribe", lambda: measure(o))
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
