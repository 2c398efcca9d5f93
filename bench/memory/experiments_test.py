# SPDX-License-Identifier: Apache-2.0
"""Every experiment's rows and figures come from the data that it simulates, with the paper's
numbers beside them."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import figures, results  # noqa: E402
from harness.rows import MET, MISSED  # noqa: E402
from memory.experiments import EXPERIMENTS  # noqa: E402
from memory.workloads import SETS, SIZES_MIB, bound_of_round, loads_of_set, workload  # noqa: E402


def batch(**copies):
    """A batch in which each placement had 100 turns and as many frames as copies are missing."""
    return {place: {"copies": n, "turns": 100, "kernels": 2000 - n} for place, n in copies.items()}


def some(first_fit=1000, size=620, utilization=680, turn=560):
    return [batch(**{"first-fit": first_fit, "size": size + more, "utilization": utilization,
                     "turn": turn}) for more in (0, 10)]


def periods(copier, fairness):
    return {"busy": [1.0, 0.99], "copier": [copier, copier], "fairness": [fairness, fairness],
            "wait_ms": [1000.0, 2000.0], "of_wait_bound": [0.5, 0.6]}


DATA = {
    "9a": {n: some() for n in ("6", "9", "12", "15")},
    "9b": {name: {n: some() for n in ("6", "9")} for name in ("90 ms pauses", "300 ms pauses")},
    "9c": {str(n): some() for n in SETS} | {"2": some(size=600, utilization=700, turn=690)},
    "7": {name: {n: some() for n in ("3", "15")} for name in ("always busy", "300 ms pauses")},
    "8": {str(n): some() for n in SETS},
    "periods": {"swap at each turn": periods(0.97, 0.8), "f = 10 %": periods(0.08, 0.95),
                "f = 30 %": periods(0.34, 0.8)},
}


def rows_of(name, data=None):
    return {r["what"]: r for r in EXPERIMENTS[name].rows(data or DATA[name])}


class Experiments(unittest.TestCase):
    def test_every_experiment_has_rows_and_figures(self):
        self.assertEqual(set(DATA), set(EXPERIMENTS))
        names = set()
        for name, data in DATA.items():
            self.assertEqual(len(rows_of(name)), len(list(EXPERIMENTS[name].rows(data))), name)
            for figure in EXPERIMENTS[name].figures(data):
                self.assertFalse(results.is_empty(figure), name)
                self.assertIn("plot", figures.script(figure), name)
                self.assertNotIn(figure["name"], names)
                names.add(figure["name"])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_every_figure_can_be_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in DATA.items():
                for figure in EXPERIMENTS[name].figures(data):
                    path = os.path.join(folder, figure["name"] + ".svg")
                    self.assertIsNone(figures.draw(figure, path), (name, figure["title"]))

    def test_copies_are_over_gvirts_of_the_same_batch(self):
        rows = rows_of("9a")
        row = rows["9 vGPUs: size over gVirt's"]
        self.assertEqual(row["values"], [0.62, 0.63])
        self.assertEqual((row["verdict"], row["paper"]["value"]), (MET, 0.65))
        self.assertEqual(rows["9 vGPUs: gVirt's slots a switch"]["values"], [10.0, 10.0])
        # 5.6 slots a turn, nine turns a round, a bound of 45.
        self.assertAlmostEqual(rows["9 vGPUs: turn over the bound of all placements"]["median"],
                               5.6 * 9 / 45)

    def test_bars_can_be_missed(self):
        rows = rows_of("9a", {"9": some(size=700, utilization=730, turn=720)})
        self.assertEqual(rows["9 vGPUs: size over gVirt's"]["verdict"], MISSED)
        self.assertEqual(rows["9 vGPUs: utilization over gVirt's"]["verdict"], MISSED)
        self.assertEqual(rows["9 vGPUs: turn over the better one of size and utilization"]
                         ["verdict"], MISSED)
        self.assertEqual(rows["9 vGPUs: turn over the bound of all placements"]["verdict"], MISSED)
        rows = rows_of("9c")
        self.assertEqual(rows["set 2: utilization over size"]["verdict"], MISSED)
        self.assertEqual(rows["set 2: turn over size"]["verdict"], MISSED)
        self.assertEqual(rows["set 2: turn over utilization"]["verdict"], MET)
        self.assertEqual(rows["set 1: utilization over size"]["verdict"], MISSED)
        rows = rows_of("periods")
        self.assertEqual(rows["f = 10 %: time in copies"]["verdict"], MET)
        self.assertEqual(rows["f = 30 %: time in copies"]["verdict"], MISSED)
        self.assertEqual(rows["f = 30 %: min-max ratio of shares"]["verdict"], MISSED)

    def test_speed_counts_frames(self):
        self.assertEqual(rows_of("8")["set 1: size over gVirt's frames"]["values"], [1.38, 1.37])


class Workloads(unittest.TestCase):
    def test_the_bound_is_what_does_not_fit(self):
        self.assertEqual([bound_of_round(n) for n in (3, 6, 9, 12, 15)], [0, 12, 45, 78, 111])

    def test_an_order_shuffles_sizes_and_loads(self):
        text = workload(loads_of_set(1), 1, 10, False)
        for size in SIZES_MIB:
            self.assertEqual(text.count(f"memory = {size}M\n"), 5)
        self.assertEqual(text.count("think = exp:300ms"), 11)
        self.assertNotIn("bus", text)
        self.assertEqual(text, workload(loads_of_set(1), 1, 10, False))
        self.assertNotEqual(text, workload(loads_of_set(1), 2, 10, False).replace("seed = 2",
                                                                                  "seed = 1"))

    def test_a_slot_takes_its_time(self):
        bus, = (line for line in workload(loads_of_set(1), 1, 10, True).splitlines()
                if line.startswith("bus"))
        self.assertEqual(64 / int(bus.split()[2][:-1]) * 1000, 1.6)


if __name__ == "__main__":
    unittest.main()
