# SPDX-License-Identifier: Apache-2.0
"""A row of a result: a figure of several runs, perhaps a bar, a figure measured beside it, and a
paper's. Rows are plain dictionaries, as they stand in a result's JSON file."""

from dataclasses import dataclass, field

from .stats import median_meets, quartile_meets, spread

MET = "met"
MISSED = "MISSED"
NOT_MEASURED = "not measured"

MEDIAN = "median"
QUARTILE = "quartile"
RULES = {MEDIAN: median_meets, QUARTILE: quartile_meets}


@dataclass
class Group:
    """Rows of one table; `beside` names the column of what was measured beside them. A group that
    could not be measured has the reason in `error`."""
    title: str = ""
    rows: list = field(default_factory=list)
    beside: str = ""
    notes: list = field(default_factory=list)
    error: str = ""


@dataclass
class Findings:
    """What a section measured. `raw` goes to the build folder, for a closer look."""
    title: str
    groups: list
    figures: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    raw: object = None


def paper(source, value, unit=None):
    """A paper's figure: a number (in the row's unit), or text where it gives a range."""
    return {"source": source, "value": value} | ({} if unit is None else {"unit": unit})


def figure(what, values, unit="", beside=None, paper=None):
    """A row without a bar. values, beside: a list of runs' figures, or one number; none: [] or
    None. Units: "" (a ratio), "ns" (any time; shown as fits), "ms", "%", "MiB" and so on."""
    row = {"what": what, "unit": unit, "values": as_list(values)}
    if row["values"]:
        row |= spread(row["values"])
    if as_list(beside):
        row["beside"] = spread(as_list(beside))
    if paper is not None:
        row["paper"] = paper
    return row


def barred(what, values, at_least=None, at_most=None, text="", by=MEDIAN, **more):
    """A row with a bar. text: in place of the limits' own words, where these say less than the rule
    that they were made by; by: the rule that judges, one of RULES."""
    row = figure(what, values, **more)
    limits = {k: v for k, v in (("at_least", at_least), ("at_most", at_most)) if v is not None}
    row["bar"] = limits | {"by": by} | ({"text": text} if text else {})
    row["verdict"] = NOT_MEASURED
    if row["values"]:
        row["verdict"] = MET if RULES[by](row["values"], **limits) else MISSED
    return row


def as_list(values):
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]
