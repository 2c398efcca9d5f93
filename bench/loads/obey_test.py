# SPDX-License-Identifier: Apache-2.0
"""gantry-load --obey keeps its side: an answer to each order, whose numbers agree with each other, and an end at the end of stdin."""

import json
import subprocess
import sys
import unittest

LOAD = sys.argv.pop(1)
SPIN = ["spin", "--size", "100", "--batch", "3", "--reads", "2"]


def obey(orders, *more):
    return subprocess.run([LOAD, *SPIN, "--obey", "--no-profile", *more], input=orders, capture_output=True, text=True, timeout=100)


class Obey(unittest.TestCase):
    def check_answer(self, a):
        self.assertEqual(a["launches"], 3 * a["rounds"])
        self.assertEqual(a["sync_calls"], 3 * a["rounds"])
        self.assertEqual(a["marks"][0], [0, 0])
        self.assertEqual(a["marks"], sorted(a["marks"]))
        self.assertLessEqual(a["marks"][-1][1], a["rounds"])
        self.assertLessEqual(a["marks"][-1][0], a["end_ns"] - a["start_ns"])
        self.assertLessEqual(a["round_ns"]["p50"], a["round_ns"]["max"])
        self.assertGreaterEqual(a["end_ns"] - a["start_ns"], 20_000_000)

    def test_every_order_is_answered(self):
        done = obey("run 0.02\nrun 0.02\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, *answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual((first["load"], first["size"], first["batch"]), ("spin", 100, 3))
        self.assertEqual(len(answers), 2)
        for a in answers:
            self.check_answer(a)
        self.assertGreaterEqual(answers[1]["start_ns"], answers[0]["end_ns"])

    def test_queued_ahead_the_same(self):
        done = obey("run 0.02\n", "--ahead")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_answer(json.loads(done.stdout.splitlines()[1]))

    def test_profiled_time_is_no_more_than_there_was(self):
        done = obey("run 0.02\n", "--sum-profile")
        self.assertEqual(done.returncode, 0, done.stderr)
        a = json.loads(done.stdout.splitlines()[1])
        self.assertGreater(a["profiled_ns"], 0)
        self.assertLessEqual(a["profiled_ns"], a["end_ns"] - a["start_ns"])

    def test_an_order_that_is_none(self):
        for order in ("run\n", "run -1\n", "run 1x\n", "walk 1\n", "\n"):
            done = obey(order)
            self.assertEqual(done.returncode, 1, order)
            self.assertIn("an order is", done.stderr)


if __name__ == "__main__":
    unittest.main()
