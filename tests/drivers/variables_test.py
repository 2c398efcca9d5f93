#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Program-scope variables keep their contents: a vGPU with a program whose variables a launch may
have written is not moved, saved or switched, and the command says why; any other vGPU is.

    variables_test.py STAGE PROGRAM CURRENT

STAGE: the staged tree; PROGRAM: variables; CURRENT: current_icd.c's library
"""

import json
import os
import sys

from drivers_harness import DriversCase, TIMEOUT_S, gantry, telling, wait_until

DriversCase.stage, PROGRAM, DriversCase.current = (os.path.abspath(p) for p in sys.argv[1:4])
WHY = "program-scope variables"
FROM_TEXT = ("source", "linked", "header", "included", "clone", "other", "recorded")


class Variables(DriversCase):
    def pair(self, words=None):
        """Two gantryds: on PoCL as it is, which takes such variables although its device has none;
        or on the played driver."""
        if words is None:
            return self.daemon("a"), self.daemon("b")
        return self.played("a", words), self.played("b", words)

    def count(self, program, n):
        self.tell(program, "on")
        self.says(program, str(n))

    def ends(self, program, *daemons):
        self.tell(program, "end")
        self.says(program, "right")
        self.assertEqual(program.wait(TIMEOUT_S), 0)
        for daemon in daemons:
            self.assertTrue(wait_until(lambda d=daemon: not d.vgpus(), TIMEOUT_S))

    def ways(self, vgpu, there):
        path = os.path.join(self.work, "file.gnc")
        return (("migrate", vgpu, "local"), ("migrate", vgpu, "local", "--stop-and-copy"),
                ("migrate", vgpu, there.address),
                ("migrate", vgpu, there.address, "--stop-and-copy"),
                ("checkpoint", vgpu, path), ("checkpoint", vgpu, path, "--stop"),
                ("mode", vgpu, "passthrough"))

    def refused(self, here, program, n, *ways):
        """It goes on counting from n, where it is."""
        for words in ways:
            with self.subTest(words=words):
                status, said = gantry(here, *words)
                self.assertEqual(status, 1, said)
                self.assertIn(WHY, json.dumps(said["error"]))
                self.count(program, n)
                n += 1
        return n

    def all_refused(self, here, there, program, n):
        before = here.vgpus()
        (vgpu,) = before
        here.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        n = self.refused(here, program, n, *self.ways(vgpu["id"], there))
        self.assertFalse(os.path.exists(os.path.join(self.work, "file.gnc")))
        status, said = gantry(here, "drain", there.address)
        self.assertEqual(status, 1, said)
        self.assertEqual([v["result"] for v in said["drain"]["vgpus"]], ["stays"])
        self.assertIn(WHY, json.dumps(said))
        gantry(here, "drain", "--undo")
        self.assertEqual([v["worker_pid"] for v in here.vgpus()], [v["worker_pid"] for v in before])
        self.assertEqual(there.vgpus(), [])
        self.count(program, n)

    def stays(self, words, how):
        here, there = self.pair(words)
        program = self.start(here, PROGRAM, how, self.work)
        self.says(program, "ready")
        self.all_refused(here, there, program, 101 if how == "other" else 102)
        self.ends(program, here)

    def moves(self, words, how):
        here, there = self.pair(words)
        program = self.start(here, PROGRAM, how)
        self.says(program, "ready")
        (vgpu,) = here.vgpus()
        for daemon, where in ((here, "local"), (here, there.address), (there, here.address)):
            status, said = gantry(daemon, "migrate", vgpu["id"], where)
            self.assertEqual(status, 0, said)
        self.count(program, 101)
        self.ends(program, here, there)

    def test_in_the_program_itself(self):
        here, _ = self.pair("variables")
        here.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        program = self.start(here, PROGRAM, "source", GANTRY_MODE="passthrough",
                             POCL_CACHE_DIR=here.cache)
        self.says(program, "ready")
        (vgpu,) = here.vgpus()
        self.assertEqual(vgpu["mode"], "passthrough")
        self.refused(here, program, 102, ("mode", vgpu["id"], "remote"),
                     ("migrate", vgpu["id"], "local"))
        self.ends(program, here)


def add(name, method, *args):
    setattr(Variables, "test_" + name, lambda self: method(self, *args))


for played, words in (("", None), ("_played", "variables")):
    for how in FROM_TEXT + (("binary",) if words else ()):
        add(how + "_stays" + played, Variables.stays, words, how)
    for how in ("unlaunched", "gone", "none", "unrun"):
        add(how + "_moves" + played, Variables.moves, words, how)


if __name__ == "__main__":
    telling.main(DriversCase.stage, sys.argv[4:])
