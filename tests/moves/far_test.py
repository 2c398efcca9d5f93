#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory with their vGPUs, which go to a gantryd that is reached over tcp while they run: their link is tcp from then on.
What they compute is what they compute undisturbed; what cannot go is refused, and goes on.

    far_test.py STAGE PROGRAM BUSY SHARING LOAD WANDERER    STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load;
                                                            WANDERER: the program of the tests of tcp
"""

import json
import os
import signal
import subprocess
import sys

from moves_harness import FarCase, Load, STEPS, TIMEOUT_S, TcpCase, command, gantry, telling, start_again, wait_until

TcpCase.stage, TcpCase.path, BUSY, SHARING, LOAD, WANDERER = (os.path.abspath(p) for p in sys.argv[1:7])
TOKEN = "blue-has-a-token-that-is-long-enough"


class Far(FarCase):
    def test_at_each_step(self):
        a, b = self.here(), self.daemon("b")
        for i, name in enumerate(STEPS):
            if name.startswith("shared memory"):
                continue
            with self.subTest(step=name):
                program = self.shared(a)
                self.assertEqual(program.at(), STEPS[0])
                for later in STEPS[1:i + 1]:
                    program.on()
                    self.assertEqual(program.at(), later)
                self.move(a, b, *[(), ("--stop-and-copy",), ("--rounds", "2")][i % 3])
                # It is an ordinary one now: it goes on over tcp.
                if i % 2:
                    self.move(b, a, "--link", "tcp", link="tcp")
                self.ends_well(program, i + 1)
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_all_that_writes(self):
        """With buffers that lie in memory which the program writes by itself."""
        a, b = self.here(), self.daemon("b")
        for what, *how in (("home",), ("home", "--stop-and-copy"), ("home", "--rounds", "3"), ("all",)):
            with self.subTest(what=what, how=how):
                program = self.start(a, BUSY, what)
                self.assertEqual(program.stdout.readline().strip(), "goes")
                self.move(a, b, *how)
                disturbed, _ = program.communicate("on\n", timeout=TIMEOUT_S)
                self.assertEqual(program.returncode, 0, disturbed)
                program = self.start(a, BUSY, what, disturbed.split("\n")[0])
                self.assertEqual(program.stdout.readline().strip(), "goes")
                self.assertEqual(program.communicate(timeout=TIMEOUT_S)[0], disturbed)
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_lists_that_are_longer_than_a_record(self):
        """Of commands that nobody answers, and that were put into the ring as if their vGPU were here."""
        a, b = self.here(), self.daemon("b")
        program = self.start(a, WANDERER)
        self.assertEqual(program.stdout.readline(), "ready 0\n")
        self.move(a, b)
        words = ["list 5000", "list 70000", "list 150000", "rounds 3"]
        out, _ = program.communicate("".join(w + "\n" for w in words), timeout=TIMEOUT_S)
        self.assertEqual(out.split(), ["0"] * len(words))
        self.assertEqual(program.returncode, 0)

    def test_loads_that_run(self):
        a, b = self.here(), self.daemon("b")
        for load in ("histogram", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, dict(a.program_env(), GANTRY_CONNECT=a.address))
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                self.move(a, b)
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_through_tls(self):
        token = os.path.join(self.work, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")
        config = os.path.join(self.work, "b.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[tenant default]\ntoken-file = {}\n".format(token))
        a, b = self.here(), self.daemon("b", "--config", config, insecure=False)
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        self.refused(a, "credentials", "migrate", a.vgpus()[0]["id"], b.tcp_address)
        self.move(a, b, "--token-file", token)
        self.ends_well(program)

    def test_into_a_file(self):
        """Once it is over there its program cannot wait for it; the way out that is named is one."""
        a, b = self.here(), self.daemon("b")
        files = os.path.join(self.work, "files")
        os.mkdir(files)
        file = os.path.join(files, "a.ckpt")
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        self.move(a, b)
        vgpu = b.vgpus()[0]["id"]
        self.refused(b, "gantry migrate VGPU tcp:HOST:PORT", "checkpoint", vgpu, file, "--stop")
        self.assertEqual(os.listdir(files), [])
        status, said = gantry(b, "checkpoint", vgpu, file)
        self.assertEqual(status, 0, said)
        self.assertEqual((said["checkpoint"]["state"], said["checkpoint"]["bytes"]), ("running", os.path.getsize(file)))
        self.refused(b, "without --stop", "restore", file)
        self.move(b, a, link="tcp", then="shm")
        status, said = gantry(a, "checkpoint", vgpu, file, "--stop")
        self.assertEqual(status, 0, said)
        status, said = gantry(a, "restore", file)
        self.assertEqual(status, 0, said)
        self.ends_well(program)

    def test_what_cannot_go_is_refused(self):
        a, b = self.here(), self.daemon("b")
        for word, why in (("svm", "shared virtual memory"), ("maps", "mapping or copying")):
            with self.subTest(word):
                program = self.start(a, SHARING, word)
                if program.stdout.readline().strip() == "skipped":
                    continue
                self.refused(a, why, "migrate", a.vgpus()[0]["id"], b.tcp_address)
                out, _ = program.communicate("on\n", timeout=TIMEOUT_S)
                self.assertEqual((out, program.returncode), ("right\n", 0))
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        b.ctl("tenant", "set", "default", "--memory", "1M")
        program = self.shared(a)
        self.assertEqual(program.at(), STEPS[0])
        self.refused(a, "of device memory", "migrate", a.vgpus()[0]["id"], b.tcp_address)
        self.refused(a, "there already", "migrate", a.vgpus()[0]["id"], a.tcp_address)
        self.assertEqual(b.vgpus(), [])
        self.ends_well(program)

    def on_the_way(self, a, b):
        """A program that moves from a to b so slowly that it would take minutes, what was to be seen of it, and the command."""
        program = self.start(a, BUSY, "home")
        self.assertEqual(program.stdout.readline().strip(), "goes")
        before = a.vgpus()[0]
        move = subprocess.Popen(command(a, "migrate", "--json", "--bandwidth", "64K", before["id"], b.tcp_address), stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (move.kill(), move.wait(), move.stdout.close()))
        self.assertTrue(wait_until(lambda: (a.vgpus()[0].get("moving") or {}).get("phase") == "ahead", TIMEOUT_S))
        return program, before, move

    def test_the_other_one_dies_on_the_way(self):
        a, b = self.here(), self.daemon("b")
        program, before, move = self.on_the_way(a, b)
        start_again(b)
        out, _ = move.communicate(timeout=TIMEOUT_S)
        self.assertEqual(move.returncode, 1, out)
        self.assertTrue(wait_until(lambda: a.vgpus()[0]["state"] != "moving", TIMEOUT_S))
        self.assertEqual((a.vgpus()[0]["worker_pid"], a.vgpus()[0]["link"]), (before["worker_pid"], "shm"))
        # What the worker had begun to write it gives up when it finds out that nobody reads.
        self.assertTrue(wait_until(lambda: gantry(a, "migrate", before["id"], b.tcp_address)[0] == 0, TIMEOUT_S))
        self.assertEqual([(v["id"], v["link"]) for v in b.vgpus()], [(before["id"], "tcp")])
        disturbed, _ = program.communicate("on\n", timeout=TIMEOUT_S)
        program = self.start(a, BUSY, "home", disturbed.split("\n")[0])
        self.assertEqual(program.communicate(timeout=TIMEOUT_S)[0], "goes\n" + disturbed)

    def test_both_ends_die_on_the_way(self):
        """Nothing comes of it, as the program says; what became of the old worker is not known before that has its say, or has ended."""
        a, b = self.here(), self.daemon("b")
        program, before, move = self.on_the_way(a, b)
        os.kill(before["worker_pid"], signal.SIGSTOP)
        start_again(b)
        with self.assertRaises(subprocess.TimeoutExpired):
            move.wait(1)
        os.kill(before["worker_pid"], signal.SIGKILL)
        out, _ = move.communicate(timeout=TIMEOUT_S)
        self.assertEqual(move.returncode, 1, out)
        # A program that notices the loss first ends with an error.
        self.assertRegex(json.loads(out)["error"]["why"], "the vGPU is lost|its program has ended")
        program.kill()
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[7:])
