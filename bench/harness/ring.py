# SPDX-License-Identifier: Apache-2.0
"""The ring by bench-ring: a null call, the bare ping-pong beneath it, and a Unix socket in its place, all
in one run."""

import os

from .figures import chart, series
from .rows import Findings, Group, barred, figure
from .targets import BenchError, run_json

LABELS = {"pingpong": "bare ping-pong, a word each way", "null_call": "null call", "unix_socket": "80 B over a Unix socket",
          "one_line": "ping-pong of one word that both write"}


def run(context):
    program = os.path.join(context.build, "bench/ring/bench-ring")
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    runs = [run_json(context.native, [program, "--pin", "--json"]) for _ in range(context.turns)]

    def values(key):
        return [r[key] for r in runs]

    rows = [figure(LABELS[name], values(name + "_ns"), "ns") for name in LABELS]
    times = series("one call", {row["what"]: row for row in rows})
    rows += [barred("null call over bare ping-pong", values("null_call_to_pingpong"), at_most=2.0),
             barred("Unix socket over null call", values("unix_socket_to_null_call"), at_least=20.0)]
    return Findings("Ring: one call, a processor for each side", [Group(rows=rows)],
                    [chart("bars", "", "One call over the ring", "ns", [times], log=True)],
                    [f"Medians of {context.turns} runs of bench-ring."], runs)
