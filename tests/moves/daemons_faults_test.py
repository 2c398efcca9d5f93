#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever takes part in a move to another gantryd is killed at each of its named points. The vGPU is in the end at the one or at the other,
and its program ends as it would have undisturbed; unless the gantryd that has it has died, as at any other time: then the program is told.
Never at both, and nobody waits for ever. The build must have the points: -Dfaults=true.

    daemons_faults_test.py STAGE PROGRAM      PROGRAM: moved
"""

import os
import signal
import subprocess
import sys

from moves_harness import KilledBetweenTwo, MovesCase, TIMEOUT_S, command, gantry, holds, telling, wait_until

MovesCase.stage, MovesCase.path = (os.path.abspath(p) for p in sys.argv[1:3])


class Faults(KilledBetweenTwo, MovesCase):
    new_worker = ("worker-boot-received", "worker-driver-up", "load-begun", "load-entry", "load-contents", "load-last", "load-done")

    def pair(self, here=None, there=None):
        """Two gantryds, and where each is to be killed."""
        def env(point):
            return {"GANTRY_FAULT": point} if point else None
        return self.not_started("a", env=env(here)), self.not_started("b", env=env(there))

    def test_the_old_worker_is_killed(self):
        """Before it has said that all is written: the program is told that its vGPU is lost, and none is left at the other one."""
        for point in ("move-begun", "move-handed", "move-ahead", "move-held", "move-quiet", "move-told", "move-saved"):
            a, b = self.pair(here=point)
            with self.subTest(point), a, b:
                program = self.at_first(a)
                status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
                self.assertEqual(status, 1, said)
                self.assertIn("the vGPU is lost", said["error"]["why"])
                self.is_lost(a, program)
                self.assertTrue(wait_until(lambda d=b: not d.vgpus(), TIMEOUT_S))
                self.assertNotIn("broke the protocol", b.log())

    def test_the_other_gantryd_is_killed_when_it_has_it(self):
        for point in ("daemon-before-go", "daemon-gone-over"):
            a, b = self.pair(there=point)
            with self.subTest(point), a, b:
                program = self.at_first(a)
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
                program = self.at_first(a)
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
                program = self.at_first(a, GANTRY_FAULT=point)
                gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
                program.process.wait(timeout=TIMEOUT_S)

    def test_a_gantryd_that_is_emptied_meanwhile_takes_no_program_in(self):
        """The program comes with its ticket after the other gantryd has begun to drain."""
        a, b = self.pair()
        with a, b:
            program = self.at_first(a, GANTRY_HOLD="program-move-told")
            before = a.vgpus()
            move = subprocess.Popen(command(a, "migrate", "--quiet", before[0]["id"], b.address), stderr=subprocess.PIPE, text=True)
            self.addCleanup(lambda: (move.kill(), move.wait(), move.stderr.close()))
            self.assertTrue(wait_until(lambda: holds(program.process.pid), TIMEOUT_S))
            self.assertEqual(self.drain(b, a, 0), {})
            program.process.send_signal(signal.SIGCONT)
            _, errors = move.communicate(timeout=TIMEOUT_S)
            self.assertEqual(move.returncode, 1)
            self.assertIn("is draining itself", errors)
            self.assertEqual([(v["id"], v["worker_pid"]) for v in a.vgpus()], [(before[0]["id"], before[0]["worker_pid"])])
            self.assertEqual(b.vgpus(), [])
            self.ends_well(program)


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[3:])
