#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations to another worker of the same gantryd: the source dies when it has written everything,
a program's connections break, an object is released meanwhile. The fault matrix (matrix_test.py)
has no cells for these. The build must have the fault points: -Dfaults=true.

    local_holds_test.py STAGE MOVED BUSY RELAY      MOVED, BUSY: the programs; RELAY: a network in
                                                    between, of tests/tcp
"""

import json
import os
import signal
import sys

import matrix
from holds import HeldCase
from matrix_cases import LocalCase, RouteCase
from moves_harness import TIMEOUT_S, telling, wait_until

RouteCase.stage, MOVED, BUSY, RouteCase.network = (os.path.abspath(p) for p in sys.argv[1:5])
RouteCase.paths = {"moved": MOVED, "busy": BUSY}


class LocalHeldCase(HeldCase, LocalCase):
    def start_at_images(self, point):
        """A program with images: their contents travel. Workers are held at the point."""
        grace = ("--tcp-grace", "3600") if self.route.listens else ()
        self.start_gantryds(*grace, GANTRY_HOLD=point)
        self.next_at_images()

    def next_at_images(self, **env):
        self.start_next(**env)
        self.program.goes_on()

    def written(self, *options):
        """gantry and the destination of a migration: the source has written everything, the
        destination has read it and is held before it says so."""
        process = self.asked("migrate", self.before["id"], "local", *options)
        destination = self.held_worker(process)
        self.assertTrue(wait_until(
            lambda: self.vgpu(self.source)["moving"]["phase"] == "loading", TIMEOUT_S))
        self.assertNotEqual(destination, self.before["worker_pid"])
        return process, destination

    def kill_source(self):
        os.kill(self.before["worker_pid"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "worker_pid" not in self.vgpu(self.source), TIMEOUT_S))
        self.assertEqual(self.vgpu(self.source)["state"], "moving")

    def is_at(self, worker):
        after = self.vgpu(self.source)
        self.assertEqual((after["id"], after["worker_pid"]), (self.before["id"], worker))
        self.assertNotEqual(after["state"], "lost")


class SourceDies:
    """For a LocalHeldCase."""

    def test_source_dies_when_all_is_written(self):
        self.start_at_images("load-done")
        process, destination = self.written()
        self.kill_source()
        self.resume(destination)
        self.succeeds(process)
        self.is_at(destination)
        self.ends_well()
        self.assertNotIn("lost its device", self.source.log())

    def test_both_workers_die_when_all_is_written(self):
        """The vGPU is lost, the program is told, and the tenant's memory is free."""
        self.start_at_images("load-done")
        process, destination = self.written()
        self.kill_source()
        os.kill(destination, signal.SIGKILL)
        # A program that notices the loss first ends with an error.
        self.assertRegex(self.why(process), "the vGPU is lost|its program has ended")
        # Not before the kernel has freed both workers.
        self.assertTrue(wait_until(
            lambda: [t["leased_bytes"] for t in self.source.ctl("tenant", "ls")["tenants"]] == [0],
            TIMEOUT_S))
        self.program.is_told_of_loss()
        self.is_empty(self.source)


class Shm(SourceDies, LocalHeldCase):
    route = matrix.ROUTES["local"]


class Tcp(SourceDies, LocalHeldCase):
    route = matrix.ROUTES["tcp-same-daemon"]

    def test_source_dies_and_connections_break(self):
        self.start_gantryds("--tcp-grace", "3600", GANTRY_HOLD="load-done")
        relay, address = self.network_to(self.source)
        self.next_at_images(GANTRY_CONNECT=address)
        process, destination = self.written("--stop-and-copy")
        self.kill_source()
        self.cut(self.source, self.before, relay)
        self.resume(destination)
        self.succeeds(process)
        self.is_at(destination)
        relay.send_signal(signal.SIGUSR2)
        self.ends_well()

    def connections_break_at(self, point):
        """While a worker is held; the program reconnects before the worker resumes, or after the
        migration."""
        self.start_gantryds("--tcp-grace", "3600", GANTRY_HOLD=point)
        relay, address = self.network_to(self.source)
        for back in (True, False):
            self.next_at_images(GANTRY_CONNECT=address)
            process = self.asked("migrate", self.before["id"], "local")
            worker = self.held_worker(process)
            self.breaks_meanwhile(relay, back, worker)
            self.succeeds(process)
            after = self.vgpu(self.source)
            self.assertEqual(after["id"], self.before["id"])
            self.assertNotEqual(after["worker_pid"], self.before["worker_pid"])
            self.assertNotEqual(after["state"], "lost")
            self.reconnects_and_ends(relay, back)

    def test_connections_break_at_move_ahead(self):
        self.connections_break_at("move-ahead")

    def test_connections_break_at_move_quiet(self):
        self.connections_break_at("move-quiet")

    def test_connections_break_at_load_done(self):
        self.connections_break_at("load-done")


class Released(LocalHeldCase):
    route = matrix.ROUTES["local"]

    def test_destination_dies_at_a_release(self):
        """The stream tells of an object that the program has released. A migration without such an
        object succeeds, and the next one is tried."""
        self.start_held("busy", daemon={"GANTRY_FAULT": "load-gone"})
        status = 0
        while status == 0:
            self.before = self.vgpu(self.source)
            status, said = self.migrate("--rounds", "2", "--bandwidth", "30M")
            if status != 0:
                self.assertEqual(status, 1, said)
                self.assertIn("goes on where it was", json.dumps(said["error"]))
        self.ends_well()


if __name__ == "__main__":
    telling.main(RouteCase.stage, sys.argv[5:])
