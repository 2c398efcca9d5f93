# SPDX-License-Identifier: Apache-2.0
"""A small installation for tests of the `gantry` command: the built program in a prefix of its own, whose ICD file names the built
library. Wants GANTRY, GANTRYD, GANTRY_WORKER, GANTRY_LIBRARY and FAKE_VENDOR_LIBRARY in the environment."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "src", "daemon"))

from gantryd_harness import HELLO, PATIENCE, WELCOME, Gantryd, frame    # noqa: E402

FAKE = os.environ["FAKE_VENDOR_LIBRARY"]
SANITIZERS = ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")


def tree(top):
    return sorted(os.path.join(d, name) for d, dirs, files in os.walk(top) for name in dirs + files)


def as_nobody(test, path):
    """The beginning of a command line that runs the rest as somebody who may do little; for the superuser all is allowed."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--reuid", "65534", "--clear-groups"]
    if subprocess.run(prefix + ["test", "-x", path], stdin=subprocess.DEVNULL).returncode != 0:
        test.skipTest("nobody cannot reach {}".format(path))
    return prefix


class Prefix:
    """PREFIX/bin/gantry and PREFIX/etc/OpenCL/vendors/gantry.icd; `below` is what PREFIX has between itself and bin."""

    def __init__(self, library=None, below=""):
        self.dir = tempfile.mkdtemp(prefix="gantry-test-")
        os.chmod(self.dir, 0o755)
        self.gantry = os.path.join(self.dir, below, "bin", "gantry")
        self.vendors = os.path.join(self.dir, "etc", "OpenCL", "vendors")
        self.icd = os.path.join(self.vendors, "gantry.icd")
        self.library = library or os.environ["GANTRY_LIBRARY"]
        os.makedirs(os.path.dirname(self.gantry))
        os.makedirs(self.vendors)
        shutil.copy(os.environ["GANTRY"], self.gantry)
        with open(self.icd, "w", encoding="utf-8") as f:
            f.write(self.library + "\n")

    def close(self):
        shutil.rmtree(self.dir)

    def env(self, address=None, **more):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OCL_ICD_VENDORS": FAKE}
        env.update({name: os.environ[name] for name in SANITIZERS if name in os.environ})
        if address:
            env["GANTRY_CONNECT"] = address
        env.update(more)
        return env

    def run(self, *args, address=None, before=(), env=None, **how):
        """Text in and out; `before` stands in front of the command line."""
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([*before, self.gantry, *args], env=self.env(address, **(env or {})), stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, **how)


class CommandTest(unittest.TestCase):
    """One prefix for all tests of a class, and a gantryd on the fake driver when `daemon` says so."""
    daemon = False

    @classmethod
    def setUpClass(cls):
        cls.prefix = Prefix()
        cls.addClassCleanup(cls.prefix.close)
        if cls.daemon:
            cls.gantryd = cls.enterClassContext(Gantryd(env={"OCL_ICD_VENDORS": FAKE}))
            cls.address = "unix:" + cls.gantryd.path

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gantry-cmd-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)

    def file(self, name, text="", mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def sentence(self, p, status, who, says):
        """One line on stderr, that begins and says what it should."""
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        self.assertTrue(p.stderr.startswith(who + ": "), p.stderr)
        self.assertIn(says, p.stderr)

    def refused(self, status, says, *args, who=None, **how):
        """It failed by one sentence and changed nothing."""
        before = tree(self.dir)
        p = self.prefix.run(*args, **how)
        self.sentence(p, status, who or "gantry " + args[0], says)
        self.assertEqual(p.stdout, "")
        self.assertEqual(tree(self.dir), before)


class FakeGantryd:
    """Listens where a gantryd would, and answers each frame by what `answer(op, seq)` returns; None hangs up."""

    def __init__(self, path, answer):
        self.answer = answer
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(path)
        self.socket.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    @staticmethod
    def greeting(op, seq):
        """A gantryd without platforms; None for anything but a greeting."""
        return frame(WELCOME, seq, struct.pack("<IIQ", 1, 0, 0)) if op == HELLO else None

    def _serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            with c:
                try:
                    self._talk(c)
                except ConnectionError:
                    pass    # the other side has seen enough

    def _talk(self, c):
        while True:
            head = c.recv(16, socket.MSG_WAITALL)
            if len(head) < 16:
                return
            size, op, _, seq, _ = struct.unpack("<IHHII", head)
            c.recv(size - 16, socket.MSG_WAITALL)
            reply = self.answer(op, seq)
            if reply is None:
                return
            c.sendall(reply)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.socket.close()
