#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is to be seen of a vGPU on its way: in `gantry ls` and `gantry top`, and on the stderr of the command that moves it.

    seen_test.py STAGE PROGRAM      STAGE: what make stage leaves; PROGRAM: busy
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

from moves_harness import Daemon, TIMEOUT_S, command, gantry, telling, wait_until

STAGE, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])
SLOW = ("--bandwidth", "64K")   # of some megabytes: it is on its way as long as we like


class Seen(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-seen-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.ends = []

    @contextlib.contextmanager
    def daemon(self):
        with Daemon(STAGE, self.work) as daemon:
            try:
                yield daemon
            finally:
                for end in self.ends:
                    end()

    def program(self, daemon):
        """Its vGPU's id. It is ended before its gantryd."""
        before = {v["id"] for v in daemon.vgpus()}
        program = subprocess.Popen([PROGRAM, "still"], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            program.kill()
            program.wait()
            program.stdin.close()
            program.stdout.close()
        self.ends.append(end)
        self.assertEqual(program.stdout.readline().strip(), "goes")
        (new,) = {v["id"] for v in daemon.vgpus()} - before
        return new

    def moves(self, daemon, vgpu, *how, stderr=subprocess.PIPE):
        process = subprocess.Popen(command(daemon, "migrate", vgpu, "local", *SLOW, *how), stdout=subprocess.PIPE, stderr=stderr)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            if process.stderr:
                process.stderr.close()
        self.ends.append(end)

        def on_its_way():
            (v,) = [v for v in daemon.vgpus() if v["id"] == vgpu]
            return v.get("moving", {}).get("done_bytes", 0) > 0
        self.assertTrue(wait_until(on_its_way, TIMEOUT_S), daemon.vgpus())
        return process

    def shown(self, daemon, *words):
        return subprocess.run(command(daemon, *words), capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout

    def test_listed_with_phase_and_part(self):
        with self.daemon() as daemon:
            vgpu, other = self.program(daemon), self.program(daemon)
            self.assertNotIn("moving", daemon.vgpus()[0])
            self.moves(daemon, vgpu)
            listed = {v["id"]: v for v in gantry(daemon, "ls")[1]["vgpus"]}
            self.assertEqual(listed[other]["state"], "idle")
            self.assertNotIn("moving", listed[other])
            self.assertEqual(listed[vgpu]["state"], "moving")
            moving = listed[vgpu]["moving"]
            self.assertEqual((moving["what"], moving["to"], moving["phase"], moving["round"]), ("move", "local", "ahead", 1))
            self.assertGreater(moving["total_bytes"], 8 << 20)
            self.assertLess(moving["done_bytes"], moving["total_bytes"])
            self.assertGreater(moving["sent_bytes"], 0)
            self.assertGreater(moving["elapsed_ns"], 0)
            self.assertRegex(self.shown(daemon, "ls"), vgpu + r".*moving:ahead:\d+%")
            self.assertRegex(self.shown(daemon, "top", "--once"), r"moving:ahead:\d+%")

    def test_lines_where_there_is_no_terminal(self):
        with self.daemon() as daemon:
            quiet = [self.moves(daemon, self.program(daemon), how) for how in ("--quiet", "--json")]
            vgpu = self.program(daemon)
            process = self.moves(daemon, vgpu)
            line = process.stderr.readline().decode()
            self.assertRegex(line, r"^gantry migrate: {} ahead, round 1: \d+%, \S+ of \S+, \S+/s\n$".format(vgpu))
            # Those who were asked before this one have said nothing.
            for one in quiet:
                os.set_blocking(one.stderr.fileno(), False)
                self.assertIsNone(one.stderr.read())

    def test_a_bar_on_a_terminal(self):
        with self.daemon() as daemon:
            vgpu = self.program(daemon)
            ours, its = os.openpty()
            self.addCleanup(os.close, ours)
            self.moves(daemon, vgpu, stderr=its)
            os.close(its)
            text = b""
            while not re.search(rb"\r\[[#.]{20}\] " + vgpu.encode() + rb" ahead, round 1: \d+%, [^\x1b]*/s\x1b\[K", text):
                text += os.read(ours, 4096)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[3:])
