#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with kernels of seconds, one behind the other, whose vGPUs are moved in the middle of one: the launch is cut, its rest goes on where
the vGPU goes, each work-item runs once, and nothing waits for the kernel's end.

    long_test.py STAGE PROGRAM [faults]      STAGE: what make stage leaves; PROGRAM: long; faults: the build has the points (-Dfaults=true)
"""

import os
import re
import struct
import subprocess
import sys
import unittest

from moves_harness import MovesCase, TIMEOUT_S, gantry, rewritten, telling, wait_until
from decoder import Decoder

MovesCase.stage, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])
FAULTS = sys.argv[3:4] == ["faults"]
GROUPS = 20000
SAVED = re.compile(r"Launch of (\d+) groups is saved behind group (\d+)")
GOES_ON = re.compile(r"Launch of (\d+) groups goes on behind group (\d+)")
TRIES = 20   # a move that comes between two launches finds none that has begun


class Long(MovesCase):
    def daemon(self, name, env=None, **options):
        return super().daemon(name, env={"GANTRY_LOG": "debug", **(env or {})}, **options)

    def start(self, daemon, how="plain", **env):
        program = subprocess.Popen([PROGRAM, how], env=dict(daemon.program_env(), **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (program.kill(), program.wait(), program.stdin.close(), program.stdout.close()))
        self.assertEqual(program.stdout.readline(), "goes\n")
        return program

    def ends_well(self, program):
        out, _ = program.communicate("on\n", timeout=TIMEOUT_S)
        self.assertEqual((program.returncode, out), (0, "right\n"))

    def rests(self, daemon, pattern):
        """What was said of launches that were cut so far: each behind some group, and with some left."""
        found = [(int(n), int(done)) for n, done in pattern.findall(daemon.log())]
        for n, done in found:
            self.assertEqual(n, GROUPS)
            self.assertTrue(0 < done < n, found)
        return found

    def cut(self, *ways):
        """Goes these ways, again and again, until a launch was cut on one: each is (here, there, gantry's words or who says them), `there` whose log tells."""
        for _ in range(TRIES):
            for here, there, *words in ways:
                before = len(self.rests(there, GOES_ON))
                status, said = gantry(here, words[0], here.vgpus()[0]["id"], *(w() if callable(w) else w for w in words[1:]))
                self.assertEqual(status, 0, said)
                # A worker's lines come through gantryd: one that is late costs another move.
                if wait_until(lambda: len(self.rests(there, GOES_ON)) > before, 0.2):
                    return
        self.fail("no launch was cut:\n" + ways[0][0].log()[-4000:])

    def both(self, daemon, *ways):
        """Each of the ways with each kind of launch."""
        for how in ("plain", "told"):
            with self.subTest(how=how):
                program = self.start(daemon, how)
                self.cut(*((daemon, daemon, *words) for words in ways))
                self.ends_well(program)
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_to_a_new_worker(self):
        self.both(self.daemon("a"), ("migrate", "local"), ("migrate", "local", "--stop-and-copy"))

    def test_to_another_device(self):
        daemon = self.daemon("a", env={"POCL_DEVICES": "pthread basic"})

        def used():
            return [d["name"].split("-")[0] for v in daemon.vgpus() for d in v["devices"] if d["used"]]

        def other():
            """A worker that has just taken over says which it uses when it has heard that it may go on."""
            self.assertTrue(wait_until(lambda: len(used()) == 1, TIMEOUT_S))
            return "basic" if used() == ["pthread"] else "pthread"
        self.both(daemon, ("migrate", "local", "--device", other))

    def test_to_another_gantryd(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.start(a)
        self.cut((a, b, "migrate", b.address), (b, a, "migrate", a.address))
        self.ends_well(program)

    def test_over_tcp(self):
        listen = ["--listen", "tcp:127.0.0.1:0", "--insecure"]
        a, b = self.daemon("a", args=listen), self.daemon("b", args=listen)
        program = self.start(a)
        self.cut((a, b, "migrate", b.tcp_address), (b, a, "migrate", a.tcp_address))
        self.ends_well(program)

    def test_into_its_program_and_out(self):
        """What goes on in the program is said there: so on the way back the worker tells."""
        daemon = self.daemon("a", passthrough=True)
        self.both(daemon, ("mode", "remote"), ("mode", "passthrough"))

    def done(self, path):
        """Of a file's commands, the groups that have run."""
        with open(path, "rb") as f:
            decoder = Decoder(f.read())
        decoder.decode()
        return [c["done"] for c in decoder.commands if c["done"]]

    def test_into_a_file_and_out_of_it(self):
        file = os.path.join(self.work, "a.ckpt")
        daemon = self.daemon("a")
        program = self.start(daemon)
        for words in ((), ("--stop",)):
            for _ in range(TRIES):
                status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], file, *words)
                self.assertEqual(status, 0, said)
                if self.done(file):
                    break
                if words:
                    self.assertEqual(gantry(daemon, "restore", file)[0], 0)
            [done] = self.done(file)
            self.assertTrue(0 < done < GROUPS)
            self.assertIn(done, [c["work_groups_done"] for c in gantry(daemon, "inspect", file)[1]["checkpoint"]["commands"]])
        # A file that says that nothing is left, or more than there is, is refused, and the program waits on.
        with open(file, "rb") as f:
            good = f.read()
        for lie in (GROUPS, 2 ** 64 - 1):
            def change(name, body, lie=lie):
                at = body.find(struct.pack("<Q", done)) if name == "commands" else -1
                return body if at < 0 else body[:at] + struct.pack("<Q", lie) + body[at + 8:]
            with open(file, "wb") as f:
                f.write(rewritten(good, change))
            self.assertEqual(self.done(file), [lie])
            status, said = gantry(daemon, "restore", file)
            self.assertEqual(status, 1, said)
            self.assertIn("cannot continue here", said["error"]["why"])
        with open(file, "wb") as f:
            f.write(good)
        status, said = gantry(daemon, "restore", file)
        self.assertEqual(status, 0, said)
        # The worker's line comes through gantryd, and may be later than the answer.
        self.assertTrue(wait_until(lambda: (GROUPS, done) in self.rests(daemon, GOES_ON), TIMEOUT_S), daemon.log()[-4000:])
        self.ends_well(program)

    @unittest.skipUnless(FAULTS, "without the points")
    def test_a_move_that_fails_goes_on_with_the_rest(self):
        # The first comes before the stop, when nothing has been cut yet.
        for point in ("load-begun", "load-last", "load-done"):
            with self.subTest(point):
                daemon = self.daemon(point, env={"GANTRY_FAULT": point})
                program = self.start(daemon)
                for _ in range(TRIES):
                    status, said = gantry(daemon, "migrate", daemon.vgpus()[0]["id"], "local", "--stop-and-copy")
                    self.assertEqual(status, 1, said)
                    if point == "load-begun" or self.rests(daemon, SAVED):
                        break
                else:
                    self.fail("no launch was cut")
                self.ends_well(program)


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[4 if FAULTS else 3:])
