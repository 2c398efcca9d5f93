# SPDX-License-Identifier: Apache-2.0
"""Figures by gnuplot. A figure is a plain dictionary, as it stands in a result's JSON file, so that
it can be drawn again without measuring. All are black and grey: series differ by pattern, by point
or by dashes, so that a print or a copy shows the same. Error bars are quartiles.

Kinds: `bars` (from 0), `points` (where what counts is close to 1), `stacked`, `curves`."""

import os
import shutil
import subprocess

from .stats import spread

NO_GNUPLOT = "gnuplot is not installed (make deps)"

# What a series is filled, drawn or dotted with, in turn.
FILLS = ("solid 1.0 border lc rgb 'black' lc rgb '#606060'",
         "pattern 4 border lc rgb 'black' lc rgb 'black'",
         "solid 1.0 border lc rgb 'black' lc rgb '#c8c8c8'",
         "pattern 2 border lc rgb 'black' lc rgb 'black'",
         "pattern 5 border lc rgb 'black' lc rgb 'black'",
         "solid 1.0 border lc rgb 'black' lc rgb '#202020'",
         "pattern 1 border lc rgb 'black' lc rgb 'black'")
POINTS = (7, 4, 9, 8, 5, 6, 2)
PAPER_FILLS = ("pattern 0 border lc rgb 'black' lc rgb 'black'",
               "pattern 6 border lc rgb 'black' lc rgb 'black'",
               "pattern 7 border lc rgb 'black' lc rgb 'black'")
PAPER_POINTS = (12, 10, 3)
LINES = ((1, "#000000"), (2, "#606060"), (4, "#000000"), (3, "#606060"), (5, "#000000"),
         (1, "#909090"))

ERROR_BARS = "yerrorbars pointtype 7 pointsize 0.2 lc rgb 'black'"
NO_HALO = "set pointintervalbox 0.01"  # gnuplot whitens the ground of error bars; 0 is its default
MOST_POINTS = 60  # of a curve whose points are marked

LABEL_PX = 26
LEAST_PX, MOST_PX, HEIGHT_PX = 560, 1240, 380


def quartiles(values):
    """Of a list of runs' figures, of a row, or of one number: [middle, lower end, upper end]."""
    if isinstance(values, (int, float)):
        return [values, values, values]
    if isinstance(values, dict):
        low, high = values.get("p25", values.get("min")), values.get("p75", values.get("max"))
        middle = values["median"]
        return [middle, middle if low is None else low, middle if high is None else high]
    s = spread(values)
    return [s["median"], s["p25"], s["p75"]]


def series(name, values, paper=False):
    """values: {label: what quartiles() takes}. A label without any stays empty."""
    taken = {str(k): quartiles(v) for k, v in values.items() if v is not None and v != []
             and v != {}}
    return {"name": name, "values": taken} | ({"paper": True} if paper else {})


def curve(name, points, paper=False):
    """points: [(x, what quartiles() takes)]"""
    return {"name": name,
            "points": [[x, *quartiles(y)] for x, y in points]} | ({"paper": True} if paper else {})


def limit(value, text):
    """A bar, drawn as a dashed line."""
    return {"value": value, "text": text}


def chart(kind, name, title, y, all_series, limits=(), log=False):
    """name: the file's, behind the result's own name. Labels are in the order of their first
    series."""
    labels = list(dict.fromkeys(label for s in all_series for label in s["values"]))
    return {"kind": kind, "name": name, "title": title, "y": y, "labels": labels,
            "series": all_series,
            "limits": list(limits), "log": log}


def curves(name, title, x, y, all_curves, limits=(), log_x=False):
    return {"kind": "curves", "name": name, "title": title, "x": x, "y": y, "series": all_curves,
            "limits": list(limits), "log_x": log_x}


def quoted(text):
    return '"' + str(text).replace("\\", "").replace('"', "'") + '"'


def block(number, rows):
    lines = [" ".join(f"{v:.6g}" for v in row) for row in rows]
    return "\n".join([f"$d{number} << END", *lines, "END", ""])


def style_of(all_series, i, own, papers):
    """Of a series: the next of its kind, so that two papers' series differ as well."""
    is_paper = bool(all_series[i].get("paper"))
    before = sum(bool(s.get("paper")) == is_paper for s in all_series[:i])
    styles = papers if is_paper else own
    return styles[before % len(styles)]


