# SPDX-License-Identifier: Apache-2.0
"""Figures: error bars, the paper's series, the dashed bar, and no colour."""

import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import figures as f  # noqa: E402

RUNS = {"srad": [1.0, 2.0, 3.0, 4.0, 5.0]}


def example(kind):
    return f.chart(kind, "", "A title", "ms",
                   [f.series("here", RUNS), f.series("gMig", {"srad": 1.5}, paper=True)],
                   [f.limit(2.5, "at most 2.5")])


def example_curves():
    return f.curves("", "A title", "page", "ms", [f.curve("here", [(1, [1, 2, 3]), (2, [2, 3, 4])]),
                                                  f.curve("gMig", [(1, 2), (2, 2)], paper=True)],
                                                  [f.limit(2.5, "at most 2.5")])


class Values(unittest.TestCase):
    def test_a_value_is_median_and_quartiles(self):
        self.assertEqual(f.series("here", RUNS)["values"], {"srad": [3, 2, 4]})
        self.assertEqual(f.series("here", {"srad": 7})["values"], {"srad": [7, 7, 7]})

    def test_what_was_not_measured_is_left_out(self):
        self.assertEqual(f.series("here", {"srad": [], "nw": None, "scan": 1})["values"],
                         {"scan": [1, 1, 1]})

    def test_labels_are_those_of_all_series_in_order(self):
        chart = f.chart("bars", "", "t", "y",
                        [f.series("a", {"x": 1, "y": 1}), f.series("b", {"z": 1, "x": 1})])
        self.assertEqual(chart["labels"], ["x", "y", "z"])


class Scripts(unittest.TestCase):
    def test_error_bars_are_quartiles(self):
        self.assertIn("$d0 << END\n-0.2 3 2 4\nEND", f.script(example("bars")))
        for kind in ("bars", "points", "stacked"):
            self.assertIn("with yerrorbars", f.script(example(kind)), kind)
        self.assertIn("with yerrorlines", f.script(example_curves()))

    def test_stacked_error_bars_stand_on_the_series_below(self):
        chart = f.chart("stacked", "", "t", "y",
                        [f.series("a", {"x": 10}), f.series("b", {"x": [1, 2, 3]})])
        rows = re.search(r"\$d1 << END\n(.*)\nEND", f.script(chart))[1].split()
        self.assertEqual([float(v) for v in rows[3:5] + rows[6:8]], [10, 12, 11.5, 12.5])

    def test_the_bar_is_dashed(self):
        for figure in (example("bars"), example("points"), example_curves()):
            self.assertRegex(f.script(figure), r"2\.5 with lines dashtype 2 .*bar: at most 2\.5")

    def test_the_paper_is_a_series_of_its_own_style(self):
        self.assertIn(f"fillstyle {f.PAPER_FILLS[0]} title \"gMig\"", f.script(example("bars")))
        self.assertIn(f"pointtype {f.PAPER_POINTS[0]} ", f.script(example("points")))

    def test_two_papers_series_differ(self):
        chart = f.chart("bars", "", "t", "y",
                        [f.series("out", {"x": 1}, paper=True),
                         f.series("back", {"x": 2}, paper=True)])
        for fill in f.PAPER_FILLS[:2]:
            self.assertIn(fill, f.script(chart))

    def test_only_black_and_grey(self):
        for figure in (example("bars"), example("points"), example("stacked"), example_curves()):
            for colour in re.findall(r"rgb '([^']*)'", f.script(figure)):
                self.assertTrue(colour == "black" or re.fullmatch(r"#(..)\1\1", colour), colour)

    def test_every_plot_names_its_colour(self):
        for figure in (example("bars"), example("points"), example("stacked"), example_curves()):
            for plot in f.script(figure).split("\nplot ")[1].split(", "):
                self.assertIn(" lc rgb ", plot)

    def test_quotes_do_not_end_a_title(self):
        self.assertEqual(f.quoted('a "b" \\'), '"a \'b\' "')


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Drawing(unittest.TestCase):
    def test_every_kind_is_drawn_in_grey(self):
        with tempfile.TemporaryDirectory() as folder:
            for figure in (example("bars"), example("points"), example("stacked"),
                           example_curves()):
                path = os.path.join(folder, figure["kind"] + ".svg")
                self.assertIsNone(f.draw(figure, path))
                with open(path, encoding="utf-8") as svg:
                    text = svg.read()
                for r, g, b in re.findall(r"rgb\( *(\d+), *(\d+), *(\d+)\)", text):
                    self.assertTrue(r == g == b, (figure["kind"], r, g, b))

    def test_a_label_may_hold_any_character(self):
        with tempfile.TemporaryDirectory() as folder:
            values = {text: 1 for text in ("5 % changed", "%s %d", "a_b", "it's", 'a "b"', "{x}", "#1")}
            chart = f.chart("bars", "", "10 % of it", "%", [f.series("50 %", values)])
            path = os.path.join(folder, "figure.svg")
            self.assertIsNone(f.draw(chart, path))
            with open(path, encoding="utf-8") as svg:
                self.assertIn("5 % changed", svg.read())

    def test_a_figure_that_cannot_be_drawn_says_why(self):
        self.assertIn("gnuplot", f.draw(example("bars"), "/nonexistent/figure.svg"))


if __name__ == "__main__":
    unittest.main()
