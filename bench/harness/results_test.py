# SPDX-License-Identifier: Apache-2.0
"""Results in files: what a page says of a JSON file, which result is the newest, and what has no
place in the folder."""

import json
import os
import sys
import tempfile
import unittest
from dataclasses import asdict

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import figures, results  # noqa: E402
from harness.rows import Group, barred, figure, paper  # noqa: E402


def document(**more):
    rows = [barred("srad: overhead", [1.0, 1.25, 1.5], at_most=1.125, beside=[1, 2],
                   paper=paper("FairGV, figure 8", 1.0625)),
            figure("a call", [1000, 3000, 2000], "ns")]
    drawn = figures.chart("bars", "", "Overheads", "over native",
                          [figures.series("here", {"srad": [1.0, 1.25, 1.5]})],
                          [figures.limit(1.125, "at most 1.125")]) | {"not_drawn": "no gnuplot"}
    return {"version": results.VERSION, "name": "bench-loads", "title": "Loads",
            "date": "2026-11-20T10:11:12Z",
            "commit": "abc1234", "command": "bench/run.py --build build", "quick": False,
            "part": "", "differs": [],
            "machine": {"processor": "A Processor", "cores": 2, "memory_gib": 15.5, "virtual": True,
                        "kernel": "Linux 6.1"},
            "settings": ["PoCL threads: 1"], "pairs": 3, "seconds": 2.0,
            "load": {"before": 0.25, "during": 1.5, "greatest": 2.0}, "took_s": 12.5,
            "notes": ["A note."],
            "groups": [asdict(Group("Rounds", rows, "native over native"))],
            "figures": [drawn]} | more


class Text(unittest.TestCase):
    def test_units(self):
        for value, unit, text in ((300, "ns", "300 ns"), (16000, "ns", "16.0 us"),
                                  (2e7, "ns", "20.0 ms"), (2e10, "ns", "20.0 s"),
                                  (24.56, "%", "24.6 %"), (1234.5, "MiB", "1,234 MiB"),
                                  (0.98, "", "0.980"), (None, "", "-")):
            self.assertEqual(results.text_of(value, unit), text)

    def test_everything_that_a_result_must_name(self):
        text = " ".join(results.render(document()).split())
        for part in ("2026-11-20", "10:11 UTC", "commit abc1234", "`bench/run.py --build build`",
                     "A Processor, 2 cores, 15.5 GiB",
                     "a virtual machine", "Linux 6.1", "PoCL threads: 1",
                     "0.25 before, 1.50 during (median), 2.00 at most",
                     "Pairs of runs: 3 of 2 s", "native over native", "1.250", "1.125..1.375",
                     "at most 1.125", "**MISSED**",
                     "1.062 (FairGV, figure 8)", "0 met, 1 missed", "A note."):
            self.assertIn(part, text)

    def test_columns_that_are_empty_are_left_out(self):
        lines = results.table(["", "n", "bar"], [["a", "1", ""], ["b", "2", "-"]])
        self.assertEqual(lines[0], "|     | n   |")

    def test_a_quick_run_says_so(self):
        self.assertIn("no result", results.render(document(quick=True)))

    def test_how_a_run_differs(self):
        self.assertIn("3 pairs instead of 11",
                      results.render(document(differs=["3 pairs instead of 11"])))

    def test_a_group_that_failed(self):
        broken = document(groups=[asdict(Group("Rounds", error="it hung"))])
        self.assertIn("NOT MEASURED: it hung", results.render(broken))

    def test_lines_end_at_column_100(self):
        for line in results.render(document(notes=["word " * 60])).splitlines():
            self.assertTrue(len(line) <= 100 or line.startswith("|"), line)


