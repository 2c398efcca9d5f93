#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches into the program that fail, and are tried again while the thread that ends the failed vGPU is held at a named point. The
build must have the points: -Dfaults=true.

    in_process_faults_test.py STAGE PROGRAM      PROGRAM: busy
"""

import os
import signal
import subprocess
import sys

from moves_harness import TIMEOUT_S, BusyCase, Daemon, command, gantry, holds, telling, wait_until

BusyCase.stage, BusyCase.path = (os.path.abspath(p) for p in sys.argv[1:3])
TRIES = 50


def sockets(program):
    folder = "/proc/{}/fd".format(program.pid)
    return sum(os.readlink(os.path.join(folder, fd)).startswith("socket:") for fd in os.listdir(folder))


class InProcessFaults(BusyCase):
    def held(self, daemon):
        """A program whose switch has failed, with the adopting thread at the point, and the vGPU's id. A program whose kernels end in time,
        or whose failed vGPU is ended by its control thread, is replaced by another one."""
        for _ in range(TRIES):
            program = self.start(daemon, "all")
            vgpu = daemon.vgpus()[0]["id"]
            if gantry(daemon, "mode", vgpu, "passthrough", "--drain-timeout", "0.001")[0]:
                if wait_until(lambda p=program: holds(p.pid), 1):
                    return program, vgpu
            program.kill()
            program.communicate()
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))
        self.fail("no adopting thread was held")

    def test_a_failed_switch_leaves_later_descriptors_alone(self):
        """The next switch opens descriptors with the numbers of those that the failed one has closed."""
        daemon = self.daemon("a")
        daemon.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        environment = daemon.program_env()
        daemon.program_env = lambda: dict(environment, GANTRY_HOLD="in-process-lost")
        program, vgpu = self.held(daemon)
        # The keeper closes the descriptors of the failed vGPU.
        left = sockets(program) + 1
        while left > sockets(program):
            left = sockets(program)
            wait_until(lambda: sockets(program) < left, 1)
        switch = subprocess.Popen(command(daemon, "mode", vgpu, "passthrough", "--bandwidth", "4M"), stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (switch.kill(), switch.wait(), switch.stderr.close()))
        self.assertTrue(wait_until(lambda: sockets(program) > left + 2, TIMEOUT_S))
        program.send_signal(signal.SIGCONT)
        _, errors = switch.communicate(timeout=TIMEOUT_S)
        self.assertEqual(switch.returncode, 0, errors)
        disturbed = self.end(program)
        with Daemon(self.stage, self.work) as alone:
            self.assertEqual(self.end(self.start(alone, "all", disturbed[0])), disturbed)


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[3:])
