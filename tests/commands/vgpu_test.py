#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real program by gantry run, and what gantry ls and devices say of it. Wants HOLDER (holder.c) and REAL_WORKER too."""

import json
import os
import signal
import subprocess
import sys
import unittest

from commands_harness import Prefix, PATIENCE

from gantryd_harness import Gantryd

POCL = "/etc/OpenCL/vendors/pocl.icd"
HOLDER = os.environ["HOLDER"]


class VGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = Prefix()
        cls.addClassCleanup(cls.prefix.close)
        cls.gantryd = cls.enterClassContext(Gantryd(env={"OCL_ICD_VENDORS": POCL, "GANTRY_WORKER": os.environ["REAL_WORKER"]}))
        cls.address = "unix:" + cls.gantryd.path

    def ask(self, command):
        p = self.prefix.run(command, "--json", address=self.address)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return json.loads(p.stdout)[{"ls": "vgpus"}.get(command, command)]

    def add_tenant(self, name):
        p = self.prefix.run("tenant", "add", name, "--uid", str(os.getuid()), address=self.address)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))

    def hold(self, *args, **env):
        p = subprocess.Popen([self.prefix.gantry, "run", *args, "--", HOLDER], env=self.prefix.env(self.address, **env),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.drop, p)
        self.assertEqual(p.stdout.readline(), "holding\n")
        return p

    @staticmethod
    def drop(p):
        if p.poll() is None:
            p.kill()
        p.wait(PATIENCE)
        for stream in (p.stdin, p.stdout, p.stderr):
            stream.close()

    def until_gone(self, *pids):
        while any(v["pid"] in pids for v in self.ask("ls")):
            pass

    def test_a_mode_that_is_none(self):
        """It is remote; one line says so, and none is written for a mode that there is."""
        for mode, line in (("bogus", "gantry: GANTRY_MODE=bogus is not a mode, so the program runs as remote; set it to remote or passthrough\n"),
                           ("remote", ""), ("", "")):
            p = subprocess.run([self.prefix.gantry, "run", "--", HOLDER], env=self.prefix.env(self.address, GANTRY_MODE=mode),
                               stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "holding\n", line))

    def test_a_program_while_it_runs(self):
        self.add_tenant("team")
        p = self.hold("--weight", "7", "--tenant", "team", "--memory", "1G")
        seen, = [v for v in self.ask("ls") if v["pid"] == p.pid]
        self.assertEqual((seen["program"], seen["tenant"], seen["weight"], seen["memory_limit_bytes"], seen["mode"], seen["link"]),
                         (os.path.basename(HOLDER), "team", 7, 1 << 30, "remote", "shm"))
        self.assertEqual(seen["state"], "idle")     # clFinish has returned
        self.assertGreater(seen["sync_calls"], 0)
        self.assertGreaterEqual(seen["calls"], seen["sync_calls"])
        devices = self.ask("devices")
        self.assertEqual([d["name"] for d in seen["devices"]], [d["name"] for d in devices])
        self.assertGreaterEqual(devices[0]["vgpus"], 1)     # those of other tests may not be gone yet
        self.assertEqual(p.communicate(timeout=PATIENCE), ("", ""))
        self.assertEqual(p.returncode, 0)
        self.until_gone(p.pid)

    def test_options_can_come_from_the_environment(self):
        self.add_tenant("mine")
        p = self.hold(GANTRY_TENANT="mine", GANTRY_WEIGHT="3", GANTRY_MEMORY="2M")
        seen, = [v for v in self.ask("ls") if v["pid"] == p.pid]
        self.assertEqual((seen["tenant"], seen["weight"], seen["memory_limit_bytes"]), ("mine", 3, 2 << 20))

    def test_a_program_that_is_killed(self):
        first, second = self.hold(), self.hold()
        first.send_signal(signal.SIGKILL)
        self.assertEqual(first.wait(PATIENCE), -signal.SIGKILL)
        self.until_gone(first.pid)
        self.assertIn(second.pid, [v["pid"] for v in self.ask("ls")])

    def test_a_worker_that_is_killed(self):
        p = self.hold()
        worker = [v["worker_pid"] for v in self.ask("ls") if v["pid"] == p.pid]
        os.kill(worker[0], signal.SIGKILL)
        # Listed as lost until the program notices.
        while any(v["state"] != "lost" for v in self.ask("ls") if v["pid"] == p.pid):
            pass
        p.stdin.close()
        self.assertEqual(p.wait(PATIENCE), 0)
        self.until_gone(p.pid)


if __name__ == "__main__":
    if not os.path.exists(POCL):
        print("SKIP: PoCL is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
