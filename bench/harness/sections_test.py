# SPDX-License-Identifier: Apache-2.0
"""The rows that sections of `make bench` make of what they measured: bars, papers, and what each
stands beside."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import builds, calls, data, loads, pages, passthrough, syscalls, tcp  # noqa: E402
from harness.rows import MET, MISSED, NOT_MEASURED  # noqa: E402


def load(name, kernel_ns, gantry, native):
    return {"load": name, "kernel_ns": kernel_ns, "gantry": gantry, "native": native}


class Sections(unittest.TestCase):
    def test_calls(self):
        self.assertEqual(calls.row_of(("enqueue", 0), [900], [501], 0)["verdict"], MISSED)
        self.assertEqual(calls.row_of(("launch", 0), [5000], [8000], 0)["verdict"], MET)
        parked = calls.row_of(("launch_parked", 0), [5000], [9000], 3000)
        self.assertEqual((parked["verdict"], parked["beside"]["median"]), (MISSED, 5000))
        self.assertNotIn("bar", calls.row_of(("read", 4), [70], [70], 0))

    def test_calls_without_gantry(self):
        self.assertEqual(calls.row_of(("enqueue", 0), [900], None, 0)["verdict"], NOT_MEASURED)

    def test_data(self):
        self.assertEqual([data.bar_of("read", size << 10) for size in (64, 1024, 4096)],
                         [None, 0.6, 0.9])
        self.assertEqual([data.bar_of("map", size << 10) for size in (64, 1024)], [None, 0.95])

    def test_loads_are_judged_by_the_length_of_their_kernels(self):
        rows = list(loads.bar_rows([load("long", 200_000, [1.0, 1.06, 1.06], [1.0]),
                                    load("other", 100_000, [1.0], [1.0]),
                                    load("short", 50_000, [1.1], [1.0])]))
        self.assertEqual([r["verdict"] for r in rows], [MISSED, MISSED, MISSED, MET])
        self.assertAlmostEqual(rows[1]["median"], 1.06)

    def test_loads_without_gantry(self):
        rows = list(loads.bar_rows([load("long", 200_000, [], [1.0])]))
        self.assertEqual({r["verdict"] for r in rows}, {NOT_MEASURED})

    def test_passthrough(self):
        rows = list(passthrough.summary_rows([{"passthrough": [1.0], "native": [1.0]},
                                              {"passthrough": [1.04], "native": [1.01]}]))
        self.assertEqual([r["verdict"] for r in rows], [MISSED, MISSED])
        self.assertEqual(rows[1]["beside"]["median"], 1.01)

    def test_clpeak_is_as_many_figures(self):
        whole, figures = passthrough.clpeak_ratios([({"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 8.0})])
        self.assertEqual((whole, figures), ([2.0], {"a": [2.0], "b": [2.0]}))

    def test_syscalls(self):
        none = {"total": 0.0004, "each": {}}
        some = {"total": 1.0, "each": {"futex": 1.0}}
        row = syscalls.side_row("create_sampler", "program", {"native": none, "program": some})
        self.assertEqual((row["verdict"], row["what"]),
                         (MISSED, "create_sampler: program (most: futex)"))
        self.assertEqual(syscalls.side_row("create_sampler", "host",
                                           {"native": none, "host": none})["verdict"], MET)
        self.assertNotIn("bar",
                         syscalls.side_row("launch", "program", {"native": some, "program": some}))
        self.assertEqual(syscalls.side_row("create_sampler", "program",
                                           {"native": none})["verdict"], NOT_MEASURED)

    def test_tcp(self):
        measured = {"plain": {"trip_ns": [10_000], "write_ns": [10], "read_ns": [10]},
                    "link": {"sync_ns": [70_001], "enqueue_ns": [500], "write_ns": [10],
                             "read_ns": [20]},
                    "over": {"write_ns": [1.0], "read_ns": [0.5]}}
        rows = {r["what"]: r.get("verdict") for r in tcp.rows_of("plain", measured)}
        self.assertEqual(rows["plain: a call that is answered"], MISSED)
        self.assertEqual(rows["plain: enqueue without waiting"], MET)
        self.assertEqual(rows["plain: write 64 MiB, bandwidth over plain sockets"], MET)
        self.assertEqual(rows["plain: read 64 MiB, bandwidth over plain sockets"], MISSED)

    def test_pages(self):
        rows = list(pages.filter_rows([{"name": "paper", "ratio": [0.7]},
                                       {"name": "paper, head always", "ratio": [0.7]},
                                       {"name": "paper in runs of 8", "ratio": [0.9]},
                                       {"name": "5 %", "ratio": [1.03]}]))
        self.assertEqual([r.get("verdict") for r in rows], [MET, None, MISSED, MISSED])
        self.assertAlmostEqual(rows[0]["paper"]["value"], 0.7544, places=4)
        stop, precopy = pages.overlap_groups({"stop": [{"gbit_per_s": 10, "ratio": [1.2],
                                                        "sequential": [1.3]}],
                                              "precopy": [{"gbit_per_s": 10, "ratio": [1.0]},
                                                          {"gbit_per_s": 0, "ratio": [1.4]}]})
        self.assertEqual([r.get("verdict") for r in stop.rows], [MISSED, None])
        self.assertEqual([r.get("verdict") for r in precopy.rows], [MET, None])

    def test_builds_are_judged_by_the_noise(self):
        noise = [0.98, 1.0, 1.02, 1.04]
        self.assertEqual(builds.row_of("a", {"new": [1.0, 1.02, 1.04, 1.05], "old": noise})["verdict"], MET)
        self.assertEqual(builds.row_of("a", {"new": [1.04, 1.05, 1.06, 1.07], "old": noise})["verdict"], MISSED)
        self.assertEqual(builds.row_of("a", {"new": [0.9], "old": [0.95]})["verdict"], MET)


if __name__ == "__main__":
    unittest.main()
