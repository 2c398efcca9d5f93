#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the runner itself, above all that it can fail: a comparison that finds no difference proves nothing by itself."""

import io
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import daemon       # noqa: E402
import programs     # noqa: E402
import runner       # noqa: E402

NATIVE = """\
Number of platforms                               1
  Platform Name                                   Portable Computing Language
  Platform Extensions                             cl_khr_icd cl_pocl_content_size
  Platform Extensions with Version                cl_khr_icd                                                       0x400000 (1.0.0)
                                                  cl_pocl_content_size                                             0x400000 (1.0.0)
  Platform Extensions function suffix             POCL
Number of devices                                 1
  Max compute units                               2
  Prefer user sync for interop                    Yes
    Run native kernels                            Yes
  Device Extensions                               cl_khr_a   cl_pocl_content_size cl_khr_fp64
  clCreateContext(NULL, ...) [default]            Success [POCL]
"""
NATIVE_RAW = """\
  CL_PLATFORM_EXTENSIONS_WITH_VERSION             cl_khr_icd:0x400000 cl_pocl_content_size:0x400000
  CL_PLATFORM_ICD_SUFFIX_KHR                      POCL
[POCL/0]    CL_DEVICE_NAME                                  cpu
[POCL/0]    CL_DEVICE_EXECUTION_CAPABILITIES                CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL
"""
GANTRY = """\
Number of platforms                               1
  Platform Name                                   Portable Computing Language
  Platform Extensions                             cl_khr_icd
  Platform Extensions with Version                cl_khr_icd                                                       0x800000 (2.0.0)
  Platform Extensions function suffix             GANTRY
Number of devices                                 1
  Max compute units                               2
  Prefer user sync for interop                    Yes
    Run native kernels                            No
  Device Extensions                               cl_khr_a cl_khr_fp64
  clCreateContext(NULL, ...) [default]            Success [GANTRY]
"""
GANTRY_RAW = """\
  CL_PLATFORM_EXTENSIONS_WITH_VERSION             cl_khr_icd:0x800000
  CL_PLATFORM_ICD_SUFFIX_KHR                      GANTRY
[GANTRY/0]  CL_DEVICE_NAME                                  cpu
[GANTRY/0]  CL_DEVICE_EXECUTION_CAPABILITIES                CL_EXEC_KERNEL
"""


class FakeSide:
    def __init__(self, gantry):
        self.gantry = gantry


class ClinfoDiffersOnlyAsAllowed(unittest.TestCase):
    def observe(self, gantry, human, raw):
        return programs.Clinfo().observe(FakeSide(gantry), [(human, ""), (raw, "")])

    def test_the_named_differences_are_none(self):
        self.assertEqual(self.observe(False, NATIVE, NATIVE_RAW), self.observe(True, GANTRY, GANTRY_RAW))

    def test_any_other_difference_shows(self):
        native = self.observe(False, NATIVE, NATIVE_RAW)
        for old, new in (("units                               2", "units                               4"),
                         (" cl_khr_fp64", ""), ("cl_khr_icd\n", "cl_khr_icd cl_khr_new\n"), ("interop                    Yes", "interop     No"),
                         ("Success [", "Failure [")):
            self.assertIn(old, GANTRY)
            self.assertNotEqual(native, self.observe(True, GANTRY.replace(old, new), GANTRY_RAW), old)
        self.assertNotEqual(native, self.observe(True, GANTRY, GANTRY_RAW.replace("cpu", "gpu")))

    def test_gantry_must_show_itself(self):
        with self.assertRaises(programs.Wrong):
            self.observe(True, NATIVE, NATIVE_RAW)
        with self.assertRaises(programs.Wrong):
            self.observe(True, GANTRY.replace("kernels                            No", "kernels                            Yes"), GANTRY_RAW)


class Shell(programs.Program):
    """A program that is one line of shell."""

    timeout = 20

    def __init__(self, line, **attributes):
        self.line = line
        for name, value in attributes.items():
            setattr(self, name, value)

    def commands(self, side):
        return [["sh", "-c", self.line]]

    def observe(self, side, outputs):
        return outputs[0][0]