class Files(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.join(temporary.name, "results")
        self.page = os.path.join(temporary.name, "benchmarks.md")
        with open(self.page, "w", encoding="utf-8") as f:
            f.write(f"before\n{results.LIST_BEGIN}\n{results.LIST_END}\nafter\n")

    def listed(self):
        results.update_page(self.page, self.folder)
        with open(self.page, encoding="utf-8") as f:
            return f.read()

    def faults(self):
        return list(results.find_faults(self.folder, self.page))

    def test_names_are_date_commit_name(self):
        stem, _ = results.write(self.folder, document())
        self.assertEqual(stem, "2026-11-20-abc1234-bench-loads")
        self.assertLessEqual({stem + ".md", stem + ".json"}, set(os.listdir(self.folder)))

    def test_a_second_run_replaces_nothing(self):
        results.write(self.folder, document())
        self.assertEqual(results.write(self.folder, document())[0],
                         "2026-11-20-abc1234-bench-loads-2")

    def test_the_page_can_be_made_of_the_json_alone(self):
        stem, text = results.write(self.folder, document())
        with open(os.path.join(self.folder, stem + ".json"), encoding="utf-8") as f:
            self.assertEqual(results.render(json.load(f)), text)

    def test_all_runs_are_in_the_json(self):
        results.write(self.folder, document())
        found = results.read_all(self.folder)["2026-11-20-abc1234-bench-loads"]
        self.assertEqual(found["groups"][0]["rows"][0]["values"], [1.0, 1.25, 1.5])

    def test_a_figure_without_values_is_left_out(self):
        empty = figures.chart("bars", "", "t", "y", [figures.series("here", {})])
        results.write(self.folder, document(figures=[empty]))
        self.assertEqual(results.read_all(self.folder)["2026-11-20-abc1234-bench-loads"]["figures"],
                         [])

    def test_a_page_without_results(self):
        os.mkdir(self.folder)
        text = self.listed()
        self.assertIn(results.NO_RESULTS, text)
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))

    def test_the_newest_of_each_name_is_listed(self):
        results.write(self.folder, document())
        results.write(self.folder, document(date="2026-11-22T00:00:00Z", commit="def5678"))
        results.write(self.folder, document(name="bench-ring", title="Ring"))
        text = self.listed()
        self.assertIn("2026-11-22, commit def5678](results/2026-11-22-def5678-bench-loads.md)",
                      text)
        self.assertNotIn("results/2026-11-20-abc1234-bench-loads", text)
        self.assertEqual(text.count("### "), 2)
        self.assertEqual(self.listed(), text)

    def test_a_run_that_differs_is_listed_and_not_the_newest(self):
        results.write(self.folder, document())
        results.write(self.folder,
                      document(date="2026-11-22T00:00:00Z", differs=["2 pairs instead of 11"]))
        text = self.listed()
        self.assertLess(text.index("2026-11-20-abc1234-bench-loads.md"),
                        text.index("2 pairs instead of 11"))

    def test_a_quick_run_is_not_listed(self):
        results.write(self.folder, document(quick=True))
        self.assertIn(results.NO_RESULTS, self.listed())

    def test_no_fault(self):
        results.write(self.folder, document())
        self.listed()
        self.assertEqual(self.faults(), [])

    def test_a_page_changed_by_hand_is_a_fault(self):
        stem, text = results.write(self.folder, document())
        self.listed()
        with open(os.path.join(self.folder, stem + ".md"), "w", encoding="utf-8") as f:
            f.write(text.replace("1.250", "1.050"))
        self.assertEqual(len(self.faults()), 1)
        results.rewrite_all(self.folder, self.page)
        self.assertEqual(self.faults(), [])

    def test_a_page_without_json_is_a_fault(self):
        os.mkdir(self.folder)
        self.listed()
        with open(os.path.join(self.folder, "2026-11-20-abc1234-bench-loads.md"), "w",
                  encoding="utf-8") as f:
            f.write("# Typed in\n")
        self.assertIn("belongs to no result", self.faults()[0])

    def test_a_missing_page_and_a_quick_run_are_faults(self):
        stem, _ = results.write(self.folder, document(quick=True))
        os.remove(os.path.join(self.folder, stem + ".md"))
        self.listed()
        faults = " ".join(self.faults())
        self.assertIn(f"{stem}.md is missing", faults)
        self.assertIn("a quick run is no result", faults)

    def test_an_old_list_is_a_fault(self):
        results.write(self.folder, document())
        self.assertIn("does not list the newest results", self.faults()[0])


if __name__ == "__main__":
    unittest.main()
