# SPDX-License-Identifier: Apache-2.0
"""A result's rows: their spreads, their bars and the verdicts."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import rows  # noqa: E402


class Rows(unittest.TestCase):
    def test_a_row_holds_each_run_and_the_spread(self):
        row = rows.figure("a call", [3, 1, 2], "ns", beside=[9],
                          paper=rows.paper("gMig, figure 5", 4))
        self.assertEqual((row["values"], row["median"], row["n"]), ([3, 1, 2], 2, 3))
        self.assertEqual(row["beside"]["median"], 9)
        self.assertEqual(row["paper"], {"source": "gMig, figure 5", "value": 4})

    def test_one_number_is_one_run(self):
        self.assertEqual(rows.figure("a call", 5)["values"], [5])

    def test_nothing_measured(self):
        row = rows.barred("a call", None, at_most=1)
        self.assertNotIn("median", row)
        self.assertEqual(row["verdict"], rows.NOT_MEASURED)

    def test_verdict_by_median(self):
        self.assertEqual(rows.barred("a", [1, 1, 5], at_most=1)["verdict"], rows.MET)
        self.assertEqual(rows.barred("a", [1, 5, 5], at_most=1)["verdict"], rows.MISSED)

    def test_verdict_by_quartile(self):
        runs = [0.9, 0.97, 0.97, 0.99]
        self.assertEqual(rows.barred("a", runs, at_least=0.98)["verdict"], rows.MISSED)
        self.assertEqual(rows.barred("a", runs, at_least=0.97, by=rows.QUARTILE)["verdict"],
                         rows.MET)

    def test_bar_of_two_sides(self):
        row = rows.barred("a", [0.5], 0.4, 0.6)
        self.assertEqual((row["bar"], row["verdict"]),
                         ({"at_least": 0.4, "at_most": 0.6, "by": rows.MEDIAN}, rows.MET))
        self.assertEqual(rows.barred("a", [0.7], 0.4, 0.6)["verdict"], rows.MISSED)


if __name__ == "__main__":
    unittest.main()
