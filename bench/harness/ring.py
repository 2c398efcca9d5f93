# SPDX-License-Identifier: Apache-2.0
"""The ring by bench-ring: a null call, the bare ping-pong beneath it, a Unix socket instead of it, all in one run."""

import os
import statistics

from .table import Table, ns
from .targets import BenchError, run_json

PING_PONG_BAR = 2.0
SOCKET_BAR = 20.0


def run(context):
    program = os.path.join(context.build, "bench/ring/bench-ring")
    table = Table(f"Ring: medians of {context.turns} runs", ["time"])
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    runs = [run_json(context.native, [program, "--json"]) for _ in range(context.turns)]
    figures = {}
    for key in sorted(k for k in runs[0] if k.endswith("_ns") and k != "process_ns"):
        figures[key] = statistics.median(r[key] for r in runs)
        table.row(key[:-3].replace("_", " "), ns(figures[key]))
    null, ping, socket = (figures.get(k) for k in ("null_call_ns", "ping_pong_ns", "unix_socket_ns"))
    over_ping = null / ping if null and ping else None
    over_socket = socket / null if null and socket else None
    table.row("null call over ping-pong", f"{over_ping:.2f}" if over_ping else "-", bar=f"at most {PING_PONG_BAR:g}",
              met=None if over_ping is None else over_ping <= PING_PONG_BAR)
    table.row("Unix socket over null call", f"{over_socket:.1f}" if over_socket else "-",
              bar=f"at least {SOCKET_BAR:g}", met=None if over_socket is None else over_socket >= SOCKET_BAR)
    if "wake_ns" in figures:
        context.figures["wake_ns"] = figures["wake_ns"]
    return table, runs
