#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever takes part in a move over tcp is killed at each of its named points, and the network is cut. The vGPU is in the end at the one
gantryd or at the other, and its program ends as it would have undisturbed; unless the gantryd that has it has died, or the program's own
connection stays cut: then the program is told. Never at both, and nobody waits for ever. The build must have the points: -Dfaults=true.

    tcp_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import os
import signal
import subprocess
import sys

from moves_harness import KilledBetweenTwo, STEPS, TIMEOUT_S, TcpCase, command, gantry, telling, wait_until

TcpCase.stage, TcpCase.path, TcpCase.network = (os.path.abspath(p) for p in sys.argv[1:4])


class Faults(KilledBetweenTwo, TcpCase):
    new_worker = ("worker-boot-received", "load-begun", "load-entry", "load-contents", "load-last", "load-done")
    how = ("--link", "tcp")

    def pair(self, here=None, there=None):
        return self.not_started("a", fault=here), self.not_started("b", fault=there)

    def test_the_old_worker_is_killed(self):
        for point in ("move-begun", "move-ahead", "move-quiet", "move-told", "move-saved"):
            a, b = self.pair(here=point)
            with self.subTest(point), a, b:
                program = self.at_first(a)
                status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address, *self.how)
                self.assertEqual(status, 1, said)
                self.is_lost(a, program)
                self.assertTrue(wait_until(lambda d=b: not d.vgpus(), TIMEOUT_S))

    def test_beside_the_new_worker_is_killed(self):
        for point in ("load-begun", "load-entry", "load-contents", "load-last", "load-done"):
            with self.subTest(point), self.not_started("a", fault=point) as a:
                program = self.at_first(a)
                program.on()  # images, whose contents travel
                self.assertEqual(program.at(), STEPS[1])
                before = a.vgpus()[0]
                for how in ((), ("--stop-and-copy",)):
                    status, said = gantry(a, "migrate", before["id"], "local", *how)
                    self.assertEqual(status, 1, said)
                    self.assertIn("goes on where it was", said["error"]["why"])
                    self.assertTrue(wait_until(lambda d=a: d.vgpus()[0]["state"] != "moving", TIMEOUT_S))
                self.assertEqual([v["worker_pid"] for v in a.vgpus()], [before["worker_pid"]])
                self.ends_well(program, 2)

    def test_beside_the_old_worker_is_killed(self):
        for point in ("move-begun", "move-quiet", "move-told", "move-saved"):
            with self.subTest(point), self.not_started("a", fault=point) as a:
                program = self.at_first(a)
                status, said = gantry(a, "migrate", a.vgpus()[0]["id"], "local")
                self.assertEqual(status, 1, said)
                self.is_lost(a, program)

    def test_the_other_gantryd_is_killed_when_it_has_it(self):
        for point in ("daemon-before-go", "daemon-gone-over"):
            a, b = self.pair(there=point)
            with self.subTest(point), a, b:
                program = self.at_first(a)
                gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address, *self.how)
                self.again(b)
                self.is_lost(b, program)
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_the_one_that_is_left_is_killed(self):
        for point in ("daemon-before-move-told", "daemon-before-save", "daemon-before-leave", "daemon-leave-told", "daemon-left"):
            a, b = self.pair(here=point)
            with self.subTest(point), a, b:
                program = self.at_first(a)
                self.assertEqual(gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address, *self.how)[0], 1)
                self.again(a)
                if point == "daemon-left":
                    self.ends_well(program)
                    continue
                # The last words of the worker may have died with it: then it is lost, as when a gantryd that has a vGPU dies.
                program.on()
                if program.at() == STEPS[1] and b.vgpus():
                    self.ends_well(program, 2)
                else:
                    self.assertIn(point, ("daemon-before-move-told", "daemon-before-save", "daemon-before-leave", "daemon-leave-told"))
                    program.kill()
                self.assertTrue(wait_until(lambda d=b: not d.vgpus() and not a.vgpus(), TIMEOUT_S))

    def test_the_program_is_killed(self):
        """Nothing of it is left at either: what the Daemons look at in the end."""
        for point in ("program-move-told", "program-claimed", "program-before-go", "program-gone-over"):
            a, b = self.pair()
            with self.subTest(point), a, b:
                program = self.at_first(a, GANTRY_FAULT=point)
                gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address, *self.how)
                program.process.wait(timeout=TIMEOUT_S)
                self.assertTrue(wait_until(lambda d=b: not d.vgpus() and not a.vgpus(), TIMEOUT_S))

    def test_the_network_to_the_other_one_is_cut(self):
        """While it moves; and held up, so that nothing comes through and nobody hangs up. It goes on where it was, and moves when there is a way."""
        a, b = self.pair()
        with a, b:
            relay, address = self.relay(b.tcp_address.rsplit(":", 1)[1])
            program = self.at_first(a)
            vgpu = a.vgpus()[0]
            for word in (signal.SIGUSR1, signal.SIGUSR2):
                move = subprocess.Popen(command(a, "migrate", "--json", "--bandwidth", "1M", "--drain-timeout", "3", *self.how, vgpu["id"], address), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
                self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] == "moving", TIMEOUT_S))
                relay.send_signal(word)
                out, _ = move.communicate(timeout=TIMEOUT_S)
                if move.returncode == 0:
                    self.skipTest("it had moved before the cut")
                self.assertIn("error", out)
                self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] != "moving", TIMEOUT_S))
                self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
            relay.send_signal(signal.SIGUSR2)
            self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))
            self.assertEqual(gantry(a, "migrate", vgpu["id"], address, *self.how)[0], 0)
            self.ends_well(program)

    def test_the_program_comes_back_to_the_other_one(self):
        """Its connections break after it has moved: it is known there by its session alone."""
        a, b = self.pair()
        with a, b:
            relay, address = self.relay(b.tcp_address.rsplit(":", 1)[1])
            program = self.at_first(a)
            self.assertEqual(gantry(a, "migrate", a.vgpus()[0]["id"], address, *self.how)[0], 0)
            relay.send_signal(signal.SIGUSR1)
            self.ends_well(program)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
