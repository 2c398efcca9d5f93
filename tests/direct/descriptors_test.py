#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that do odd things with their descriptors, while their vGPUs are moved.

    descriptors_test.py STAGE DESCRIPTORS
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import Daemon, TIMEOUT_S, gantry, telling  # noqa: E402

STAGE, DESCRIPTORS = (os.path.abspath(p) for p in sys.argv[1:3])

NONE_LEFT = "gantry: the program has no descriptors left (ulimit -n): large transfers are slow or fail until it has some\n"
CUT_OFF = ("gantry: the program has closed descriptors that it had not opened, and Gantry's connections with them (closefrom?): "
           "its vGPU is lost, and calls for it fail\n")


class Program:
    """What it says comes by a pipe of its own, whatever it does with its first three."""

    def __init__(self, test, daemon, *words, **env):
        self.test = test
        self.hears, says = os.pipe()
        env = {**daemon.program_env(), "GANTRY_MODE": "remote", **env}
        self.process = subprocess.Popen([DESCRIPTORS, words[0], str(says), *words[1:]], env=env, pass_fds=[says],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.close(says)
        test.addCleanup(self.end)
        self.said("ready\n")

    def said(self, wanted):
        text = b""
        while not text.endswith(b"\n") and select.select([self.hears], [], [], TIMEOUT_S)[0]:
            more = os.read(self.hears, 4096)
            if not more:
                break
            text += more
        self.test.assertEqual(text.decode(), wanted)

    def ends_well(self, stderr=""):
        self.process.send_signal(signal.SIGWINCH)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        rest = os.read(self.hears, 4096).decode()
        self.test.assertEqual((self.process.returncode, out, err.decode(), rest), (0, b"", stderr, ""))

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self.hears)


class Descriptors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-descriptors-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def daemon(self, name="one", **options):
        work = os.path.join(self.work, name)
        os.makedirs(work)
        return Daemon(STAGE, work, passthrough=True, **options)

    def does(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, said)

    def only(self, daemon):
        (vgpu,) = daemon.vgpus()
        return vgpu["id"]

    # ---- stdin, stdout and stderr are closed from the start

    def test_without_the_first_three(self):
        with self.daemon() as daemon:
            for closed in ("0", "1", "12", "012"):
                with self.subTest(closed=closed):
                    Program(self, daemon, "low", closed).ends_well()

    def test_without_the_first_three_over_tcp(self):
        with self.daemon(args=["--listen", "tcp:127.0.0.1:0", "--insecure"]) as daemon:
            Program(self, daemon, "low", "012").ends_well()

    def test_without_the_first_three_in_passthrough(self):
        with self.daemon() as daemon:
            Program(self, daemon, "low", "012", "quiet", GANTRY_MODE="passthrough").ends_well()

    def test_without_the_first_three_while_it_moves(self):
        with self.daemon() as daemon, self.daemon("two") as other:
            program = Program(self, daemon, "low", "012")
            self.does(daemon, "migrate", self.only(daemon), "local")
            self.does(daemon, "migrate", self.only(daemon), other.address)
            file = os.path.join(self.work, "file")
            self.does(other, "checkpoint", "--stop", self.only(other), file)
            self.does(other, "restore", file)
            program.ends_well()

    def test_without_the_first_three_while_it_is_switched(self):
        with self.daemon() as daemon:
            program = Program(self, daemon, "low", "012", "quiet")
            for mode in ("passthrough", "remote", "passthrough", "remote"):
                self.does(daemon, "mode", self.only(daemon), mode)
            program.ends_well()

    # ---- there are no descriptors left

    def refused(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 1, said)
        return said

    def test_with_none_left(self):
        with self.daemon() as daemon, self.daemon("two") as other:
            program = Program(self, daemon, "full")
            self.does(daemon, "migrate", self.only(daemon), "local")
            said = self.refused(daemon, "migrate", self.only(daemon), other.address)
            self.assertIn("the program has no descriptors, threads or memory left", said["error"]["why"])
            self.refused(daemon, "mode", self.only(daemon), "passthrough")
            program.ends_well(NONE_LEFT)

    def test_with_none_left_in_passthrough(self):
        with self.daemon() as daemon:
            Program(self, daemon, "full", "quiet", GANTRY_MODE="passthrough").ends_well()

    def test_with_none_left_in_a_child(self):
        with self.daemon() as daemon:
            Program(self, daemon, "child").ends_well("gantry: cannot make a socket: Too many open files\n")

    # ---- all but the first three are closed

    def test_closed_behind_its_back(self):
        with self.daemon() as daemon:
            Program(self, daemon, "from").ends_well(CUT_OFF)
            Program(self, daemon, "from", "idle").ends_well(CUT_OFF)

    def test_closed_over_tcp(self):
        with self.daemon(args=["--listen", "tcp:127.0.0.1:0", "--insecure"]) as daemon:
            Program(self, daemon, "from").ends_well(CUT_OFF)

    def test_closed_in_passthrough(self):
        with self.daemon() as daemon:
            Program(self, daemon, "from", "idle", GANTRY_MODE="passthrough").ends_well(CUT_OFF)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[3:])
