# SPDX-License-Identifier: Apache-2.0
"""A run of a benchmark: each section's result is written at once, a failure costs only its
section, and the exit status tells of both."""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import campaign  # noqa: E402
from harness.rows import Findings, Group, barred  # noqa: E402
from harness.targets import BenchError  # noqa: E402


def findings(value, error=""):
    return Findings("A section",
                    [Group("a", [barred("row", [value], at_most=1)]), Group("b", error=error)],
                    raw={"all": value})


def fail():
    raise BenchError("it hung")


class Run(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.build, self.out = temporary.name, os.path.join(temporary.name, "out")

    def run_sections(self, functions, strict=False, chosen=None, **more):
        options = argparse.Namespace(build=self.build, out=self.out, quick=False)
        for key, value in more.items():
            setattr(options, key, value)
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            run = campaign.Campaign("bench", options, functions, chosen or list(functions), 3, 2.0,
                                    ["PoCL threads: 1"])
            for name, function in functions.items():
                run.measure(name, function)
            return run.end(strict), out.getvalue()

    def written(self):
        return sorted(name.split("bench-", 1)[1] for name in os.listdir(self.out)
                      if name.endswith(".json"))

    def test_results_are_written_and_status_is_0(self):
        status, _ = self.run_sections({"ring": lambda: findings(1), "calls": lambda: findings(1)})
        self.assertEqual((status, self.written()), (0, ["calls.json", "ring.json"]))

    def test_a_section_that_fails_leaves_the_others(self):
        status, out = self.run_sections({"ring": fail, "calls": lambda: findings(1)})
        self.assertEqual((status, self.written()), (1, ["calls.json"]))
        self.assertIn("NOT MEASURED: ring: it hung", out)

    def test_a_group_that_fails_is_a_failure(self):
        status, _ = self.run_sections({"ring": lambda: findings(1, error="it hung")})
        self.assertEqual((status, self.written()), (1, ["ring.json"]))

    def test_a_section_without_any_group_writes_nothing(self):
        broken = Findings("A section", [Group("a", error="it hung")])
        status, _ = self.run_sections({"ring": lambda: broken})
        self.assertEqual((status, os.path.exists(self.out)), (1, False))

    def test_a_missed_bar_counts_only_where_it_is_asked_for(self):
        self.assertEqual(self.run_sections({"ring": lambda: findings(2)})[0], 0)
        self.assertEqual(self.run_sections({"ring": lambda: findings(2)}, strict=True)[0], 1)

    def test_raw_figures_lie_in_the_build_folder(self):
        self.run_sections({"ring": lambda: findings(1)})
        folder = os.path.join(self.build, "bench/raw")
        with open(os.path.join(folder, os.listdir(folder)[0]), encoding="utf-8") as f:
            self.assertEqual(json.load(f), {"all": 1})

    def test_where_results_go(self):
        def folder(**options):
            return campaign.Campaign("bench", argparse.Namespace(build=self.build, **options),
                                     ["a"], ["a"], 1, 1).folder
        self.assertEqual(folder(out=None, quick=False), campaign.FOLDER)
        self.assertEqual(folder(out=None, quick=True), os.path.join(self.build, "bench/results"))
        self.assertEqual(folder(out=self.out, quick=False), self.out)

    def test_a_part_of_a_campaign_says_so(self):
        self.run_sections({"ring": lambda: findings(1)}, chosen=["ring", "calls"])
        with open(os.path.join(self.out,
                               next(n for n in os.listdir(self.out) if n.endswith(".md"))),
                               encoding="utf-8") as f:
            self.assertIn("Part of a campaign: ring, calls of 1 sections", f.read())


if __name__ == "__main__":
    unittest.main()
