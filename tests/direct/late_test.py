#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver that says things late, on a thread of its own, when the vGPU has left the program: nothing that was given back is touched,
and what the program waits for is told.

    late_test.py STAGE HOSTED LEAVING    STAGE: what make stage leaves; LEAVING: the driver, late.h says how it is told when to speak
"""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import Daemon, TIMEOUT_S, gantry, rest_of, telling, wait_until  # noqa: E402

ROUNDS = 16
ROUND_BYTES = 8 * (4 << 20)   # of the buffers that `hosted late` makes
OURS = 3   # threads of a vGPU in its program that always are: keeper, control, one that submits
STAGE, HOSTED, LEAVING = (os.path.abspath(p) for p in sys.argv[1:4])


class Late(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-late-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.vendors, self.report = os.path.join(self.work, "vendors"), os.path.join(self.work, "report")
        self.fifo = os.path.join(self.work, "fifo")
        os.mkfifo(self.fifo)
        os.mkdir(self.vendors)
        with open(os.path.join(self.vendors, "late.icd"), "w", encoding="utf-8") as f:
            f.write(LEAVING + "\n")

    def daemon(self, late, *args):
        """late: the kinds of words that are."""
        self.late = late
        return Daemon(STAGE, self.work, args=args, passthrough=True, env={"OCL_ICD_VENDORS": self.vendors, "LATE": late})

    def start(self, daemon, **more):
        env = {**daemon.program_env(), "LATE": self.late, "LATE_FIFO": self.fifo, "LATE_REPORT": self.report, "LEAVING_STAYS": "1", **more}
        program = subprocess.Popen([HOSTED, "late"], env={k: v for k, v in env.items() if v}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    @staticmethod
    def end(program):
        if program.poll() is None:
            program.kill()
        program.wait()
        program.stdin.close()
        print(rest_of(program), end="", file=sys.stderr)
        program.stdout.close()

    def does(self, program, *words, result=0):
        for word in words:
            program.stdin.write(word + "\n")
            program.stdin.flush()
            said = program.stdout.readline()
            if said != "{} {}\n".format(word.split()[0], result):
                self.fail("{} gives {!r}\n{}".format(word, said, rest_of(program)))

    def ends_well(self, program):
        out, _ = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual((program.returncode, out), (0, "right\n"))

    def speak(self, kind):
        with open(self.fifo, "w", encoding="utf-8") as f:
            f.write(kind)

    def heard(self, line, n=1):
        """The driver has reported this so often."""
        def has():
            try:
                with open(self.report, encoding="utf-8") as f:
                    return f.read().splitlines().count(line) >= n
            except OSError:
                return False
        self.assertTrue(wait_until(has, TIMEOUT_S), line)

    @staticmethod
    def threads(program):
        return len(os.listdir("/proc/{}/task".format(program.pid)))

    @staticmethod
    def mapped(program, what="memfd:gantry"):
        with open("/proc/{}/maps".format(program.pid), encoding="utf-8") as f:
            return sum(what in line for line in f)

    @staticmethod
    def shared_bytes(program):
        """Of the segments that it has, each once."""
        sizes = {}
        with open("/proc/{}/maps".format(program.pid), encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if "memfd:gantry" in line:
                    first, last = (int(at, 16) for at in words[0].split("-"))
                    sizes[words[4]] = max(sizes.get(words[4], 0), int(words[2], 16) + last - first)
        return sum(sizes.values())

    def move(self, daemon, *how):
        status, said = gantry(daemon, how[0], daemon.vgpus()[0]["id"], *how[1:])
        self.assertEqual(status, 0, said)

    def leave(self, daemon, program, left=OURS):
        """To a worker, until of the vGPU only what waits for the driver is left in the program."""
        threads = self.threads(program)
        self.move(daemon, "mode", "remote")
        self.assertTrue(wait_until(lambda: program.poll() is not None or self.threads(program) <= threads - left, TIMEOUT_S))

    def test_a_buffer_that_is_let_go_of_late(self):
        with self.daemon("d") as daemon:
            program = self.start(daemon)
            self.does(program, "make", "check")
            self.leave(daemon, program)   # each buffer is another one there
            self.does(program, "check")
            held = self.mapped(program)
            self.speak("d")
            self.heard("said d", 8)
            self.assertTrue(wait_until(lambda: self.mapped(program) < held, TIMEOUT_S))   # the memory was the driver's until then
            self.does(program, "check", "release", "make", "check")
            self.ends_well(program)

    def test_a_home_that_the_program_waits_for(self):
        """It is told that the memory is free, wherever its vGPU is by then: else the data area would grow with each round."""
        with self.daemon("d") as daemon:
            program = self.start(daemon)
            before = self.mapped(program)
            for n in range(1, ROUNDS + 1):
                self.does(program, "make", "release")
                self.leave(daemon, program)
                if n == 1:
                    self.heard("asked d", 8)
                    self.assertGreater(self.mapped(program), before // 2)
                    self.speak("d")
                self.heard("said d", 8 * n)
                self.does(program, "make", "check", "release")
                self.move(daemon, "mode", "passthrough")
            self.assertLess(self.shared_bytes(program), ROUNDS * ROUND_BYTES / 2)
            self.ends_well(program)

    def test_a_worker_that_ends_with_a_home(self):
        """Its driver has no thread, and never says that it has let go of a buffer."""
        with self.daemon("d") as daemon:
            program = self.start(daemon, GANTRY_MODE="remote")
            for _ in range(ROUNDS):
                self.does(program, "make", "check", "release")
                self.move(daemon, "migrate", "local")
            self.assertLess(self.shared_bytes(program), ROUNDS * ROUND_BYTES / 2)
            self.ends_well(program)

    def test_a_driver_that_is_unloaded_says_it_before(self):
        with self.daemon("d") as daemon:
            program = self.start(daemon, LEAVING_STAYS=None)
            before = self.mapped(program)
            self.does(program, "make", "check")
            self.leave(daemon, program)
            self.heard("said d", 8)
            self.assertTrue(wait_until(lambda: self.mapped(program) < before, TIMEOUT_S))
            self.does(program, "check", "release")
            self.ends_well(program)

    def test_a_report_that_is_still_being_heard(self):
        """The driver's thread stands in a call that it has been asked for by the report, and goes on when the vGPU has left."""
        with self.daemon("cr", "--policy", "fair") as daemon:
            program = self.start(daemon)
            self.does(program, "make", "copy 9")   # one of eight tells of its end, and is not the last one then
            self.heard("asked c")
            self.speak("c")
            self.heard("stands r")
            self.move(daemon, "mode", "remote")
            self.does(program, "check")
            self.speak("r")
            self.assertTrue(wait_until(lambda: program.poll() is not None or daemon.vgpus()[0]["mode"] == "remote", TIMEOUT_S))
            self.does(program, "check", "release")
            self.move(daemon, "mode", "passthrough")
            self.does(program, "make", "check")
            self.ends_well(program)

    def test_an_end_that_nobody_waits_for(self):
        """Who would give the device back looks whether another queue is quiet, and is told so late."""
        with self.daemon("c", "--policy", "fair") as daemon:
            program = self.start(daemon)
            self.does(program, "make", "other", "finish")
            self.heard("asked c")
            self.leave(daemon, program)
            self.speak("c")
            self.heard("said c")
            self.does(program, "check", "release", "make", "check")
            self.ends_well(program)

    def test_a_driver_that_forgets(self):
        """It does not call back for what ended just before it was asked to: each command, in a worker and in the program."""
        with self.daemon("f", "--policy", "fair") as daemon:
            program = self.start(daemon, GANTRY_MODE="remote")
            for _ in range(2):
                self.does(program, "make", "copy 9", "check", "other", "finish", "release")
                self.move(daemon, "migrate", "local")
                self.move(daemon, "mode", "passthrough")
                self.does(program, "make", "copy 9", "check", "other", "finish", "release")
                self.leave(daemon, program)
            self.ends_well(program)

    def test_a_word_about_a_context(self):
        with self.daemon("n") as daemon:
            program = self.start(daemon)
            self.leave(daemon, program)
            self.does(program, "sockets")
            self.speak("n")
            self.heard("said n")
            self.does(program, "quiet", "words")
            self.ends_well(program)

    def test_words_after_many_switches(self):
        """Each host of a vGPU in its program is another one who would hear them."""
        with self.daemon("n") as daemon:
            program = self.start(daemon)
            for _ in range(66):
                self.move(daemon, "mode", "remote")
                self.move(daemon, "mode", "passthrough")
            self.does(program, "make", "check", "release")   # it has arrived: what is said on the way there is nobody's
            self.speak("n")
            self.heard("said n", 67)   # all of the context that was made last
            self.assertTrue(wait_until(lambda: self.words(program) > 0, TIMEOUT_S))
            self.ends_well(program)

    @staticmethod
    def words(program):
        program.stdin.write("words\n")
        program.stdin.flush()
        return int(program.stdout.readline().split()[1])

    def test_memory_that_comes_back_late(self):
        """gantryd wants it, and waits for it at another host by then."""
        with self.daemon("d") as daemon:
            program = self.start(daemon)
            self.does(program, "make", "release")
            self.heard("asked d", 8)
            daemon.ctl("tenant", "set", "default", "--memory", "16M")   # all that is freed is wanted at once
            self.leave(daemon, program)
            self.does(program, "sockets")
            self.speak("d")
            self.heard("said d", 8)
            self.does(program, "quiet")
            daemon.ctl("tenant", "set", "default", "--memory", "none")
            self.does(program, "make", "check", "release")
            self.ends_well(program)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[4:])
