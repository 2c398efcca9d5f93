#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of the fault matrix with the fault points in src: a migration's point that no
test names, or a cell that names no point of src, is a mistake. So is a cell without an outcome that
its route can check, and a route that tests/moves/meson.build does not run.

    matrix_points_test.py ROOT
"""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import matrix  # noqa: E402
from matrix_cases import CASES  # noqa: E402

ROOT = os.path.abspath(sys.argv[1])
POINT = re.compile(r'GN_FAULT\("([^"]+)"\)')
# The points of a migration: src names a point after the party or the step. Workers and templates
# have points of their start as well; a cell may name those.
OF_MIGRATIONS = re.compile(r"(move|load|save|daemon|program|in-process|ctl)-")
QUOTED = re.compile(r"""["']([a-z][a-z-]*)(?::\d+)?["']""")


def texts(folder, *endings):
    for where, folders, names in os.walk(os.path.join(ROOT, folder)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in sorted(names):
            path = os.path.join(where, name)
            if name.endswith(endings) and path not in (__file__, matrix.__file__):
                with open(path, encoding="utf-8") as f:
                    yield f.read()


def points_in(sources):
    return {point for text in sources for point in POINT.findall(text)}


def quoted_in(tests):
    return {word for text in tests for word in QUOTED.findall(text)}


def problems(points, cells, quoted):
    """`points`: of src; `quoted`: the words in quotes in tests beside the matrix."""
    in_cells = {cell.point.split(":")[0] for cell in cells}
    found = ["no test names the point {}".format(point)
             for point in sorted(points - in_cells - quoted) if OF_MIGRATIONS.match(point)]
    found += ["a cell names {}, which is no point of src".format(point)
              for point in sorted(in_cells - points)]
    names = [cell.name for cell in cells]
    found += ["two cells are {}".format(name)
              for name in sorted(set(names)) if names.count(name) > 1]
    for cell in cells:
        route = matrix.ROUTES.get(cell.route)
        if not route or cell.party not in matrix.PARTIES or cell.program not in matrix.PROGRAMS:
            found.append("{}: unknown route, party or program".format(cell.name))
        elif not hasattr(CASES[route.to], cell.outcome):
            found.append("{}: the route has no outcome {}".format(cell.name, cell.outcome))
    return found


class Check(unittest.TestCase):
    """That the comparison finds mistakes."""

    cell = matrix.Cell("unix", "source", "move-begun:2", "moved", matrix.LOST)
    points = {"move-begun", "worker-message"}

    def test_nothing_wrong(self):
        self.assertEqual(problems(self.points, [self.cell], set()), [])

    def test_point_without_test(self):
        points = points_in(['GN_FAULT("move-begun");\n', '    GN_FAULT("load-new");\n'])
        self.assertEqual(problems(points, [self.cell], set()), ["no test names the point load-new"])
        self.assertEqual(problems(points, [self.cell], quoted_in(["hold='load-new:3'"])), [])

    def test_cell_without_point(self):
        self.assertEqual(problems({"worker-message"}, [self.cell], set()),
                         ["a cell names move-begun, which is no point of src"])

    def test_cell_twice(self):
        self.assertEqual(problems(self.points, [self.cell, self.cell], set()),
                         ["two cells are unix/source/move-begun:2/moved"])

    def test_unknown_words(self):
        cell = matrix.Cell("unix", "source", "move-begun", "none", matrix.LOST)
        self.assertEqual(problems(self.points, [cell], set()),
                         ["unix/source/move-begun/none: unknown route, party or program"])
        cell = matrix.Cell("unix", "source", "move-begun", "moved", matrix.WAITS_IN_FILE)
        self.assertEqual(problems(self.points, [cell], set()),
                         ["unix/source/move-begun/moved: the route has no outcome waits_in_file"])


class Tree(unittest.TestCase):
    def test_points(self):
        points = points_in(texts("src", ".c", ".h"))
        self.assertGreater(len(points), 50)
        quoted = quoted_in(texts("tests", ".py", "meson.build"))
        self.assertEqual(problems(points, matrix.cells(), quoted), [])

    def test_routes(self):
        """Each is a test of Meson's, and has cells."""
        with open(os.path.join(HERE, "meson.build"), encoding="utf-8") as f:
            block = re.search(r"fault_routes = \[([^]]*)\]", f.read()).group(1)
        self.assertEqual(sorted(re.findall(r"'([^']+)'", block)), sorted(matrix.ROUTES))
        self.assertEqual({cell.route for cell in matrix.cells()}, set(matrix.ROUTES))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
