# SPDX-License-Identifier: Apache-2.0
"""The statistics of repeated runs against examples worked by hand."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import stats  # noqa: E402


class Stats(unittest.TestCase):
    def test_pairs_alternate(self):
        order = []

        def measure(name):
            def run():
                order.append(name)
                return len(order)
            return run
        self.assertEqual(stats.abba(3, measure("a"), measure("b")), [(1, 2), (4, 3), (5, 6)])
        self.assertEqual("".join(order), "abbaab")

    def test_ratios_are_second_over_first(self):
        self.assertEqual(stats.ratios([(2, 1), (4, 8)]), [0.5, 2])

    def test_quantile(self):
        self.assertEqual(stats.quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(stats.quantile([1, 2, 3, 4, 5], 0.25), 2)
        self.assertEqual(stats.quantile([7], 0.25), 7)

    def test_spread(self):
        self.assertEqual(stats.spread([5, 1, 3, 2, 4]),
                         {"median": 3, "p25": 2, "p75": 4, "min": 1, "max": 5, "n": 5})

    def test_geometric_mean(self):
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2]), 1)

    def test_median_bar(self):
        self.assertTrue(stats.median_meets([1, 2, 9], at_most=2))
        self.assertFalse(stats.median_meets([1, 2, 9], at_most=1.9))
        self.assertFalse(stats.median_meets([1, 2, 9], at_least=2.1))

    def test_quartile_bar_ignores_one_bad_and_one_good_run(self):
        self.assertTrue(stats.quartile_meets([0.99, 0.99, 0.99, 0.5], at_least=0.98))
        self.assertFalse(stats.quartile_meets([0.9, 0.9, 0.9, 0.9, 0.99], at_least=0.98))
        self.assertTrue(stats.quartile_meets([1.0, 1.0, 1.0, 1.5], at_most=1.02))
        self.assertFalse(stats.quartile_meets([1.1, 1.1, 1.1, 1.1, 1.0], at_most=1.02))
        self.assertFalse(stats.quartile_meets([2.2, 2.2, 2.2], at_least=1.9, at_most=2.1))


if __name__ == "__main__":
    unittest.main()
