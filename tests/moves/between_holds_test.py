#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations to another gantryd while the program or the source is held at a fault point, or while
connections break. The fault matrix (matrix_test.py) has no cells for these. The build must have the
fault points: -Dfaults=true.

    between_holds_test.py STAGE MOVED RELAY     MOVED: the program; RELAY: a network in between, of
                                                tests/tcp
"""

import os
import signal
import sys

import matrix
from holds import HeldCase
from matrix_cases import BetweenCase, RouteCase
from moves_harness import TIMEOUT_S, slow, telling, wait_until

RouteCase.stage, MOVED, RouteCase.network = (os.path.abspath(path) for path in sys.argv[1:4])
RouteCase.paths = {"moved": MOVED}


class BetweenHeldCase(HeldCase, BetweenCase):
    def migration(self, *options, to=None):
        """gantry, which asks for the migration."""
        return self.asked("migrate", *self.route.options, *options, self.before["id"],
                          to or self.address_of(self.destination))


class Drained(BetweenHeldCase):
    route = matrix.ROUTES["unix"]

    def test_destination_drained_before_claim(self):
        """The program brings its ticket after the drain of the destination has begun."""
        self.start_held(program={"GANTRY_HOLD": "program-move-told"})
        process = self.migration()
        self.is_held(self.program.process.pid)
        self.assertEqual(self.drain(self.destination, self.source, 0), {})
        self.resume(self.program.process.pid)
        self.assertIn("is draining itself", self.why(process))
        self.has_same_worker()
        self.assertEqual(self.destination.vgpus(), [])
        self.ends_well()


class BrokenNetwork:
    """For a BetweenHeldCase: the relay stands before the destination."""

    def test_network_to_destination_cut(self):
        """First the connections break; then nothing comes through and no end hangs up. The vGPU
        stays at the source, and moves when there is a network."""
        self.start()
        relay, address = self.network_to(self.destination)
        for word in (signal.SIGUSR1, signal.SIGUSR2):
            process = self.migration("--bandwidth", "1M", "--drain-timeout", "3", to=address)
            self.reaches("moving")
            relay.send_signal(word)
            status, said = self.answer(process)
            if status == 0:
                self.skipTest("it had moved before the cut")
            self.assertIn("error", said)
            self.stays_here()
        relay.send_signal(signal.SIGUSR2)
        self.is_empty(self.destination)
        self.assertEqual(self.migrate(to=address)[0], 0)
        self.ends_well()

    def test_program_reconnects_to_destination(self):
        """Its connections break after the migration: the destination knows it by its session."""
        self.start()
        relay, address = self.network_to(self.destination)
        self.assertEqual(self.migrate(to=address)[0], 0)
        relay.send_signal(signal.SIGUSR1)
        self.ends_well()


class TcpNetwork(BrokenNetwork, BetweenHeldCase):
    route = matrix.ROUTES["tcp"]


class ShmToTcpNetwork(BrokenNetwork, BetweenHeldCase):
    route = matrix.ROUTES["shm-to-tcp"]
    test_network_to_destination_cut = slow(BrokenNetwork.test_network_to_destination_cut)


class RunningProgram:
    """For a BetweenHeldCase by a route on which the program has to pause its session."""

    def test_program_does_not_pause(self):
        """The program is stopped just before the source asks it to pause: the vGPU stays, and moves
        when the program runs."""
        self.start_held(daemon={"GANTRY_HOLD": "move-held"})
        process = self.migration("--drain-timeout", "1")
        worker = self.held_worker()
        self.program.process.send_signal(signal.SIGSTOP)
        self.resume(worker)
        self.assertIn("longer than the drain", self.why(process))
        self.resume(self.program.process.pid)
        self.stays_here()
        self.is_empty(self.destination)
        self.program.goes_on()
        self.assertTrue(wait_until(lambda: self.migrate()[0] == 0, TIMEOUT_S))
        self.assertEqual(self.vgpu(self.destination)["link"], "shm")
        self.ends_well()


class TcpToShm(BrokenNetwork, RunningProgram, BetweenHeldCase):
    route = matrix.ROUTES["tcp-to-shm"]
    test_network_to_destination_cut = slow(BrokenNetwork.test_network_to_destination_cut)


class BackToShm(BrokenNetwork, RunningProgram, BetweenHeldCase):
    route = matrix.ROUTES["back-to-shm"]
    test_network_to_destination_cut = slow(BrokenNetwork.test_network_to_destination_cut)


if __name__ == "__main__":
    telling.main(RouteCase.stage, sys.argv[4:])
