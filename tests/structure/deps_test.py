#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/deps.sh says what it installs, and asks first on a terminal. dpkg and apt are stand-ins: nothing is installed."""

import os
import pty
import subprocess
import sys
import tempfile
import unittest

DEPS = os.path.join(sys.argv.pop(1), "tools/deps.sh")
LOG = 'echo "$(basename "$0") $*" >>"$DEPS_LOG"\n'
STAND_INS = {
    "dpkg-query": 'printf "%s" "$INSTALLED"\n',
    "apt-cache": 'shift 2; for p; do echo "Package: $p"; done\n',
    "apt-get": 'case "$*" in *--print-uris*) echo "http://a a.deb 3000000"; echo "http://b b.deb 2000000"; exit;; esac\n'
               + LOG + 'case "$*" in *--assume-no*) echo "0 upgraded, 7 newly installed, 0 to remove and 0 not upgraded."\n'
                     'echo "Need to get 5 MB of archives."\n'
                     'echo "After this operation, 9 MB of additional disk space will be used."; exit 1;; esac\n',
    "sudo": 'shift $([ "$1" = -n ] && echo 1 || echo 0); exec "$@"\n',
}


class Deps(unittest.TestCase):
    def setUp(self):
        work = self.enterContext(tempfile.TemporaryDirectory(prefix="gantry-deps-"))
        self.log = os.path.join(work, "log")
        for name, text in STAND_INS.items():
            with open(os.path.join(work, name), "w", encoding="ascii") as f:
                f.write("#!/bin/sh\n" + text)
            os.chmod(f.name, 0o755)
        self.env = dict(os.environ, PATH=work + ":" + os.environ["PATH"], DEPS_LOG=self.log, INSTALLED="")

    def run_on_terminal(self, answer, *args):
        """Its exit status, and what it has said."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execvpe("sh", ["sh", DEPS, *args], self.env)
        said = b""
        try:
            while more := os.read(fd, 4096):
                said += more
                if said.endswith(b"[Y/n] "):
                    os.write(fd, answer + b"\n")
        except OSError:
            pass    # the terminal's other end is closed
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()

    def run_without(self, *args):
        p = subprocess.run(["sh", DEPS, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return p.returncode, p.stdout + p.stderr

    def installs(self):
        with open(self.log, encoding="ascii") as f:
            return [line.split() for line in f if "install" in line and "--assume-no" not in line]

    def test_the_demo_takes_little(self):
        self.assertEqual(self.run_without("--list", "demo")[1].split(), ["clpeak", "ffmpeg", "ocl-icd-libopencl1", "pocl-opencl-icd"])

    def test_the_demo_needs_no_test_package(self):
        listed = self.run_without("--list", "build", "demo")[1].split()
        self.assertTrue(set(listed).isdisjoint({"libcmocka-dev", "ocl-icd-opencl-dev", "oclgrind", "clang-format", "valgrind", "hashcat"}))

    def test_no_is_no(self):
        for answer in (b"n", b"no", b"x"):
            status, said = self.run_on_terminal(answer, "--ask", "demo")
            self.assertEqual(status, 1)
            self.assertIn("missing: clpeak ffmpeg ocl-icd-libopencl1 pocl-opencl-icd (2 packages in all, 5 MB to download)", said)
            self.assertIn("nothing is installed", said)
            self.assertFalse(os.path.exists(self.log))

    def test_yes_is_yes(self):
        for n, answer in enumerate((b"", b"y", b"Yes"), 1):
            status, said = self.run_on_terminal(answer, "--ask", "demo")
            self.assertEqual(status, 0)
            self.assertIn("(7 newly installed, 5 MB to download, 9 MB of additional disk space)", said)
            self.assertEqual(len(self.installs()), n)

    def test_without_a_terminal_and_unasked(self):
        for args in (("--ask", "demo"), ("demo",)):
            status, said = self.run_without(*args)
            self.assertEqual(status, 0)
            self.assertIn("deps: installing clpeak ffmpeg ocl-icd-libopencl1 pocl-opencl-icd (7 newly installed", said)
        self.assertEqual(self.run_on_terminal(b"", "demo")[0], 0)
        self.assertEqual([line[-4:] for line in self.installs()], [["clpeak", "ffmpeg", "ocl-icd-libopencl1", "pocl-opencl-icd"]] * 3)

    def test_nothing_to_do_is_silent(self):
        self.env["INSTALLED"] = "".join("installed {}\n".format(p) for p in ("clpeak", "ffmpeg", "ocl-icd-libopencl1", "pocl-opencl-icd"))
        self.assertEqual(self.run_without("--ask", "demo"), (0, ""))
        self.assertEqual(self.run_on_terminal(b"", "--ask", "demo"), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
