#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry doctor: each thing that can be wrong is found, named and given a way out. Wants REAL_WORKER too."""

import ctypes.util
import json
import os
import shutil
import signal
import unittest

from commands_harness import FAKE, CommandTest, FakeGantryd, Prefix, as_nobody

from gantryd_harness import CONTROL, HELLO, Gantryd, frame

POCL = "/etc/OpenCL/vendors/pocl.icd"
HAS_LOADER = ctypes.util.find_library("OpenCL") is not None


class Doctor(CommandTest):
    def doctor(self, address, status, prefix=None, env=None, **how):
        """The findings, as {check: [(status, finding, fix)]}; what is printed for people says the same."""
        env = {"OPENCL_VENDOR_PATH": self.dir, **(env or {})}
        p = (prefix or self.prefix).run("doctor", "--json", address=address, env=env, **how)
        self.assertEqual((p.returncode, p.stderr), (status, ""), p.stdout)
        reply = json.loads(p.stdout)
        self.assertEqual((reply["version"], reply["result"] == "fail", "error" in reply), (1, status == 1, status == 1))
        found = {}
        for f in reply["findings"]:
            self.assertLessEqual(set(f), {"check", "status", "finding", "fix"})
            self.assertIn(f["status"], ("ok", "warn", "fail"))
            if f["status"] != "ok":
                self.assertTrue(f.get("fix"), f)
            found.setdefault(f["check"], []).append((f["status"], f["finding"], f.get("fix")))
        if status == 1:
            first = [f for f in reply["findings"] if f["status"] == "fail"][0]
            self.assertEqual((reply["error"]["why"], reply["error"]["fix"]), (first["finding"], first["fix"]))
        people = (prefix or self.prefix).run("doctor", address=address, env=env, **how)
        self.assertEqual(people.returncode, status)
        lines = people.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], [f["status"] for f in reply["findings"]])
        for line, f in zip(lines, reply["findings"]):
            self.assertEqual(line[6:18].rstrip(), f["check"])
            if f["check"] != "devices":     # the vGPU of the first run's own look may not have ended yet
                self.assertIn("; " + f["fix"] if "fix" in f else f["finding"], line)
        return found

    def one(self, found, check, status, says, fix=None):
        self.assertEqual(len(found[check]), 1, found[check])
        self.assertEqual(found[check][0][0], status, found[check])
        self.assertIn(says, found[check][0][1])
        if fix:
            self.assertIn(fix, found[check][0][2])

    def driver(self, name, library):
        self.file(name, library + "\n")

    def test_all_is_well(self):
        if not HAS_LOADER or not os.path.exists(POCL):
            self.skipTest("no OpenCL loader, or no PoCL")
        with Gantryd(env={"OCL_ICD_VENDORS": POCL, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            address = "unix:" + g.path
            found = self.doctor(address, 0)
            self.one(found, "socket", "ok", g.path)
            self.one(found, "daemon", "ok", "(pid {}) answers".format(g.pid))
            self.one(found, "devices", "ok", "1 device on 1 platform, used by 0 vGPUs")
            self.one(found, "installation", "ok", self.prefix.library)
            self.assertRegex(found["loader"][0][1], r"is (ocl-icd|Khronos's loader)")
            self.one(found, "gantry run", "ok", "programs see 1 platform, of Gantry alone")
            self.one(found, "environment", "ok", "by gantry run only")
            self.one(found, "driver", "ok", "serves 1 device")
            for check in ("memory", "processes", "processors"):
                self.assertIn(check, found)
            crowded = Prefix()
            self.addCleanup(crowded.close)
            shutil.copy(POCL, crowded.vendors)
            self.one(self.doctor(address, 0, prefix=crowded), "gantry run", "ok", "of Gantry alone")
            found = self.doctor(address, 0, env={"OCL_ICD_VENDORS": crowded.vendors})
            self.one(found, "environment", "ok", "see Gantry, and 1 platform without it")
            found = self.doctor(address, 0, env={"OCL_ICD_VENDORS": self.prefix.vendors})
            self.one(found, "environment", "ok", "use Gantry by themselves")

    def test_a_library_that_is_none(self):
        if not HAS_LOADER:
            self.skipTest("no OpenCL loader")
        broken = Prefix(library=self.file("libgantry-opencl.so", "no library"))
        self.addCleanup(broken.close)
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            self.one(self.doctor("unix:" + g.path, 1, prefix=broken), "gantry run", "fail", "does not find Gantry")

    def test_no_daemon(self):
        path = os.path.join(self.dir, "s")
        found = self.doctor("unix:" + path, 1)
        self.one(found, "socket", "fail", "there is no socket, so no gantryd", "start gantryd")
        self.assertNotIn("daemon", found)
        self.one(self.doctor("unix:" + self.file("plain"), 1), "socket", "fail", "is not a socket")
        self.one(self.doctor("here", 1), "socket", "fail", "is not an address")

    def test_a_killed_daemons_socket(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            g.stop(signal.SIGKILL)
            self.one(self.doctor("unix:" + g.path, 1), "daemon", "fail", "its gantryd was killed", "start it again")

    def test_no_permission(self):
        nobody = as_nobody(self, self.prefix.gantry)
        if not nobody:
            self.skipTest("needs two users")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            address = "unix:" + g.path
            self.one(self.doctor(address, 1, before=nobody), "socket", "fail", "Permission denied", "ask for the right")
            os.chmod(g.dir, 0o755)
            self.one(self.doctor(address, 1, before=nobody), "socket", "fail", "is not for this user", "start a gantryd of your own")
            os.chmod(g.path, 0o666)
            found = self.doctor(address, 1, before=nobody)
            self.one(found, "socket", "ok", "mode 0666")
            self.one(found, "daemon", "fail", 'may not attach to "default"', "ask an operator")

    def fake(self, reply):
        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(CONTROL, seq, json.dumps(reply).encode())
        return FakeGantryd(os.path.join(self.dir, "s"), answer)

    def test_daemons_of_other_versions(self):
        # The library is missing, so no program is tried on them.
        alone = Prefix(library="/nonexistent")
        self.addCleanup(alone.close)
        address = "unix:" + os.path.join(self.dir, "s")
        with self.fake({"version": 1, "gantryd": {"version": "9.9.9", "pid": 5, "platforms": 0, "devices": 0, "vgpus": 0, "drivers": []}}):
            found = self.doctor(address, 1, prefix=alone)
        self.one(found, "daemon", "warn", "gantryd 9.9.9 (pid 5) answers, but this gantry is", "restart gantryd")
        self.one(found, "devices", "fail", "0 devices")
        os.unlink(address[5:])
        with self.fake({"version": 1, "error": {"what": "unheard of"}}):
            self.assertIn("unheard of", self.doctor(address, 1, prefix=alone)["daemon"][0][1])
        os.unlink(address[5:])
        with FakeGantryd(address[5:], lambda op, seq: None):
            self.one(self.doctor(address, 1, prefix=alone), "daemon", "fail", "closed the connection")

    def test_drivers_without_a_daemon(self):
        address = "unix:" + os.path.join(self.dir, "s")
        self.one(self.doctor(address, 1), "driver", "fail", "names no driver", "pocl-opencl-icd")
        self.driver("a.icd", FAKE)
        self.driver("gantry.icd", self.prefix.library)
        self.driver("not-this.txt", "libnothing.so")
        self.one(self.doctor(address, 1), "driver", "ok", FAKE + " is installed")
        self.driver("b.icd", "/nonexistent/libdriver.so")
        found = self.doctor(address, 1)["driver"]
        self.assertEqual(sorted(status for status, _, _ in found), ["ok", "warn"])
        self.assertIn("/nonexistent/libdriver.so cannot be loaded", [f for s, f, _ in found if s == "warn"][0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
