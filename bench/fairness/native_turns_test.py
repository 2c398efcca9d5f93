# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is natively, and what is made of what was done in turns."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fairness.native_turns import figures, order  # noqa: E402


class Order(unittest.TestCase):
    def test_each_has_its_weights_number_of_turns(self):
        for weights in ([1, 2, 3], [1, 2, 2, 3, 3, 4], [5], [1, 1]):
            turns = order(weights)
            self.assertEqual([turns.count(i) for i in range(len(weights))], weights)

    def test_they_are_spread_evenly(self):
        self.assertEqual(order([1, 1, 1]), [0, 1, 2])
        self.assertEqual(order([1, 3]), [1, 0, 1, 1])
        # Nobody has two in a row where the others could come in between.
        turns = order([1, 2, 3])
        self.assertTrue(all(a != b for a, b in zip(turns, turns[1:])), turns)


class Figures(unittest.TestCase):
    def test_turns_that_cost_nothing(self):
        self.assertEqual(figures([10, 20, 30], [10, 20, 30], [1, 2, 3]), {"mmr": 1.0, "overhead": 1.0})

    def test_what_each_loses_counts_by_its_part(self):
        # The one that has three quarters of the time loses a fifth: 0.25 + 0.75 * 0.8 of what there would be.
        f = figures([10, 10], [10, 8], [1, 3])
        self.assertAlmostEqual(f["mmr"], 0.8)
        self.assertAlmostEqual(f["overhead"], 1 / 0.85)


if __name__ == "__main__":
    unittest.main()