def chart_script(figure):
    """Columns side by side, placed here: gnuplot's own histograms lose the place of an error
    bar."""
    n = len(figure["series"])
    stacked = figure["kind"] == "stacked"
    width = 0.7 if stacked else (0.8 if figure["kind"] == "bars" else 0.5) / n
    text, plots, errors = "", [], []
    below = dict.fromkeys(figure["labels"], 0.0)
    for i, s in enumerate(figure["series"]):
        rows = []
        for at, label in enumerate(figure["labels"]):
            if label not in s["values"]:
                continue
            middle, low, high = s["values"][label]
            if stacked:
                # The last three are the error bar, beside those of the other series of its column.
                base = below[label]
                rows.append([at, at - width / 2, at + width / 2, base, base + middle,
                             at + ((i + 1) / (n + 1) - 0.5) * width, base + low, base + high])
                below[label] += middle
            else:
                rows.append([at + (i - (n - 1) / 2) * width, middle, low, high])
        if not rows:
            continue
        text += block(i, rows)
        fill = style_of(figure["series"], i, FILLS, PAPER_FILLS)
        title = f"title {quoted(s['name'])}"
        if stacked:
            plots.append(f"$d{i} using 1:4:2:3:4:5 with boxxyerror fillstyle {fill} {title}")
            if any(row[6] != row[7] for row in rows):
                errors.append(f"$d{i} using 6:5:7:8 with {ERROR_BARS} notitle")
        elif figure["kind"] == "bars":
            plots.append(f"$d{i} using 1:2 with boxes fillstyle {fill} {title}")
            if any(low != high for _, _, low, high in rows):
                plots.append(f"$d{i} using 1:2:3:4 with {ERROR_BARS} notitle")
        else:
            point = style_of(figure["series"], i, POINTS, PAPER_POINTS)
            plots.append(f"$d{i} using 1:2:3:4 with yerrorbars pointtype {point} pointsize 0.8 "
                         f"lc rgb 'black' {title}")
    n_labels = len(figure["labels"])
    # A tic's label is a format.
    tics = ", ".join(f"{quoted(label).replace('%', '%%')} {at}"
                     for at, label in enumerate(figure["labels"]))
    from_zero = figure["kind"] in ("bars", "stacked") and not figure["log"]
    return text + (f"set xtics ({tics}) {'rotate by -30' if n_labels > 3 else ''} nomirror\n"
                   f"set xrange [-0.6:{n_labels - 0.4}]\nset boxwidth {width * 0.92:.4f}\n"
                   + ("set yrange [0:*]\n" if from_zero else "")
                   + ("set logscale y\n" if figure["log"] else "")
                   + "set grid ytics\n"), plots + errors


def curves_script(figure):
    text, plots = "", []
    for i, s in enumerate(figure["series"]):
        text += block(i, s["points"])
        dash, grey = LINES[i % len(LINES)]
        point = style_of(figure["series"], i, POINTS, PAPER_POINTS)
        style = (f"dashtype {dash} pointtype {point} pointsize 0.6 lc rgb '{grey}' "
                 f"title {quoted(s['name'])}")
        if any(low != high for _, _, low, high in s["points"]):
            plots.append(f"$d{i} using 1:2:3:4 with yerrorlines {style}")
        else:
            plain = "lines" if len(s["points"]) > MOST_POINTS else "linespoints"
            plots.append(f"$d{i} using 1:2 with {plain} {style}")
    return text + (f"set xlabel {quoted(figure['x'])}\nset yrange [0:*]\nset grid\n"
                   + ("set logscale x\n" if figure["log_x"] else "")), plots


def script(figure):
    text, plots = (curves_script if figure["kind"] == "curves" else chart_script)(figure)
    for one in figure["limits"]:
        plots.append(f"{one['value']:.6g} with lines dashtype 2 linewidth 2 lc rgb 'black' title "
                     f"{quoted('bar: ' + one['text'])}")
    return (f"{text}set title {quoted(figure['title'])}\nset ylabel {quoted(figure['y'])}\n"
            f"set border 3\nset ytics nomirror\n{NO_HALO}\n"
            f"set key outside top center horizontal\nplot {', '.join(plots)}\n")


def width_px(figure):
    a_label = 1 if figure["kind"] == "stacked" else len(figure["series"])
    return min(MOST_PX, max(LEAST_PX, 120 + LABEL_PX * a_label * len(figure.get("labels", ()))))


def draw(figure, path):
    """Writes the SVG. None, or why there is none."""
    if shutil.which("gnuplot") is None:
        return NO_GNUPLOT
    terminal = (f"set terminal svg size {width_px(figure)},{HEIGHT_PX} dynamic noenhanced "
                "background rgb 'white' font 'sans,12'\n")
    done = subprocess.run(["gnuplot"],
                          input=f"{terminal}set output {quoted(path)}\n{script(figure)}",
                          capture_output=True, text=True, timeout=60)
    if done.returncode != 0 or not os.path.exists(path):
        return "gnuplot: " + done.stderr.strip()[-300:]
    return None
