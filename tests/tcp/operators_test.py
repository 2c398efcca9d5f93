#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tcp port for operators: by certificates that are named, and for control requests alone."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys

from authority import Authority
from tcp_harness import ANSWER_S, SKIP, STAGE, TcpCase, daemon, main

DATA = b"gtrydata" + struct.pack("<II", 1, 0)


class Operators(TcpCase):
    ARGS = []

    def setUp(self):
        super().setUp()
        pki = os.path.join(self.work.name, "pki")
        os.mkdir(pki)
        self.authority = Authority(pki)

    def start_refused(self, says, *args):
        done = subprocess.run([os.path.join(STAGE, "bin/gantryd"), "--socket", os.path.join(self.work.name, "s"), *args],
                              env=daemon.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=ANSWER_S, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr.splitlines()[-1])

    def command(self, gantry, *args, **env):
        address = next(line.split()[1] for line in gantry.log().splitlines() if line.startswith("control "))
        return subprocess.run([os.path.join(STAGE, "bin/gantry"), *args, "--connect", address], env={**daemon.clean_env(), **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=ANSWER_S)

    def control(self, *more):
        return self.gantry(*self.authority.server(), "--listen-control", "tcp:127.0.0.1:0", "--operator-subject", "ops", *more)

    def test_listening_wants_credentials(self):
        at = ["--listen-control", "tcp:127.0.0.1:0"]
        says = "operators identify themselves over tcp by certificates only"
        self.start_refused(says, *at, *self.authority.server())
        self.start_refused(says, *at, "--operator-subject", "ops", "--insecure")
        self.start_refused(says, *at, "--operator-subject", "ops", *self.authority.server()[:4])

    def test_who_is_refused(self):
        """Everything is a named certificate's; nobody else gets anything, whatever is shown."""
        ops = self.authority.client("ops")
        with self.control() as gantry:
            program = self.program(gantry, **self.authority.client())
            self.assertEqual(program.ready, "ready 0")
            vgpu = gantry.vgpus()[0]["id"]
            p = self.command(gantry, "ls", **ops)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertIn(vgpu, p.stdout)
            for args in (("tenant", "add", "blue", "--weight", "7"), ("policy", "rr"), ("migrate", vgpu, "local", "--quiet"), ("kill", vgpu)):
                p = self.command(gantry, *args, **ops)
                self.assertEqual((p.returncode, p.stderr), (0, ""), args)
            p = self.command(gantry, "tenant", "set", "blue", "--weight", "8", **self.authority.client())
            self.assertEqual(p.returncode, 1)
            self.assertIn('the certificate of "default" is not an operator\'s; show an operator\'s certificate', p.stderr)
            for env in (self.authority.client("own"), {"GANTRY_TLS_CA": self.authority.path("ca.pem")}, {"GANTRY_TOKEN": "0123456789abcdef"}, {}):
                p = self.command(gantry, "ls", **env)
                self.assertEqual((p.returncode, p.stdout), (1, ""), env)
            self.assertEqual(json.loads(self.command(gantry, "tenant", "ls", "--json", **ops).stdout)["tenants"][1]["weight"], 7)
            port = next(line.split()[1] for line in gantry.log().splitlines() if line.startswith("control "))
            # Programs are served at the other port, where this certificate is that of no tenant.
            p = subprocess.run([os.path.join(STAGE, "bin/gantry"), "run", "--connect", port, "true"], env={**daemon.clean_env(), **ops},
                               stderr=subprocess.PIPE, text=True)
            self.assertEqual(p.returncode, 125)
            self.assertIn("programs cannot attach there", p.stderr)
            p = subprocess.run([os.path.join(STAGE, "bin/gantry"), "ls", "--connect", gantry.tcp_address], env={**daemon.clean_env(), **ops},
                               stderr=subprocess.PIPE, text=True)
            self.assertIn('may not attach to "default"', p.stderr)
            s = socket.create_connection(("127.0.0.1", int(port.rsplit(":", 1)[1])), timeout=ANSWER_S)
            s.sendall(DATA + bytes(64))
            try:
                while s.recv(4096):   # a farewell
                    pass
            except ConnectionError:
                pass
            s.close()
            program.kill()

    def test_what_needs_the_machine(self):
        """Files and other gantryds' sockets are handed over, which no network does."""
        with self.control() as gantry:
            program = self.program(gantry, **self.authority.client())
            vgpu = gantry.vgpus()[0]["id"]
            for args in (("checkpoint", vgpu, os.path.join(self.work.name, "f")), ("migrate", vgpu, "tcp:127.0.0.1:1")):
                p = self.command(gantry, *args, "--quiet", **self.authority.client("ops"))
                self.assertEqual(p.returncode, 1, args)
                self.assertNotIn("closed the connection", p.stderr)
            program.kill()


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("SKIP: openssl is not installed: run 'make deps'")
        sys.exit(SKIP)
    main()
