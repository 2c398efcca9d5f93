#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer that is gone without a word: no end of the connection, no refusal, nothing at all, as when a machine loses its power or somebody
pulls a cable. gantryd and a program live in a network of their own, whose only wire is taken down."""

import os
import shutil
import subprocess

from tcp_harness import SKIP, TcpCase, Wanderer, daemon, main

LOST = -5


class Network:
    """A network namespace with a loopback device, held by a process that sleeps."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", *self.rights(), "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.there = self.holder.stdout.readline().strip() == "up"

    @staticmethod
    def rights():
        return [] if os.geteuid() == 0 else ["--user", "--map-current-user"]

    def inside(self, *command):
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "-t", str(self.holder.pid), *user, "-n", *command]

    def down(self):
        subprocess.run(self.inside("ip", "link", "set", "lo", "down"), check=True, timeout=60)

    def end(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(60)


class Silence(TcpCase):
    def setUp(self):
        super().setUp()
        self.network = Network()
        self.addCleanup(self.network.end)

    def test_each_side_notices(self):
        with self.gantry(grace=1, prefix=self.network.inside()) as gantry:
            idle, busy = (self.inside(gantry) for _ in range(2))
            for p in idle, busy:
                self.assertEqual(p.ready, "ready 0")
                self.assertEqual(p.do("rounds 3"), 0)
            self.assertEqual(len(gantry.vgpus()), 2)
            self.network.down()
            # One waits for an answer, the other for nothing at all: gantryd's side learns of it by asking.
            self.assertEqual(busy.do("query"), LOST)
            self.until(lambda: not gantry.vgpus(), "a vGPU outlives the program that is gone")
            self.assertIn("the connection broke", gantry.log())
            self.assertEqual(idle.do("query"), LOST)
            self.assertEqual(idle.do("rounds 1"), LOST)
            idle.end()
            busy.end()

    def inside(self, gantry):
        return Wanderer(gantry.program_env() | {"GANTRY_CONNECT": gantry.tcp_address}, prefix=self.network.inside())


if __name__ == "__main__":
    if not shutil.which("nsenter") or not shutil.which("ip"):
        print("SKIP: no nsenter or no ip to make a network of its own with")
        raise SystemExit(SKIP)
    network = Network()
    network.end()
    if not network.there:
        print("SKIP: no network namespace can be had here")
        raise SystemExit(SKIP)
    main()
