#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, and whose vGPUs go from one gantryd to another and back while they run: what they compute is what they
compute undisturbed, and whatever is asked wrongly changes nothing.

    tcp_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import os
import socket
import sys

from moves_harness import BetweenTwo, STEPS, TcpCase, telling

TcpCase.stage, TcpCase.path, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])
TOKEN, OTHER = "blue-has-a-token-that-is-long-enough", "another-token-as-long-as-that-one"


class Tcp(BetweenTwo, TcpCase):
    load, link, how = LOAD, "tcp", ("--link", "tcp")
    kept = ("tenant", "link", "weight", "memory_limit_bytes", "program")

    def secure(self, name, token=TOKEN):
        config = self.private(name + ".conf", "[tenant blue]\ntoken-file = {}\n".format(self.private(name + ".token", token + "\n")))
        return self.daemon(name, "--config", config, insecure=False)

    def test_through_tls(self):
        a, b = self.secure("a"), self.secure("b", OTHER)
        program = self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN)
        there, back = ("--token-file", self.private("there", OTHER)), ("--token-file", self.private("back", TOKEN))
        for name in STEPS:
            self.assertEqual(program.at(), name)
            self.move(a, b, *there)
            self.move(b, a, "--stop-and-copy", *back)
            program.on()
        self.assertIsNone(program.ends_well())

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
        self.refused(a, "of device memory", "migrate", vgpu, b.tcp_address)
        self.refused(a, "", "migrate", vgpu, b.tcp_address, "--token-file", os.path.join(self.work, "nothing"))
        self.assertEqual(b.vgpus(), [])
        self.ends_well(program)

    def test_who_may_send_one(self):
        a, b, plain = self.secure("a"), self.secure("b", OTHER), self.daemon("plain")
        program = self.program(a, GANTRY_TENANT="blue", GANTRY_TOKEN=TOKEN)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        wrong = self.private("wrong", "not-a-token-that-anybody-has")
        self.refused(a, "", "migrate", vgpu, b.tcp_address, "--token-file", wrong)
        self.refused(a, "credentials", "migrate", vgpu, b.tcp_address)
        self.refused(a, "", "migrate", vgpu, plain.tcp_address, "--token-file", self.private("t", OTHER))
        self.refused(a, "", "migrate", vgpu, plain.tcp_address)
        self.assertEqual(b.vgpus() + plain.vgpus(), [])
        self.move(a, b, "--token-file", self.private("there", OTHER))
        self.ends_well(program)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
