# SPDX-License-Identifier: Apache-2.0
"""What is kept of runs, what becomes of it in the tables, and that every experiment's rows come from the data that it keeps."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fairness import report  # noqa: E402
from fairness.draw import DRAWN  # noqa: E402
from fairness.experiments import EXPERIMENTS  # noqa: E402

TURNS = {"used_ns": 10, "device_ns": 9, "waited_ns": 20, "grants": 3}
ROUNDS = {"mean": 1e6, "p50": 1e6, "p90": 1e6, "p99": 1e6, "max": 30e6}


def mix(shares, native=True):
    n = len(shares)
    return {"mmr": [0.99, 0.97], "overhead": [1.0, 1.1], "shares": [shares, shares], "alone_over_native": [[1.0, 0.9]] * 2 if native else [],
            "native_over_native": [1.01] if native else [],
            "each": [{"rounds": [ROUNDS] * n, "rounds_alone": [ROUNDS] * n, "sync_per_ms_alone": [60.0] * n, "turns": [TURNS] * n}] * 2}


DATA = {
    "fig8": {"srad": mix([1 / 6, 2 / 6, 3 / 6])}, "fig9": {"srad": mix([1 / 6] * 6)},
    "fig11-mm": {"matrixMul of 32 rows": mix([0.5, 0.5])}, "fig11-hs": {"matrixMul of 32 rows": mix([0.5, 0.0])},
    "chatty": mix([0.4, 0.6]), "long": mix([0.5, 0.5]), "long-whole": mix([0.5, 0.5]),
    "lag": {"second": [0.01], "ten": [0.02], "charged": [0.99]}, "crowd": mix([1 / 16] * 8 + [0.5]),
    "table2": {"scan": {"charged": [0.1], "told": [0.01], "share": [1.0]}}, "accounting": {"matrixMul": mix([0.5, 0.5], native=False)},
    "table4": {"short": {"3000": [1.01], "93": [1.7]}}, "cap": {"alone": [0.25], "beside": [0.25]},
    "fig10": {"50": {"busy": [0.9], "shares": [[0.5, 0.4]]}, "80": {"busy": [1.0], "shares": [[0.8, 0.2]]}},
    "decisions": {"costs": [{"10": 20.0, "10000": 60.0}], "busy": [0.01], "idle": [0.0]},
    "gvim": {"parts": [[0.66, 0.34, 0.5, 0.5]], "overhead": [1.0]},
}


def kept(name, result=None, **more):
    what = {"experiment": name, "policy": "fair", "quick": False, "seconds": 2, "took_s": 1, "load_before": 0.1}
    return what | ({} if result is None else {"result": result}) | more


class Rows(unittest.TestCase):
    def test_every_experiment_has_rows_and_a_verdict(self):
        self.assertEqual(set(DATA), set(EXPERIMENTS))
        for name, data in DATA.items():
            lines, rows = report.table_of(name, kept(name, json.loads(json.dumps(data))))
            self.assertTrue(any(r["bar"] for r in rows), name)
            self.assertEqual(len({r["what"] for r in rows}), len(rows), name)
            self.assertTrue(any(EXPERIMENTS[name].title in line for line in lines))

    def test_a_missed_bar_is_said(self):
        lines, _ = report.table_of("cap", kept("cap", {"alone": [0.1], "beside": [0.2]}))
        self.assertEqual(sum("MISSED" in line for line in lines), 1)

    def test_what_is_drawn(self):
        self.assertLessEqual(set(DRAWN), set(EXPERIMENTS))
        for name, how in DRAWN.items():
            for part, script in how([("fair", DATA[name]), ("credit", DATA[name])], EXPERIMENTS[name].title):
                self.assertIn("plot", script, (name, part))


class Kept(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = self.folder.name
        self.addCleanup(self.folder.cleanup)

    def read(self, name):
        with open(report.path_of(self.out, name, "fair")) as f:
            return json.load(f)

    def test_loads_add_up(self):
        report.keep(self.out, kept("fig8", {"srad": 1, "scan": 2}))
        report.keep(self.out, kept("fig8", {"scan": 3}))
        self.assertEqual(self.read("fig8")["result"], {"srad": 1, "scan": 3})

    def test_a_quick_look_does_not_mix_with_a_result(self):
        report.keep(self.out, kept("fig8", {"srad": 1}))
        report.keep(self.out, kept("fig8", {"scan": 3}, quick=True))
        self.assertEqual(self.read("fig8")["result"], {"scan": 3})

    def test_other_experiments_replace(self):
        report.keep(self.out, kept("cap", {"alone": [1]}))
        report.keep(self.out, kept("cap", {"beside": [1]}))
        self.assertEqual(self.read("cap")["result"], {"beside": [1]})

    def test_a_failure_does_not_replace_figures(self):
        report.keep(self.out, kept("cap", {"alone": [1]}))
        report.keep(self.out, kept("cap", error="it hung"))
        self.assertEqual(self.read("cap")["result"], {"alone": [1]})

    def test_a_failure_is_told(self):
        report.keep(self.out, kept("cap", error="it hung"))
        self.assertIn("NOT MEASURED: it hung", "\n".join(report.table_of("cap", self.read("cap"))[0]))


if __name__ == "__main__":
    unittest.main()
