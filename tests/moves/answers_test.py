#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No answer changes: every query about objects of every kind is answered alike before and after each kind of move. Nor
does the program's stderr say again why a program that is made anew did not build.

    answers_test.py STAGE PROGRAM      STAGE: the staged tree; PROGRAM: answers
"""

import difflib
import os
import sys

from moves_harness import FarCase, TIMEOUT_S, gantry, telling, wait_until

FarCase.stage, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])
LEAST = 8000    # so many questions at least


class Answers(FarCase):
    def asked(self, program):
        program.stdin.write("ask\n")
        program.stdin.flush()
        lines = []
        for line in program.stdout:
            if line == ".\n":
                break
            lines.append(line.rstrip("\n"))
        self.assertGreater(len(lines), LEAST, lines[-3:])
        return lines

    def same(self, program, before, what):
        after = self.asked(program)
        changed = [line for line in difflib.unified_diff(before, after, lineterm="", n=0)
                   if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        self.assertEqual(changed, [], "after " + what)

    def ends(self, program, *daemons):
        program.stdin.write("end\n")
        program.stdin.flush()
        self.assertEqual(program.wait(TIMEOUT_S), 0)
        for daemon in daemons:
            self.assertTrue(wait_until(lambda d=daemon: not d.vgpus(), TIMEOUT_S))

    def does(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, said)

    def program_at(self, daemon, shared="svm", connect=None):
        with open(os.path.join(self.work, "stderr"), "w", encoding="utf-8") as stderr:
            program = self.start(daemon, PROGRAM, shared, connect=connect, stderr=stderr)
        before = self.asked(program)
        self.complaint = self.complaints()
        self.assertNotEqual(self.complaint, "")
        return program, before, daemon.vgpus()[0]["id"]

    def complaints(self):
        with open(os.path.join(self.work, "stderr"), encoding="utf-8") as stderr:
            return stderr.read()

    def on_this_machine(self, devices, *ways):
        env = {"POCL_DEVICES": devices}
        a, b = self.here("a", env=env), self.here("b", env=env)
        path = os.path.join(self.work, "v.gnc")
        program, before, vgpu = self.program_at(a)
        self.same(program, before, "nothing")
        for way in ways:
            self.does(a, "migrate", vgpu, "local", *way)
            self.same(program, before, " ".join(("a local move", *way)))
        self.does(a, "migrate", vgpu, b.address)
        self.same(program, before, "a move to another gantryd")
        self.does(b, "migrate", vgpu, a.address)
        self.same(program, before, "the move back")
        self.does(a, "checkpoint", vgpu, path, "--stop")
        self.does(a, "restore", path)
        self.same(program, before, "a checkpoint and its restoration")
        self.assertEqual(self.complaints(), self.complaint)
        self.ends(program, a, b)

    def test_one_device(self):
        self.on_this_machine("pthread", (), ("--stop-and-copy",), ("--rounds", "2"))

    def test_two_devices(self):
        self.on_this_machine("pthread basic", ())

    def test_into_the_program_and_back(self):
        a = self.here("a")
        a.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        program, before, vgpu = self.program_at(a)
        for mode in ("passthrough", "remote", "passthrough", "remote"):
            self.does(a, "mode", vgpu, mode)
            self.same(program, before, "a switch to " + mode)
        self.ends(program, a)

    def test_over_tcp(self):
        a, b = self.here("a"), self.here("b")
        path = os.path.join(self.work, "v.gnc")
        program, before, vgpu = self.program_at(a, "plain", connect=a.tcp_address)
        self.does(a, "migrate", vgpu, b.tcp_address)
        self.same(program, before, "a move over tcp")
        self.does(b, "migrate", vgpu, a.tcp_address)
        self.same(program, before, "the move back")
        self.does(a, "migrate", vgpu, "local")
        self.same(program, before, "a local move")
        self.assertEqual(self.complaints(), self.complaint)
        self.ends(program, a, b)
        program, before, vgpu = self.program_at(a, "plain", connect=a.tcp_address)
        self.does(a, "checkpoint", vgpu, path, "--stop")
        self.does(a, "restore", path)
        self.same(program, before, "a checkpoint and its restoration")
        self.ends(program, a)

    def test_away_from_its_memory(self):
        a, b = self.here("a"), self.here("b")
        program, before, vgpu = self.program_at(a, "plain")
        self.does(a, "migrate", vgpu, b.tcp_address)
        self.same(program, before, "a move out of shared memory")
        self.does(b, "migrate", vgpu, a.tcp_address)
        self.same(program, before, "the move back into it")
        self.ends(program, a, b)


if __name__ == "__main__":
    telling.main(FarCase.stage, sys.argv[3:])
