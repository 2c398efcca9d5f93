#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever takes part in a live move is killed at each of its named points. The new worker: the program goes on where it was, and ends as it
would have undisturbed. The old one, or gantryd: the program is told that its vGPU is lost; nobody waits for ever, nothing is left. The
build must have the points: -Dfaults=true.

    live_faults_test.py STAGE PROGRAM      PROGRAM: busy
"""

import os
import subprocess
import sys

from moves_harness import BusyCase, Daemon, TIMEOUT_S, command, telling, wait_until

BusyCase.stage, BusyCase.path = (os.path.abspath(p) for p in sys.argv[1:3])


class LiveFaults(BusyCase):
    def move(self, daemon, vgpu, *how):
        """Asked again as long as the old worker has not heard of the end of the move before."""
        said = None
        while said is None or "has not ended an earlier move" in said:
            done = subprocess.run(command(daemon, "migrate", vgpu, "local", *how), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            said = done.stderr
        return done.returncode, said

    def test_the_new_worker_is_killed(self):
        """The environment is the template's: each new worker comes to its point and ends."""
        for point in ("load-begun", "load-device", "load-entry", "load-entry:30", "load-contents", "load-contents:20", "load-done",
                      "load-last"):
            with self.subTest(point):
                with Daemon(self.stage, self.work, env={"GANTRY_FAULT": point}) as daemon:
                    program = self.start(daemon, "all")
                    vgpu = daemon.vgpus()[0]
                    for how in ((), ("--rounds", "2"), ("--stop-and-copy",)):
                        status, said = self.move(daemon, vgpu["id"], *how)
                        self.assertEqual(status, 1, said)
                        self.assertIn("goes on where it was", said)
                    self.assertEqual(daemon.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
                    disturbed = self.end(program)
                    self.assertEqual(self.end(self.start(daemon, "all", disturbed[0])), disturbed)

    def test_what_is_gone_is_taken_back_or_nothing(self):
        """A point that is met only when something has ended meanwhile: the move fails, or had nothing to take back."""
        with Daemon(self.stage, self.work, env={"GANTRY_FAULT": "load-gone"}) as daemon:
            program = self.start(daemon, "all")
            failed = False
            while not failed:
                status, said = self.move(daemon, daemon.vgpus()[0]["id"], "--rounds", "2", "--bandwidth", "30M")
                failed = status == 1
                self.assertTrue(status == 0 or "goes on where it was" in said, said)
            disturbed = self.end(program)
            self.assertEqual(self.end(self.start(daemon, "all", disturbed[0])), disturbed)

    def lost(self, daemon, program):
        out, _ = program.communicate("on\n", timeout=TIMEOUT_S)
        self.assertIn("wrong", out)
        self.assertEqual(program.returncode, 1)

    def test_the_old_worker_is_killed(self):
        for point in ("move-begun", "move-handed", "move-devices", "save-contents", "move-ahead", "move-held", "move-quiet", "save-contents:2", "move-told", "move-saved",
                      "load-go"):
            with self.subTest(point), Daemon(self.stage, self.work, env={"GANTRY_FAULT": point}) as daemon:
                program = self.start(daemon, "all")
                status, said = self.move(daemon, daemon.vgpus()[0]["id"])
                # Killed when it has taken over, it is a worker that dies at any other time.
                self.assertEqual(status, 0 if point == "load-go" else 1, said)
                self.lost(daemon, program)
                self.assertTrue(wait_until(lambda d=daemon: not d.vgpus(), TIMEOUT_S))

    def test_gantryd_is_killed(self):
        for point in ("daemon-before-save", "daemon-before-commit", "daemon-committed"):
            with self.subTest(point):
                daemon = Daemon(self.stage, self.work, env={"GANTRY_FAULT": point})
                with daemon:
                    program = self.start(daemon, "all")
                    self.assertEqual(self.move(daemon, daemon.vgpus()[0]["id"])[0], 1)
                    daemon.process.wait(timeout=TIMEOUT_S)
                    self.lost(daemon, program)
                    # Another one takes its place, and is what is looked at in the end.
                    del daemon.extra_env["GANTRY_FAULT"]
                    daemon.__enter__()


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[3:])
