# SPDX-License-Identifier: Apache-2.0
"""Figures by gnuplot: scripts for bars and curves, and an SVG and a PNG of each. No gnuplot: no figures, and a word about it."""

import os
import shutil
import subprocess

STYLE = """set style data histogram
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set boxwidth 0.9
set xtics rotate by -30
set grid ytics
set key outside top center horizontal
"""
TERMINALS = {"svg": "svg size 900,420 dynamic background rgb 'white'", "png": "pngcairo size 1200,560"}


def quoted(text):
    return '"' + str(text).replace("\\", "").replace('"', "").replace("_", " ") + '"'


def columns(labels, series):
    """A gnuplot data block: a line a label, a column a series; what is missing is NaN."""
    lines = ["$data << END", " ".join(["_", *(quoted(name) for name, _ in series)])]
    for label in labels:
        lines.append(" ".join([quoted(label), *(f"{values[label]:.6g}" if label in values else "NaN" for _, values in series)]))
    return "\n".join([*lines, "END", ""])


def bars(title, y_label, labels, series, ideal=None, stacked=False):
    """series: [(name, {label: value})]; ideal: where a line is drawn."""
    line = "" if ideal is None else f", {ideal} with lines dashtype 2 linecolor black notitle"
    stack = "set style histogram rowstacked\nset boxwidth 0.7\n" if stacked else ""
    return (columns(labels, series) + STYLE + stack + f"set title {quoted(title)}\nset ylabel {quoted(y_label)}\nset yrange [0:*]\n"
            f"plot for [i=2:{len(series) + 1}] $data using i:xtic(1) title columnheader(i){line}\n")


def curves(title, x_label, y_label, series, ideal=None):
    """series: [(name, [(x, y)])]"""
    text = ""
    for i, (_, points) in enumerate(series):
        text += f"$d{i} << END\n" + "".join(f"{x:.6g} {y:.6g}\n" for x, y in points) + "END\n"
    plots = [f"$d{i} using 1:2 with linespoints title {quoted(name)}" for i, (name, _) in enumerate(series)]
    if ideal is not None:
        plots.append(f"{ideal} with lines dashtype 2 linecolor black notitle")
    return (text + f"set title {quoted(title)}\nset xlabel {quoted(x_label)}\nset ylabel {quoted(y_label)}\nset yrange [0:*]\nset grid\n"
            "set key outside top center horizontal\nplot " + ", ".join(plots) + "\n")


def draw(out, scripts):
    """scripts: (file's name without its ending, script) each. The files' paths, and what went wrong or None."""
    if shutil.which("gnuplot") is None:
        return [], "No figures: gnuplot is not installed (make deps)."
    files = []
    for name, script in scripts:
        for ending, terminal in TERMINALS.items():
            path = os.path.join(out, name + "." + ending)
            done = subprocess.run(["gnuplot"], input=f"set terminal {terminal}\nset output '{path}'\n{script}", capture_output=True,
                                  text=True, timeout=60)
            if done.returncode != 0:
                return files, f"gnuplot, {name}: {done.stderr.strip()[-300:]}"
            files.append(path)
    return files, None
