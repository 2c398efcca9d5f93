#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that its program changes while it is sent ahead of the stop: afterwards it holds what the program wrote last.

    during_test.py STAGE PROGRAM      STAGE: what make stage leaves; PROGRAM: during
"""

import os
import subprocess
import sys

from moves_harness import TIMEOUT_S, TcpCase, command, gantry, telling, wait_until

TcpCase.stage, TcpCase.path = (os.path.abspath(p) for p in sys.argv[1:3])
# The image has 16 MiB, of which at most 4 are read ahead of what is sent: its end is read a second later than its beginning.
SLOWLY = ("--bandwidth", "8M")


class During(TcpCase):
    def start(self, daemon, *words, connect=None):
        env = daemon.program_env()
        if connect:
            env["GANTRY_CONNECT"] = connect
        program = subprocess.Popen([self.path, *words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "goes")
        return program

    def say(self, program, answer):
        program.stdin.write("on\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline().strip(), answer)

    def migrate(self, daemon, program, *words):
        """The program changes its memory when some of it has been sent, and compares it afterwards."""
        vgpu = daemon.vgpus()[0]["id"]
        asked = subprocess.Popen(command(daemon, words[0], "--json", vgpu, *words[1:], *SLOWLY), stdout=subprocess.PIPE, text=True)
        self.addCleanup(asked.kill)
        self.assertTrue(wait_until(lambda: daemon.vgpus()[0].get("moving", {}).get("done_bytes", 0) > 0, TIMEOUT_S))
        self.say(program, "changed")
        self.assertEqual(daemon.vgpus()[0]["moving"]["phase"], "ahead")
        out, _ = asked.communicate(timeout=TIMEOUT_S)
        self.assertEqual(asked.returncode, 0, out)
        self.say(program, "right")
        self.assertEqual(program.wait(timeout=TIMEOUT_S), 0)
        self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))  # else the next program's is not the first one

    def test_local(self):
        daemon = self.daemon("a")
        for kind in ("plain", "deep", "layers"):
            with self.subTest(kind=kind):
                self.migrate(daemon, self.start(daemon, kind, connect=daemon.address), "migrate", "local")

    def test_mode(self):
        daemon = self.daemon("a", passthrough=True)
        program = self.start(daemon, "plain", connect=daemon.address)
        self.migrate(daemon, program, "mode", "remote")

    def test_other_gantryd(self):
        a, b = self.daemon("a"), self.daemon("b")
        self.migrate(a, self.start(a, "plain", connect=a.address), "migrate", b.address)

    def test_over_tcp(self):
        a, b = self.daemon("a"), self.daemon("b")
        self.migrate(a, self.start(a, "deep", "nosvm", connect=a.tcp_address), "migrate", b.tcp_address)

    def test_two_rounds(self):
        daemon = self.daemon("a")
        self.migrate(daemon, self.start(daemon, "plain", connect=daemon.address), "migrate", "local", "--rounds", "2")


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[3:])
