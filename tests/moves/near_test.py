#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs have gone to another machine and come back to theirs: they share their memory with them again. What they compute is what
they compute undisturbed. (All of it is one machine here: what comes back is told by the kernel's id, and by the socket that is there.)

    near_test.py STAGE PROGRAM BUSY SHARING LOAD WANDERER    as far_test.py
"""

import os
import sys

from moves_harness import FarCase, Load, STEPS, TIMEOUT_S, TcpCase, gantry, telling, wait_until

TcpCase.stage, TcpCase.path, BUSY, SHARING, LOAD, WANDERER = (os.path.abspath(p) for p in sys.argv[1:7])
TOKEN = "blue-has-a-token-that-is-long-enough"
HOWS = ((), ("--stop-and-copy",), ("--rounds", "2"))


class Near(FarCase):
    def home(self, daemon):
        """By what its programs attach."""
        return daemon.address

    def away(self, here, there, *how):
        self.move(here, there, *how)

    def back(self, here, there, *how):
        self.move(here, there, *how, link="tcp", then="shm")

    def nobody_is_left(self, *daemons):
        self.assertTrue(wait_until(lambda: not any(d.vgpus() for d in daemons), TIMEOUT_S))

    def test_there_and_back_at_each_step(self):
        a, b = self.here(), self.daemon("b")
        for how in HOWS:
            with self.subTest(how=how):
                program = self.shared(a)
                for name in STEPS:
                    self.assertEqual(program.at(), name)
                    self.away(a, b, *how)
                    self.back(b, a, *how)
                    program.on()
                self.assertIsNone(program.ends_well())
                self.nobody_is_left(a, b)

    def test_from_step_to_step(self):
        """One step over there, the next one here."""
        a, b = self.here(), self.daemon("b")
        for first in (0, 1):
            with self.subTest(first=first):
                program = self.shared(a)
                for i, name in enumerate(STEPS):
                    self.assertEqual(program.at(), name)
                    if (i + first) % 2:
                        self.away(a, b, *HOWS[i % 3])
                    elif b.vgpus():
                        self.back(b, a, *HOWS[i % 3])
                    program.on()
                self.assertIsNone(program.ends_well())
                self.nobody_is_left(a, b)

    def test_all_that_writes(self):
        """With buffers that lay in memory which the program wrote by itself, until they went; while it works."""
        a, b = self.here(), self.daemon("b")
        for what in ("home", "all"):
            for how in HOWS:
                with self.subTest(what=what, how=how):
                    program = self.start(a, BUSY, what)
                    self.assertEqual(program.stdout.readline().strip(), "goes")
                    for _ in range(3):
                        self.away(a, b, *how)
                        self.back(b, a, *how)
                    disturbed, _ = program.communicate("on\n", timeout=TIMEOUT_S)
                    self.assertEqual(program.returncode, 0, disturbed)
                    program = self.start(a, BUSY, what, disturbed.split("\n")[0])
                    self.assertEqual(program.stdout.readline().strip(), "goes")
                    self.assertEqual(program.communicate(timeout=TIMEOUT_S)[0], disturbed)
                    self.nobody_is_left(a, b)

    def test_loads_that_run(self):
        a, b = self.here(), self.daemon("b")
        for load in ("matrixmul", "histogram", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, dict(a.program_env(), GANTRY_CONNECT=self.home(a)))
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                for _ in range(4):
                    self.away(a, b)
                    self.back(b, a)
                self.assertIsNone(program.ends_well())
                self.nobody_is_left(a, b)

    def test_many_messages(self):
        """Lists of commands that nobody answers, longer than a record: sent over there, and put into the ring here."""
        a, b = self.here(), self.daemon("b")
        program = self.start(a, WANDERER)
        self.assertEqual(program.stdout.readline(), "ready 0\n")
        self.away(a, b)
        program.stdin.write("list 70000\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "0\n")
        self.back(b, a)
        words = ["list 5000", "list 70000", "rounds 3"]
        out, _ = program.communicate("".join(w + "\n" for w in words), timeout=TIMEOUT_S)
        self.assertEqual((out.split(), program.returncode), (["0"] * len(words), 0))

    def test_what_can_be_done_with_it_then(self):
        """It is one that shares its program's memory as any does: moved here, stopped into a file, and sent away again."""
        a, b = self.here(), self.daemon("b")
        file = os.path.join(self.work, "a.ckpt")
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        for _ in range(2):
            self.away(a, b)
            self.back(b, a)
            vgpu = a.vgpus()[0]["id"]
            for words in (("migrate", vgpu, "local"), ("checkpoint", vgpu, file, "--stop"), ("restore", file)):
                status, said = gantry(a, *words)
                self.assertEqual(status, 0, said)
            self.assertEqual([v["link"] for v in a.vgpus()], ["shm"])
            os.unlink(file)
        self.ends_well(program)

    def test_to_a_third_one(self):
        """Not where it came from, but on the program's machine as well."""
        a, b, c = self.here(), self.daemon("b"), self.daemon("c")
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        self.away(a, b)
        self.back(b, c)
        self.ends_well(program)

    def test_with_tls(self):
        config = self.private("a.conf", "[tenant default]\ntoken-file = {}\n".format(self.private("token", TOKEN + "\n")))
        token = os.path.join(self.work, "token")
        a, b = (self.daemon(name, "--config", config, insecure=False) for name in ("a", "b"))
        program = self.shared(a, GANTRY_TOKEN=TOKEN)
        self.assertEqual(program.at(), STEPS[0])
        for _ in range(2):
            self.away(a, b, "--token-file", token)
            self.back(b, a, "--token-file", token)
        self.ends_well(program)

    def test_where_it_stays_on_tcp(self):
        """Since somebody wants it so; or since there is no socket that the program could reach."""
        a, b = self.here(), self.daemon("b")
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        self.away(a, b)
        self.move(b, a, "--link", "tcp", link="tcp")
        path = b.address.split(":", 1)[1]
        os.rename(path, path + ".away")
        status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address)
        os.rename(path + ".away", path)
        self.assertEqual(status, 0, said)
        self.assertEqual([v["link"] for v in b.vgpus()], ["tcp"])
        self.ends_well(program)


class NearFromTcp(Near):
    """The same with programs that have attached over tcp, until they share their memory for the first time."""

    def shared(self, daemon, **env):
        return self.program(daemon, MOVED_WITHOUT_SVM="1", **env)

    def home(self, daemon):
        return daemon.tcp_address

    def start(self, daemon, *words):
        return super().start(daemon, *words, connect=self.home(daemon))

    def away(self, here, there, *how):
        if here.vgpus()[0]["link"] == "tcp":
            self.move(here, there, "--link", "tcp", *how, link="tcp")
        else:
            super().away(here, there, *how)

    def test_for_the_first_time_at_each_step(self):
        """And with whatever shared virtual memory there is: none, however early it is asked for."""
        a, b = self.here(), self.daemon("b")
        for how in HOWS:
            for first in STEPS:
                with self.subTest(how=how, first=first):
                    program = self.program(a)
                    for name in STEPS:
                        self.assertEqual(program.at(), name)
                        if name == first:
                            self.back(a, b, *how)
                        program.on()
                    self.assertIsNone(program.ends_well())
                    self.nobody_is_left(a, b)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[7:])
