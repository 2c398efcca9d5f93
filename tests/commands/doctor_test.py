#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry doctor: each thing that can be wrong is found, named and given a way out. Wants REAL_WORKER too."""

import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from commands_harness import FAKE, CommandTest, FakeGantryd, Prefix, as_nobody

from gantryd_harness import ATTACHED, CONTROL, ERROR, HELLO, Gantryd, beside, frame

POCL = "/etc/OpenCL/vendors/pocl.icd"
HAS_LOADER = ctypes.util.find_library("OpenCL") is not None


class Doctor(CommandTest):
    def doctor(self, address, status, prefix=None, env=None, args=(), **how):
        """The findings, as {check: [(status, finding, fix)]}; what is printed for people says the same."""
        env = {"OPENCL_VENDOR_PATH": self.dir, "OCL_ICD_VENDORS": "", **(env or {})}
        p = (prefix or self.prefix).run("doctor", "--json", *args, address=address, env=env, **how)
        status = p.returncode if status is None else status
        self.assertEqual((p.returncode, p.stderr), (status, ""), p.stdout)
        reply = json.loads(p.stdout)
        self.assertEqual((reply["version"], reply["result"] == "fail", "error" in reply), (1, status == 1, status == 1))
        found = {}
        for f in reply["findings"]:
            self.assertLessEqual(set(f), {"check", "status", "finding", "fix"} | ({"drivers"} if f["check"] == "bypass" else set()))
            self.assertIn(f["status"], ("ok", "warn", "fail"))
            if f["status"] != "ok":
                self.assertTrue(f.get("fix"), f)
            found.setdefault(f["check"], []).append((f["status"], f["finding"], f.get("fix")))
        if status == 1:
            first = [f for f in reply["findings"] if f["status"] == "fail"][0]
            self.assertEqual((reply["error"]["why"], reply["error"]["fix"]), (first["finding"], first["fix"]))
        people = (prefix or self.prefix).run("doctor", *args, address=address, env=env, **how)
        self.assertEqual(people.returncode, status)
        lines = people.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], [f["status"] for f in reply["findings"]])
        self.drivers = [f["drivers"] for f in reply["findings"] if f["check"] == "bypass"]
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
            self.one(found, "gantry run", "ok", "programs see 1 platform, all of Gantry")
            self.one(found, "environment", "ok", "only with gantry run")
            self.one(found, "driver", "ok", "serves 1 device")
            for check in ("memory", "processes", "processors"):
                self.assertIn(check, found)
            crowded = Prefix()
            self.addCleanup(crowded.close)
            shutil.copy(POCL, crowded.vendors)
            self.one(self.doctor(address, 0, prefix=crowded), "gantry run", "ok", "all of Gantry")
            found = self.doctor(address, 0, env={"OCL_ICD_VENDORS": crowded.vendors})
            self.one(found, "environment", "warn", "see Gantry, and 1 platform without it", "gantry run")
            found = self.doctor(address, 0, env={"OCL_ICD_VENDORS": self.prefix.vendors})
            self.one(found, "environment", "ok", "use Gantry without gantry run")

    def test_a_limit_on_vgpus(self):
        """Gantry is found, and says itself why a program gets no vGPU; $GANTRY_LOG of the user changes nothing."""
        if not HAS_LOADER:
            self.skipTest("no OpenCL loader")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            c = g.operator()
            self.addCleanup(c.close)
            c.control(b'{"version":1,"request":"tenant-set","name":"default","vgpu_limit":1}')
            holder = g.client()
            self.addCleanup(holder.close)
            self.assertEqual(holder.attach().op, ATTACHED)
            other = g.client()
            self.addCleanup(other.close)
            self.assertEqual(other.attach().op, ERROR)      # "limits" is a warning from here on
            for env in ({"OCL_ICD_VENDORS": ""}, {"OCL_ICD_VENDORS": self.prefix.vendors, "GANTRY_LOG": "none"}):
                found = self.doctor("unix:" + g.path, 0, env=env)
                self.one(found, "gantry run", "warn", 'a program gets no vGPU now: the tenant "default" has', "end some of its programs")
            self.one(found, "environment", "warn", 'a program gets no vGPU now: the tenant "default" has')

    def test_a_driver_that_gantryd_cannot_load(self):
        library = os.path.join(self.dir, "libgone.so")
        self.driver("a.icd", FAKE)
        self.driver("b.icd", library)
        with Gantryd(env={"OCL_ICD_VENDORS": self.dir, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            found = self.doctor("unix:" + g.path, None)["driver"]
        self.assertEqual(sorted(f[0] for f in found), ["ok", "warn"])
        finding, fix = [f[1:] for f in found if f[0] == "warn"][0]
        self.assertIn(library + " cannot be loaded: ", finding)
        self.assertIn("No such file", finding)
        self.assertIn("remove its .icd file", fix)

    def test_ways_past_gantry(self):
        """ICD files of drivers that are not Gantry's, of the system and of the environment."""
        address = "unix:" + os.path.join(self.dir, "s")
        self.one(self.doctor(address, 1), "bypass", "ok", "no ICD file lets programs load a driver without Gantry")
        self.assertEqual(self.drivers, [[]])
        self.driver("gantry.icd", self.prefix.library)
        self.driver("not-this.txt", "libnothing.so")
        self.assertEqual(self.doctor(address, 1)["bypass"][0][0], "ok")
        self.driver("a.icd", FAKE)
        found = self.doctor(address, 1)
        self.one(found, "bypass", "warn", "programs can load 1 driver without Gantry", "gantry run")
        self.assertEqual(self.drivers, [[os.path.join(self.dir, "a.icd")]])
        os.mkdir(os.path.join(self.dir, "more"))
        for name in ("b", "c", "d"):
            self.driver("more/{}.icd".format(name), "libvendor.so")
        found = self.doctor(address, 1, env={"OCL_ICD_VENDORS": os.path.join(self.dir, "more")})
        self.one(found, "bypass", "warn", "4 drivers without Gantry")
        self.assertIn("and 1 more", found["bypass"][0][1])
        self.assertEqual(sorted(map(os.path.basename, self.drivers[0])), ["a.icd", "b.icd", "c.icd", "d.icd"])
        self.doctor(address, 1, env={"OCL_ICD_VENDORS": os.path.join(self.dir, "a.icd")})
        self.assertEqual(len(self.drivers[0]), 1)

    def test_strict(self):
        if not HAS_LOADER or not os.path.exists(POCL):
            self.skipTest("no OpenCL loader, or no PoCL")
        with Gantryd(env={"OCL_ICD_VENDORS": POCL, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            address = "unix:" + g.path
            self.doctor(address, 0, args=["--strict"])
            self.driver("a.icd", FAKE)
            self.assertEqual(self.doctor(address, 0)["bypass"][0][0], "warn")
            self.one(self.doctor(address, 1, args=["--strict"]), "bypass", "fail", "without Gantry")

    def test_the_first_platform(self):
        """ocl-icd lists the driver whose file it reads first; who takes the first platform may go past Gantry."""
        if not HAS_LOADER or not os.path.exists(POCL):
            self.skipTest("no OpenCL loader, or no PoCL")
        crowded = Prefix()
        self.addCleanup(crowded.close)
        shutil.copy(POCL, crowded.vendors)
        with Gantryd(env={"OCL_ICD_VENDORS": POCL, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            env = dict(self.prefix.env("unix:" + g.path), OCL_ICD_VENDORS=crowded.vendors)
            first = subprocess.run([os.environ["HOLDER"]], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).returncode
            self.assertEqual(first, 0)
            said = self.doctor("unix:" + g.path, 0, env={"OCL_ICD_VENDORS": crowded.vendors})["environment"][0][1]
            self.assertRegex(said, "1 platform without it(, one of them first: programs that use the first platform bypass Gantry)?$")

    def test_parts_that_are_missing(self):
        address = "unix:" + os.path.join(self.dir, "s")
        library = os.path.join(self.dir, "lib", "libgantry-opencl.so")
        os.mkdir(os.path.dirname(library))
        shutil.copy(self.prefix.library, library)
        whole = Prefix(library=library)
        self.addCleanup(whole.close)
        found = self.doctor(address, 1, prefix=whole)["parts"]
        self.assertEqual([status for status, _, _ in found], ["warn", "warn"])
        self.assertIn("libgantry-vgpu.so: No such file or directory: no program can use passthrough", found[0][1])
        self.assertIn("libgantry-tls.so: No such file or directory: no gantryd is reached over tcp with TLS", found[1][1])
        for name in ("libgantry-vgpu.so", "libgantry-tls.so"):
            self.file("lib/" + name)
        self.one(self.doctor(address, 1, prefix=whole), "parts", "ok", "the parts for passthrough, TLS are installed")
        shutil.copy("/bin/true", os.path.join(whole.dir, "bin", "gantryd"))
        self.one(self.doctor(address, 1, prefix=whole), "parts", "fail", "the gantryd of this installation cannot start", "install Gantry")
        os.makedirs(os.path.join(whole.dir, "libexec", "gantry"))
        shutil.copy("/bin/true", os.path.join(whole.dir, "libexec", "gantry", "gantry-worker"))
        self.one(self.doctor(address, 1, prefix=whole), "parts", "ok", "the parts for passthrough, TLS and gantryd are installed")

    def test_while_gantryd_is_drained(self):
        if not HAS_LOADER:
            self.skipTest("no OpenCL loader")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            c = g.operator()
            self.addCleanup(c.close)
            c.control(b'{"version":1,"request":"drain"}')
            found = self.doctor("unix:" + g.path, 0)
            self.assertEqual([f[0] for f in found["daemon"]], ["ok", "warn"])
            self.assertIn("gantryd is draining", found["daemon"][1][1])
            self.assertNotIn("gantry run", found)

    def test_what_this_user_may_do(self):
        if not os.path.exists(POCL):
            self.skipTest("no PoCL")
        with Gantryd(env={"OCL_ICD_VENDORS": POCL, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            self.one(self.doctor("unix:" + g.path, None), "role", "ok", "is an operator: it may use " + beside(g.path, "control"))
            if os.geteuid() != 0:
                return
            nobody = as_nobody(self, self.prefix.gantry)
            os.chmod(g.dir, 0o755)
            c = g.operator()
            self.addCleanup(c.close)
            c.control(b'{"version":1,"request":"tenant-set","name":"default","uids":"any"}')
            self.one(self.doctor("unix:" + g.path, None, before=nobody), "role", "ok", "sees only its own tenant")
            os.chmod(beside(g.path, "view"), 0o666)
            self.one(self.doctor("unix:" + g.path, None, before=nobody), "role", "ok", "is a viewer")

    def test_who_is_refused_is_told_of_the_rest_too(self):
        """And an operator whose programs are refused hears of gantryd all the same."""
        if not HAS_LOADER:
            self.skipTest("no OpenCL loader")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            c = g.operator()
            self.addCleanup(c.close)
            c.control(b'{"version":1,"request":"tenant-set","name":"default","uids":[4321]}')
            self.driver("a.icd", FAKE)
            found = self.doctor("unix:" + g.path, 1)
            self.assertEqual([f[0] for f in found["daemon"]], ["fail", "ok"])
            self.assertIn('may not attach to "default"', found["daemon"][0][1])
            self.assertIn("devices", found)
            self.assertEqual(found["bypass"][0][0], "warn")

    def test_a_gantryd_that_hangs_is_waited_for_once(self):
        """And what is known by then has been printed."""
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            os.kill(g.pid, signal.SIGSTOP)
            try:
                p = subprocess.Popen([self.prefix.gantry, "doctor"], env=dict(self.prefix.env("unix:" + g.path), OPENCL_VENDOR_PATH=self.dir),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertIn("this user may use", p.stdout.readline())
                began = time.monotonic()
                rest, _ = p.communicate()
                self.assertIn("gantryd does not answer", rest)
                self.assertLess(time.monotonic() - began, 19)     # twice would be 20
            finally:
                os.kill(g.pid, signal.SIGCONT)

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
        self.one(found, "socket", "fail", "there is no socket: gantryd does not run there", "start gantryd")
        self.assertNotIn("daemon", found)
        self.one(self.doctor("unix:" + self.file("plain"), 1), "socket", "fail", "is not a socket")
        self.one(self.doctor("here", 1), "socket", "fail", "is not an address")

    def test_a_killed_daemons_socket(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            g.stop(signal.SIGKILL)
            self.one(self.doctor("unix:" + g.path, 1), "daemon", "fail", "gantryd was killed", "start it again")

    def test_no_permission(self):
        nobody = as_nobody(self, self.prefix.gantry)
        if not nobody:
            self.skipTest("needs two users")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            address = "unix:" + g.path
            self.one(self.doctor(address, 1, before=nobody), "socket", "fail", "Permission denied", "ask for search permission")
            os.chmod(g.dir, 0o755)
            self.one(self.doctor(address, 1, before=nobody), "socket", "fail", "this user may not use", "start a gantryd of your own")
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
