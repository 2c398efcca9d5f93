# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the fairness experiments against examples worked by hand."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fairness import measures as m  # noqa: E402


def run(start_ns, marks):
    return {"start_ns": start_ns, "marks": marks}


class Rates(unittest.TestCase):
    def test_rounds_between_marks_are_on_a_line(self):
        r = run(1000, [[0, 0], [100, 10], [200, 12]])
        self.assertEqual(m.rounds_until(r, 1000), 0)
        self.assertEqual(m.rounds_until(r, 1050), 5)
        self.assertEqual(m.rounds_until(r, 1150), 11)
        self.assertEqual(m.rounds_until(r, 1200), 12)

    def test_outside_the_run_nothing_is_guessed(self):
        r = run(1000, [[0, 0], [100, 10]])
        for at in (999, 1101):
            with self.assertRaises(ValueError):
                m.rounds_until(r, at)

    def test_only_the_common_window_counts(self):
        # The second starts late; the first goes on alone, faster, after the second has ended.
        first = run(0, [[0, 0], [1000, 100], [2000, 150], [3000, 350]])
        second = run(1000, [[0, 0], [1000, 20]])
        self.assertEqual(m.common_window([first, second], 0), (1000, 2000))
        self.assertEqual(m.rates([first, second], 0), [50e9 / 1000, 20e9 / 1000])
        self.assertEqual(m.rates([first, second], 500), [25e9 / 500, 10e9 / 500])

    def test_who_goes_on_when_others_have_stopped_is_not_flattered(self):
        # A round each 100 while two run; the last is faster, since the other has stopped at 250.
        slow = run(0, [[0, 0], [100, 1], [200, 2], [260, 3]])
        other = run(0, [[0, 0], [50, 1], [250, 5]])
        self.assertEqual(m.rates([slow, other], 0), [1e9 / 100, 5e9 / 250])

    def test_turns_of_a_second_are_halves(self):
        # In turn: a round of a second, and a thousand of a millisecond; the short one has the last word. Half the device each.
        long = run(0, [[2000 * i + 1000, i + 1] for i in range(6)])
        short = run(0, [[2000 * i + 1000 + j, 1000 * i + j] for i in range(5) for j in range(1, 1001)])
        long["marks"].insert(0, [0, 0])
        short["marks"].insert(0, [0, 0])
        rates = m.rates([short, long], 100)
        self.assertAlmostEqual(rates[0] / 1e9 * 1, 0.5, places=2)
        self.assertAlmostEqual(rates[1] / 1e9 * 1000, 0.5, places=2)

    def test_many_short_rounds_count_over_all_of_the_time(self):
        # Turns of 10 out of 30, of rounds of 1: a third, although the first round of the window begins a turn and its last ends one.
        turns = run(0, [[0, 0]] + [[30 * i + 20 + j, 10 * i + j] for i in range(100) for j in range(1, 11)])
        other = run(0, [[0, 0]] + [[30 * i + j, 20 * i + j] for i in range(100) for j in range(1, 21)])
        rates = m.rates([turns, other], 301)
        self.assertAlmostEqual(rates[0] / 1e9, 1 / 3, places=2)
        self.assertAlmostEqual(rates[1] / 1e9, 2 / 3, places=2)

    def test_programs_that_never_ran_together(self):
        with self.assertRaises(ValueError):
            m.common_window([run(0, [[0, 0], [10, 1]]), run(20, [[0, 0], [10, 1]])], 0)


class Fairness(unittest.TestCase):
    def test_ideal(self):
        self.assertEqual(m.ideal([60, 60, 60], [1, 2, 3]), [10, 20, 30])

    def test_min_max_ratio(self):
        self.assertEqual(m.min_max_ratio([10, 20, 30], [10, 20, 30]), 1)
        self.assertEqual(m.min_max_ratio([5, 20, 30], [10, 20, 30]), 0.5)
        # Equal shares under weights 1:2:3: 2 of the ideal against 2/3.
        self.assertAlmostEqual(m.min_max_ratio([20, 20, 20], [10, 20, 30]), 1 / 3)

    def test_overhead(self):
        self.assertAlmostEqual(m.aggregated_overhead([10, 20, 20], [60, 60, 60]), 1.2)
        # Half of each of two programs with other units is all of the device.
        self.assertAlmostEqual(m.aggregated_overhead([5, 500], [10, 1000]), 1)

    def test_lag(self):
        self.assertAlmostEqual(m.worst_lag([[0.5, 0.5], [0.45, 0.55]], [1, 1]), 0.05)
        # What nobody had is owed to nobody.
        self.assertAlmostEqual(m.worst_lag([[0.2, 0.4]], [1, 2]), 0)

    def test_sliding_windows(self):
        a = run(0, [[0, 0], [100, 10], [200, 10]])
        b = run(0, [[0, 0], [100, 0], [200, 10]])
        self.assertEqual(m.sliding_shares([a, b], [0.1e9, 0.1e9], 100, 50), [[1, 0], [0.5, 0.5], [0, 1]])


class Pieces(unittest.TestCase):
    def test_lengths_of_rounds_count_by_their_number(self):
        def piece(rounds, mean, p50, longest):
            return {"rounds": rounds, "round_ns": {"mean": mean, "p50": p50, "max": longest}}
        got = m.merge_lengths([piece(1, 10, 10, 10), piece(3, 2, 2, 4), piece(0, 0, 6, 5)])
        self.assertEqual(got, {"mean": 4, "p50": 6, "max": 10})

    def test_counters_between_two_looks_add_up(self):
        first = m.turns_between([{"used_ns": 1, "grants": 1}], [{"used_ns": 11, "grants": 2}])
        self.assertEqual(first, [{"used_ns": 10, "grants": 1}])
        self.assertEqual(m.add_turns([first, first]), [{"used_ns": 20, "grants": 2}])

    def test_charges_by_weight(self):
        turns = [{"used_ns": 10, "device_ns": 5}, {"used_ns": 20, "device_ns": 20}, {"used_ns": 24, "device_ns": 0}]
        self.assertAlmostEqual(m.charge_ratio(turns, [1, 2, 3]), 0.8)
        self.assertEqual(m.use_of(turns), [0.5, 1, 0])
        self.assertEqual(m.charge_ratio([{"used_ns": 0, "device_ns": 0}], [1]), 0)


class Alone(unittest.TestCase):
    def test_one_of_a_kind_stands_for_all(self):
        self.assertEqual(m.own_alone([{0: 10.0, 2: 4.0}, {0: 12.0, 2: 5.0}], [0, 0, 1]), [[10.0, 10.0, 4.0], [12.0, 12.0, 5.0]])

    def test_each_is_itself_and_the_machine_is_the_pair_s(self):
        # The second is always faster by half; the machine is at half its speed in the last pair, and was disturbed once.
        got = m.own_alone([{0: 10.0, 1: 15.0}, {0: 10.0, 1: 5.0}, {0: 10.0, 1: 15.0}, {0: 5.0, 1: 7.5}], [0, 0])
        self.assertEqual(got[0], [10.0, 15.0])
        self.assertEqual(got[3], [5.0, 7.5])
        self.assertEqual([b / a for a, b in got], [1.5] * 4)


if __name__ == "__main__":
    unittest.main()
