#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver that takes long over a program's binaries: neither the program's other threads nor a move make anybody else wait for it.

    asks_test.py STAGE PROGRAM LESSER      STAGE: what make stage leaves; PROGRAM: asks; LESSER: a driver in front of PoCL (lesser_icd.c)
"""

import os
import subprocess
import sys
import tempfile
import threading
import unittest

from moves_harness import Daemon, TIMEOUT_S, command, telling, wait_until

STAGE, PROGRAM, LESSER = (os.path.abspath(p) for p in sys.argv[1:4])


class Asks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-asks-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        os.chmod(self.work, 0o755)
        self.fifo = os.path.join(self.work, "fifo")
        os.mkfifo(self.fifo)
        os.chmod(self.fifo, 0o666)
        vendors = os.path.join(self.work, "vendors")
        os.mkdir(vendors)
        with open(os.path.join(vendors, "lesser.icd"), "w", encoding="utf-8") as f:
            f.write(LESSER + "\n")
        self.env = {"OCL_ICD_VENDORS": vendors, "LESSER": "binaries:" + self.fifo}

    def daemon(self, **options):
        # The driver's way to the FIFO is in nobody's wall.
        daemon = Daemon(STAGE, os.path.join(self.work, "daemon"), args=["--walls", "none"], env=self.env, **options)
        daemon.__enter__()
        self.addCleanup(lambda: daemon.__exit__(None, None, None))
        return daemon

    def program(self, daemon):
        process = subprocess.Popen([PROGRAM, self.fifo], env={**daemon.program_env(), "LESSER": self.env["LESSER"]}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        watch = threading.Timer(TIMEOUT_S, process.kill)   # ends a wait that would never end
        watch.start()

        def end():
            watch.cancel()
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.addCleanup(end)
        return process

    def at(self, program, step):
        self.assertEqual(program.stdout.readline().strip(), step)

    def on(self, program):
        program.stdin.write("on\n")
        program.stdin.flush()

    def ends_well(self, program):
        self.on(program)
        self.at(program, "right")
        self.assertEqual(program.wait(), 0)

    def test_other_threads_go_on(self):
        for passthrough in (False, True):
            with self.subTest(passthrough=passthrough):
                if not os.path.exists(self.fifo):
                    os.mkfifo(self.fifo)
                    os.chmod(self.fifo, 0o666)
                daemon = self.daemon(passthrough=passthrough)
                program = self.program(daemon)
                self.at(program, "asks")
                self.on(program)
                self.at(program, "goes on")
                self.on(program)
                self.at(program, "told")
                self.ends_well(program)

    def test_nothing_stands_still_for_it(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.at(program, "asks")
        with subprocess.Popen(command(daemon, "migrate", daemon.vgpus()[0]["id"], "local"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as move:
            self.assertTrue(wait_until(lambda: "moving" in daemon.vgpus()[0], TIMEOUT_S))
            self.on(program)
            self.at(program, "goes on")
            self.assertIsNone(move.poll())
            self.on(program)
            self.at(program, "told")
            said, _ = move.communicate(timeout=TIMEOUT_S)
            self.assertEqual(move.returncode, 0, said)
        self.ends_well(program)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[4:])
