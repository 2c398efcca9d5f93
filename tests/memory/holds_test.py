#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program holds itself: it finds its results right with each option, on the emulated discrete
GPU and through Gantry, sees memory that is changed behind its back, and names a refusal.

    holds_test.py STAGE HOLDS ICD [TEST]...    HOLDS: of holds.c; ICD: libdiscrete-icd.so
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import MemoryCase, telling  # noqa: E402

MemoryCase.stage, MemoryCase.path, MemoryCase.icd = (os.path.abspath(p) for p in sys.argv[1:4])
OPTIONS = ((), ("--one", "--chatty", "3"), ("--const",), ("--idle", "1", "--often", "2"),
           ("--closed",))
EXTRAS = 8    # of holds.c: a round of each


class AnyGantryd(MemoryCase):
    """Without memory for more than fit."""

    config = "[device pthread]\nmemory = 512M\n"
    oversubscribe = ()

    def test_right(self):
        daemon = self.start()
        for words in OPTIONS:
            with self.subTest(words=words):
                program, = self.holders(daemon, 1, "--rounds", str(2 * EXTRAS), *words, "40", "9")
                self.assertEqual(program.right()[0], 2 * EXTRAS)
        self.check_device()

    def test_a_changed_word_is_seen(self):
        daemon = self.start()
        for words in ((), ("--const",)):
            program, = self.holders(daemon, 1, "--spoil", *words, "4")
            program.hear("differs:")
            program.end(status=1)

    def test_a_refusal_is_named(self):
        daemon = self.start()
        program = self.holder(daemon, "300", "300")
        self.assertEqual(program.refused(), 1)
        program.end(status=3)
        program = self.holder(daemon, "--give-up", "300", "300")
        self.assertEqual(program.refused(), 1)
        self.assertEqual(program.holds(), 300)
        program.right()
        self.check_device()

    def test_it_goes_on_until_it_is_told(self):
        daemon = self.start()
        program, = self.holders(daemon, 1, "--told", "4")
        first = self.vgpu(daemon, program)["calls"]
        self.until(daemon, "rounds", lambda: self.vgpu(daemon, program)["calls"] > first + 100)
        self.assertGreater(program.tell_right()[0], EXTRAS)


if __name__ == "__main__":
    telling.main(MemoryCase.stage, sys.argv[4:])
