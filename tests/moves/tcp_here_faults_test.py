#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, and what breaks while their vGPUs are moved within their gantryd, or saved: the old worker dies
when it has written all, the program's connections break. It goes on at one worker, or is told that its vGPU is lost. Whoever is to be met in the
middle of something is held there: the build must have the points, -Dfaults=true.

    tcp_here_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import json
import os
import signal
import subprocess
import sys

from moves_harness import STEPS, TIMEOUT_S, StopsCase, command, gantry, held, telling, wait_until

StopsCase.stage, StopsCase.path, StopsCase.network = (os.path.abspath(p) for p in sys.argv[1:4])


class Faults(StopsCase):
    def holding(self, point, grace_s=3600):
        """A gantryd whose workers stand at that point until they are told to go on."""
        return self.not_started("a", "--tcp-grace", str(grace_s), env={"GANTRY_HOLD": point})

    def by(self, link, daemon):
        """What has a program attached so."""
        return {"GANTRY_CONNECT": daemon.address if link == "shm" else daemon.tcp_address}

    def at_images(self, daemon, **env):
        """A program with images, whose contents travel, and its vGPU."""
        program = self.at_first(daemon, **env)
        program.on()
        self.assertEqual(program.at(), STEPS[1])
        return program, daemon.vgpus()[0]

    def begun(self, daemon, *words):
        """gantry, when a worker stands at its point, and that worker."""
        process = subprocess.Popen(command(daemon, words[0], "--json", *words[1:]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        self.assertTrue(wait_until(lambda: held(daemon) or process.poll() is not None, TIMEOUT_S))
        worker = held(daemon)
        self.assertIsNotNone(worker, "it is over, and no worker came to the point")
        return process, worker

    def said(self, process):
        out, _ = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, json.loads(out)

    def written(self, daemon, vgpu, *how):
        """A move whose old worker has written all, and whose new one has all and has not said so."""
        move, new = self.begun(daemon, "migrate", vgpu["id"], "local", *how)
        self.assertTrue(wait_until(lambda: daemon.vgpus()[0]["moving"]["phase"] == "loading", TIMEOUT_S))
        self.assertNotEqual(new, vgpu["worker_pid"])
        return move, new

    def kill_old(self, daemon, vgpu):
        os.kill(vgpu["worker_pid"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "worker_pid" not in daemon.vgpus()[0], TIMEOUT_S))
        self.assertEqual(daemon.vgpus()[0]["state"], "moving")

    def goes_on_at(self, daemon, vgpu, worker):
        after = daemon.vgpus()
        self.assertEqual([(v["id"], v.get("worker_pid")) for v in after], [(vgpu["id"], worker)])
        self.assertNotEqual(after[0]["state"], "lost")

    def test_the_old_worker_dies_when_all_is_written(self):
        for link in ("tcp", "shm"):
            with self.subTest(link=link), self.holding("load-done") as a:
                program, vgpu = self.at_images(a, **self.by(link, a))
                move, new = self.written(a, vgpu)
                self.kill_old(a, vgpu)
                os.kill(new, signal.SIGCONT)
                status, said = self.said(move)
                self.assertEqual(status, 0, said)
                self.goes_on_at(a, vgpu, new)
                self.ends_well(program, 2)
                self.assertNotIn("lost its device", a.log())

    def test_the_old_worker_dies_and_the_connections_break(self):
        with self.holding("load-done") as a:
            relay, address = self.relay(a.tcp_address.rsplit(":", 1)[1])
            program, vgpu = self.at_images(a, GANTRY_CONNECT=address)
            move, new = self.written(a, vgpu, "--stop-and-copy")
            self.kill_old(a, vgpu)
            self.cut(a, vgpu, relay)
            os.kill(new, signal.SIGCONT)
            status, said = self.said(move)
            self.assertEqual(status, 0, said)
            self.goes_on_at(a, vgpu, new)
            relay.send_signal(signal.SIGUSR2)
            self.ends_well(program, 2)

    def test_both_workers_die_when_all_is_written(self):
        """Nobody has it then, whatever link its program has: it is said, and what it held is free."""
        for link in ("tcp", "shm"):
            with self.subTest(link=link), self.holding("load-done") as a:
                program, vgpu = self.at_images(a, **self.by(link, a))
                self.assertEqual(vgpu["link"], link)
                move, new = self.written(a, vgpu)
                self.kill_old(a, vgpu)
                os.kill(new, signal.SIGKILL)
                status, said = self.said(move)
                self.assertEqual(status, 1, said)
                # A program that notices the loss first ends with an error.
                self.assertRegex(json.dumps(said["error"]), "the vGPU is lost|its program has ended")
                # Not before the kernel has freed both workers.
                self.assertTrue(wait_until(
                    lambda: [t["leased_bytes"] for t in a.ctl("tenant", "ls")["tenants"]] == [0], TIMEOUT_S))
                self.is_lost(a, program)

    def back_or_away(self, point, *words):
        """The connections break while a worker stands at that point; the program comes back before it goes on, or after all. Yields each
        time the vGPU, who stood there, and how it ended."""
        with self.holding(point) as a:
            relay, address = self.relay(a.tcp_address.rsplit(":", 1)[1])
            for back in (True, False):
                program, vgpu = self.at_images(a, GANTRY_CONNECT=address)
                process, worker = self.begun(a, words[0], vgpu["id"], *words[1:])
                self.cut(a, vgpu, relay)
                if back:
                    relay.send_signal(signal.SIGUSR2)
                    self.assertTrue(wait_until(lambda v=vgpu: not self.is_broken(a, v), TIMEOUT_S))
                os.kill(worker, signal.SIGCONT)
                status, said = self.said(process)
                self.assertEqual(status, 0, said)
                yield a, vgpu
                if not back:
                    relay.send_signal(signal.SIGUSR2)
                self.ends_well(program, 2)
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_the_connections_break_while_it_is_saved(self):
        for point in ("move-begun", "move-quiet", "save-contents", "move-saved"):
            with self.subTest(point):
                for a, vgpu in self.back_or_away(point, "checkpoint", self.file):
                    self.goes_on_at(a, vgpu, vgpu["worker_pid"])
                    self.assertEqual(os.listdir(self.files), ["a.ckpt"])
                    status, seen = gantry(a, "inspect", self.file)
                    self.assertEqual((status, seen["checkpoint"]["vgpu"]["id"]), (0, vgpu["id"]))
                    os.unlink(self.file)

    def test_the_connections_break_while_it_moves(self):
        for point in ("move-ahead", "move-quiet", "load-done"):
            with self.subTest(point):
                for a, vgpu in self.back_or_away(point, "migrate", "local"):
                    self.goes_on_at(a, vgpu, a.vgpus()[0]["worker_pid"])
                    self.assertNotEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])

    def test_the_program_stays_away_while_it_is_saved(self):
        """For longer than it may: there is no file, and who asked for it hears why."""
        with self.holding("save-contents", grace_s=1) as a:
            relay, address = self.relay(a.tcp_address.rsplit(":", 1)[1])
            program, vgpu = self.at_images(a, GANTRY_CONNECT=address)
            save, _ = self.begun(a, "checkpoint", vgpu["id"], self.file)
            relay.send_signal(signal.SIGUSR2)
            relay.send_signal(signal.SIGUSR1)
            status, said = self.said(save)
            self.assertEqual(status, 1, said)
            self.assertIn("has not come back", json.dumps(said["error"]))
            self.assertEqual(os.listdir(self.files), [])
            self.is_lost(a, program)


if __name__ == "__main__":
    telling.main(StopsCase.stage, sys.argv[4:])
