#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, and what is done to their vGPUs within the gantryd that they are at: what they compute is what they
compute undisturbed, and whatever fails changes nothing.

    tcp_here_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import itertools
import json
import os
import resource
import sys

from moves_harness import Load, STEPS, TIMEOUT_S, StopsCase, gantry, telling, wait_until

StopsCase.stage, StopsCase.path, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])
TOKEN = "blue-has-a-token-that-is-long-enough"


class Here(StopsCase):
    def secure(self):
        token, config = os.path.join(self.work, "token"), os.path.join(self.work, "conf")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[tenant blue]\ntoken-file = {}\n".format(token))
        return self.daemon("a", "--config", config, insecure=False)

    def refused(self, daemon, what, *words, **options):
        before = daemon.vgpus()
        status, said = gantry(daemon, *words, **options)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))
        self.assertEqual([(v["id"], v["worker_pid"]) for v in daemon.vgpus()], [(v["id"], v["worker_pid"]) for v in before])

    def at_each_step(self, program, each):
        for name in STEPS:
            self.assertEqual(program.at(), name)
            each()
            program.on()
        self.assertIsNone(program.ends_well())

    def save(self, daemon):
        before = self.vgpu(daemon)
        said = self.well(daemon, "checkpoint", before["id"], self.file)["checkpoint"]
        self.assertEqual((said["state"], said["bytes"]), ("running", os.path.getsize(self.file)))
        self.assertEqual(os.listdir(self.files), ["a.ckpt"])
        self.assertEqual(self.vgpu(daemon)["worker_pid"], before["worker_pid"])
        seen = self.well(daemon, "inspect", self.file)["checkpoint"]
        self.assertEqual((seen["vgpu"]["id"], seen["vgpu"]["name"]), (before["id"], before["tenant"]))
        return seen

    def test_into_a_file_and_the_program_goes_on(self):
        a = self.daemon("a")
        self.at_each_step(self.program(a), lambda: self.save(a))
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.refused(a, "without --stop", "restore", self.file)

    def test_into_a_file_through_tls(self):
        a = self.secure()
        self.at_each_step(self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN), lambda: self.save(a))

    def test_all_of_it_is_in_the_file(self):
        a = self.daemon("a")
        program = Load(LOAD, "matrixmul", a.program_env())
        self.addCleanup(program.kill)
        self.assertTrue(wait_until(lambda: [v for v in a.vgpus() if v["memory_bytes"] and v["state"] == "running"], TIMEOUT_S))
        memory = self.vgpu(a)["memory_bytes"]
        for _ in range(3):
            self.assertGreater(sum(m["sent_bytes"] for m in self.save(a)["memories"]), memory // 2)
        self.assertIsNone(program.ends_well())

    def move(self, daemon, *how):
        before = self.vgpu(daemon)
        said = self.well(daemon, "migrate", before["id"], "local", *how)["move"]
        self.assertEqual((said["result"], said["to"]), ("moved", "local"))
        after = self.vgpu(daemon)
        self.assertNotEqual(after["worker_pid"], before["worker_pid"])
        for same in ("id", "tenant", "link", "weight", "memory_limit_bytes", "program"):
            self.assertEqual(after.get(same), before.get(same))

    def test_to_a_new_worker(self):
        a = self.daemon("a")
        for hows in (((), ("--stop-and-copy",)), (("--rounds", "2"), ())):
            with self.subTest(hows=hows):
                how = itertools.cycle(hows)
                self.at_each_step(self.program(a), lambda how=how: self.move(a, *next(how)))
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_to_a_new_worker_through_tls(self):
        a = self.secure()
        self.at_each_step(self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN), lambda: self.move(a))

    def test_loads_that_run(self):
        a = self.daemon("a")
        for load in ("matrixmul", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, a.program_env())
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                for _ in range(4):
                    self.move(a)
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_what_cannot_be_saved_changes_nothing(self):
        def little():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

        a = self.daemon("a")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = self.vgpu(a)["id"]
        self.refused(a, "File too large", "checkpoint", vgpu, self.file, preexec_fn=little)
        self.assertEqual(os.listdir(self.files), [])
        self.assertTrue(wait_until(lambda: self.vgpu(a)["state"] != "moving", TIMEOUT_S))
        self.save(a)
        self.ends_well(program)


    def test_what_cannot_be_moved_goes_on(self):
        a = self.daemon("a")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = self.vgpu(a)["id"]
        self.refused(a, "passthrough", "mode", vgpu, "passthrough")
        self.refused(a, "already", "mode", vgpu, "remote")
        self.refused(a, "no device", "migrate", vgpu, "local", "--device", "none such")
        self.refused(a, "gantry migrate VGPU local", "migrate", vgpu, a.tcp_address)
        a.ctl("tenant", "set", "default", "--memory", "1M")
        for how in ((), ("--stop-and-copy",)):
            self.refused(a, "for a second copy of its contents", "migrate", vgpu, "local", *how)
            self.assertTrue(wait_until(lambda: self.vgpu(a)["state"] != "moving", TIMEOUT_S))
        a.ctl("tenant", "set", "default", "--memory", "1G")
        self.move(a)
        self.ends_well(program)

    def test_on_another_device(self):
        a = self.daemon("a", env={"POCL_DEVICES": "pthread basic"})
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        for name in STEPS[1:]:
            self.move(a, "--device", "basic" if STEPS.index(name) % 2 else "pthread")
            program.on()
            self.assertEqual(program.at(), name)
        program.on()
        self.assertIsNone(program.ends_well())


if __name__ == "__main__":
    telling.main(StopsCase.stage, sys.argv[4:])
