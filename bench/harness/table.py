# SPDX-License-Identifier: Apache-2.0
"""The printed table and the verdicts. Every bar that a section knows is printed as met, missed or not measured."""

MET = "met"
MISSED = "MISSED"
NOT_MEASURED = "not measured"


class Table:
    """Rows of one section: what, figures by column, and at most one bar."""

    def __init__(self, title, columns):
        self.title = title
        self.columns = columns
        self.rows = []

    def row(self, what, *cells, bar="", met=None):
        """met: True or False where the bar was put to the test, None where there is no bar or no figure."""
        verdict = "" if bar == "" else NOT_MEASURED if met is None else MET if met else MISSED
        self.rows.append((what, [str(c) for c in cells], bar, verdict))

    def verdicts(self):
        return [{"section": self.title, "what": what, "bar": bar, "verdict": verdict}
                for what, _, bar, verdict in self.rows if bar]

    def __str__(self):
        head = ["", *self.columns, "bar", ""]
        lines = [[what, *cells, *[""] * (len(self.columns) - len(cells)), bar, verdict]
                 for what, cells, bar, verdict in self.rows]
        width = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
        text = [self.title]
        for line in [head, *lines]:
            first = line[0].ljust(width[0])
            rest = [c.rjust(w) for c, w in zip(line[1:-2], width[1:-2])]
            text.append("  " + "  ".join([first, *rest, line[-2].ljust(width[-2]), line[-1]]).rstrip())
        return "\n".join(text) + "\n"


def ns(value):
    """A time for people."""
    if value is None:
        return "-"
    if value < 10_000:
        return f"{value:.0f} ns"
    if value < 10_000_000:
        return f"{value / 1e3:.1f} us"
    return f"{value / 1e6:.1f} ms"


def ratio(value):
    return "-" if value is None else f"{value:.3f}"
