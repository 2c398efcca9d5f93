#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, and whose vGPUs go from one gantryd to another and back while they run: what they compute is what they
compute undisturbed, and whatever is asked wrongly changes nothing.

    tcp_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import json
import os
import socket
import subprocess
import sys

from moves_harness import Load, STEPS, TIMEOUT_S, TcpCase, gantry, telling, wait_until

TcpCase.stage, TcpCase.path, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])
TOKEN, OTHER = "blue-has-a-token-that-is-long-enough", "another-token-as-long-as-that-one"


class Tcp(TcpCase):
    def file(self, name, text):
        path = os.path.join(self.work, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def secure(self, name, token=TOKEN):
        config = self.file(name + ".conf", "[tenant blue]\ntoken-file = {}\n".format(self.file(name + ".token", token + "\n")))
        return self.daemon(name, "--config", config, insecure=False)

    def move(self, here, there, *how):
        before = here.vgpus()
        self.assertEqual([v["link"] for v in before], ["tcp"])
        status, said = gantry(here, "migrate", before[0]["id"][:6], there.tcp_address, *how)
        self.assertEqual(status, 0, said)
        self.assertEqual(said["move"]["result"], "moved")
        self.assertEqual(said["move"]["to"], there.tcp_address)
        self.assertGreater(said["move"]["downtime_ns"], 0)
        after = there.vgpus()
        self.assertEqual(here.vgpus(), [])
        self.assertEqual([v["id"] for v in after], [before[0]["id"]])
        for same in ("tenant", "link", "weight", "memory_limit_bytes", "program"):
            self.assertEqual(after[0].get(same), before[0].get(same))
        return said["move"]

    def refused(self, here, what, *words, **options):
        before = here.vgpus()
        status, said = gantry(here, *words, **options)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))
        self.assertEqual([v["worker_pid"] for v in here.vgpus()], [v["worker_pid"] for v in before])

    def test_something_of_each_kind_there_and_back(self):
        a, b = self.daemon("a"), self.daemon("b")
        for how in ((), ("--stop-and-copy",), ("--rounds", "2")):
            with self.subTest(how=how):
                program = self.program(a)
                for name in STEPS:
                    self.assertEqual(program.at(), name)
                    self.move(a, b, *how)
                    self.move(b, a, *how)
                    program.on()
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_through_tls(self):
        a, b = self.secure("a"), self.secure("b", OTHER)
        program = self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN)
        there, back = ("--token-file", self.file("there", OTHER)), ("--token-file", self.file("back", TOKEN))
        for name in STEPS:
            self.assertEqual(program.at(), name)
            self.move(a, b, *there)
            self.move(b, a, "--stop-and-copy", *back)
            program.on()
        self.assertIsNone(program.ends_well())

    def test_loads_that_run(self):
        a, b = self.daemon("a"), self.daemon("b")
        for load in ("matrixmul", "histogram", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, a.program_env())
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                here, there = a, b
                for _ in range(7):
                    self.move(here, there)
                    here, there = there, here
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_what_is_asked_wrongly_changes_nothing(self):
        a, b = self.daemon("a"), self.daemon("b")
        b.ctl("tenant", "set", "default", "--memory", "1M")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.refused(a, "no gantryd listens", "migrate", vgpu, "tcp:127.0.0.1:{}".format(nobody.getsockname()[1]))
        with socket.socket() as silent:   # takes connections, and says nothing
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            self.refused(a, "does not answer", "migrate", vgpu, "tcp:127.0.0.1:{}".format(silent.getsockname()[1]))
        self.refused(a, "there already", "migrate", vgpu, a.tcp_address)
        self.refused(a, "cannot reach a socket", "migrate", vgpu, b.address)
        self.refused(a, "attached over tcp", "migrate", vgpu, "local")
        self.refused(a, "of device memory", "migrate", vgpu, b.tcp_address)
        self.refused(a, "", "migrate", vgpu, b.tcp_address, "--token-file", os.path.join(self.work, "nothing"))
        self.assertEqual(b.vgpus(), [])
        self.ends_well(program)

    def test_who_may_send_one(self):
        a, b, plain = self.secure("a"), self.secure("b", OTHER), self.daemon("plain")
        program = self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        wrong = self.file("wrong", "not-a-token-that-anybody-has")
        self.refused(a, "", "migrate", vgpu, b.tcp_address, "--token-file", wrong)
        self.refused(a, "credentials", "migrate", vgpu, b.tcp_address)
        self.refused(a, "", "migrate", vgpu, plain.tcp_address, "--token-file", self.file("t", OTHER))
        self.refused(a, "", "migrate", vgpu, plain.tcp_address)
        self.assertEqual(b.vgpus() + plain.vgpus(), [])
        self.move(a, b, "--token-file", self.file("there", OTHER))
        self.ends_well(program)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
