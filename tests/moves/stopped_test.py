#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Moves, checkpoints and restores while a process that has to answer is stopped (SIGSTOP): a request that needs the program's answer is
refused before anything has begun, a worker or program that is stopped in the middle ends the request when the drain's timeout is over,
and all of them go on once they are continued.

    stopped_test.py STAGE PROGRAM [faults] [TEST]...    PROGRAM: moved; faults: the build has the named points (-Dfaults=true); TEST: as
                                                        unittest names it
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "daemon"))
from gantryd_harness import templates  # noqa: E402
from moves_harness import MovesCase, STEPS, TIMEOUT_S, command, gantry, held, holds, telling, wait_until  # noqa: E402

MovesCase.stage, MovesCase.path = (os.path.abspath(p) for p in sys.argv[1:3])
FAULTS = "faults" in sys.argv[3:]
SOON_S = 40    # far less than the minutes that a request took, far more than a loaded machine needs


class StoppedCase(MovesCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.work, "files", "a.ckpt")
        os.mkdir(os.path.dirname(self.file))

    def stop(self, pid):
        """All of its threads stand when this returns."""
        os.kill(pid, signal.SIGSTOP)

        def stands():
            folder = "/proc/{}/task".format(pid)
            for thread in os.listdir(folder):
                with open(os.path.join(folder, thread, "stat"), encoding="utf-8", errors="replace") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] != "T":
                        return False
            return True
        self.assertTrue(wait_until(stands, TIMEOUT_S))

    def refused(self, daemon, why, *words):
        """That many seconds later."""
        began = time.monotonic()
        status, said = gantry(daemon, *words)
        took = time.monotonic() - began
        self.assertEqual(status, 1, said)
        self.assertIn(why, said["error"]["why"])
        return took, said["error"]

    def stopped(self, daemon, who, pid, *words):
        """It is refused for that process, by name, with the way out."""
        took, error = self.refused(daemon, "the {} is stopped".format(who), *words)
        self.assertEqual(error["fix"], "continue it with kill -CONT {}, then ask again".format(pid))
        return took

    def left(self):
        return os.listdir(os.path.dirname(self.file))

    def succeeds(self, daemon, *words):
        """Asked again as long as its worker has not heard that an earlier move is over."""
        said = None
        while said is None or "has not ended an earlier move" in json.dumps(said):
            status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, said)

    def asked(self, daemon, *words, **env):
        process = subprocess.Popen(command(daemon, words[0], "--json", *words[1:]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=dict(os.environ, **env))
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        return process

    def fails(self, process, why):
        out, _ = process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, 1, out)
        self.assertIn(why, json.loads(out)["error"]["why"])


class Stopped(StoppedCase):
    def test_a_program_that_is_stopped(self):
        a, b = self.daemon("a"), self.daemon("b")
        a.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        program = self.at_first(a)
        pid, vgpu = program.process.pid, a.vgpus()[0]
        who = 'program "moved" ({})'.format(pid)
        self.stop(pid)
        for words in (("migrate", vgpu["id"], b.address), ("mode", vgpu["id"], "passthrough"),
                      ("checkpoint", vgpu["id"], self.file, "--stop")):
            with self.subTest(words=words[0]):
                self.assertLess(self.stopped(a, who, pid, *words), SOON_S)
        stays = self.drain(a, b, 1)[vgpu["id"]]
        self.assertEqual(stays["result"], "stays")
        self.assertIn("the {} is stopped".format(who), stays["why"])
        self.assertEqual(gantry(a, "drain", "--undo")[0], 0)
        # None of that has begun anything.
        self.assertEqual(self.left(), [])
        self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
        for log in (a.log(), b.log()):
            self.assertNotIn("vgpu={}: the vGPU was not moved".format(vgpu["id"]), log)
            self.assertNotIn("has run out", log)
        # Whatever needs no answer of the program is done.
        self.succeeds(a, "checkpoint", vgpu["id"], self.file)
        self.succeeds(a, "migrate", vgpu["id"], "local")
        self.assertNotEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
        os.kill(pid, signal.SIGCONT)
        self.succeeds(a, "migrate", vgpu["id"], b.address)
        self.ends_well(program)

    def test_a_worker_that_is_stopped(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.at_first(a)
        vgpu = a.vgpus()[0]
        for words in (("migrate", vgpu["id"], "local"), ("migrate", vgpu["id"], b.address), ("checkpoint", vgpu["id"], self.file),
                      ("checkpoint", vgpu["id"], self.file, "--stop")):
            with self.subTest(words=words):
                worker = a.vgpus()[0]["worker_pid"]
                self.stop(worker)
                self.assertLess(self.stopped(a, "worker {}".format(worker), worker, *words, "--drain-timeout", "1"), SOON_S)
                self.stopped(a, "worker {}".format(worker), worker, *words)  # it has not heard yet that this is over
                os.kill(worker, signal.SIGCONT)
                self.assertEqual(self.left(), [])
                self.succeeds(a, "migrate", vgpu["id"], "local")
        worker = a.vgpus()[0]["worker_pid"]
        self.stop(worker)
        stays = self.drain(a, b, 1, "--drain-timeout", "1")[vgpu["id"]]
        self.assertIn("the worker {} is stopped".format(worker), stays["why"])
        os.kill(worker, signal.SIGCONT)
        self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))
        self.ends_well(program)

    def test_a_worker_that_is_continued_in_time(self):
        """A stop that is shorter than the drain's timeout changes nothing."""
        a = self.daemon("a")
        program = self.at_first(a)
        vgpu = a.vgpus()[0]
        self.stop(vgpu["worker_pid"])
        move = self.asked(a, "migrate", vgpu["id"], "local")
        self.assertTrue(wait_until(lambda: a.vgpus()[0].get("moving", {}).get("phase") == "ahead", TIMEOUT_S))
        os.kill(vgpu["worker_pid"], signal.SIGCONT)
        out, _ = move.communicate(timeout=TIMEOUT_S)
        self.assertEqual(move.returncode, 0, out)
        self.ends_well(program)

    def test_a_program_that_is_stopped_and_in_a_file(self):
        a = self.daemon("a")
        program = self.at_first(a)
        pid, vgpu = program.process.pid, a.vgpus()[0]
        who = 'program "moved" ({})'.format(pid)
        self.succeeds(a, "checkpoint", vgpu["id"], self.file, "--stop")
        self.stop(pid)
        self.assertLess(self.stopped(a, who, pid, "restore", self.file), SOON_S)
        os.kill(pid, signal.SIGCONT)
        # It is stopped when its restore has begun.
        hosts = templates(a.process.pid)
        self.assertTrue(hosts)
        for host in hosts:
            os.kill(host, signal.SIGSTOP)  # no worker comes about
        restore = self.asked(a, "restore", self.file)
        self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] == "moving", TIMEOUT_S))
        self.stop(pid)
        for host in hosts:
            os.kill(host, signal.SIGCONT)
        self.fails(restore, "the {} is stopped".format(who))
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] == "stopped", TIMEOUT_S))
        self.succeeds(a, "restore", self.file)
        self.ends_well(program)


