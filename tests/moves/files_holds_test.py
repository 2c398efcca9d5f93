#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vGPUs that are saved into files: the program ends, its worker dies or its connections break while
gantry or the worker is held. The fault matrix (matrix_test.py) has no cells for these. The build
must have the fault points: -Dfaults=true.

    files_holds_test.py STAGE MOVED RELAY       MOVED: the program; RELAY: a network in between, of
                                                tests/tcp
"""

import os
import signal
import sys
import time

import matrix
from holds import HeldCase
from matrix_cases import FileCase, RouteCase
from moves_harness import TIMEOUT_S, gantry, telling, wait_until

RouteCase.stage, MOVED, RouteCase.network = (os.path.abspath(path) for path in sys.argv[1:4])
RouteCase.paths = {"moved": MOVED}


class FileHeldCase(HeldCase, FileCase):
    def stop_held(self):
        """gantry, which has written a file and has not asked to keep it."""
        return self.asked("checkpoint", self.before["id"], self.file, "--stop",
                          hold="ctl-before-keep")

    def restores(self):
        status, said = self.restore(self.file)
        self.assertEqual(status, 0, said)


class Shm(FileHeldCase):
    route = matrix.ROUTES["file"]

    def test_program_ends_before_its_file_is_kept(self):
        self.start_held()
        process = self.stop_held()
        self.program.program.kill()
        self.is_empty(self.source)
        self.resume(process.pid)
        self.assertIn("no vGPU waits for this file", self.why(process))
        self.files_left(0)


class Tcp(FileHeldCase):
    route = matrix.ROUTES["file-tcp"]

    def worker_dies_when_all_is_written(self, keeps):
        self.start_held()
        process = self.stop_held()
        os.kill(self.before["worker_pid"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "worker_pid" not in self.vgpu(self.source), TIMEOUT_S))
        time.sleep(0.5)  # the program has asked for its session meanwhile, and will again
        process.send_signal(signal.SIGCONT if keeps else signal.SIGKILL)
        return process

    def test_worker_dies_and_its_file_is_kept(self):
        process = self.worker_dies_when_all_is_written(keeps=True)
        self.succeeds(process)
        self.restores()
        self.ends_well()

    def test_worker_and_gantry_die(self):
        process = self.worker_dies_when_all_is_written(keeps=False)
        process.wait()
        self.program.is_told_of_loss()
        self.is_empty(self.source)

    def before_the_stop(self, paused, in_time):
        """The program's connections break before it is told of the stop; or it is paused when it is
        told, and reconnects in time, or not. Returns gantry and the relay."""
        self.start_gantryds("--tcp-grace", "3600")
        relay, address = self.network_to(self.source)
        self.start_next(GANTRY_CONNECT=address)
        process = self.stop_held()
        pid = self.program.process.pid
        if paused:
            os.kill(pid, signal.SIGSTOP)
            self.resume(process.pid)
            told = '{}: "moved" ({}) is told'.format(self.before["id"], self.before["pid"])
            self.assertTrue(wait_until(lambda: told in self.source.log(), TIMEOUT_S))
            self.cut(self.source, self.before, relay)
            if in_time:
                relay.send_signal(signal.SIGUSR2)
            self.resume(pid)
        else:
            self.cut(self.source, self.before, relay)
            self.resume(process.pid)
        return process, relay

    def stays_after(self, process, relay):
        self.assertEqual(self.answer(process)[0], 1)
        self.files_left(0)
        relay.send_signal(signal.SIGUSR2)
        self.stays_here()
        self.assertIsNone(self.program.process.poll())
        self.ends_well()

    def test_connections_break_before_the_stop(self):
        self.stays_after(*self.before_the_stop(paused=False, in_time=False))

    def test_connections_break_when_the_program_is_told(self):
        """It cannot say in time that it is stopped, and goes on."""
        self.stays_after(*self.before_the_stop(paused=True, in_time=False))

    def test_connections_break_and_the_program_is_back_in_time(self):
        process, _ = self.before_the_stop(paused=True, in_time=True)
        self.succeeds(process)
        self.reaches("stopped")
        self.restores()
        self.assertIsNone(self.program.process.poll())
        self.ends_well()


class TcpCopy(FileHeldCase):
    """Into a file while the program goes on."""

    route = matrix.ROUTES["file-tcp"]

    def start_at_images(self, grace_s, point):
        self.start_gantryds("--tcp-grace", str(grace_s), GANTRY_HOLD=point)
        return self.network_to(self.source)

    def held_copy(self, address):
        """gantry and the held worker of a program with images: their contents travel."""
        self.start_next(GANTRY_CONNECT=address)
        self.program.goes_on()
        process = self.asked("checkpoint", self.before["id"], self.file)
        return process, self.held_worker(process)

    def connections_break_at(self, point):
        """While the worker is held; the program reconnects before the worker resumes, or when the
        file is complete."""
        relay, address = self.start_at_images(3600, point)
        for back in (True, False):
            process, worker = self.held_copy(address)
            self.breaks_meanwhile(relay, back, worker)
            self.succeeds(process)
            self.has_same_worker()
            self.assertNotEqual(self.vgpu(self.source)["state"], "lost")
            self.assertEqual(os.listdir(self.files), ["a.ckpt"])
            status, seen = gantry(self.source, "inspect", self.file)
            self.assertEqual((status, seen["checkpoint"]["vgpu"]["id"]), (0, self.before["id"]))
            os.unlink(self.file)
            self.reconnects_and_ends(relay, back)

    def test_connections_break_at_move_begun(self):
        self.connections_break_at("move-begun")

    def test_connections_break_at_move_quiet(self):
        self.connections_break_at("move-quiet")

    def test_connections_break_at_save_contents(self):
        self.connections_break_at("save-contents")

    def test_connections_break_at_move_saved(self):
        self.connections_break_at("move-saved")

    def test_program_stays_away(self):
        """For longer than its grace: there is no file, and gantry says the reason."""
        relay, address = self.start_at_images(1, "save-contents")
        process, _ = self.held_copy(address)
        relay.send_signal(signal.SIGUSR2)
        relay.send_signal(signal.SIGUSR1)
        self.assertIn("has not come back", self.why(process))
        self.files_left(0)
        self.program.is_told_of_loss()
        self.is_empty(self.source)


if __name__ == "__main__":
    telling.main(RouteCase.stage, sys.argv[4:])
