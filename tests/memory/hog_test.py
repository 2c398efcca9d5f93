#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a program does with its memory, another tenant's program has its part of the device
time, as gantryd counts it.

    hog_test.py STAGE HOLDS ICD HOG [TEST]...

HOLDS, HOG: the programs of holds.c and hog.c; ICD: libdiscrete-icd.so.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import (  # noqa: E402
    OF_75, Holder, MemoryCase, SmallMemoryCase, gantry, telling)

MemoryCase.stage, MemoryCase.path, MemoryCase.icd, HOG = (
    os.path.abspath(p) for p in sys.argv[1:5])
MEASURE_S = 45.0
COPIES = 0.1       # the default of --swap-share
TOLERANCE = 0.03


class Shares(SmallMemoryCase):
    """The device time of a program beside a hostile one of another tenant of the same weight: half
    of the time less the part for copies, less 3 points."""

    def used_ns(self, daemon, program):
        return self.memory(daemon, program)["used_ns"]

    def measure(self, daemon, program, until):
        """The part of the time in which it has the device, for MEASURE_S, and then until until()
        differs from what it was. From and to a beginning of its residency periods."""
        def next_period():
            before = until()
            self.until(daemon, "its next period", lambda: until() != before)
            return time.monotonic(), self.used_ns(daemon, program)
        began, used = next_period()
        while True:
            ended, used_then = next_period()
            if ended - began >= MEASURE_S:
                return (used_then - used) / 1e9 / (ended - began)

    def check(self, hog, *words, held=OF_75, says=("goes",)):
        """hog: its path; says: its words until it has begun."""
        daemon = self.start("--swap-memory", "512M")
        for name in ("honest", "hostile"):
            status, said = gantry(daemon, "tenant", "add", name, "--uid", str(os.getuid()))
            self.assertEqual(status, 0, said)
        honest = self.holder(daemon, "--told", "--often", "0", *held, GANTRY_TENANT="honest")
        honest.holds()
        hog = Holder(hog, daemon, *words, GANTRY_TENANT="hostile")
        self.addCleanup(hog.__exit__)
        for word in says:
            hog.hear(word)

        def periods():
            # Without evictions its time is measured from any moment to any other.
            device, memory = self.device(daemon), self.memory(daemon, honest)
            return memory["residencies"] if device["swaps"] > swaps else time.monotonic()
        swaps = self.device(daemon)["swaps"]
        part = self.measure(daemon, honest, periods)
        least = 0.5 * (1 - COPIES) - TOLERANCE
        device = self.device(daemon)
        print("{}: {:.3f} of the time; at least {:.3f}. {} swaps".format(
            " ".join(words), part, least, device["swaps"]), file=sys.stderr)
        self.assertGreaterEqual(part, least)
        self.assertIsNone(hog.process.poll())
        hog.kill()
        honest.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()

    def test_memory_that_is_only_touched(self):
        self.check(HOG, "touch", *OF_75)

    def test_a_storm_of_allocations(self):
        self.check(HOG, "storm", *OF_75)

    def test_short_commands_with_pauses(self):
        self.check(HOG, "blink", *OF_75)

    def test_all_memory_in_each_kernel(self):
        self.check(HOG, "all", *OF_75)

    def test_all_that_can_be_pinned(self):
        """The honest program needs no more than the other tenant cannot pin."""
        self.check(self.path, "--pin", "--give-up", "--seconds", "1000", "--often", "0",
                   "24", "16", "16", held=("40", "15"), says=("holds", "pinned"))


if __name__ == "__main__":
    telling.main(MemoryCase.stage, sys.argv[5:])