@unittest.skipUnless(FAULTS, "the build has no named points")
class StoppedInTheMiddle(StoppedCase):
    def test_the_program_before_it_comes_to_the_other_gantryd(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.at_first(a, GANTRY_HOLD="program-move-told")
        pid, vgpu = program.process.pid, a.vgpus()[0]
        move = self.asked(a, "migrate", "--drain-timeout", "1", vgpu["id"], b.address)
        self.assertTrue(wait_until(lambda: holds(pid), TIMEOUT_S))
        self.stop(pid)
        self.fails(move, 'the program "moved" ({}) is stopped; the vGPU goes on where it was'.format(pid))
        os.kill(pid, signal.SIGCONT)
        self.succeeds(a, "migrate", vgpu["id"], b.address)
        self.ends_well(program)

    def test_the_program_before_it_decides(self):
        """The vGPU waits at both gantryds; the one that asked is told so, and the program decides when it is continued."""
        a, b = self.daemon("a"), self.daemon("b")
        program = self.at_first(a, GANTRY_HOLD="program-before-go")
        pid, vgpu = program.process.pid, a.vgpus()[0]
        move = self.asked(a, "migrate", "--drain-timeout", "1", vgpu["id"], b.address)
        self.assertTrue(wait_until(lambda: holds(pid), TIMEOUT_S))
        self.stop(pid)
        self.fails(move, "does not say where it goes on")
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.assertEqual([v["id"] for v in b.vgpus()], [vgpu["id"]])
        self.ends_well(program)

    def test_the_program_while_its_file_is_written(self):
        a = self.daemon("a")
        program = self.at_first(a)
        pid, vgpu = program.process.pid, a.vgpus()[0]
        save = self.asked(a, "checkpoint", vgpu["id"], self.file, "--stop", GANTRY_HOLD="ctl-before-keep")
        self.assertTrue(wait_until(self.left, TIMEOUT_S))
        self.assertTrue(wait_until(lambda: holds(save.pid), TIMEOUT_S))
        self.stop(pid)
        save.send_signal(signal.SIGCONT)
        self.fails(save, 'the program "moved" ({}) is stopped'.format(pid))
        self.assertEqual(self.left(), [])
        self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
        os.kill(pid, signal.SIGCONT)
        self.ends_well(program)

    def test_the_new_worker(self):
        """Here, and at another gantryd, whose --drain-timeout is the default one."""
        for away in (False, True):
            with self.subTest(away=away):
                a = self.daemon("a" + str(away), **({} if away else {"env": {"GANTRY_HOLD": "load-begun"}}))
                b = self.daemon("b" + str(away), **({"env": {"GANTRY_HOLD": "load-begun"}} if away else {}))
                program = self.at_first(a)
                vgpu = a.vgpus()[0]
                move = self.asked(a, "migrate", "--drain-timeout", "1", vgpu["id"], b.address if away else "local")
                there = b if away else a
                self.assertTrue(wait_until(lambda: held(there), TIMEOUT_S))
                worker = held(there)
                self.stop(worker)
                self.fails(move, "the worker {} is stopped".format(worker))
                self.assertEqual(a.vgpus()[0]["worker_pid"], vgpu["worker_pid"])
                self.assertTrue(wait_until(lambda: not os.path.exists("/proc/{}".format(worker)), TIMEOUT_S))
                self.assertEqual(b.vgpus(), [])
                program.on()
                self.assertEqual(program.at(), STEPS[1])
                self.ends_well(program, 2)


if __name__ == "__main__":
    telling.main(MovesCase.stage, [name for name in sys.argv[3:] if name != "faults"])
