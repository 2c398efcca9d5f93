#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents.py on small trees: a good one passes, each kind of violation is found."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents    # noqa: E402

FILLER = "The worker decodes a message. " * 100
GOOD = {
    "README.md": "# Top\n\nSee [rings](docs/ring.md#the-slot-ring) and `src/shm/ring.c`.\n",
    "docs/ring.md": "# Rings\n\n## The slot ring\n\n| A | B |\n| --- | --- |\n| one | two |\n",
    "docs/results/figures.md": "| " + "word " * 40 + "|\n",
    "man/gantry.1": ".TH gantry 1\n" + FILLER + "\n",
    "src/shm/ring.c": "",
}


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def check(self, **files):
        for path, text in {**GOOD, **files}.items():
            path = os.path.join(self.folder.name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return documents.check(self.folder.name)

    def one(self, problems, text):
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_good(self):
        self.assertEqual(self.check(), [])

    def test_long_cell(self):
        self.assertEqual(self.check(**{"docs/a.md": "| " + "word " * 30 + "| b |\n"}), [])
        self.one(self.check(**{"docs/a.md": "\n| a | " + "word " * 31 + "|\n"}),
                 "docs/a.md:2: a cell of 31 words")

    def test_cell_in_a_subfolder(self):
        self.one(self.check(**{"docs/guide/a.md": "| " + "word " * 31 + "|\n"}), "docs/guide/a.md:1")

    def test_long_readme(self):
        self.one(self.check(**{"README.md": "word word\n" * 351}), "README.md: 702 words")

    def test_long_line(self):
        self.one(self.check(**{"docs/a.md": "x" * 101 + "\n"}), "docs/a.md:1: 101 columns")
        self.assertEqual(self.check(**{"docs/a.md": "```\n" + "x" * 101 + "\n```\n"}), [])

    def test_words(self):
        self.one(self.check(**{"man/gantry.1": FILLER + "He says what it is. Whose? " * 2}),
                 "at most 3")
        self.assertEqual(self.check(**{"man/gantry.1": FILLER + "Who?\n"}), [])

    def test_missing_file(self):
        self.one(self.check(**{"docs/a.md": "See `src/shm/ping.c`.\n"}), "no src/shm/ping.c")

    def test_missing_link(self):
        self.one(self.check(**{"docs/a.md": "See [b](b.md).\n"}), "no docs/b.md")

    def test_missing_heading(self):
        self.one(self.check(**{"docs/a.md": "See [b](ring.md#the-slots).\n"}), "no heading #the-slots")
        self.assertEqual(self.check(**{"docs/a.md": "See [b](ring.md#the-slot-ring).\n"}), [])


if __name__ == "__main__":
    unittest.main()