class RunnerVerdicts(unittest.TestCase):
    def verdict(self, program, native_only=True, stage=None):
        with tempfile.TemporaryDirectory() as work:
            said = io.StringIO()
            with redirect_stdout(said):
                verdict = runner.Runner(stage, work, native_only).verdict("x", program)
            return verdict, said.getvalue()

    def test_same_output_passes(self):
        self.assertEqual(self.verdict(Shell("echo same"))[0], "PASS")

    def test_another_output_fails(self):
        verdict, said = self.verdict(Shell("echo $$"))
        self.assertEqual(verdict, "FAIL")
        self.assertIn("results differ", said)

    def test_exit_status_fails(self):
        verdict, said = self.verdict(Shell("echo why >&2; exit 3"))
        self.assertEqual(verdict, "FAIL")
        self.assertIn("exited with 3", said)
        self.assertIn("why", said)

    def test_a_hang_fails(self):
        self.assertEqual(self.verdict(Shell("exec sleep 60", timeout=1))[0], "FAIL")

    def test_not_installed_is_skipped_with_a_sentence(self):
        verdict, said = self.verdict(Shell("true", needs=("no-such-command",), packages="nothing"))
        self.assertEqual(verdict, "SKIP")
        self.assertIn("not installed", said)

    def test_a_program_that_prints_nonsense_fails(self):
        for program, outputs in ((programs.Clpeak(), [("Kernel launch latency : 0 us", ""), ("", "")]),
                                 (programs.FfmpegFilter("unsharp"), [("0, 0, 0, 1, 9, abc", ""), ("", "")]),
                                 (programs.Clblast("xaxpy"), [("0 test(s) passed 0 test(s) failed", "")]),
                                 (programs.Clblast("xaxpy"), [("36 test(s) passed 1 test(s) failed", "")]),
                                 (programs.Script("x", modules=(), packages=""), [("nothing", "")])):
            with self.assertRaises(programs.Wrong):
                program.observe(FakeSide(False), outputs)


