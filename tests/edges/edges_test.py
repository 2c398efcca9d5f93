# SPDX-License-Identifier: Apache-2.0
"""The driver of the hard programs sees what it is there to see: each of its checks is made to fail once."""

import os
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import edges  # noqa: E402
from gantry import Gantry, Program, Wrong, built_tree  # noqa: E402

BUILD = os.environ["GANTRY_BUILD"]
SOON = 0.2


class Sees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-edges-test-")
        self.addCleanup(folder.cleanup)
        self.gantry = Gantry(built_tree(os.path.join(folder.name, "tree"), BUILD), os.path.join(folder.name, "work"))
        self.gantry.__enter__()
        self.addCleanup(self.gantry.__exit__, None, None, None)
        self.program = os.path.join(BUILD, "tests/edges/edges")
        with self.gantry.program([self.program, "life"]) as p:
            p.end()
        self.before = self.gantry.settle_first()

    def test_a_vgpu_and_its_worker(self):
        with self.gantry.program([self.program, "idle"]) as p:
            p.hear("ready")
            with self.assertRaisesRegex(Wrong, "left behind: .*processes.*vgpus"):
                self.gantry.settle(self.before, SOON)
            p.tell()
            p.end()
        self.gantry.settle(self.before)

    def test_a_descriptor_of_gantryd(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.gantry.socket)
            with self.assertRaisesRegex(Wrong, "left behind: descriptors of gantryd"):
                self.gantry.settle(self.before, SOON)
        self.gantry.settle(self.before)

    def test_a_file(self):
        path = os.path.join(self.gantry.socket_dir, "forgotten")
        with open(path, "w", encoding="ascii"):
            pass
        with self.assertRaisesRegex(Wrong, "left behind: files"):
            self.gantry.settle(self.before, SOON)
        os.unlink(path)

    def test_a_status_a_word_and_an_error(self):
        for script, what in (("exit 3", "status 3"), ("echo more", "stdout: more"), ("echo odd >&2", "stderr: odd")):
            with Program(["/bin/sh", "-c", script], dict(os.environ)) as p, self.assertRaisesRegex(Wrong, what):
                p.end()
        with Program(["/bin/sh", "-c", "echo other"], dict(os.environ)) as p, self.assertRaisesRegex(Wrong, "not 'ready'"):
            p.hear("ready")

    def test_somebody_who_is_not_idle(self):
        with Program(["/bin/sh", "-c", "echo ready; while :; do :; done"], dict(os.environ)) as p:
            p.hear("ready")
            first = edges.ticks(p.pid)
            while edges.ticks(p.pid) == first:  # the kernel's books are a few milliseconds late
                pass

    def test_wrong_data(self):
        """A program that computes something else than the processor says so."""
        with self.gantry.program([self.program, "two_devices"]) as p, self.assertRaisesRegex(Wrong, "not so: n == 2"):
            p.end()


if __name__ == "__main__":
    unittest.main()
