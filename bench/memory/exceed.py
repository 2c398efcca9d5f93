# SPDX-License-Identifier: Apache-2.0
"""Programs that exceed a device's memory together: residency periods against a swap at each turn,
and against a lock on the device that each program has for 30 s (nvshare)."""

import json
import sys
import time

from harness.figures import chart, series
from harness.rows import Findings, Group, barred, figure
from harness.targets import BenchError

from .emulated import OVERSUBSCRIBED, Emulated, Holder, Holders

TITLE = "Programs that exceed a device's memory together"
SHARE = 0.10
SLACK = 0.03    # of the time in copies: a period is in progress when the measurement ends
USEFUL = 0.95   # of the time that copies leave
PERIODS = 10    # of each program, for the bar on shares
LOCK_S = 30
# Buffers in MiB, and memory with room for one program; each has a mebibyte more for results.
MIXES = {"3 of 300 MiB": (3, ("192", "107"), "320M"), "6 of 256 MiB": (6, ("128", "127"), "272M")}
# A share of copies that is never reached makes each period the longest one.
LOCK = ("--swap-share", "0.01%", "--residency-max", f"{LOCK_S}s")


def measure_once(context, n, sizes, seconds, *more, **how):
    """Ratios of the time, the longest round in ns, and the smallest over the greatest use."""
    with Emulated(context, more=(*OVERSUBSCRIBED, *more), **how) as gantry, \
            Holders([Holder(gantry, context.holds, *sizes) for _ in range(n)]) as programs:
        began, used, device = gantry.state()
        time.sleep(seconds)
        ended, used_then, device_then = gantry.state()
        programs.tell()
        rounds = [program.hear("right") for program in programs.holders]
    took = ended - began
    each = [used_then[pid]["device_ns"] - used[pid]["device_ns"] for pid in used]
    if not max(each):
        raise BenchError("no program has used the device")
    return {"useful": sum(each) / took,
            "copies": (device_then["copying_ns"] - device["copying_ns"]) / took,
            "swaps": device_then["swaps"] - device["swaps"],
            "longest_ns": max(int(ms) for _, ms in rounds) * 1e6,
            "mmr": min(each) / max(each)}


def ways(context, n, sizes, one):
    """How each way of sharing is measured."""
    return {
        "periods": lambda: measure_once(context, n, sizes, context.seconds,
                                        "--swap-share", f"{100 * SHARE:g}%"),
        "each turn": lambda: measure_once(context, n, sizes, context.seconds, "--swap-share", "0"),
        "lock": lambda: measure_once(context, n, sizes, (n + 1) * LOCK_S, *LOCK, memory=one)}


def rows_of(n, data):
    """data: {way: runs}."""
    def of(way, key, factor=1):
        return [factor * run[key] for run in data[way]]

    yield barred("time in commands", of("periods", "useful", 100), unit="%",
                 at_least=100 * USEFUL * (1 - SHARE), beside=of("each turn", "useful", 100))
    yield barred("time in commands over that of a swap at each turn",
                 [p / t for p, t in zip(of("periods", "useful"), of("each turn", "useful"))],
                 at_least=2)
    yield barred("time in copies", of("periods", "copies", 100), unit="%",
                 at_most=100 * (SHARE + SLACK), beside=of("each turn", "copies", 100))
    yield figure("swaps", of("periods", "swaps"), beside=of("each turn", "swaps"))
    yield figure("longest round", of("periods", "longest_ns"), "ns",
                 beside=of("each turn", "longest_ns"))
    if data["lock"]:
        lock = max(of("lock", "longest_ns"))
        yield barred(f"longest round over that with a lock of {LOCK_S} s",
                     [ns / lock for ns in of("periods", "longest_ns")], at_most=0.2)
        yield figure("time in commands with the lock", of("lock", "useful", 100), "%")
    long = [run["mmr"] for run in data["periods"] if run["swaps"] >= PERIODS * n]
    yield (barred if long else figure)(
        "min-max ratio of shares", long or of("periods", "mmr"),
        beside=of("each turn", "mmr"), **({"at_least": 0.9} if long else {}))


def measure(context):
    data = {}
    for mix, (n, sizes, one) in MIXES.items():
        data[mix] = {way: [] for way in ("periods", "each turn", "lock")}
        for run in range(context.runs):
            for way, once in ways(context, n, sizes, one).items():
                if way == "lock" and (run or context.quick):
                    continue
                data[mix][way].append(once())
                print(f"  ... {mix}, {way}, {run + 1} of {context.runs}: "
                      f"{json.dumps(data[mix][way][-1])}", file=sys.stderr, flush=True)
    groups = [Group(mix, list(rows_of(MIXES[mix][0], of)), "a swap at each turn")
              for mix, of in data.items()]
    drawn = chart("bars", "", "Device time, 512 MiB", "%", [
        series(f"{name}, {way}", {mix: [100 * run[key] for run in of[way]]
                                  for mix, of in data.items()})
        for key, name in (("useful", "in commands"), ("copies", "in copies"))
        for way in ("periods", "each turn")])
    return Findings(TITLE, groups, [drawn],
                    [f"{context.device}; {context.seconds} s a run. Host memory is slower than the "
                     "bus here, so that a copy takes longer than on a device. The lock is one run, "
                     f"of {LOCK_S} s for each program and {LOCK_S} s more."], data)
