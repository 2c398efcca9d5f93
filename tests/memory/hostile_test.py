#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that lie about their device memory are ended, and the other program does not notice.

    hostile_test.py STAGE HOLDS ICD LIAR [TEST]...

HOLDS: the program of holds.c; ICD: libdiscrete-icd.so; LIAR: of liar.c.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import (  # noqa: E402
    OF_75, SHORT_PERIODS, MemoryCase, SmallMemoryCase, telling)

MemoryCase.stage, MemoryCase.path, MemoryCase.icd, LIAR = (
    os.path.abspath(p) for p in sys.argv[1:5])


class LiarCase(SmallMemoryCase):
    """A worker that breaks the protocol of evictions is ended with a reason; nothing of it is left,
    and the other program does not notice."""

    def start_liar(self, how, **env):
        daemon = self.start(*SHORT_PERIODS, "512M", env=dict(env, LD_PRELOAD=LIAR, LIAR=how))
        honest, = self.holders(daemon, 1, "--told", *OF_75)
        liar = self.holder(daemon, "--told", *OF_75)
        return daemon, honest, liar

    def check_is_ended(self, how, reason):
        daemon, honest, liar = self.start_liar(how)
        said = liar.all_words()
        self.assertEqual(liar.process.wait(), 1, said)
        self.assertIn("wrong:", said)
        self.assertIn(reason, daemon.log())
        self.until(daemon, "its vGPU is gone", lambda: len(daemon.vgpus()) == 1)
        honest.tell_right()
        self.until_all_is_free(daemon)
        self.holders(daemon, 1, "--rounds", "1", "70", "50")[0].right()
        self.check_device()


class Lies(LiarCase):
    def test_the_number_of_no_order(self):
        self.check_is_ended("number", "its worker broke the protocol (message 61)")

    def test_an_answer_twice(self):
        self.check_is_ended("twice", "its worker broke the protocol (message 61)")

    def test_an_answer_that_is_cut(self):
        self.check_is_ended("short", "its worker broke the protocol (message 61)")

    def test_an_answer_without_an_order(self):
        self.check_is_ended("early", "its worker broke the protocol (message 61)")

    def test_a_wish_with_a_payload(self):
        self.check_is_ended("wants", "its worker broke the protocol (message 62)")

    def test_a_hundred_thousand_wishes(self):
        """They are one."""
        daemon, honest, liar = self.start_liar("flood", GANTRY_LOG="debug")
        liar.holds()
        self.until_each_was_in(daemon, [honest, liar], 3)
        self.assertGreater(daemon.log().count("waits for evicted memory"), 1000)
        honest.tell_right()
        liar.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()


class Silence(LiarCase):
    """Its deadline is more than half a minute."""

    def test_no_answer(self):
        self.check_is_ended("silent", "does not give device memory back")


if __name__ == "__main__":
    telling.main(MemoryCase.stage, sys.argv[5:])
