# SPDX-License-Identifier: Apache-2.0
"""Whole programs, native and Gantry in turn: what their users see. Add a program by adding an entry."""

import re
import shutil
import statistics

from .stats import abba, ratios
from .table import Table, ratio
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
    table = Table(f"Whole programs, {context.turns} turns each", ["native", "gantry", "gantry/native", "min..max"])
    results = []
    for name, command, patterns in PROGRAMS:
        if shutil.which(command[0]) is None:
            table.row(name, "not installed")
            continue
        if context.gantry is None:
            pairs = [(once(context.native, command, patterns), None) for _ in range(context.turns)]
        else:
            pairs = abba(context.turns, lambda: once(context.native, command, patterns),
                         lambda: once(context.gantry, command, patterns))
        for figure in ["seconds", *patterns]:
            natives = [a[figure] for a, _ in pairs if figure in a]
            both = [(a[figure], b[figure]) for a, b in pairs if b is not None and figure in a and figure in b]
            over = ratios(both) if both else None
            table.row(f"{name}: {figure}", f"{statistics.median(natives):.3g}" if natives else "-",
                      f"{statistics.median(b for _, b in both):.3g}" if both else "-",
                      ratio(over["median"]) if over else "-",
                      f"{over['min']:.2f}..{over['max']:.2f}" if over else "-")
        results.append({"program": name, "command": command, "pairs": [list(p) for p in pairs]})
        context.progress(name)
    return table, results
