# SPDX-License-Identifier: Apache-2.0
"""Results in files: DATE-COMMIT-NAME.json holds a section's figures and how they were measured,
DATE-COMMIT-NAME.md shows them to people, and SVG files draw them. The Markdown and the drawings are
made of the JSON alone, so they can be made again. docs/benchmarks.md lists the newest of each name.

A document's keys: version, name, title, date, commit, command, part, differs, quick, machine,
settings, load, pairs, seconds, took_s, groups (rows.Group), figures (figures.py), notes.
`differs` says how a run departs from the section's own settings; such a run is listed, but is
not the newest."""

import glob
import json
import os
import re
import textwrap

from . import figures
from .rows import MET, MISSED, NOT_MEASURED, QUARTILE

VERSION = 1
COLUMNS = 100
LIST_BEGIN = "<!-- The newest results: written by `make results`; do not edit. -->"
LIST_END = "<!-- The end of the newest results. -->"


# Figures as text

def text_of(value, unit=""):
    if value is None:
        return "-"
    if unit == "ns":
        for least, scale, name in ((1e10, 1e9, "s"), (1e7, 1e6, "ms"), (1e4, 1e3, "us")):
            if abs(value) >= least:
                return f"{value / scale:.1f} {name}"
        return f"{value:.4g} ns"
    if unit == "%":
        return f"{value:.1f} %"
    if unit:
        return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}") + " " + unit
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def range_of(spread, low, high, unit):
    if spread.get(low) is None or spread.get(high) is None or spread.get("n") == 1:
        return "-"
    first, last = text_of(spread[low], unit), text_of(spread[high], unit)
    if unit and first.split(" ")[1] == last.split(" ")[1]:
        first = first.split(" ")[0]
    return f"{first}..{last}"


def bar_text(row):
    bar = row.get("bar", {})
    if "text" in bar:
        return bar["text"]
    texts = {key: text_of(bar[key], row["unit"]) if row["unit"] else f"{bar[key]:.4g}"
             for key in ("at_least", "at_most") if key in bar}
    return ", ".join(f"{key.replace('_', ' ')} {text}" for key, text in texts.items())


def paper_text(row):
    paper = row.get("paper")
    if not paper:
        return ""
    value = paper["value"]
    if not isinstance(value, str):
        value = text_of(value, paper.get("unit", row["unit"]))
    return f"{value} ({paper['source']})"


# The Markdown

def table(head, lines):
    """Aligned, so that a terminal shows it as well; a column that is empty throughout is left
    out."""
    used = [0, *(i for i in range(1, len(head)) if any(line[i] not in ("", "-") for line in lines))]
    rows = [[line[i].replace("|", "\\|") for i in used] for line in [head, *lines]]
    width = [max(3, *(len(row[i]) for row in rows)) for i in range(len(used))]
    rows.insert(1, ["-" * w for w in width])
    return ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, width)) + " |" for row in rows]


def verdict_text(row):
    verdict = row.get("verdict") or ""
    return f"**{verdict}**" if verdict == MISSED else verdict


def group_lines(group):
    lines = [f"## {group['title']}", ""] if group["title"] else []
    if group["error"]:
        return [*lines, *wrapped(f"NOT MEASURED: {group['error']}"), ""]
    head = ["", "n", "median", "quartiles", "least..greatest", group["beside"] or "beside", "bar",
            "", "paper"]
    cells = []
    for row in group["rows"]:
        unit, beside = row["unit"], row.get("beside", {})
        spread = range_of(beside, "p25", "p75", unit)
        cells.append([row["what"], str(row.get("n", "")), text_of(row.get("median"), unit),
                      range_of(row, "p25", "p75", unit),
                      range_of(row, "min", "max", unit),
                      text_of(beside.get("median"), unit)
                      + ("" if spread == "-" else f" ({spread})"),
                      bar_text(row), verdict_text(row), paper_text(row)])
    if cells:
        lines += [*table(head, cells), ""]
    for note in group["notes"]:
        lines += [*wrapped(note), ""]
    return lines


