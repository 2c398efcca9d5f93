# SPDX-License-Identifier: Apache-2.0
"""Whole programs, native and Gantry in turn: what their users see. Add a program by adding an entry."""

import re
import shutil

from .figures import chart, series
from .rows import Findings, Group, figure
from .stats import abba, ratios
from .targets import run

# name, command, {figure: pattern with one group}; a figure is compared as Gantry over native
PROGRAMS = [
    ("clinfo", ["clinfo"], {}),
    ("clpeak", ["clpeak", "--kernel-latency", "--transfer-bandwidth"], {
        "kernel launch latency (us)": r"Kernel launch latency\s*:\s*([\d.]+) us",
        "enqueueWriteBuffer (GB/s)": r"enqueueWriteBuffer\s*:\s*([\d.]+)",
        "enqueueReadBuffer (GB/s)": r"enqueueReadBuffer\s*:\s*([\d.]+)",
        "memcpy from mapped (GB/s)": r"memcpy from mapped ptr\s*:\s*([\d.]+)",
        "memcpy to mapped (GB/s)": r"memcpy to mapped ptr\s*:\s*([\d.]+)",
    }),
]


def once(target, command, patterns):
    out, elapsed_s = run(target, command, 600)
    figures = {"seconds": elapsed_s}
    for name, pattern in patterns.items():
        found = re.search(pattern, out)
        if found:
            figures[name] = float(found.group(1))
    return figures


def run_section(context):
    rows, notes, raw, drawn = [], [], [], {}
    for name, command, patterns in PROGRAMS:
        if shutil.which(command[0]) is None:
            notes.append(f"{name} is not installed.")
            continue
        if context.gantry is None:
            pairs = [(once(context.native, command, patterns), {}) for _ in range(context.turns)]
        else:
            pairs = abba(context.turns, lambda: once(context.native, command, patterns),
                         lambda: once(context.gantry, command, patterns))
        for part in ["seconds", *patterns]:
            what = f"{name}: {part}"
            drawn[what] = ratios([(a[part], b[part]) for a, b in pairs if part in a and part in b])
            rows.append(figure(what, drawn[what], beside=[a[part] for a, _ in pairs if part in a]))
        raw.append({"program": name, "command": command, "pairs": pairs})
        context.progress(name)
    return Findings("Whole programs: Gantry over native", [Group(rows=rows, beside="native, itself")],
                    [chart("bars", "", "Whole programs: Gantry over native", "over native", [series("Gantry over native", drawn)])],
                    [f"{context.turns} turns each.", *notes], raw)
