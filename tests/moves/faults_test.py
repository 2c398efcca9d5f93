#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever takes part in a checkpoint is killed at each of its named points: the program goes on where it was, or waits and is restored, or,
when its worker or gantryd was killed before it was decided, is told that its vGPU is lost. Never two of them, never none. The build must
have the points: -Dfaults=true.

    faults_test.py STAGE PROGRAM
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from moves_harness import (STEPS, TIMEOUT_S, Daemon, Program, command, gantry, telling, start_again, wait_until)  # noqa: E402

STAGE, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-checkpoint-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.files = os.path.join(folder.name, "files")
        os.mkdir(self.files)
        self.file = os.path.join(self.files, "a.ckpt")

    def program(self, daemon):
        program = Program(PROGRAM, daemon)
        self.addCleanup(program.kill)
        self.assertEqual(program.at(), STEPS[0])
        return program

    def ends_well(self, program, first=0):
        for step in STEPS[first:]:
            if step != STEPS[0]:
                self.assertEqual(program.at(), step)
            program.on()
        self.assertIsNone(program.ends_well())

    def is_lost(self, daemon, program, said):
        """It is told so: no call waits for ever. `said`: by gantry, before."""
        out, _ = program.process.communicate("on\n" * 8, timeout=TIMEOUT_S)
        self.assertNotIn("right", out, said)
        self.assertIn("wrong", out, said)
        self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_gantry_is_killed(self):
        """Before the decision the program goes on, and gantryd needs nobody to say so; after it the file is whole."""
        with Daemon(STAGE, self.work) as daemon:
            for point, stopped in (("ctl-before-keep", False), ("ctl-kept", True), ("ctl-before-rename", True)):
                with self.subTest(point):
                    program = self.program(daemon)
                    vgpu = daemon.vgpus()[0]
                    status, _ = gantry(daemon, "checkpoint", vgpu["id"], self.file, "--stop", env=dict(os.environ, GANTRY_FAULT=point))
                    self.assertEqual(status, -9)
                    left = os.listdir(self.files)
                    self.assertEqual(len(left), 1)
                    path = os.path.join(self.files, left[0])
                    if stopped:
                        self.assertEqual(daemon.vgpus()[0]["state"], "stopped")
                        self.assertEqual(gantry(daemon, "restore", path)[0], 0)
                    else:
                        self.assertTrue(wait_until(lambda: daemon.vgpus()[0]["state"] in ("running", "idle"), TIMEOUT_S))
                        self.assertEqual(daemon.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
                        self.assertEqual(gantry(daemon, "restore", path)[0], 1)
                    os.unlink(path)
                    self.ends_well(program)
                    self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_the_program_ends_before_its_file_is_kept(self):
        """gantry is told so, once, and by its own question."""
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            save = subprocess.Popen(command(daemon, "checkpoint", "--json", daemon.vgpus()[0]["id"], self.file, "--stop"),
                                    stdout=subprocess.PIPE, text=True, env=dict(os.environ, GANTRY_HOLD="ctl-before-keep"))
            self.addCleanup(save.kill)
            self.assertTrue(wait_until(lambda: os.listdir(self.files), TIMEOUT_S))
            program.kill()
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))
            save.send_signal(signal.SIGCONT)
            out, _ = save.communicate(timeout=TIMEOUT_S)
            self.assertEqual(save.returncode, 1)
            self.assertIn("no vGPU waits for this file", json.loads(out)["error"]["why"])
            self.assertEqual(os.listdir(self.files), [])

    def test_gantry_is_killed_before_its_file_has_a_name(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            vgpu = daemon.vgpus()[0]
            for point, more in (("ctl-received", ()), ("ctl-received", ("--stop",)), ("ctl-before-rename", ())):
                with self.subTest(point, more=more):
                    status, _ = gantry(daemon, "checkpoint", vgpu["id"], self.file, *more, env=dict(os.environ, GANTRY_FAULT=point))
                    self.assertEqual(status, -9)
                    self.assertEqual(os.listdir(self.files), [])
                    self.assertTrue(wait_until(lambda: daemon.vgpus()[0]["state"] in ("running", "idle"), TIMEOUT_S))
            self.ends_well(program)

    def test_the_worker_is_killed(self):
        """The environment is the template's, so every worker has it: the first to come to its point ends."""
        for point in ("move-begun", "move-held", "move-quiet", "move-handed", "save-contents", "move-saved"):
            for stop in ((), ("--stop",)):
                with self.subTest(point, stop=stop), Daemon(STAGE, self.work, env={"GANTRY_FAULT": point}) as daemon:
                    program = self.program(daemon)
                    status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], self.file, *stop)
                    self.assertEqual(status, 1, said)
                    self.assertEqual(os.listdir(self.files), [])
                    self.is_lost(daemon, program, said)

    def test_the_new_worker_is_killed(self):
        for point in ("worker-boot-received:2", "worker-driver-up", "load-begun", "load-entry", "load-contents", "load-done"):
            with self.subTest(point), Daemon(STAGE, self.work) as daemon:
                program = self.program(daemon)
                images = point == "load-contents"  # a buffer's lie with the program
                if images:
                    program.on()
                    self.assertEqual(program.at(), STEPS[1])
                vgpu = daemon.vgpus()[0]
                self.assertEqual(gantry(daemon, "checkpoint", vgpu["id"], self.file, "--stop")[0], 0)
                daemon.extra_env["GANTRY_FAULT"] = point.split(":")[0]
                start_again(daemon)
                self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                status, said = gantry(daemon, "restore", self.file)
                self.assertEqual(status, 1, said)
                self.assertTrue(wait_until(lambda: daemon.vgpus()[0]["state"] == "stopped", TIMEOUT_S))
                del daemon.extra_env["GANTRY_FAULT"]
                start_again(daemon)
                self.assertEqual(gantry(daemon, "restore", self.file)[0], 0)
                if images:
                    program.on()
                self.ends_well(program, 2 if images else 0)

    def test_gantryd_is_killed_while_it_saves(self):
        """Its workers die with it: before the decision that is the program's loss, after it nothing is lost. gantry keeps a whole file where
        it cannot know which it was."""
        for point, stopped, n_left in (("daemon-before-save", False, 0), ("daemon-checkpoint-saved", False, 0),
                                       ("daemon-before-stop", False, 1), ("daemon-stopped", True, 1)):
            with self.subTest(point), Daemon(STAGE, self.work, env={"GANTRY_FAULT": point}) as daemon:
                program = self.program(daemon)
                vgpu = daemon.vgpus()[0]
                status, said = gantry(daemon, "checkpoint", vgpu["id"], self.file, "--stop")
                self.assertEqual(status, 1, said)
                daemon.process.wait()
                del daemon.extra_env["GANTRY_FAULT"]
                start_again(daemon)
                left = [os.path.join(self.files, name) for name in os.listdir(self.files)]
                self.assertEqual(len(left), n_left)
                for path in left:
                    self.assertIn(path, said["error"]["why"])
                if stopped:
                    self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                    self.assertEqual(gantry(daemon, "restore", left[0])[0], 0)
                    self.ends_well(program)
                else:
                    self.is_lost(daemon, program, said)
                    self.assertEqual([gantry(daemon, "restore", path)[0] for path in left], [1] * n_left)
                for path in left:
                    os.unlink(path)

    def test_gantryd_is_killed_while_it_restores(self):
        """Until the program is told, it waits on; from then on it has a worker, which dies with gantryd."""
        for point, told in (("daemon-restore-begun", False), ("daemon-before-commit", False), ("daemon-program-told", True),
                            ("daemon-committed", True)):
            with self.subTest(point), Daemon(STAGE, self.work) as daemon:
                program = self.program(daemon)
                vgpu = daemon.vgpus()[0]
                self.assertEqual(gantry(daemon, "checkpoint", vgpu["id"], self.file, "--stop")[0], 0)
                daemon.extra_env["GANTRY_FAULT"] = point
                start_again(daemon)
                self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                self.assertEqual(gantry(daemon, "restore", self.file)[0], 1)
                daemon.process.wait()
                del daemon.extra_env["GANTRY_FAULT"]
                start_again(daemon)
                if told:
                    status, said = gantry(daemon, "restore", self.file)
                    self.assertEqual(status, 1, said)
                    self.is_lost(daemon, program, said)
                else:
                    self.assertEqual(gantry(daemon, "restore", self.file)[0], 0)
                    self.ends_well(program)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[3:])
