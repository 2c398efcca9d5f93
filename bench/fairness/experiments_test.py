# SPDX-License-Identifier: Apache-2.0
"""Every experiment's rows and figures come from the data that it measures, and one that fails leaves the others' groups."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fairness import run  # noqa: E402
from fairness.experiments import EXPERIMENTS  # noqa: E402
from harness import figures, results  # noqa: E402
from harness.rows import MET, MISSED  # noqa: E402
from harness.targets import BenchError  # noqa: E402

TURNS = {"used_ns": 10, "device_ns": 9, "waited_ns": 20, "grants": 3}
ROUNDS = {"mean": 1e6, "p50": 1e6, "p90": 1e6, "p99": 1e6, "max": 30e6}


def mix(shares, native=True):
    n = len(shares)
    return {"mmr": [0.99, 0.97], "overhead": [1.0, 1.1], "shares": [shares, shares], "alone_over_native": [[1.0, 0.9]] * 2 if native else [],
            "native_over_native": [1.01] if native else [],
            "each": [{"rounds": [ROUNDS] * n, "rounds_alone": [ROUNDS] * n, "sync_per_ms_alone": [60.0] * n, "turns": [TURNS] * n}] * 2}


DATA = {
    "fig8": {"srad": mix([1 / 6, 2 / 6, 3 / 6]) | {"native_turns": [{"mmr": 0.98, "overhead": 1.01}]}},
    "fig9": {"srad": mix([1 / 6] * 6) | {"native_turns": []}},
    "fig11-mm": {"matrixMul of 32 rows": mix([0.5, 0.5])}, "fig11-hs": {"matrixMul of 32 rows": mix([0.5, 0.0])},
    "chatty": mix([0.4, 0.6]), "long": mix([0.5, 0.5]), "long-whole": mix([0.5, 0.5]),
    "lag": {"second": [0.01], "ten": [0.02], "charged": [0.99]}, "crowd": mix([1 / 16] * 8 + [0.5]),
    "table2": {"scan": {"charged": [0.1], "told": [0.01], "share": [1.0]}}, "accounting": {"matrixMul": mix([0.5, 0.5], native=False)},
    "table4": {"short": {"3000": [1.01], "93": [1.7]}}, "cap": {"alone": [0.25], "beside": [0.25]},
    "fig10": {"50": {"busy": [0.9], "shares": [[0.5, 0.4]]}, "80": {"busy": [1.0], "shares": [[0.8, 0.2]]}},
    "decisions": {"costs": [{"10": 20.0, "10000": 60.0}], "busy": [0.01], "idle": [0.0]},
    "gvim": {"parts": [[0.66, 0.34, 0.5, 0.5]], "overhead": [1.0]},
}


class Experiments(unittest.TestCase):
    def test_every_experiment_has_rows_and_a_verdict(self):
        self.assertEqual(set(DATA), set(EXPERIMENTS))
        for name, data in DATA.items():
            rows = list(EXPERIMENTS[name].rows(data))
            self.assertTrue(any(r.get("verdict") in (MET, MISSED) for r in rows), name)
            self.assertEqual(len({r["what"] for r in rows}), len(rows), name)

    def test_every_experiment_has_figures(self):
        for name, data in DATA.items():
            drawn = list(EXPERIMENTS[name].figures([("fair", data), ("credit", data)]))
            self.assertTrue(drawn, name)
            self.assertEqual(len({f["name"] for f in drawn}), len(drawn), name)
            for figure in drawn:
                self.assertFalse(results.is_empty(figure), (name, figure["title"]))
                self.assertIn("plot", figures.script(figure), name)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_every_figure_can_be_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in DATA.items():
                for figure in EXPERIMENTS[name].figures([("fair", data)]):
                    path = os.path.join(folder, f"{name}-{figure['name']}.svg")
                    self.assertIsNone(figures.draw(figure, path), (name, figure["title"]))

    def test_each_policy_is_a_series(self):
        for name, data in DATA.items():
            text = " ".join(s["name"] + f["title"] for f in EXPERIMENTS[name].figures([("fair", data), ("credit", data)])
                            for s in f["series"])
            self.assertIn("credit", text, name)

    def test_the_papers_figures_stand_beside(self):
        for name in ("fig8", "fig9", "fig11-mm", "chatty", "table2", "table4", "gvim"):
            self.assertTrue(any("paper" in r for r in EXPERIMENTS[name].rows(DATA[name])), name)
        for name in ("fig8", "fig9", "fig11-mm", "table2", "table4", "gvim"):
            drawn = EXPERIMENTS[name].figures([("fair", DATA[name])])
            self.assertTrue(any(s.get("paper") for f in drawn for s in f["series"]), name)

    def test_a_missed_bar(self):
        rows = list(EXPERIMENTS["cap"].rows({"alone": [0.1], "beside": [0.2]}))
        self.assertEqual([r["verdict"] for r in rows], [MISSED, MET])


class Policies(unittest.TestCase):
    class Context:
        label = ""

    class Experiment:
        title = "A title"

        def run(self, context, policy):
            if policy == "credit":
                raise BenchError("it hung")
            return DATA["cap"]

        def rows(self, result):
            return EXPERIMENTS["cap"].rows(result)

        def figures(self, by_policy):
            return EXPERIMENTS["cap"].figures(by_policy)

    def measure(self, policies):
        EXPERIMENTS["example"] = self.Experiment()
        self.addCleanup(EXPERIMENTS.pop, "example")
        return run.measure(self.Context(), "example", policies)

    def test_a_group_for_each_policy_and_a_failure_leaves_the_others(self):
        findings = self.measure(["fair", "credit"])
        self.assertEqual([(g.title, g.error) for g in findings.groups], [("`fair`", ""), ("`credit`", "it hung")])
        self.assertEqual([s["name"] for s in findings.figures[0]["series"]], ["fair"])

    def test_nothing_to_draw_where_all_failed(self):
        self.assertEqual(self.measure(["credit"]).figures, [])


if __name__ == "__main__":
    unittest.main()
