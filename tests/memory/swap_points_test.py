#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills at each point of a swap. A worker is held at a fault point (src/base/fault.h), and one
party is killed then: that worker, its program, or gantryd. Nothing of the killed one may be left;
the other programs end with right results, or are told when gantryd is dead; the device is free
again, for a new gantryd as well. Or the held one's vGPU goes to another worker, into a file or
into its program, and all results are right.

    swap_points_test.py STAGE HOLDS ICD [--long] [TEST]...

The build must have fault points. HOLDS: the program of holds.c; ICD: libdiscrete-icd.so. --long:
each vGPU goes elsewhere 20 times.
"""

import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import (  # noqa: E402
    DEADLINE_S, OF_75, SHORT_PERIODS, MemoryCase, SmallMemoryCase, gantry, seen, telling)
from daemon import descendants, gone, wait_until    # noqa: E402
from moves_harness import command, holds, start_again    # noqa: E402

MemoryCase.stage, MemoryCase.path, MemoryCase.icd = (os.path.abspath(p) for p in sys.argv[1:4])
# Two of them fit, so that one can be migrated, and one allocation is all of it.
OF_50 = ("49",)
NEARLY_ALL = ("70", "50")
LOOK_S = 0.05
TIMES = 20 if "--long" in sys.argv[4:] else 1
# Where a worker is held, and its state there.
POINTS = {
    "residency-told-out": "it is told to evict",
    "residency-evicting": "an object's contents are in host memory, and still on the device",
    "residency-evicted": "it has evicted, and gantryd does not know",
    "residency-left": "it has evicted, and gantryd knows",
    "residency-wanted": "a request of its program waits for evicted memory",
    "residency-told-in": "it is told to bring everything in",
    "residency-filling": "an object is on the device again, and still in host memory",
    "residency-filled": "everything is on the device, and gantryd does not know",
    "residency-in": "everything is on the device, and gantryd knows",
}


def resume(pids):
    """Those of them that are held."""
    for pid in pids:
        if holds(pid):
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


class SwapPoints(SmallMemoryCase):
    filled = ()     # programs whose memory is known to be filled

    def start_held(self, point, **more):
        """A gantryd whose workers are held at the point, each when it comes there first."""
        self.there = self.start(*SHORT_PERIODS, "512M",
                                env={"GANTRY_HOLD": point, "GANTRY_LOG": "debug"}, **more)
        return self.there

    def held_one(self, programs):
        """The first program whose worker is held, and the worker."""
        found = []

        def is_there():
            by_pid = {program.pid: program for program in programs}
            found[:] = [(by_pid[v["pid"]], v["worker_pid"]) for v in self.there.vgpus()
                        if v["pid"] in by_pid and "worker_pid" in v and holds(v["worker_pid"])]
            return bool(found)
        self.assertTrue(wait_until(is_there, DEADLINE_S), "no worker comes to the point")
        return found[0]

    def resume_all(self):
        """Until the test ends no worker stays held."""
        ends = threading.Event()

        def resume_until_then():
            while not ends.wait(LOOK_S):
                resume(descendants(self.there.process.pid))
        thread = threading.Thread(target=resume_until_then)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ends.set)

    def memory_files(self):
        """gantryd's."""
        fds, found = "/proc/{}/fd".format(self.there.process.pid), []
        for fd in os.listdir(fds):
            try:
                found.append(os.readlink(os.path.join(fds, fd)))
            except OSError:
                pass
        return [name for name in found if "memfd" in name]

    def is_told_of_loss(self, program):
        said = program.all_words()
        self.assertEqual(program.process.wait(DEADLINE_S), 1, said)
        self.assertIn("wrong:", said)

    def end_rightly(self, programs):
        for program in programs:
            if program not in self.filled:
                program.holds()
        for program in programs:
            program.tell_right()

    def check_nothing_left(self):
        """Another program may have the whole device."""
        self.until(self.there, "no vGPU is left", lambda: not self.there.vgpus())
        self.until_all_is_free(self.there)
        self.assertEqual(self.memory_files(), [])
        self.end_rightly([self.holder(self.there, "--told", *NEARLY_ALL)])
        self.until_all_is_free(self.there)
        self.check_device()

    def kill_worker(self, programs, program, worker):
        os.kill(worker, signal.SIGKILL)
        self.is_told_of_loss(program)
        self.resume_all()
        self.end_rightly([other for other in programs if other is not program])
        self.check_nothing_left()

    def kill_program(self, programs, program, worker):
        program.kill()
        self.resume_all()
        self.end_rightly([other for other in programs if other is not program])
        self.assertTrue(wait_until(lambda: gone([worker]), DEADLINE_S), "its worker goes on")
        self.check_nothing_left()

    def kill_gantryd(self, programs, program, worker):
        """The workers end with it. A new gantryd at its place knows nothing of them."""
        family = descendants(self.there.process.pid)
        self.there.process.kill()
        self.there.process.wait()
        resume(family)
        for each in programs:
            self.is_told_of_loss(each)
        self.assertTrue(wait_until(lambda: gone(family), DEADLINE_S), "its workers go on")
        del self.there.extra_env["GANTRY_HOLD"]
        start_again(self.there)
        self.check_nothing_left()


