#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault matrix of one route: a party of a migration is killed at a fault point, and the outcome
is the one in the table (matrix.py). The build must have the points: -Dfaults=true.

    matrix_test.py ROUTE STAGE MOVED BUSY [CELL...]     MOVED, BUSY: the programs
    matrix_test.py list

CELL is ROUTE/PARTY/POINT/PROGRAM, or a pattern of such names ("tcp/source/*"); without one, all
cells of the route run. `list` prints all cells with their outcomes.
"""

import fnmatch
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import matrix  # noqa: E402
from matrix_cases import CASES, RouteCase  # noqa: E402
from moves_harness import telling  # noqa: E402


class CellCase:
    """For a RouteCase: the test of one cell."""

    def __init__(self, cell):
        super().__init__("runTest")
        self.cell = cell
        self.route = matrix.ROUTES[cell.route]
        self.party, self.point = cell.party, cell.point

    def runTest(self):
        self.start(self.cell.program)
        getattr(self, self.cell.outcome)()

    def id(self):
        return self.cell.name

    def __str__(self):
        return "{} {}".format(self.cell.name, self.cell.outcome)


CELL_CASES = {to: type(to, (CellCase, case), {}) for to, case in CASES.items()}


class Loader(unittest.TestLoader):
    """Loads the cells of a route instead of a module's classes."""

    def __init__(self, route):
        super().__init__()
        self.cells = [cell for cell in matrix.cells() if cell.route == route]

    def suite(self, cells):
        return self.suiteClass(
            [CELL_CASES[matrix.ROUTES[cell.route].to](cell) for cell in cells])

    def loadTestsFromModule(self, module, *_, **__):
        return self.suite(self.cells)

    def loadTestsFromNames(self, names, module=None):
        for name in names:
            if not any(fnmatch.fnmatchcase(cell.name, name) for cell in self.cells):
                sys.exit("{}: no such cell".format(name))
        return self.suite([cell for cell in self.cells
                           if any(fnmatch.fnmatchcase(cell.name, name) for name in names)])


def main(words):
    if words == ["list"]:
        for cell in matrix.cells():
            print(cell.name, cell.outcome)
        return
    if len(words) < 4 or words[0] not in matrix.ROUTES:
        sys.exit(__doc__)
    route, names = words[0], words[4:]
    RouteCase.stage, moved, busy = (os.path.abspath(path) for path in words[1:4])
    RouteCase.paths = {"moved": moved, "busy": busy}
    telling.main(RouteCase.stage, names, Loader(route))


if __name__ == "__main__":
    main(sys.argv[1:])
