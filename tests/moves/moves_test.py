#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs are moved to new workers while they run: what they compute is what they compute undisturbed, and when a move
fails they go on where they were.

    moves_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import json
import os
import signal
import subprocess
import sys

from moves_harness import Daemon, Load, MovesCase, STEPS, TIMEOUT_S, command, gantry, telling, wait_until

STAGE, PROGRAM, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])


class Moves(MovesCase):
    def vgpu(self, daemon):
        vgpus = gantry(daemon, "ls")[1]["vgpus"]
        self.assertEqual(len(vgpus), 1)
        return vgpus[0]

    def move(self, daemon):
        before = self.vgpu(daemon)
        status, said = gantry(daemon, "migrate", before["id"][:6], "local")
        self.assertEqual(status, 0, said)
        after = self.vgpu(daemon)
        self.assertEqual(said["move"]["result"], "moved")
        self.assertEqual(before["id"], after["id"])
        self.assertNotEqual(before["worker_pid"], after["worker_pid"])
        self.assertGreater(said["move"]["downtime_ns"], 0)
        return said["move"]

    def test_something_of_each_kind(self):
        with Daemon(STAGE, self.work) as daemon:
            program = subprocess.Popen([PROGRAM], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(program.kill)
            lines = []
            for name in STEPS:
                line = program.stdout.readline().strip()
                self.assertEqual(line, name)
                self.move(daemon)
                self.move(daemon)
                program.stdin.write("on\n")
                program.stdin.flush()
            lines, _ = program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(lines.split("\n"), ["kernel says 42", "right", ""])
            self.assertEqual(program.returncode, 0)

    def test_a_load_that_runs(self):
        with Daemon(STAGE, self.work) as daemon:
            for load in ("matrixmul", "histogram", "scan"):
                with self.subTest(load=load):
                    program = Load(LOAD, load, daemon.program_env())
                    self.addCleanup(program.kill)
                    self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                    for _ in range(7):
                        self.move(daemon)
                    self.assertIsNone(program.ends_well())
                    self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_what_is_asked_wrongly_changes_nothing(self):
        with Daemon(STAGE, self.work) as daemon:
            program = subprocess.Popen([PROGRAM], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(program.kill)
            self.assertEqual(program.stdout.readline().strip(), "buffers")
            before = self.vgpu(daemon)
            for words, fails_with, what in ((("migrate", "zz", "local"), 1, "no vGPU"),
                                            (("migrate", before["id"], "moon:1"), 2, "is not a destination"),
                                            (("migrate", before["id"], "moon"), 2, "is not a destination")):
                status, said = gantry(daemon, *words)
                self.assertEqual(status, fails_with)
                self.assertIn(what, json.dumps(said["error"]))
            self.assertEqual(self.vgpu(daemon)["worker_pid"], before["worker_pid"])
            out, _ = program.communicate("on\n" * 8, timeout=TIMEOUT_S)
            self.assertTrue(out.endswith("right\n"), out)

    def test_interrupted_it_says_that_the_move_goes_on(self):
        with Daemon(STAGE, self.work) as daemon:
            program = subprocess.Popen([PROGRAM], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(program.kill)
            self.assertEqual(program.stdout.readline().strip(), "buffers")
            before = self.vgpu(daemon)
            os.kill(before["worker_pid"], signal.SIGSTOP)  # it is on its way as long as we like
            asked = subprocess.Popen(command(daemon, "migrate", "--json", before["id"], "local"), stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            self.assertTrue(wait_until(lambda: self.vgpu(daemon)["state"] == "moving", TIMEOUT_S))
            asked.send_signal(signal.SIGINT)
            out, errors = asked.communicate(timeout=TIMEOUT_S)
            os.kill(before["worker_pid"], signal.SIGCONT)
            self.assertEqual(asked.returncode, 1)
            self.assertEqual(errors, "gantry migrate: interrupted: gantryd continues the migration; gantry ls shows its progress\n")
            self.assertEqual(json.loads(out)["error"]["why"], "gantryd continues the migration")
            self.assertTrue(wait_until(lambda: self.vgpu(daemon)["state"] != "moving", TIMEOUT_S))
            self.assertNotEqual(self.vgpu(daemon)["worker_pid"], before["worker_pid"])
            out, _ = program.communicate("on\n" * 8, timeout=TIMEOUT_S)
            self.assertTrue(out.endswith("right\n"), out)

    def test_the_program_ends_meanwhile(self):
        with Daemon(STAGE, self.work) as daemon:
            program = subprocess.Popen([PROGRAM], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.assertEqual(program.stdout.readline().strip(), "buffers")
            asked = subprocess.Popen(command(daemon, "migrate", self.vgpu(daemon)["id"], "local"), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            program.send_signal(signal.SIGKILL)
            program.communicate(timeout=TIMEOUT_S)
            asked.wait(timeout=TIMEOUT_S)  # moved, or told why not; Daemon looks that nothing is left


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[4:])
