# SPDX-License-Identifier: Apache-2.0
"""A program that launches a short kernel every 20 ms, of a tenant with a reserve, beside programs
that keep the device busy and hold twice its memory."""

import json
import sys
import time

from harness.figures import chart, series
from harness.rows import Findings, Group, barred, figure

from .emulated import OVERSUBSCRIBED, Emulated, Holder, Holders

TITLE = "A chatty program with a reserve"
TENANTS = "[tenant chat]\nreserve = 16M\nmemory = 16M\nuid = any\n"
CHATTY = ("--waits", "--idle", "20", "8")
# Short kernels: what cannot be preempted is not waited for.
N_BULK, BULK = 5, ("4",) * 56
SLICE_MS = 6


def measure_once(context, n_bulk):
    with Emulated(context, more=OVERSUBSCRIBED, tenants=TENANTS) as gantry:
        chat = Holder(gantry, context.holds, *CHATTY, GANTRY_TENANT="chat")
        bulk = [Holder(gantry, context.holds, *BULK) for _ in range(n_bulk)]
        with Holders([chat, *bulk]) as programs:
            time.sleep(context.seconds)
            of_chat = gantry.state()[1][chat.process.pid]
            swaps = gantry.ask("devices")["devices"][0]["swaps"]
            programs.tell()
            n, half, most, longest = (int(word) for word in chat.hear("waits"))
            for program in programs.holders:
                program.hear("right")
    return {"rounds": n, "half_ns": half * 1e3, "p99_ns": most * 1e3, "longest_ns": longest * 1e3,
            "swaps": swaps, "out": of_chat["swap_out_bytes"]}


def measure(context):
    data = {"alone": [], "beside": []}
    for run in range(context.runs):
        for way, n in (("alone", 0), ("beside", N_BULK)):
            data[way].append(measure_once(context, n))
            print(f"  ... chatty, {way}, {run + 1} of {context.runs}: "
                  f"{json.dumps(data[way][-1])}", file=sys.stderr, flush=True)

    def of(way, key):
        return [run[key] for run in data[way]]

    rows = [figure("rounds", of("beside", "rounds"), beside=of("alone", "rounds")),
            figure("half of the waits, at most", of("beside", "half_ns"), "ns",
                   beside=of("alone", "half_ns")),
            figure("99 % of the waits, at most", of("beside", "p99_ns"), "ns",
                   beside=of("alone", "p99_ns")),
            barred(f"of these, beyond alone, in slices of {SLICE_MS} ms",
                   [(b - a) / (SLICE_MS * 1e6) for b, a in
                    zip(of("beside", "p99_ns"), of("alone", "p99_ns"))], at_most=1),
            figure("the longest wait", of("beside", "longest_ns"), "ns",
                   beside=of("alone", "longest_ns")),
            figure("swaps meanwhile", of("beside", "swaps"), beside=of("alone", "swaps")),
            barred("bytes of it copied out", of("beside", "out"), at_most=0)]
    drawn = chart("bars", "chatty", "Waits of the chatty program", "ms", [
        series(what, {way: [ns / 1e6 for ns in of(way, key)] for way in data})
        for what, key in (("half, at most", "half_ns"), ("99 %, at most", "p99_ns"))])
    return Findings(TITLE, [Group("", rows, "alone")], [drawn],
                    [f"{context.device}; {N_BULK} programs of {sum(map(int, BULK))} MiB beside it; "
                     f"{context.seconds} s a run."], data)
