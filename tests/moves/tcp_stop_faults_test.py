#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, and what dies or breaks while their vGPUs are put into files and taken out of them: the program goes on where
it was, or waits and is restored, or, when its worker or gantryd was killed before it was decided, is told that its vGPU is lost. Never two of them,
never none. The build must have the points: -Dfaults=true.

    tcp_stop_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import os
import signal
import subprocess
import sys
import time

from moves_harness import TIMEOUT_S, StopsCase, command, gantry, holds, start_again, telling, wait_until

StopsCase.stage, StopsCase.path, StopsCase.network = (os.path.abspath(p) for p in sys.argv[1:4])
GOES_ON = ("running", "idle")


class Faults(StopsCase):
    def state(self, daemon, *states):
        self.assertTrue(wait_until(lambda: [v["state"] for v in daemon.vgpus()] in [[s] for s in states], TIMEOUT_S), daemon.vgpus())

    def stopped(self, daemon, program=None):
        """A program whose vGPU is in a file."""
        program = program or self.at_first(daemon)
        self.assertEqual(gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], self.file, "--stop")[0], 0)
        return program

    def start_again(self, daemon, fault=None):
        daemon.extra_env.pop("GANTRY_FAULT", None)
        if fault:
            daemon.extra_env["GANTRY_FAULT"] = fault
        start_again(daemon)

    def left(self):
        return [os.path.join(self.files, name) for name in os.listdir(self.files)]

    def test_gantry_is_killed(self):
        """Before the decision the program goes on, and gantryd needs nobody to say so; after it the file is whole."""
        a = self.at_one_port()
        for point, stopped in (("ctl-before-keep", False), ("ctl-kept", True), ("ctl-before-rename", True)):
            with self.subTest(point):
                program = self.at_first(a)
                vgpu = a.vgpus()[0]
                status, _ = gantry(a, "checkpoint", vgpu["id"], self.file, "--stop", env=dict(os.environ, GANTRY_FAULT=point))
                self.assertEqual(status, -9)
                path, = self.left()
                self.state(a, *(("stopped",) if stopped else GOES_ON))
                self.assertEqual(a.vgpus()[0].get("worker_pid"), None if stopped else vgpu["worker_pid"])
                self.assertEqual(gantry(a, "restore", path)[0], 0 if stopped else 1)
                os.unlink(path)
                self.ends_well(program)
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_the_worker_is_killed(self):
        for point in ("move-begun", "move-held", "move-quiet", "move-handed", "save-contents", "move-saved"):
            with self.subTest(point), self.not_started("a", env={"GANTRY_FAULT": point}) as a:
                program = self.at_first(a)
                status, said = gantry(a, "checkpoint", a.vgpus()[0]["id"], self.file, "--stop")
                self.assertEqual(status, 1, said)
                self.assertEqual(self.left(), [])
                self.is_lost(a, program)

    def test_the_worker_dies_when_all_is_written(self):
        """Nobody needs it any more, if its file comes to be."""
        a = self.at_one_port()
        for keeps in (True, False):
            with self.subTest(keeps=keeps):
                program = self.at_first(a)
                vgpu = a.vgpus()[0]
                save = subprocess.Popen(command(a, "checkpoint", vgpu["id"], self.file, "--stop"), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=dict(os.environ, GANTRY_HOLD="ctl-before-keep"))
                self.addCleanup(save.kill)
                self.assertTrue(wait_until(lambda pid=save.pid: holds(pid), TIMEOUT_S))
                os.kill(vgpu["worker_pid"], signal.SIGKILL)
                self.assertTrue(wait_until(lambda: "worker_pid" not in a.vgpus()[0], TIMEOUT_S))
                time.sleep(0.5)  # and its program has asked for its session, and will again
                save.send_signal(signal.SIGCONT if keeps else signal.SIGKILL)
                save.wait()
                if keeps:
                    self.assertEqual(save.returncode, 0)
                    self.assertEqual(gantry(a, "restore", self.file)[0], 0)
                    self.ends_well(program)
                else:
                    self.is_lost(a, program)
                for path in self.left():
                    os.unlink(path)
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_the_new_worker_is_killed(self):
        for point in ("worker-boot-received:2", "worker-driver-up", "load-begun", "load-entry", "load-contents", "load-done"):
            with self.subTest(point):
                a = self.at_one_port()
                program = self.stopped(a)
                self.start_again(a, point.split(":", maxsplit=1)[0])
                self.state(a, "stopped")
                status, said = gantry(a, "restore", self.file)
                self.assertEqual(status, 1, said)
                self.state(a, "stopped")
                self.start_again(a)
                self.state(a, "stopped")
                self.assertEqual(gantry(a, "restore", self.file)[0], 0)
                self.ends_well(program)

    def test_gantryd_is_killed_while_it_saves(self):
        """Before the program has heard that it is in a file that is the program's loss, after it nothing is lost. gantry keeps a whole file where it
        cannot know which it was."""
        for point, stopped, n_left in (("daemon-before-save", False, 0), ("daemon-checkpoint-saved", False, 0),
                                       ("daemon-before-stop", False, 1), ("daemon-stopped", True, 1), ("daemon-waits-far", True, 1)):
            with self.subTest(point):
                a = self.at_one_port(fault=point)
                program = self.at_first(a)
                status, said = gantry(a, "checkpoint", a.vgpus()[0]["id"], self.file, "--stop")
                self.assertEqual(status, 1, said)
                a.process.wait()
                self.start_again(a)
                left = self.left()
                self.assertEqual(len(left), n_left)
                for path in left:
                    self.assertIn(path, said["error"]["why"])
                if stopped:
                    self.state(a, "stopped")
                    self.assertEqual(gantry(a, "restore", left[0])[0], 0)
                    self.ends_well(program)
                else:
                    self.is_lost(a, program)
                    self.assertEqual([gantry(a, "restore", path)[0] for path in left], [1] * n_left)
                for path in left:
                    os.unlink(path)

    def test_gantryd_is_killed_while_it_restores(self):
        """Until the program has asked, and heard that it has a worker, it waits on."""
        for point in ("daemon-restore-begun", "daemon-before-commit", "daemon-program-told", "daemon-committed"):
            with self.subTest(point):
                a = self.at_one_port()
                program = self.stopped(a)
                self.start_again(a, point)
                self.state(a, "stopped")
                self.assertEqual(gantry(a, "restore", self.file)[0], 1)
                a.process.wait()
                self.start_again(a)
                self.state(a, "stopped")
                self.assertEqual(gantry(a, "restore", self.file)[0], 0)
                self.ends_well(program)

    def test_the_connections_break_before_it_is_decided(self):
        """It does not hear that it is stopped; it goes on when it is back, and so it does when it has heard it and cannot say so in time."""
        a = self.at_one_port("--tcp-grace", "3600")
        relay, address = self.relay(a.tcp_address.rsplit(":", 1)[1])
        for told, in_time in ((False, False), (True, False), (True, True)):
            with self.subTest(told=told, in_time=in_time):
                # The file of the one before may be there for a moment still, and this one is held when its own is there.
                self.assertTrue(wait_until(lambda: not self.left(), TIMEOUT_S))
                program = self.at_first(a, GANTRY_CONNECT=address)
                vgpu = a.vgpus()[0]
                save = subprocess.Popen(command(a, "checkpoint", vgpu["id"], self.file, "--stop"), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=dict(os.environ, GANTRY_HOLD="ctl-before-keep"))
                self.addCleanup(save.kill)
                self.assertTrue(wait_until(lambda pid=save.pid: holds(pid), TIMEOUT_S))
                if told:
                    os.kill(program.process.pid, signal.SIGSTOP)
                else:
                    self.cut(a, vgpu, relay)
                save.send_signal(signal.SIGCONT)
                if told:
                    self.assertTrue(wait_until(lambda v=vgpu: v["id"] + ': "moved" ({}) is told'.format(v["pid"]) in a.log(), TIMEOUT_S))
                    self.cut(a, vgpu, relay)
                    if in_time:
                        relay.send_signal(signal.SIGUSR2)
                    os.kill(program.process.pid, signal.SIGCONT)
                self.assertEqual(save.wait(), 0 if in_time else 1)
                if in_time:
                    self.state(a, "stopped")
                    self.assertEqual(gantry(a, "restore", self.file)[0], 0)
                    os.unlink(self.file)
                else:
                    self.assertEqual(self.left(), [])
                    relay.send_signal(signal.SIGUSR2)
                    self.state(a, *GOES_ON)
                    self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
                self.assertEqual(program.process.poll(), None)
                self.ends_well(program)
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))


if __name__ == "__main__":
    telling.main(StopsCase.stage, sys.argv[4:])
