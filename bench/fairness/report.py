# SPDX-License-Identifier: Apache-2.0
"""Results in files, one an experiment and policy, and the tables made of them (Markdown)."""

import json
import os

from harness.machine import processor
from harness.table import MET, MISSED

from .draw import draw
from .experiments import EXPERIMENTS


def path_of(out, name, policy):
    return os.path.join(out, f"{name}.{policy}.json")


def keep(out, result):
    """A run that failed does not take the place of one that worked; a run over some loads takes the place of those only."""
    path = path_of(out, result["experiment"], result["policy"])
    try:
        with open(path) as f:
            old = json.load(f)
    except (OSError, ValueError):
        old = {}
    if "error" in result and "result" in old:
        return
    if getattr(EXPERIMENTS[result["experiment"]], "by_load", False) and "result" in old and old["quick"] == result["quick"]:
        result["result"] = old["result"] | result["result"]
    with open(path + ".new", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def number(value):
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"


def table_of(name, kept):
    """(lines of Markdown, rows as data) of one experiment under one policy."""
    experiment = EXPERIMENTS[name]
    lines = [f"### {experiment.title}: `{kept['policy']}`", ""]
    if "error" in kept:
        return lines + [f"NOT MEASURED: {kept['error']}", ""], []
    rows = list(experiment.rows(kept["result"]))
    lines += ["| | paper | median | quarters | least..greatest | bar | |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        verdict = "" if r["met"] is None else MET if r["met"] else f"**{MISSED}**"
        lines.append(f"| {r['what']} | {r['paper']} | {number(r['median'])} | {number(r['p25'])}..{number(r['p75'])} | "
                     f"{number(r['min'])}..{number(r['max'])} | {r['bar']} | {verdict} |")
    n = max((r["n"] for r in rows), default=0)
    lines += ["", f"{n} runs of {kept['seconds']:g} s" + (" (a quick look, not a result)" if kept["quick"] else "")
              + f"; {kept['took_s']:.0f} s in all; load {kept['load_before']:.2f} before.", ""]
    return lines, rows


def write(out, names, policies):
    """Tables and figures of what is there, among those asked for; also into out/report.md and out/report.json."""
    lines = [f"On {processor()}, {os.cpu_count()} cores.", ""]
    data = []
    drawn = {name: (EXPERIMENTS[name].title, []) for name in names}
    for policy in policies:
        for name in names:
            try:
                with open(path_of(out, name, policy)) as f:
                    kept = json.load(f)
            except (OSError, ValueError):
                continue
            text, rows = table_of(name, kept)
            lines += text
            if "result" in kept:
                drawn[name][1].append((policy, kept["result"]))
            data.append({"experiment": name, "policy": policy, "quick": kept["quick"], "rows": rows, "error": kept.get("error")})
    bars = [r["met"] for d in data for r in d["rows"] if r["met"] is not None]
    lines.append(f"Bars: {sum(bars)} met, {len(bars) - sum(bars)} missed.")
    files, complaint = draw(out, drawn)
    if files:
        lines += ["", "Figures: " + ", ".join(os.path.relpath(f, out) for f in files) + f" in {out}."]
    if complaint:
        lines += ["", complaint]
    text = "\n".join(lines)
    with open(os.path.join(out, "report.md"), "w") as f:
        f.write(text + "\n")
    figures = {"results": data}
    with open(os.path.join(out, "report.json"), "w") as f:
        json.dump({"version": 1, **figures}, f, indent=1)
        f.write("\n")
    return text, figures
