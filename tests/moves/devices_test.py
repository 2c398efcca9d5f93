#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs are moved to devices of another kind while they run: what they compute and what they are told of their device is as
if nothing had been; and where the other device lacks something, the move is refused with the list before anything stops.

    devices_test.py STAGE MOVED NEEDS LOAD LESSER      STAGE: what make stage leaves; LESSER: a driver with less (lesser_icd.c)
"""

import json
import os
import subprocess
import sys

from moves_harness import Load, MovesCase, Program, STEPS, TIMEOUT_S, gantry, telling, start_again, wait_until

MovesCase.stage, MOVED, NEEDS, LOAD, LESSER = (os.path.abspath(p) for p in sys.argv[1:6])
BOTH = {"POCL_DEVICES": "pthread basic"}


class Needing:
    def __init__(self, daemon, *how):
        self.process = subprocess.Popen([NEEDS, *how], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def at(self):
        return self.process.stdout.readline().strip()

    def ends_well(self):
        lines, _ = self.process.communicate("on\n", timeout=TIMEOUT_S)
        return None if lines == "right\n" and self.process.returncode == 0 else "status {}: {}".format(self.process.returncode, lines)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Devices(MovesCase):
    def lesser(self, name, words):
        vendors = os.path.join(self.work, name + "-vendors")
        os.mkdir(vendors)
        with open(os.path.join(vendors, "lesser.icd"), "w", encoding="utf-8") as f:
            f.write(LESSER + "\n")
        return self.daemon(name, env={"OCL_ICD_VENDORS": vendors, "LESSER": words})

    def start(self, kind, *args):
        program = kind(*args)
        self.addCleanup(program.kill)
        return program

    def device(self, daemon):
        """The kind of the device that its vGPU uses."""
        used = []

        def told():
            """A worker that has just taken over says which it uses when it has heard that it may go on."""
            vgpus = daemon.vgpus()
            self.assertEqual(len(vgpus), 1)
            used[:] = [d["name"].split("-")[0] for d in vgpus[0]["devices"] if d["used"]]
            return len(used) == 1
        self.assertTrue(wait_until(told, TIMEOUT_S))
        return used[0]

    def move(self, daemon, where, *how):
        before = daemon.vgpus()[0]
        status, said = gantry(daemon, "migrate", before["id"], *where, *how)
        self.assertEqual(status, 0, said)
        self.assertEqual(said["move"]["result"], "moved")

    def to(self, daemon, name, *how):
        self.move(daemon, ("local", "--device", name), *how)
        self.assertEqual(self.device(daemon), name)

    def refused(self, daemon, whats, *words):
        before = daemon.vgpus()
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 1, said)
        for what in whats:
            self.assertIn(what, said["error"]["why"])
        self.assertEqual([v["worker_pid"] for v in daemon.vgpus()], [v["worker_pid"] for v in before])
        return said["error"]

    def test_something_of_each_kind(self):
        daemon = self.daemon("a", env=BOTH)
        for how in ((), ("--stop-and-copy",), ("--rounds", "2")):
            with self.subTest(how=how):
                program = self.start(Program, MOVED, daemon)
                for name in STEPS:
                    self.assertEqual(program.at(), name)
                    self.to(daemon, "basic", *how)
                    if name != STEPS[1]:
                        self.to(daemon, "pthread", *how)
                    program.on()
                    if name == STEPS[1]:
                        self.to(daemon, "pthread", *how)
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_programs_of_files_and_parts(self):
        """Headers that the program no longer has are there where it is built again: by name, and one is one by two names."""
        daemon, other = self.daemon("a", env=BOTH), self.daemon("b", env={"POCL_DEVICES": "pthread"})
        for how in ("files", "parts"):
            folder = os.path.join(self.work, how)
            os.mkdir(folder)
            with self.subTest(how=how):
                program = self.start(Needing, daemon, how, folder)
                self.assertEqual(program.at(), "ready")
                self.assertEqual(os.listdir(folder), [])
                self.to(daemon, "basic")
                self.move(daemon, ("local", "--stop-and-copy"))
                self.to(daemon, "pthread")
                path = os.path.join(self.work, how + ".gnc")
                status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], path, "--stop")
                self.assertEqual(status, 0, said)
                status, said = gantry(daemon, "restore", path)
                self.assertEqual(status, 0, said)
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))
        one = self.daemon("c", env={"POCL_DEVICES": "pthread"})
        program = self.start(Needing, one, "files", self.work + "/files")
        self.assertEqual(program.at(), "ready")
        self.move(one, (other.address,))
        self.assertIsNone(program.ends_well())

    def test_it_goes_on_there(self):
        """Also with a kernel of another device's, and what it is told of its device."""
        daemon = self.daemon("a", env=BOTH)
        for moves in (("basic",), ("basic", "pthread"), ("basic", "pthread", "basic")):
            with self.subTest(moves=moves):
                program = self.start(Needing, daemon)
                self.assertEqual(program.at(), "ready")
                for name in moves:
                    self.to(daemon, name)
                self.move(daemon, ("local",))
                self.assertEqual(self.device(daemon), moves[-1])
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_loads_that_run(self):
        daemon = self.daemon("a", env=BOTH)
        for load in ("matrixmul", "histogram", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, daemon.program_env())
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                for _ in range(8):
                    self.move(daemon, ("local", "--device", "basic" if self.device(daemon) == "pthread" else "pthread"))
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_to_a_gantryd_with_another_device(self):
        a, b = self.daemon("a", env={"POCL_DEVICES": "pthread"}), self.daemon("b", env={"POCL_DEVICES": "basic"})
        for how in ((), ("--stop-and-copy",)):
            with self.subTest(how=how):
                program = self.start(Program, MOVED, a)
                for name in STEPS:
                    self.assertEqual(program.at(), name)
                    self.move(a, (b.address,), *how)
                    self.assertEqual(self.device(b), "basic")
                    self.move(b, (a.address,), *how)
                    self.assertEqual(self.device(a), "pthread")
                    program.on()
                self.assertIsNone(program.ends_well())
                # move() takes the first vGPU of the list: this one must be gone before the next.
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))
        needing = self.start(Needing, a)
        self.assertEqual(needing.at(), "ready")
        self.move(a, (b.address,))
        self.assertIsNone(needing.ends_well())
        self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_the_same_device_is_chosen_where_it_is_there(self):
        a, b = self.daemon("a", env={"POCL_DEVICES": "basic"}), self.daemon("b", env=BOTH)
        program = self.start(Needing, a)
        self.assertEqual(program.at(), "ready")
        self.move(a, (b.address,))
        self.assertEqual(self.device(b), "basic")
        self.assertIsNone(program.ends_well())

    def test_out_of_a_file(self):
        daemon = self.daemon("a", env={"POCL_DEVICES": "pthread"})
        path = os.path.join(self.work, "v.gnc")
        program = self.start(Needing, daemon)
        self.assertEqual(program.at(), "ready")
        status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], path, "--stop")
        self.assertEqual(status, 0, said)
        daemon.extra_env["POCL_DEVICES"] = "basic"
        start_again(daemon)
        status, said = gantry(daemon, "restore", path)
        self.assertEqual(status, 0, said)
        self.assertEqual(self.device(daemon), "basic")
        self.assertIsNone(program.ends_well())

    def test_a_binary_for_its_device_on_another_day(self):
        """Which has another clock, and other memory left, but is of its kind."""
        a, b = self.daemon("a", env={"POCL_DEVICES": "pthread"}), self.lesser("b", "100c=1 101f=12345678912")
        program = self.start(Needing, a, "binary")
        self.assertEqual(program.at(), "ready")
        self.move(a, (b.address,))
        self.assertIsNone(program.ends_well())

    def test_an_image_with_a_pitch_for_a_strict_driver(self):
        """Which may refuse pitches without host memory; an image's record has no host memory."""
        a = self.daemon("a", env={"POCL_DEVICES": "pthread"})
        b = self.lesser("b", "100c=1 strict")
        program = self.start(Needing, a, "plain")
        self.assertEqual(program.at(), "ready")
        self.move(a, (b.address,))
        self.assertIsNone(program.ends_well())

    def test_a_file_for_a_device_that_has_it_alone(self):
        daemon = self.daemon("a", env={"POCL_DEVICES": "pthread"})
        path = os.path.join(self.work, "v.gnc")
        program = self.start(Needing, daemon, "binary")
        self.assertEqual(program.at(), "ready")
        status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], path, "--stop")
        self.assertEqual(status, 0, said)
        for name, well in (("basic", False), ("pthread", True)):
            daemon.extra_env["POCL_DEVICES"] = name
            start_again(daemon)
            status, said = gantry(daemon, "restore", path)
            self.assertEqual(status, 0 if well else 1, said)
            if not well:
                self.assertIn("only a binary of \"pthread", json.dumps(said["error"]).replace("\\", ""))
        self.assertIsNone(program.ends_well())

    def test_what_is_lacking(self):
        a = self.daemon("a", env={"POCL_DEVICES": "pthread"})
        program = self.start(Needing, a)
        self.assertEqual(program.at(), "ready")
        vgpu = a.vgpus()[0]["id"]
        single = {
            "1010=8388608": "24576 KiB of memory in one allocation (it has 8192)",
            "1023=1024": "KiB of local memory (it has 1)",
            "1004=16": "work-groups of 64 (it has 16)",
            "1005=32": "work-groups with a side of 64 (it has 32)",
            "1011=32": "images with a width of 61 (it has 32)",
            "1012=32": "images with a height of 37 (it has 32)",
            "102a=2": "out-of-order queues",
            "1032=0": "double precision",
            "1053=0": "shared virtual memory",
            "1016=0": "lacks images",
            "103e=0": "a linker",
            "100d=32": "the address size in bits: 64 (it has 32)",
            "1019=65536": "sub-buffers aligned to 1024 bits (it needs 65536)",
            "-cl_khr_fp64": "cl_khr_fp64",
            "100c=1 noformats": "the format of a 2D image (order 0x10b5, type 0x10da)",
        }
        for how in ((), ("--stop-and-copy",)):
            lesser = self.lesser("all" + "".join(how), " ".join(single))
            error = self.refused(a, ["the device \"pthread", "lacks", "8192", "and ", " more"], "migrate", vgpu, lesser.address, *how)
            self.assertTrue(error["fix"])
            self.assertEqual(lesser.vgpus(), [])
        for i, (words, what) in enumerate(single.items()):
            with self.subTest(words=words):
                lesser = self.lesser("lesser{}".format(i), words)
                error = self.refused(a, [what, "lacks"], "migrate", vgpu, lesser.address)
                self.assertNotIn("), ", error["why"])
                self.assertNotIn(" more", error["why"])
        self.refused(a, ["of device memory"], "migrate", vgpu, self.lesser("small", "101f=8388608").address)
        # What it neither uses nor was told that it can rely on may be less.
        lesser = self.lesser("enough", "1004=64 1010=33554432 1023=8192 1011=61 1002=1 100c=1")
        self.move(a, (lesser.address,))
        self.assertIsNone(program.ends_well())

    def test_what_is_made_of_one_device_alone(self):
        daemon = self.daemon("a", env=BOTH)
        for how, what in (("binary", "only a binary of \"pthread"), ("part", "a sub-device with compute units of 2 (it has 1)")):
            with self.subTest(how=how):
                program = self.start(Needing, daemon, how)
                self.assertEqual(program.at(), "ready")
                self.refused(daemon, [what], "migrate", daemon.vgpus()[0]["id"], "local", "--device", "basic")
                self.move(daemon, ("local",))
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_what_is_asked_wrongly_changes_nothing(self):
        daemon = self.daemon("a", env=BOTH)
        program = self.start(Needing, daemon)
        self.assertEqual(program.at(), "ready")
        vgpu = daemon.vgpus()[0]["id"]
        for name, what in (("moon", "there is no device \"moon\""), ("basic:3", "there is no device"), ("c", "2 devices are called \"c\""),
                           ("pthread", "it is on the device \"pthread"), ("basic,present-as=gpu", "another kind"), ("moon=basic", "no device \"moon\"")):
            self.refused(daemon, [what], "migrate", vgpu, "local", "--device", name)
        daemon.ctl("tenant", "set", "default", "--device", "pthread")
        self.refused(daemon, ["may not use the device \"basic"], "migrate", vgpu, "local", "--device", "basic")
        daemon.ctl("tenant", "set", "default", "--device", "any")
        self.to(daemon, "basic")
        self.assertIsNone(program.ends_well())

    def test_a_tenant_of_one_device(self):
        """Its vGPU is left with that one when the tenant may use the other one instead."""
        daemon = self.daemon("a", env=BOTH)
        daemon.ctl("tenant", "set", "default", "--device", "pthread")
        program = self.start(Needing, daemon)
        self.assertEqual(program.at(), "ready")
        self.assertEqual(len(daemon.vgpus()[0]["devices"]), 1)
        daemon.ctl("tenant", "set", "default", "--device", "basic")
        self.to(daemon, "basic")
        self.assertEqual(len(daemon.vgpus()[0]["devices"]), 1)
        self.assertIsNone(program.ends_well())


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[6:])
