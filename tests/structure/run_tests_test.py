#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run-tests.py and .ci/run with a make and a meson made of a few lines: what fails must be seen to fail."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

# Writes the log that the test left for it, as `meson test -C DIR` would.
MESON = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -C ] && dir=$2; shift; done
mkdir -p "$dir/meson-logs"
[ -e "$LOGS/$(basename "$dir").json" ] && cp "$LOGS/$(basename "$dir").json" "$dir/meson-logs/testlog.json"
exit ${MESON_STATUS:-0}
"""
MAKE = """#!/bin/sh
case " $* " in *" ${BROKEN:-nothing} "*) exit 2 ;; *" test "*) exec python3 tools/run-tests.py --meson meson all ;; esac
"""
PHASES = ("build", "build-asan", "build-tsan")


class RunTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        for path in ("tools", ".ci", "bin", "logs"):
            os.makedirs(os.path.join(self.root, path))
        shutil.copy(os.path.join(ROOT, "tools", "run-tests.py"), os.path.join(self.root, "tools"))
        shutil.copy(os.path.join(ROOT, ".ci", "run"), os.path.join(self.root, ".ci"))
        for name, text in (("meson", MESON), ("make", MAKE)):
            path = os.path.join(self.root, "bin", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_with(self, logs, command=("python3", "tools/run-tests.py", "--meson", "meson", "all"), **env):
        for phase, results in logs.items():
            with open(os.path.join(self.root, "logs", phase + ".json"), "w", encoding="utf-8") as f:
                for number, result in enumerate(results):
                    test = result if isinstance(result, dict) else {"result": result}
                    f.write(json.dumps({"name": "t{}".format(number), **test}) + "\n")
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": os.path.join(self.root, "bin") + ":" + os.environ["PATH"],
                                   "LOGS": os.path.join(self.root, "logs"), **env})
        lines = done.stdout.decode().rstrip("\n").split("\n")
        return done.returncode, lines[-1], "\n".join(lines)

    ALL_OK = {phase: ["OK", "OK"] for phase in PHASES}

    def test_all_pass(self):
        status, last, _ = self.run_with(self.ALL_OK)
        self.assertEqual((status, last), (0, "6 passed, 0 failed"))

    def test_a_skip_is_neither(self):
        status, last, said = self.run_with({**self.ALL_OK, "build": ["OK", "SKIP"]})
        self.assertEqual((status, last), (0, "5 passed, 0 failed"))
        self.assertIn("skipped  normal build: t1", said)

    def test_every_way_to_fail_counts(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS", "INTERRUPT", "something new"):
            status, last, said = self.run_with({**self.ALL_OK, "build-tsan": ["OK", result]}, MESON_STATUS="1")
            self.assertEqual((status, last), (1, "5 passed, 3 failed"), said)
            self.assertIn("FAILED   TSan: t1", said)

    def test_a_build_that_breaks(self):
        status, last, _ = self.run_with(self.ALL_OK, BROKEN="BUILD=build-asan")
        self.assertEqual((status, last), (1, "4 passed, 1 failed"))

    def test_a_meson_that_breaks(self):
        status, last, _ = self.run_with(self.ALL_OK, MESON_STATUS="1")
        self.assertEqual((status, last), (1, "6 passed, 3 failed"))

    def shown(self, said):
        """What the summary says of a test that has said this on stderr, line by line."""
        _, _, out = self.run_with({**self.ALL_OK, "build": [{"result": "FAIL", "stderr": said}]}, MESON_STATUS="1")
        lines = out[out.index("FAILED   normal build: t0 (fail)"):].splitlines()[1:]
        return [line[4:] for line in lines if line.startswith("    ")]

    def test_why_it_failed_is_shown(self):
        noise = ["noise {}".format(i) for i in range(500)]
        report = ["==7==ERROR: AddressSanitizer: heap-use-after-free"] + ["    #{} in frame".format(i) for i in range(100)]
        failure = ["FAIL: test_it", "Traceback", "AssertionError: 1 != 2"]
        log = ["--- gantryd a, the end of its log"] + ["logged {}".format(i) for i in range(40)]
        shown = self.shown("\n".join(noise + report + noise + failure + log + log + noise))
        for line in report[:10] + failure + log[:1] + log[-10:] + noise[-10:]:
            self.assertIn(line, shown)
        self.assertLess(shown.index(report[0]), shown.index(failure[0]))
        self.assertLess(len(shown), 70)
        # Nothing of it: the end.
        self.assertEqual(self.shown("\n".join(noise)), ["..."] + noise[-60:])
        self.assertEqual(self.shown("\n".join(noise[:3])), noise[:3])
        self.assertEqual(self.shown(""), [])

    def test_nothing_ran(self):
        status, last, _ = self.run_with({})
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))

    def test_ci_ends_with_the_summary_and_the_status(self):
        ci = ("sh", ".ci/run")
        status, last, _ = self.run_with(self.ALL_OK, ci)
        self.assertEqual((status, last), (0, "6 passed, 0 failed"))
        status, last, _ = self.run_with({**self.ALL_OK, "build": ["FAIL"]}, ci)
        self.assertEqual((status, last), (1, "4 passed, 1 failed"))
        status, last, _ = self.run_with(self.ALL_OK, ci, BROKEN="test")
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