def wrapped(text, indent=""):
    return textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False,
                         subsequent_indent=indent)


def item(text):
    return wrapped("- " + text, indent="  ")


def machine_text(document):
    machine = document["machine"]
    parts = [machine["processor"], f"{machine['cores']} cores"]
    parts += [f"{machine['memory_gib']} GiB"] if machine["memory_gib"] else []
    parts += ["a virtual machine"] if machine["virtual"] else []
    return ", ".join([*parts, machine["kernel"], *document["settings"]])


def verdicts(document):
    return [row["verdict"] for group in document["groups"] for row in group["rows"]
            if row.get("verdict")]


def count_text(document):
    found = verdicts(document)
    counts = [f"{found.count(v)} {v.lower()}" for v in (MET, MISSED, NOT_MEASURED)
              if found.count(v) or v != NOT_MEASURED]
    return "Bars: " + ", ".join(counts) + "."


def rule_text(document):
    rules = {row["bar"]["by"] for group in document["groups"] for row in group["rows"]
             if "bar" in row}
    if QUARTILE in rules:
        return " A bar is missed when three quarters of the runs are past it."
    return " A bar is judged by the median."


def head_lines(document):
    day, time = document["date"][:10], document["date"][11:16]
    lines = wrapped(f"Measured on {day} at {time} UTC, commit {document['commit']}, "
                    f"by `{document['command']}`.")
    if document["quick"]:
        lines += ["", *wrapped("**A quick run**: it shows that the measurement works; "
                               "its figures are no result.")]
    lines += ["", *item("Machine: " + machine_text(document))]
    load = document["load"]
    lines += item(f"Load average: {load['before']:.2f} before, {load['during']:.2f} during "
                  f"(median), {load['greatest']:.2f} at most; the benchmark's own work is in it")
    length = f" of {document['seconds']:g} s" if document["seconds"] else ""
    lines += item(f"Pairs of runs: {document['pairs']}{length}; {document['took_s']:.0f} s in all")
    if document["part"]:
        lines += item("Part of a campaign: " + document["part"])
    if document["differs"]:
        lines += item("Differs from the section's own settings: " + "; ".join(document["differs"]))
    if verdicts(document):
        lines += item(count_text(document) + rule_text(document))
    return [*lines, ""]


def figure_lines(document):
    lines = []
    for figure in document["figures"]:
        if "file" in figure:
            lines += [f"![{figure['title']}]({figure['file']})", ""]
        else:
            lines += [*wrapped(f"Not drawn: {figure['title']}: {figure['not_drawn']}."), ""]
    return lines


def render(document):
    lines = [f"# {document['title']}", "", *head_lines(document)]
    for note in document["notes"]:
        lines += [*wrapped(note), ""]
    lines += figure_lines(document)
    for group in document["groups"]:
        lines += group_lines(group)
    return "\n".join(lines).rstrip("\n") + "\n"


# The files

def rounded(value):
    """Six digits: more are noise, and make a file hard to read."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, (list, tuple)) else value


def json_text(document):
    """Lists of numbers on a line each."""
    text = json.dumps(document, indent=1)
    return re.sub(r"\[[\s\d.,eE+-]+\]",
                  lambda m: " ".join(m[0].split()).replace("[ ", "[").replace(" ]", "]"),
                  text) + "\n"


def replace_file(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def free_stem(folder, document):
    """A second run of a day and commit does not replace the first; a quick one does."""
    stem = f"{document['date'][:10]}-{document['commit']}-{document['name']}"
    stems, n = stem, 1
    while not document["quick"] and os.path.exists(os.path.join(folder, stems + ".json")):
        n += 1
        stems = f"{stem}-{n}"
    return stems


def is_empty(figure):
    return not any(s.get("values") or s.get("points") for s in figure["series"])


def write_as(folder, stem, document):
    """Draws the figures, and writes the Markdown and the JSON."""
    document["figures"] = [f for f in document["figures"] if not is_empty(f)]
    for figure in document["figures"]:
        name = stem + ("-" + figure["name"] if figure["name"] else "") + ".svg"
        why = figures.draw(figure, os.path.join(folder, name))
        figure.pop("file", None)
        figure.pop("not_drawn", None)
        figure |= {"not_drawn": why} if why else {"file": name}
    text = render(document)
    replace_file(os.path.join(folder, stem + ".md"), text)
    replace_file(os.path.join(folder, stem + ".json"), json_text(document))
    return text


def write(folder, document):
    """The stem of the files, and the Markdown."""
    os.makedirs(folder, exist_ok=True)
    document = rounded(document)
    stem = free_stem(folder, document)
    return stem, write_as(folder, stem, document)


def read_all(folder):
    """{stem: document}, the oldest first."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path, encoding="utf-8") as f:
            found[os.path.basename(path)[:-len(".json")]] = json.load(f)
    return dict(sorted(found.items(), key=lambda entry: (entry[1]["date"], entry[0])))


