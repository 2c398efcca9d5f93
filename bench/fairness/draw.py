# SPDX-License-Identifier: Apache-2.0
"""The papers' figures from the results that are there, by gnuplot: an SVG and a PNG each. No gnuplot: no figures, and a word about it."""

import os
import shutil
import statistics
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


def bars(title, y_label, labels, series, ideal):
    return (columns(labels, series) + STYLE + f"set title {quoted(title)}\nset ylabel {quoted(y_label)}\nset yrange [0:*]\n"
            f"plot for [i=2:{len(series) + 1}] $data using i:xtic(1) title columnheader(i), {ideal} with lines dashtype 2 linecolor black notitle\n")


def curves(title, x_label, y_label, series, ideal):
    """series: [(name, [(x, y)])]"""
    text = ""
    for i, (_, points) in enumerate(series):
        text += f"$d{i} << END\n" + "".join(f"{x:.6g} {y:.6g}\n" for x, y in points) + "END\n"
    plots = [f"$d{i} using 1:2 with linespoints title {quoted(name)}" for i, (name, _) in enumerate(series)]
    return (text + f"set title {quoted(title)}\nset xlabel {quoted(x_label)}\nset ylabel {quoted(y_label)}\nset yrange [0:*]\nset grid\n"
            "set key outside top center horizontal\nplot " + ", ".join([*plots, f"{ideal} with lines dashtype 2 linecolor black notitle"]) + "\n")


def middle(values):
    return statistics.median(values)


def weights(results, paper_title):
    """Figures 8 and 9: MMR and overhead, by load and policy."""
    labels = list(dict.fromkeys(load for _, r in results for load in r))
    for key, y_label in (("mmr", "min-max ratio"), ("overhead", "aggregated overhead")):
        series = [(policy, {load: middle(x[key]) for load, x in r.items()}) for policy, r in results]
        yield key, bars(paper_title, y_label, labels, series, 1)


def sleeper(results, paper_title):
    series = [(policy, [(int(p), 100 * middle(x["busy"])) for p, x in r.items()]) for policy, r in results]
    yield "", curves(paper_title, "part of the time that matrixMul sleeps, %", "device busy, %", series, 100)


def pair(results, paper_title):
    for number, who in ((0, "foreground"), (1, "background")):
        series = [(policy, {label: middle([1 / max(s[number], 1e-9) for s in x["shares"]]) for label, x in r.items()}) for policy, r in results]
        yield who, bars(f"{paper_title}: the {who}", "time over alone", list(results[0][1]), series, 2)


def devices(results, paper_title):
    series = [(policy, {f"VM{i + 1}": middle([p[i] for p in r["parts"]]) for i in range(4)}) for policy, r in results]
    yield "", bars(paper_title, "part of its device", [f"VM{i + 1}" for i in range(4)], series, 0.5)


def slicing(results, paper_title):
    for policy, r in results:
        series = [(size, [(int(n), 100 * (middle(x) - 1)) for n, x in by_groups.items()]) for size, by_groups in r.items()]
        yield policy, "set logscale x\n" + curves(paper_title, "work-groups a launch", "slower by, %", series, 5)


DRAWN = {"fig8": weights, "fig9": weights, "fig10": sleeper, "fig11-mm": pair, "fig11-hs": pair, "gvim": devices, "table4": slicing}


def draw(out, results):
    """results: {experiment: (title, [(policy, result)])}. The files' names, and what went wrong."""
    if shutil.which("gnuplot") is None:
        return [], "No figures: gnuplot is not installed (make deps)."
    files = []
    for name, (title, by_policy) in results.items():
        if name not in DRAWN or not by_policy:
            continue
        for part, script in DRAWN[name](by_policy, title):
            for ending, terminal in TERMINALS.items():
                path = os.path.join(out, name + ("-" + part if part else "") + "." + ending)
                done = subprocess.run(["gnuplot"], input=f"set terminal {terminal}\nset output '{path}'\n{script}", capture_output=True,
                                      text=True, timeout=60)
                if done.returncode != 0:
                    return files, f"gnuplot, {name}: {done.stderr.strip()[-300:]}"
                files.append(path)
    return files, None
