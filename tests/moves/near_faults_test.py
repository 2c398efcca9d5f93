#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The faults of moves over tcp, of programs whose vGPUs come back to the machine that they are on: killed and cut at the same points, and held
where such moves alone come by.

    near_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import json
import os
import signal
import subprocess
import sys

import tcp_faults_test
from moves_harness import STEPS, TIMEOUT_S, TcpCase, command, gantry, held, telling, wait_until


class NearFaults(tcp_faults_test.Faults):
    how = ()
    times = ":2"  # what is named in the program has been passed once

    def program(self, daemon, **env):
        """One that is far at that gantryd, and began elsewhere."""
        home = self.daemon("home{}".format(len(os.listdir(self.work))))
        program = super().program(home, GANTRY_CONNECT=home.address, MOVED_WITHOUT_SVM="1", **env)
        self.assertTrue(wait_until(home.vgpus, TIMEOUT_S))
        status, said = gantry(home, "migrate", home.vgpus()[0]["id"], daemon.tcp_address)
        self.assertEqual(status, 0, said)
        self.assertEqual([v["link"] for v in daemon.vgpus()], ["tcp"])
        return program

    # Nothing comes back in these.
    test_beside_the_new_worker_is_killed = test_beside_the_old_worker_is_killed = None

    def test_the_program_is_killed(self):
        for point in ("program-move-told", "program-claimed", "program-stands", "program-before-go", "program-gone-over"):
            a, b = self.pair()
            with self.subTest(point), a, b:
                program = self.at_first(a, GANTRY_FAULT=point + (self.times if point != "program-stands" else ""))
                gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address)
                program.process.wait(timeout=TIMEOUT_S)
                self.assertTrue(wait_until(lambda d=b: not d.vgpus() and not a.vgpus(), TIMEOUT_S))

    def test_the_old_worker_is_killed_when_the_program_is_silent(self):
        a, b = self.pair(here="move-paused")
        with a, b:
            program = self.at_first(a)
            status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.tcp_address)
            self.assertEqual(status, 1, said)
            self.is_lost(a, program)
            self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))

    def test_a_program_that_does_not_fall_silent(self):
        """It is stopped just before it is asked to: it goes on where it was, and moves when it can."""
        with self.not_started("a", env={"GANTRY_HOLD": "move-held"}) as a, self.not_started("b") as b:
            program = self.at_first(a)
            vgpu = a.vgpus()[0]
            move = subprocess.Popen(command(a, "migrate", "--json", "--drain-timeout", "1", vgpu["id"], b.tcp_address), stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(lambda: (move.kill(), move.wait(), move.stdout.close()))
            self.assertTrue(wait_until(lambda: held(a), TIMEOUT_S))
            program.process.send_signal(signal.SIGSTOP)
            os.kill(held(a), signal.SIGCONT)
            out, _ = move.communicate(timeout=TIMEOUT_S)
            self.assertEqual(move.returncode, 1, out)
            self.assertIn("longer than the drain", json.loads(out)["error"]["why"])
            program.process.send_signal(signal.SIGCONT)
            self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] != "moving", TIMEOUT_S))
            self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
            self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))
            program.on()
            self.assertEqual(program.at(), STEPS[1])
            self.assertTrue(wait_until(lambda: gantry(a, "migrate", vgpu["id"], b.tcp_address)[0] == 0, TIMEOUT_S))
            self.assertEqual([v["link"] for v in b.vgpus()], ["shm"])
            self.ends_well(program, 2)


class NearFromTcpFaults(NearFaults):
    """Of programs that have attached over tcp, when they come to share their memory for the first time."""
    times = ""

    def program(self, daemon, **env):
        return TcpCase.program(self, daemon, **env)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
