#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations of programs on the emulated discrete GPU: the device hashes pages by its own choice, the last round reads changed pages
alone, results are those of an undisturbed run, and no device memory is left behind.

    moves_test.py STAGE BUSY MOVED ICD      BUSY, MOVED: programs of tests/moves; ICD: libdiscrete-icd.so
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import BusyCase, STEPS, TIMEOUT_S, gantry, telling, wait_until  # noqa: E402

from device_state import Device     # noqa: E402

BusyCase.stage, BusyCase.path, MOVED, ICD = (os.path.abspath(p) for p in sys.argv[1:5])
PAGE = 4096
MIB = 1 << 20


class OnDiscrete(BusyCase):
    def start_daemon(self, options="", **more):
        os.chmod(self.work, 0o755)
        self.device = Device(ICD, self.work, options)
        return self.daemon("a", env={"GANTRY_LOG": "debug", **self.device.env()}, **more)

    def move(self, daemon, *words):
        vgpu = daemon.vgpus()[0]["id"]
        status, said = gantry(daemon, words[0], vgpu, *words[1:])
        self.assertEqual(status, 0, said)
        return said["move"]

    def test_the_device_hashes_pages(self):
        daemon = self.start_daemon("bus=4G,latency=10us")
        for what in ("still", "few"):
            program = self.start(daemon, what)
            for how in ((), ("--rounds", "3")):
                moved = self.move(daemon, "migrate", "local", *how)
                pages = moved["pages"]
                self.assertEqual((pages["sampled"], pages["hashed"]), (0, pages["device"]), moved)
                self.assertEqual(moved["stop_read_bytes"], PAGE * pages["stop"], moved)
            self.assertTrue(wait_until(lambda: "the device hashes pages: a work-group a page" in daemon.log(), TIMEOUT_S), daemon.log())
            self.assertEqual(self.end(program)[0], "right")
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_all_that_writes(self):
        for options in ("", "async,late=5ms,retain"):
            with self.subTest(options=options):
                daemon = self.start_daemon(options, passthrough=True)
                program = self.start(daemon, "all")
                for words in (("mode", "remote"), ("migrate", "local"), ("migrate", "local", "--stop-and-copy"),
                              ("mode", "passthrough"), ("mode", "remote", "--rounds", "2")):
                    self.move(daemon, *words)
                disturbed = self.end(program)
                self.assertEqual(self.end(self.start(daemon, "all", disturbed[0])), disturbed)
                self.doCleanups()
                self.setUp()

    def test_something_of_each_kind(self):
        daemon = self.start_daemon()
        self.path = MOVED
        program = self.program(daemon)
        for name in STEPS:
            self.assertEqual(program.at(), name)
            self.move(daemon, "migrate", "local")
            program.on()
        self.assertIsNone(program.ends_well())

    def test_a_device_without_room_refuses_the_move(self):
        # The program has more than half of the device, and a move needs as much again.
        daemon = self.start_daemon("capacity=20M")
        program = self.start(daemon, "few")
        vgpu = daemon.vgpus()[0]
        status, said = gantry(daemon, "migrate", vgpu["id"], "local")
        self.assertEqual(status, 1, said)
        self.assertIn("more than the device has left", said["error"]["why"])
        self.assertEqual(daemon.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
        self.assertEqual(self.end(program)[0], "right")
        self.assertEqual(self.device.counts()["refusals"], 0)

    def test_a_device_that_is_full_of_others_memory_refuses_the_move(self):
        # Each program has 13 MiB, and each gantryd knows of its own program alone: the driver
        # refuses the memory that a move needs.
        for options in ("capacity=36M", "capacity=36M,lazy"):
            for how in ((), ("--stop-and-copy",), ("--rounds", "2")):
                with self.subTest(options=options, how=how):
                    daemon = self.start_daemon(options)
                    other = self.daemon("b", env=self.device.env())
                    program, second = self.start(daemon, "few"), self.start(other, "few")
                    vgpu = daemon.vgpus()[0]
                    status, said = gantry(daemon, "migrate", vgpu["id"], "local", *how)
                    self.assertEqual(status, 1, said)
                    self.assertIn("goes on where it was", said["error"]["why"])
                    self.assertEqual(daemon.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
                    self.assertEqual(self.end(program)[0], "right")
                    self.assertEqual(self.end(second)[0], "right")
                    self.assertGreaterEqual(self.device.counts()["refusals"], 1)
                self.doCleanups()
                self.setUp()

    def test_memory_is_given_back(self):
        daemon = self.start_daemon("capacity=64M")
        program = self.start(daemon, "still")
        for _ in range(8):
            self.move(daemon, "migrate", "local")
        self.assertEqual(self.end(program)[0], "right")
        # A source's worker has ended before its vGPU is moved again: two copies at most.
        counts = self.device.counts()
        self.assertEqual(counts["refusals"], 0)
        self.assertLess(counts["peak_bytes"], 40 * MIB)


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[5:])
