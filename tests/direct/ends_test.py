#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that end while their vGPU is moved into them, out of them, or to another worker. Exit
status and output are those of an end that nothing disturbs.

    ends_test.py STAGE ENDS LEAVING     each way of ending once a move, and each place in a driver
    ... --runs 1000                     so many ends on the real driver (make soak)
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import Daemon, TIMEOUT_S, command, gantry, telling, wait_until  # noqa: E402

KEPT, CLEANED = "stays in its buffer\n", "cleaned up\n"
WAYS = {
    "return": KEPT, "exit": KEPT, "quick": KEPT, "_exit": KEPT, "thread": KEPT, "caller": KEPT,
    "busy": KEPT, "callback": KEPT, "signal": KEPT, "pending": KEPT, "fork": KEPT,
    "atexit": KEPT + CLEANED, "first": KEPT + CLEANED,
}
# gcc 12's AddressSanitizer does not hold its lock of stack traces over a fork: a child that is
# forked while another thread allocates waits for that lock for good.
if os.environ.get("SANITIZED"):
    del WAYS["fork"]
# The mode that the program begins in, and what gantry is asked for.
MOVES = {
    "into": ("remote", ("mode", "passthrough")),
    "out of": ("passthrough", ("mode", "remote")),
    "beside": ("remote", ("migrate", "local")),
}
# Of four rounds: most of what can go wrong is on the way in.
ROUNDS = ("into", "into", "out of", "beside")
SLEEPS = ("230", "115")   # clock_nanosleep(2), of x86-64 and of arm64
OPTIONS = None


class Ends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-ends-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def start(self, daemon, mode, way, *words, **env):
        env = {**daemon.program_env(), "GANTRY_MODE": mode, **env}
        program = subprocess.Popen([OPTIONS.ends, way, *words], env=env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stderr.readline(), "ready\n")
        return program

    @staticmethod
    def end(program):
        if program.poll() is None:
            program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()

    @staticmethod
    def tell(program, after_us):
        program.stdin.write("{}\n".format(after_us))
        program.stdin.flush()

    def ends_well(self, program, what, says=KEPT):
        try:
            program.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.fail("{}: it does not end".format(what))
        end = (program.returncode, program.stdout.read(), program.stderr.read())
        self.assertEqual(end, (0, says, ""), what)

    @staticmethod
    def vgpu_of(daemon, program):
        (vgpu,) = [v["id"] for v in daemon.vgpus() if v["pid"] == program.pid]
        return vgpu

    @staticmethod
    def begin_move(daemon, vgpu, words):
        """What comes of it is up to the moment of the program's end."""
        return subprocess.Popen(command(daemon, words[0], vgpu, words[1], "--quiet"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ends_while_moved(self, daemon, way, name, after_us):
        mode, words = MOVES[name]
        program = self.start(daemon, mode, way)
        mover = self.begin_move(daemon, self.vgpu_of(daemon, program), words)
        self.tell(program, after_us)
        what = "{}, moved {}, after {} us".format(way, name, after_us)
        self.ends_well(program, what, WAYS[way])
        mover.wait(TIMEOUT_S)

    def length_us(self, daemon, name):
        """How long such a move takes, once everything has been compiled."""
        mode, words = MOVES[name]
        for _ in range(2):
            program = self.start(daemon, mode, "return")
            vgpu = self.vgpu_of(daemon, program)
            began = time.monotonic()
            status, said = gantry(daemon, words[0], vgpu, words[1])
            took = time.monotonic() - began
            self.assertEqual(status, 0, said)
            self.tell(program, 0)
            self.ends_well(program, "moved {}".format(name))
        return int(took * 1e6)

    def test_at_any_moment(self):
        chance = random.Random(OPTIONS.seed)
        with Daemon(OPTIONS.stage, self.work, passthrough=True) as daemon:
            lengths = {name: self.length_us(daemon, name) for name in MOVES}
            for i in range(OPTIONS.runs):
                way = list(WAYS)[i % len(WAYS)]
                name = ROUNDS[i // len(WAYS) % len(ROUNDS)]
                after_us = chance.randrange(lengths[name] * 5 // 4)
                self.ends_while_moved(daemon, way, name, after_us)
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    # ---- a driver that says when a thread is in it

    def meets(self, place, name, way, says=KEPT):
        """The program ends while a thread of Gantry's is at that place of the driver."""
        mode, words = MOVES[name]
        vendors, report, fifo = (os.path.join(self.work, n) for n in ("vendors", "report", "fifo"))
        os.mkdir(vendors)
        os.mkfifo(fifo)
        with open(os.path.join(vendors, "leaving.icd"), "w", encoding="utf-8") as f:
            f.write(OPTIONS.leaving + "\n")

        def stands():
            if not os.path.exists(report):
                return False
            with open(report, encoding="utf-8") as f:
                return "stands {}\n".format(place) in f.read()

        env = {"OCL_ICD_VENDORS": vendors}
        with Daemon(OPTIONS.stage, self.work, passthrough=True, env=env) as daemon:
            hold = {"LEAVING_HOLD": "{} {}".format(place, fifo), "LEAVING_REPORT": report}
            program = self.start(daemon, mode, way, "plain", **hold)
            mover = self.begin_move(daemon, self.vgpu_of(daemon, program), words)
            self.assertTrue(wait_until(stands, TIMEOUT_S))
            self.tell(program, 0)
            # Dead, if nothing holds its end up; else exit() waits for the thread.
            self.assertTrue(wait_until(lambda: self.is_dead_or_waits(program), TIMEOUT_S))
            if program.poll() is None:
                with open(fifo, "wb", buffering=0) as f:
                    f.write(b"x")
            self.ends_well(program, place, says)
            mover.wait(TIMEOUT_S)

    @staticmethod
    def is_dead_or_waits(program):
        """exit() sleeps for a moment at a time while it waits; no other thread does."""
        if program.poll() is not None:
            return True
        try:
            for task in os.listdir("/proc/{}/task".format(program.pid)):
                path = "/proc/{}/task/{}/syscall".format(program.pid, task)
                with open(path, encoding="ascii") as f:
                    if f.read().split()[0] in SLEEPS:
                        return True
        except OSError:
            pass   # it is ending
        return False

    def test_in_a_constructor(self):
        self.meets("load", "into", "return")

    def test_in_a_constructor_by_a_thread_without_calls(self):
        self.meets("load", "into", "thread")

    def test_in_a_constructor_by_a_callback(self):
        self.meets("load", "into", "callback")

    def test_in_a_constructor_with_handlers_that_call(self):
        self.meets("load", "into", "first", KEPT + CLEANED)

    def test_while_it_comes_up(self):
        self.meets("open", "into", "exit")

    def test_while_objects_come(self):
        self.meets("make", "into", "atexit", KEPT + CLEANED)

    def test_while_what_was_left_is_released(self):
        self.meets("release", "out of", "return")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", type=os.path.abspath)
    parser.add_argument("ends", type=os.path.abspath)
    parser.add_argument("leaving", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=4 * len(WAYS))
    parser.add_argument("--seed", type=int, default=1)
    OPTIONS, rest = parser.parse_known_args()
    telling.main(OPTIONS.stage, rest)