class InASwap(SwapPoints):
    """Each of the points, and each party."""


def killed_at(point, party):
    def test(self):
        self.start_held(point)
        programs = [self.holder(self.there, "--told", *OF_75) for _ in range(3)]
        getattr(self, "kill_" + party)(programs, *self.held_one(programs))
    test.__doc__ = "{}: {} is killed".format(POINTS[point], party)
    return test


for _point in POINTS:
    for _party in ("worker", "program", "gantryd"):
        setattr(InASwap, "test_{}_{}".format(_point.replace("-", "_"), _party),
                killed_at(_point, _party))


class Moves(SwapPoints):
    """A vGPU goes elsewhere, and its worker is at one of the points when that begins."""

    def done(self, *words):
        status, said = gantry(self.there, *words)
        self.assertEqual(status, 0, "{}: {}\n{}".format(words, said, seen(self.there)))

    def begun(self, vgpu, *words):
        """gantry, whose request gantryd has begun."""
        process = subprocess.Popen(command(self.there, *words), stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stderr.close()))

        def has_begun():
            return process.poll() is not None or any(
                v["id"] == vgpu and "moving" in v for v in self.there.vgpus())
        self.assertTrue(wait_until(has_begun, DEADLINE_S))
        self.assertIsNone(process.poll(), "{} is over".format(words))
        return process

    def succeeds(self, process):
        said = process.communicate(timeout=DEADLINE_S)[1]
        self.assertEqual(process.returncode, 0, said + seen(self.there))

    def migrate(self, vgpu):
        process = self.begun(vgpu, "migrate", vgpu, "local")
        self.resume_all()
        self.succeeds(process)

    def checkpoint(self, vgpu):
        path = os.path.join(self.work, "files", "a.ckpt")
        os.mkdir(os.path.dirname(path))
        process = self.begun(vgpu, "checkpoint", vgpu, path, "--stop")
        self.resume_all()
        self.succeeds(process)
        self.done("restore", path)

    def switch(self, vgpu):
        process = self.begun(vgpu, "mode", vgpu, "passthrough")
        self.resume_all()
        self.succeeds(process)
        self.done("mode", vgpu, "remote")

    def check(self, point, how):
        self.start_held(point, passthrough=how == "switch")
        programs = [self.holder(self.there, "--told", *OF_50, GANTRY_MODE="remote")
                    for _ in range(3)]
        program, _ = self.held_one(programs)
        getattr(self, how)(self.vgpu(self.there, program)["id"])
        self.end_rightly(programs)
        self.check_nothing_left()


def moved_at(point, how):
    def test(self):
        for _ in range(TIMES):
            self.check(point, how)
            self.doCleanups()
            self.setUp()
    test.__doc__ = "{}: {}".format(POINTS[point], how)
    return test


for _point in POINTS:
    for _how in ("migrate", "checkpoint", "switch"):
        setattr(Moves, "test_{}_{}".format(_point.replace("-", "_"), _how),
                moved_at(_point, _how))


class WhileAnAskWaits(SwapPoints):
    """A program allocates what there is no room for. The worker that is to make room is held."""

    def start_asking(self):
        self.start_held("residency-told-out")
        first, = self.filled = self.holders(self.there, 1, "--told", *OF_75)
        asking = self.holder(self.there, "--told", *OF_75)
        self.held_one([first])
        vgpu = self.vgpu(self.there, asking)
        self.until(self.there, "it waits for room",
                   lambda: "vgpu={} waits for room".format(vgpu["id"]) in self.there.log())
        return [first, asking], asking, vgpu["worker_pid"]

    def test_its_worker(self):
        self.kill_worker(*self.start_asking())

    def test_its_program(self):
        self.kill_program(*self.start_asking())

    def test_gantryd(self):
        self.kill_gantryd(*self.start_asking())


if __name__ == "__main__":
    telling.main(MemoryCase.stage, [word for word in sys.argv[4:] if word != "--long"])
