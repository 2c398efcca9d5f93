# SPDX-License-Identifier: Apache-2.0
"""Every experiment's rows and figures come from the data that it measures, with the papers'
figures beside them."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import figures, results  # noqa: E402
from harness.rows import MET, MISSED  # noqa: E402
from moves.experiments import EXPERIMENTS  # noqa: E402
from moves.crane import STOP_PHASES  # noqa: E402
from moves.pages import GBITS, PLACES, STOP_HASHES  # noqa: E402
from moves.speed import rate  # noqa: E402


def stops(ns):
    return {"stops": [{"hash": h, "gbit_per_s": g, "ns": ns * 10 / g, "sent": 100 if h == "none"
                       else 20, "zero": 0}
                      for h in STOP_HASHES for g in GBITS],
            "overlap": {"gbit_per_s": 10, "sequential_ns": 100.0, "overlapped_ns": 88.0,
                        "ideal_ns": 80.0}}


def samples(missed):
    return {"off_ns": 100.0, "auto_ns": 70.0, "samples": [
        {"place": p, "bytes": n, "ns": 80.0, "pages": 100, "skipped": 20, "unchanged": 30,
         "sampled": 50 - missed, "missed": missed}
        for p in PLACES for n in (1, 2, 4)]}


def switch(downtime_ms):
    way = {"downtime_ns": downtime_ms * 1e6, "bytes_sent": 1 << 20,
           "phases_ns": dict.fromkeys(STOP_PHASES, 1e6)}
    return {"remote_over_passthrough": 0.95, "out": way, "back": way, "memory_bytes": 1 << 30,
            "course": [[0.0, 10.0], [0.05, 9.0]]}


DATA = {
    "hashes": {n: [1.0, 2.0]
               for n in ("XOR256", "XXH3", "NH", "MD5", "SHA-1", "SHA-256", "SHA-512")}
               | {"XOR256": [3.0, 8.0]},
    "stops": {"srad": [stops(1e6), stops(2e6)], "nw": [stops(1e6), stops(1e6)]},
    "speed": {"bandwidth": "64M",
              "runs": [{"program": [0.8, 0.85], "neighbour": [0.99], "downtime_ms": [50.0],
                        "precopy_ms": [900.0],
                                            "course": {"program": [[0.0, 5.0], [0.1, 4.0]],
                                                       "neighbour": [[0.0, 9.0]]}}]},
    "samples": {"srad": [samples(5), samples(10)], "nw": [samples(0), samples(0)]},
    "filter": {"name": "paper", "ratio": [0.7, 0.75, 0.9], "off_ns": [400.0, 410.0, 420.0],
               "on_ns": [300.0, 310.0, 320.0]},
    "course": {n: [[[0, 10.0], [64, 12.0]], [[0, 11.0], [64, 14.0]]]
               for n in ("sequential", "overlapped", "ideal")},
    "tracking": [{"load": "srad", "passthrough": [1.0, 1.02], "native": [1.0, 1.01]}],
    "switches": {"srad": [switch(20), switch(30)], "nw": [switch(10), switch(101)]},
    "frames": {"remote": [1.01, 0.95], "passthrough": [1.0], "frames_per_s": [20.0, 21.0]},
}


def rows_of(name, data=None):
    return {r["what"]: r for r in EXPERIMENTS[name].rows(data or DATA[name])}


class Experiments(unittest.TestCase):
    def test_every_experiment_has_rows(self):
        self.assertEqual(set(DATA), set(EXPERIMENTS))
        for name, data in DATA.items():
            rows = list(EXPERIMENTS[name].rows(data))
            self.assertEqual(len(rows_of(name)), len(rows), name)
            self.assertTrue(any("paper" in r for r in rows), name)

    def test_every_experiment_has_figures(self):
        for name, data in DATA.items():
            drawn = list(EXPERIMENTS[name].figures(data))
            self.assertEqual(len({f["name"] for f in drawn}), len(drawn), name)
            self.assertEqual(drawn[0]["name"], "", name)
            for figure in drawn:
                self.assertFalse(results.is_empty(figure), (name, figure["title"]))
                self.assertIn("plot", figures.script(figure), name)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_every_figure_can_be_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in DATA.items():
                for figure in EXPERIMENTS[name].figures(data):
                    path = os.path.join(folder, f"{name}-{figure['name']}.svg")
                    self.assertIsNone(figures.draw(figure, path), (name, figure["title"]))

    def test_the_papers_values_are_a_series(self):
        for name in ("hashes", "stops", "filter", "course", "tracking", "switches", "frames"):
            self.assertTrue(any(s.get("paper") for f in EXPERIMENTS[name].figures(DATA[name])
                                for s in f["series"]), name)
        kinds = next(iter(EXPERIMENTS["samples"].figures(DATA["samples"])))["series"]
        self.assertTrue(all("gMig, Tropics" in s["values"] for s in kinds))

    def test_repeated_runs_have_error_bars(self):
        for name in set(DATA) - {"speed"}:
            self.assertTrue(any("errorlines" in text or "errorbars" in text
                                for text in map(figures.script,
                                                EXPERIMENTS[name].figures(DATA[name]))), name)


class Rows(unittest.TestCase):
    def test_hashes_are_compared_run_by_run(self):
        row = rows_of("hashes")["XOR256 over SHA-1"]
        self.assertEqual(row["values"], [3.0, 4.0])

    def test_stops(self):
        rows = rows_of("stops")
        fewer = rows["pages in the stop by XXH3, fewer than basic, mean of 2 loads"]
        self.assertEqual(fewer["values"], [80.0, 80.0])
        self.assertEqual(rows["srad: stop at 10 Gbit/s, basic"]["values"], [1.0, 2.0])
        self.assertEqual(rows["nw: longer at 5 than at 10 Gbit/s, basic"]["median"], 100.0)
        self.assertAlmostEqual(rows["nw: overlapped, less time a page than sequential"]["median"],
                               12.0)

    def test_samples(self):
        rows = rows_of("samples")
        self.assertEqual(rows["srad: changed pages that the first byte does not find"]["values"],
                         [10.0, 20.0])
        self.assertAlmostEqual(rows["srad: 1 B of the head, less time a page"]["median"], 20.0)
        self.assertAlmostEqual(rows["srad: chosen at run time, less time a page"]["median"], 30.0)

    def test_of_a_load_without_changed_pages_nothing_is_missed(self):
        unchanged = samples(0)
        for sample in unchanged["samples"]:
            sample["sampled"] = 0
        self.assertNotIn("nw: changed pages that the first byte does not find",
                         rows_of("samples", {"nw": [unchanged]}))

    def test_filter(self):
        self.assertEqual(rows_of("filter")["less time a page"]["verdict"], MET)
        self.assertEqual(rows_of("filter",
                                 DATA["filter"] | {"ratio": [0.81]})["less time a page"]["verdict"],
                                 MISSED)

    def test_course(self):
        self.assertEqual(rows_of("course")["overlapped, a page"]["values"], [11.0, 12.5])

    def test_speed(self):
        self.assertEqual([r.get("verdict") for r in rows_of("speed").values()], [MISSED, MET, None])

    def test_the_longest_downtime_is_judged(self):
        rows = rows_of("switches")
        self.assertEqual(rows["downtime to remote, the longest of all"]["verdict"], MISSED)
        self.assertEqual(rows_of("switches",
                                 {"srad": [switch(100)]})["downtime back, the longest of all"]["verdict"], MET)

    def test_tracking(self):
        self.assertEqual([r.get("verdict") for r in rows_of("tracking").values()], [MET, MET, None])


class Rate(unittest.TestCase):
    def test_rounds_between_the_marks_of_a_window(self):
        self.assertEqual(rate([[0, 0], [10, 1], [20, 3], [30, 9]], 10, 20), 2e9 / 10)


if __name__ == "__main__":
    unittest.main()
