#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program over tcp whose worker waits for evicted memory: its end, and a connection that breaks,
are noticed meanwhile.

    tcp_waits_test.py STAGE HOLDS ICD RELAY [TEST]...

HOLDS: the program of holds.c; ICD: libdiscrete-icd.so; RELAY: the network of the tcp suite.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import (  # noqa: E402
    DEADLINE_S, OF_75, SHORT_PERIODS, MemoryCase, SmallMemoryCase, telling)
from daemon import gone, wait_until    # noqa: E402

MemoryCase.stage, MemoryCase.path, MemoryCase.icd, RELAY = (
    os.path.abspath(p) for p in sys.argv[1:5])


class Waits(SmallMemoryCase):
    def start_waiting(self):
        """A program over tcp whose worker waits for evicted memory, and another program. The
        other's worker is stopped, so it makes no room until self.go_on()."""
        self.there = self.start(*SHORT_PERIODS, "512M", "--tcp-grace", "1", "--listen",
                                "tcp:127.0.0.1:0", "--insecure", env={"GANTRY_LOG": "debug"})
        port = self.there.tcp_address.rsplit(":", 1)[1]
        self.relay = subprocess.Popen([RELAY, port], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (self.relay.kill(), self.relay.wait(), self.relay.stdout.close()))
        address = "tcp:127.0.0.1:" + self.relay.stdout.readline().strip()
        waiting, = self.holders(self.there, 1, "--pause", *OF_75, GANTRY_CONNECT=address)
        other, = self.holders(self.there, 1, "--pause", *OF_75, GANTRY_CONNECT=self.there.address)
        self.assertEqual(self.far()["devices"][0]["placement_state"], "evicted")
        self.stopped = self.vgpu(self.there, other)["worker_pid"]
        os.kill(self.stopped, signal.SIGSTOP)
        self.addCleanup(self.go_on)
        waiting.tell()
        self.until(self.there, "its worker waits",
                   lambda: "waits for evicted memory" in self.there.log())
        return waiting, other

    def go_on(self):
        if self.stopped:
            os.kill(self.stopped, signal.SIGCONT)
        self.stopped = None

    def far(self):
        """The vGPU over tcp."""
        return next(v for v in self.there.vgpus() if v["link"] == "tcp")

    def check_is_noticed(self, end, other):
        """Its vGPU ends while its memory cannot come in."""
        worker = self.far()["worker_pid"]
        end()
        self.until(self.there, "its vGPU ends", lambda: len(self.there.vgpus()) == 1)
        self.assertTrue(wait_until(lambda: gone([worker]), DEADLINE_S))
        self.assertIsNotNone(self.stopped)
        self.go_on()
        self.check_end(other)

    def check_end(self, other):
        other.tell_right()
        self.until_all_is_free(self.there)
        self.check_device()

    def test_a_killed_program(self):
        waiting, other = self.start_waiting()
        self.check_is_noticed(waiting.kill, other)

    def test_a_network_that_is_gone(self):
        waiting, other = self.start_waiting()
        self.check_is_noticed(self.relay.kill, other)
        self.assertIn("wrong:", waiting.all_words())

    def test_a_connection_that_breaks(self):
        """The program comes back each time while its worker waits."""
        waiting, other = self.start_waiting()
        for n in range(3):
            self.relay.send_signal(signal.SIGUSR1)
            self.until(self.there, "the worker notices", lambda: self.there.log().count(
                "the connection broke") > n)
        self.go_on()
        waiting.right()
        self.check_end(other)


if __name__ == "__main__":
    telling.main(MemoryCase.stage, sys.argv[5:])
