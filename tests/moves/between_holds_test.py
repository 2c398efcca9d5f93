#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations to another gantryd while the program or the source is held at a fault point, or while
connections break. The fault matrix (matrix_test.py) has no cells for these. The build must have the
fault points: -Dfaults=true.

    between_holds_test.py STAGE MOVED RELAY     MOVED: the program; RELAY: a network in between, of
                                                tests/tcp
"""

import os
import sys

import matrix
from holds import HeldCase
from matrix_cases import BetweenCase, RouteCase
from moves_harness import telling

RouteCase.stage, MOVED, RouteCase.network = (os.path.abspath(path) for path in sys.argv[1:4])
RouteCase.paths = {"moved": MOVED}


class BetweenHeldCase(HeldCase, BetweenCase):
    def migration(self, *options, to=None):
        """gantry, which asks for the migration."""
        return self.asked("migrate", *self.route.options, *options, self.before["id"],
                          to or self.address_of(self.destination))


class Drained(BetweenHeldCase):
    route = matrix.ROUTES["unix"]

    def test_destination_drained_before_claim(self):
        """The program brings its ticket after the drain of the destination has begun."""
        self.start_held(program={"GANTRY_HOLD": "program-move-told"})
        process = self.migration()
        self.is_held(self.program.process.pid)
        self.assertEqual(self.drain(self.destination, self.source, 0), {})
        self.resume(self.program.process.pid)
        self.assertIn("is draining itself", self.why(process))
        self.has_same_worker()
        self.assertEqual(self.destination.vgpus(), [])
        self.program.ends_well()


if __name__ == "__main__":
    telling.main(RouteCase.stage, sys.argv[4:])