# The list of the newest

def source_text(document):
    return f"{document['date'][:10]}, commit {document['commit']}"


NO_RESULTS = "No run of this tree has written a result so far."


def newest_lines(folder, page):
    """Of each name the newest whole run, and what is newer and differs."""
    by_name = {}
    for stem, document in read_all(folder).items():
        if not document["quick"]:
            by_name.setdefault(document["name"], []).append((stem, document))
    if not by_name:
        return [NO_RESULTS, ""]
    lines = []
    at = os.path.relpath(folder, os.path.dirname(page))
    for _, entries in sorted(by_name.items()):
        whole = [i for i, (_, document) in enumerate(entries) if not document["differs"]]
        newest = whole[-1] if whole else len(entries) - 1
        stem, document = entries[newest]
        links = [f"[{source_text(document)}]({at}/{stem}.md)"
                 + (f": {count_text(document)[len('Bars: '):-1]}" if verdicts(document) else "")]
        links += [f"[{source_text(other)}: {'; '.join(other['differs'])}]({at}/{name}.md)"
                  for name, other in entries[newest + 1:]]
        lines += [f"### {document['title']}", "", *wrapped("; ".join(links) + "."), ""]
        drawn = next((f for f in document["figures"] if "file" in f), None)
        if drawn:
            lines += [f"![{drawn['title']}]({at}/{drawn['file']})", ""]
    return lines


def page_with_list(page, folder):
    """The page's text with the list brought up to date."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    before, rest = text.split(LIST_BEGIN)
    after = rest.split(LIST_END)[1]
    return "\n".join([before + LIST_BEGIN, "", *newest_lines(folder, page), LIST_END]) + after


def update_page(page, folder):
    replace_file(page, page_with_list(page, folder))


# All of them

def rewrite_all(folder, page):
    """Draws and writes again what is made of the JSON files, after a change of this file or of
    figures.py."""
    for stem, document in read_all(folder).items():
        write_as(folder, stem, document)
    update_page(page, folder)


def find_faults(folder, page):
    """A sentence each: a page that is not what its JSON file says, a figure that is missing, a
    file that no run wrote."""
    documents = read_all(folder)
    belongs = set()
    for stem, document in documents.items():
        belongs |= {stem + ".json", stem + ".md",
                    *(f["file"] for f in document["figures"] if "file" in f)}
        if stem + ".md" in os.listdir(folder):
            with open(os.path.join(folder, stem + ".md"), encoding="utf-8") as f:
                if f.read() != render(document):
                    yield f"{stem}.md differs from its JSON file: run `make results`"
        if document["quick"]:
            yield f"{stem}.json: a quick run is no result: delete it"
    there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name in sorted(belongs - there):
        yield f"{name} is missing: run `make results`"
    for name in sorted(there - belongs):
        yield f"{name} belongs to no result: only a benchmark writes into this folder"
    with open(page, encoding="utf-8") as f:
        if f.read() != page_with_list(page, folder):
            yield f"{os.path.basename(page)} does not list the newest results: run `make results`"
