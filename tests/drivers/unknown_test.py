#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Gantry does not know by type neither reaches the driver nor comes from it.

    unknown_test.py STAGE PROGRAM CURRENT

STAGE: the staged tree; PROGRAM: unknown; CURRENT: current_icd.c's library
"""

import os
import sys

from drivers_harness import DriversCase, TIMEOUT_S, telling

DriversCase.stage, PROGRAM, DriversCase.current = (os.path.abspath(p) for p in sys.argv[1:4])


class Unknown(DriversCase):
    def ask(self, **env):
        here = self.played("a", "unknown")
        here.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        program = self.start(here, PROGRAM, POCL_CACHE_DIR=here.cache, **env)
        out, _ = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual((out, program.returncode), ("right\n", 0), here.log())

    def test_in_a_worker(self):
        self.ask()

    def test_in_the_program(self):
        self.ask(GANTRY_MODE="passthrough")


if __name__ == "__main__":
    telling.main(DriversCase.stage, sys.argv[4:])