class DaemonLeavesNothing(unittest.TestCase):
    """With a gantryd made of a few lines of shell."""

    READY = 'touch "$2"; echo "ready unix:$2" >&2\n'
    END = 'trap \'rm -f "$sock"; exit 0\' TERM\nsock=$2\n'

    def setUp(self):
        # What is left behind here never ends in time.
        self.addCleanup(setattr, daemon, "LEFT_S", daemon.LEFT_S)
        daemon.LEFT_S = 1

    def stage(self, folder, gantryd):
        os.makedirs(os.path.join(folder, "bin"))
        for name, body in (("gantryd", gantryd), ("gantry", 'echo \'{"version": 1, "vgpus": []}\'\n')):
            path = os.path.join(folder, "bin", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n" + body)
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return folder

    def serve(self, gantryd):
        with tempfile.TemporaryDirectory() as folder:
            with daemon.Daemon(self.stage(folder, gantryd), os.path.join(folder, "work")) as gantry:
                self.assertTrue(os.path.exists(gantry.socket))

    WAIT = "while :; do sleep 0.05; done\n"

    def test_a_clean_daemon_passes(self):
        self.serve(self.END + self.READY + self.WAIT)

    def test_a_socket_left_behind_fails(self):
        with self.assertRaisesRegex(daemon.LeftBehind, "socket"):
            self.serve("trap 'exit 0' TERM\n" + self.READY + self.WAIT)

    def test_a_process_left_behind_fails(self):
        with self.assertRaisesRegex(daemon.LeftBehind, "processes outlive"):
            self.serve("setsid sleep 30 </dev/null >/dev/null 2>&1 &\n" + self.END + self.READY + self.WAIT)

    def test_a_process_with_a_clean_environment_left_behind_fails(self):
        with self.assertRaisesRegex(daemon.LeftBehind, "processes outlive"):
            self.serve("env -i setsid sleep 30 </dev/null >/dev/null 2>&1 &\n" + self.END + self.READY + self.WAIT)

    def test_an_exit_status_fails(self):
        with self.assertRaisesRegex(daemon.LeftBehind, "status 4"):
            self.serve('trap \'rm -f "$sock"; exit 4\' TERM\nsock=$2\n' + self.READY + self.WAIT)

    def test_programs_run_together(self):
        with tempfile.TemporaryDirectory() as folder:
            stage = self.stage(os.path.join(folder, "stage"), self.END + self.READY + self.WAIT)
            # Each waits for the other: they only end when they run at once. The native runs, one by one, find both marks there.
            meet = "touch {0}/{1}; while [ ! -e {0}/{2} ]; do sleep 0.05; done; echo met"
            marks = os.path.join(folder, "marks")
            os.makedirs(marks)
            both = {"a": Shell("[ -z \"$GANTRY_CONNECT\" ] && echo met || { " + meet.format(marks, "a", "b") + "; }"),
                    "b": Shell("[ -z \"$GANTRY_CONNECT\" ] && echo met || { " + meet.format(marks, "b", "a") + "; }"),
                    "c": Shell("echo \"$GANTRY_CONNECT\"")}
            said = io.StringIO()
            with redirect_stdout(said):
                verdicts = runner.Runner(stage, os.path.join(folder, "work"), False).together(both)
            self.assertEqual(verdicts, ["PASS", "PASS", "FAIL"], said.getvalue())

    SUITE = """
import os, sys, unittest
sys.path.insert(0, {here!r})
import telling
from daemon import Daemon
class Suite(unittest.TestCase):
    def test_well(self):
        with Daemon({stage!r}, {folder!r} + "/well"):
            pass
    def test_woe(self):
        with Daemon({stage!r}, {folder!r} + "/woe"):
            {what}
telling.main({stage!r}, sys.argv[1:])
"""

    def suite(self, folder, what):
        """Its process: one test is well, one is not."""
        stage = self.stage(os.path.join(folder, "stage"), self.END + 'echo "$2 has begun" >&2; ' + self.READY + self.WAIT)
        for part in ("lib/libgantry-opencl.so", "etc/OpenCL/vendors/gantry.icd"):
            os.makedirs(os.path.dirname(os.path.join(stage, part)))
            with open(os.path.join(stage, part), "w", encoding="utf-8"):
                pass
        path = os.path.join(folder, "suite.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.SUITE.format(here=os.path.dirname(os.path.abspath(daemon.__file__)), stage=stage, folder=folder, what=what))
        return subprocess.Popen([sys.executable, "-B", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_what_a_gantryd_said_is_told_with_a_failure(self):
        with tempfile.TemporaryDirectory() as folder, self.suite(folder, "self.fail('it is so')") as suite:
            _, said = suite.communicate(timeout=60)
            self.assertEqual(suite.returncode, 1)
            self.assertLess(said.index("it is so"), said.index("--- gantryd woe, the end of its log"))
            self.assertIn("g.sock has begun", said)
            self.assertNotIn("--- gantryd well", said)

    def test_what_a_gantryd_said_is_told_of_a_test_that_takes_too_long(self):
        with tempfile.TemporaryDirectory() as folder, \
                self.suite(folder, "print(Daemon.made[-1].process.pid, flush=True); sys.stdin.read()") as suite:
            pid = int(suite.stdout.readline())
            suite.terminate()
            _, said = suite.communicate(timeout=60)
            self.assertEqual(suite.returncode, 1)
            self.assertIn("in test_woe", said)
            self.assertIn("g.sock has begun", said)
            self.assertTrue(daemon.gone([pid]))

    def test_an_early_end_is_not_ready(self):
        with self.assertRaisesRegex(daemon.NotReady, "status 1"):
            self.serve("echo broken >&2; exit 1\n")


if __name__ == "__main__":
    unittest.main()
