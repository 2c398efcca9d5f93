#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever takes part in a move to another gantryd is killed at each of its named points. The vGPU is in the end at the one or at the other,
and its program ends as it would have undisturbed; unless the gantryd that has it has died, as at any other time: then the program is told.
Never at both, and nobody waits for ever. The build must have the points: -Dfaults=true.

    daemons_faults_test.py STAGE PROGRAM      PROGRAM: moved
"""

import os
import sys
import tempfile
import unittest

from moves_harness import Daemon, Program, STEPS, TIMEOUT_S, gantry, telling, start_again, wait_until

STAGE, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-daemons-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def pair(self, here=None, there=None):
        """Two gantryds, and where each is to be killed."""
        def env(point):
            return {"GANTRY_FAULT": point} if point else None
        return Daemon(STAGE, os.path.join(self.work, "a"), env=env(here)), Daemon(STAGE, os.path.join(self.work, "b"), env=env(there))

    def program(self, daemon, env=None):
        program = Program(PROGRAM, daemon, env=env)
        self.addCleanup(program.kill)
        self.assertEqual(program.at(), STEPS[0])
        return program

    def ends_well(self, program):
        for step in STEPS[1:]:
            program.on()
            self.assertEqual(program.at(), step)
        program.on()
        self.assertIsNone(program.ends_well())

    def is_lost(self, daemon, program):
        out, _ = program.process.communicate("on\n" * 8, timeout=TIMEOUT_S)
        self.assertNotIn("right", out)
        self.assertIn("wrong", out)
        self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def again(self, daemon):
        """In the place of one that was killed, so that there is something to look at in the end."""
        daemon.process.wait(timeout=TIMEOUT_S)
        daemon.extra_env.pop("GANTRY_FAULT", None)
        start_again(daemon)

    def test_the_new_worker_is_killed(self):
        for point in ("worker-boot-received", "worker-driver-up", "load-begun", "load-entry", "load-contents", "load-last", "load-done"):
            a, b = self.pair(there=point)
            with self.subTest(point), a, b:
                program = self.program(a)
                program.on()  # images, whose contents travel
                self.assertEqual(program.at(), STEPS[1])
                before = a.vgpus()[0]
                for how in ((), ("--stop-and-copy",)):
                    status, said = gantry(a, "migrate", before["id"], b.address, *how)
                    self.assertEqual(status, 1, said)
                    self.assertIn("goes on where it was", said["error"]["why"])
                    self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] != "moving", TIMEOUT_S))
                    self.assertTrue(wait_until(lambda d=b: not d.vgpus(), TIMEOUT_S))
                self.assertEqual(a.vgpus()[0]["worker_pid"], before["worker_pid"])
                for step in STEPS[2:]:
                    program.on()
                    self.assertEqual(program.at(), step)
                program.on()
                self.assertIsNone(program.ends_well())

    def test_the_old_worker_is_killed(self):
        """Before it has said that all is written: the program is told that its vGPU is lost, and none is left at the other one."""
        for point in ("move-begun", "move-handed", "move-ahead", "move-held", "move-quiet", "move-told", "move-saved"):
            a, b = self.pair(here=point)
            with self.subTest(point), a, b:
                program = self.program(a)
                status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
                self.assertEqual(status, 1, said)
                self.assertIn("the vGPU is lost", said["error"]["why"])
                self.is_lost(a, program)
                self.assertTrue(wait_until(lambda d=b: not d.vgpus(), TIMEOUT_S))
                self.assertNotIn("broke the protocol", b.log())

    def test_the_other_gantryd_is_killed(self):
        for point in ("daemon-ticket-given", "daemon-claimed", "daemon-before-ready"):
            a, b = self.pair(there=point)
            with self.subTest(point), a, b:
                program = self.program(a)
                before = a.vgpus()[0]
                status, said = gantry(a, "migrate", before["id"], b.address)
                self.assertEqual(status, 1, said)
                self.again(b)
                self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] != "moving", TIMEOUT_S))
                self.assertEqual(a.vgpus()[0]["worker_pid"], before["worker_pid"])
                # And to one that lives, it goes.
                self.assertTrue(wait_until(lambda d=b, v=before: gantry(a, "migrate", v["id"], d.address)[0] == 0, TIMEOUT_S))
                self.ends_well(program)

    def test_the_other_gantryd_is_killed_when_it_has_it(self):
        for point in ("daemon-before-go", "daemon-gone-over"):
            a, b = self.pair(there=point)
            with self.subTest(point), a, b:
                program = self.program(a)
                status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
                self.assertEqual(status, 0, said)
                self.again(b)
                self.is_lost(b, program)
                self.assertEqual(a.vgpus(), [])

    def test_the_one_that_is_left_is_killed(self):
        for point, goes_on in (("daemon-before-move-told", False), ("daemon-before-save", False), ("daemon-before-leave", False),
                               ("daemon-leave-told", True), ("daemon-left", True)):
            a, b = self.pair(here=point)
            with self.subTest(point), a, b:
                program = self.program(a)
                self.assertEqual(gantry(a, "migrate", a.vgpus()[0]["id"], b.address)[0], 1)
                self.again(a)
                if goes_on:
                    self.assertTrue(wait_until(lambda d=b: len(d.vgpus()) == 1, TIMEOUT_S))
                    self.ends_well(program)
                else:
                    self.is_lost(a, program)
                    self.assertTrue(wait_until(lambda d=b: not d.vgpus(), TIMEOUT_S))

    def test_the_program_is_killed(self):
        """Nothing of it is left at either: what the Daemons look at in the end."""
        for point in ("program-move-told", "program-claimed", "program-before-go", "program-gone-over"):
            a, b = self.pair()
            with self.subTest(point), a, b:
                program = self.program(a, env={"GANTRY_FAULT": point})
                gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
                program.process.wait(timeout=TIMEOUT_S)

    def test_gantry_is_killed(self):
        a, b = self.pair()
        with a, b:
            program = self.program(a)
            status, _ = gantry(a, "migrate", a.vgpus()[0]["id"], b.address, env=dict(os.environ, GANTRY_FAULT="ctl-announced"))
            self.assertEqual(status, -9)
            self.assertEqual(len(a.vgpus()), 1)
            self.assertEqual(gantry(a, "migrate", a.vgpus()[0]["id"], b.address)[0], 0)
            self.ends_well(program)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[3:])
