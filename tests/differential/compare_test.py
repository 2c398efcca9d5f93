#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison itself: it must pass what is equal and fail on every kind of difference.

A script plays the test program; OCL_ICD_VENDORS, which compare.py sets for the driver under test, decides what it says.
"""

import os
import subprocess
import sys
import tempfile
import unittest

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")

PLAYER = """#!/bin/sh
echo "$@" >>"$REFERENCE.asked"
for word; do [ "$word" = --list ] && { echo a.one; echo b.two; echo native.run; exit 0; }; done
for word; do [ "$word" = native ] && { echo "=== native.run"; echo "it ran"; }; done
if [ -n "$OCL_ICD_VENDORS" ]; then cat "$OCL_ICD_VENDORS/transcript"; else cat "$REFERENCE"; fi
"""
GOOD = "=== a.one\nclFlush(queue#1) -> CL_SUCCESS\nend\n=== b.two\nclFinish(queue#1) -> CL_SUCCESS\nend\n"


class Compare(unittest.TestCase):
    def compare(self, reference, other, *options):
        with tempfile.TemporaryDirectory() as work:
            player, vendors = os.path.join(work, "difftest"), os.path.join(work, "vendors")
            os.mkdir(vendors)
            for path, text in ((player, PLAYER), (os.path.join(vendors, "transcript"), other),
                               (os.path.join(work, "reference"), reference)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod(player, 0o755)
            env = dict(os.environ, REFERENCE=os.path.join(work, "reference"), POCL_CACHE_DIR=work)
            done = subprocess.run([sys.executable, COMPARE, "--difftest", player, "--vendors", vendors, *options],
                                  env=env, stdout=subprocess.PIPE, text=True, check=False)
            with open(os.path.join(work, "reference.asked"), encoding="utf-8") as asked:
                self.asked = [line for line in asked if "--list" not in line]
        return done.returncode, done.stdout.splitlines()

    def test_equal(self):
        status, lines = self.compare(GOOD, GOOD)
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
        self.assertNotIn("native", "".join(lines))

    def test_one_code_differs(self):
        status, lines = self.compare(GOOD, GOOD.replace("Finish(queue#1) -> CL_SUCCESS", "Finish(queue#1) -> -5"))
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("FAIL b.two", lines)
        self.assertTrue(any("-clFinish(queue#1) -> CL_SUCCESS" in line for line in lines))

    def test_missing_and_extra_cases(self):
        self.assertEqual(self.compare(GOOD, GOOD.split("=== b")[0])[1][-1], "1 passed, 1 failed")
        self.assertEqual(self.compare(GOOD.split("=== b")[0], GOOD)[1][-1], "1 passed, 1 failed")

    def test_nothing_ran(self):
        self.assertEqual(self.compare("", "")[0], 1)

    def test_broken_reference(self):
        broken = GOOD.replace("clFlush(queue#1) -> CL_SUCCESS\nend", "clFlush(queue#1) CRASH Aborted")
        status, lines = self.compare(broken, broken)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        status, lines = self.compare(broken, GOOD, "--skip-broken")
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"))

    def test_cases_left_out(self):
        """They are asked of neither side."""
        self.compare(GOOD, GOOD, "--without", "b.two")
        self.assertEqual(len(self.asked), 2)
        for words in self.asked:
            self.assertEqual(words.split()[-4:], ["--case", "a.one", "--case", "native.run"])

    def test_lenient_reference(self):
        refused = GOOD.replace("clFlush(queue#1) -> CL_SUCCESS", "clFlush(queue#1) -> CL_INVALID_VALUE")
        self.assertEqual(self.compare(GOOD, refused)[0], 1)
        self.assertEqual(self.compare(GOOD, refused, "--lenient")[0], 0)
        self.assertEqual(self.compare(refused, GOOD, "--lenient")[0], 1)
        self.assertEqual(self.compare(GOOD, refused.replace("end\n===", "more\nend\n==="), "--lenient")[0], 1)
        lost = GOOD.replace("clFlush(queue#1) -> CL_SUCCESS", "clFlush(queue#1) -> CL_OUT_OF_RESOURCES")
        self.assertEqual(self.compare(GOOD, lost, "--lenient")[0], 1)
        failed = GOOD.replace("clFlush(queue#1) -> CL_SUCCESS", "  fill (event#1): wait CL_SUCCESS, status -5")
        self.assertEqual(self.compare(failed, failed.replace("-5", "-1"))[0], 1)
        self.assertEqual(self.compare(failed, failed.replace("-5", "-1"), "--lenient")[0], 0)
        self.assertEqual(self.compare(failed, failed.replace("-5", "0"), "--lenient")[0], 1)

    def test_extensions_may_be_fewer(self):
        line = 'clGetDeviceInfo(device#1, CL_DEVICE_EXTENSIONS) -> CL_SUCCESS size %d = "%s"; larger: CL_SUCCESS\nend\n'
        versions = "clGetDeviceInfo(device#1, CL_DEVICE_EXTENSIONS_WITH_VERSION) -> CL_SUCCESS size 1 =  %s; larger: x\nend\n"
        case = "=== extensions.lists\n"
        for good, native, other in ((True, line % (6, "a b c"), line % (4, "a c")),
                                    (False, line % (6, "a b c"), line % (4, "c a")),
                                    (False, line % (6, "a b c"), line % (4, "a d")),
                                    (True, versions % "cl_khr_icd=0x1 b=0x2", versions % "cl_khr_icd=0x8"),
                                    (False, versions % "cl_khr_icd=0x1 b=0x2", versions % "cl_khr_icd=0x1 b=0x3"),
                                    (False, line % (6, "a b c"), (line % (6, "a b c")).replace("SUCCESS\n", "-1\n"))):
            self.assertEqual(self.compare(case + native, case + other)[0], 0 if good else 1, (native, other))
        self.assertEqual(self.compare(case.replace("lists", "x") + line % (6, "a b"),
                                      case.replace("lists", "x") + line % (4, "a"))[0], 1)

    def test_hang_behind_the_driver(self):
        status, lines = self.compare(GOOD, GOOD.replace(" -> CL_SUCCESS\nend\n=== b", " HANG\n=== b"))
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
