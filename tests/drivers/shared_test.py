#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared virtual memory on drivers that look up the pointers that they are given: it is offered, and
works, without one of their functions meeting memory that it may not meet.

    shared_test.py STAGE PROGRAM CURRENT

STAGE: the staged tree; PROGRAM: shared; CURRENT: current_icd.c's library
"""

import os
import sys

from drivers_harness import DriversCase, TIMEOUT_S, gantry, telling

DriversCase.stage, PROGRAM, DriversCase.current = (os.path.abspath(p) for p in sys.argv[1:4])
OFFERED = "0xb"     # all but any pointer of the program's


class Shared(DriversCase):
    def begin(self, words, **env):
        here = self.played("a", words)
        here.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        return here, self.start(here, PROGRAM, POCL_CACHE_DIR=here.cache, **env)

    def do_all(self, program):
        self.tell(program, "work")
        self.says(program, "done")

    def ends(self, here, program):
        self.tell(program, "end")
        self.says(program, "right")
        self.assertEqual(program.wait(TIMEOUT_S), 0, here.log())

    def works(self, words, **env):
        here, program = self.begin(words, **env)
        self.says(program, OFFERED)
        self.do_all(program)
        (vgpu,) = here.vgpus()
        moves = [("migrate", vgpu["id"], "local"), ("mode", vgpu["id"], "passthrough"),
                 ("mode", vgpu["id"], "remote")]
        if vgpu["mode"] == "passthrough":
            moves = moves[2:] + moves[:2]
        for way in moves:
            status, said = gantry(here, *way)
            self.assertEqual(status, 0, said)
            self.do_all(program)
        self.ends(here, program)

    def test_a_driver_without_lookups(self):
        self.works("")

    def test_any_pointer_but_in_fills(self):
        self.works("system")

    def test_any_pointer_but_in_fills_without_native_kernels(self):
        self.works("system foreign")

    def test_none_but_its_own(self):
        self.works("strict")

    def test_any_pointer_but_in_fills_in_the_program(self):
        self.works("system", GANTRY_MODE="passthrough")

    def test_none_but_its_own_in_the_program(self):
        self.works("strict", GANTRY_MODE="passthrough")

    def test_nothing_where_it_cannot_be_carried(self):
        here, program = self.begin("strict foreign")
        self.says(program, "0")
        self.assertEqual(program.wait(TIMEOUT_S), 0, here.log())


if __name__ == "__main__":
    telling.main(DriversCase.stage, sys.argv[4:])
