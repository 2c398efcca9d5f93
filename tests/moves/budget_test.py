#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations of programs that have most of a device's budget, or of their tenant's limit: within
one device, buffers at home stay in the program's memory and are counted once; copies need room, and
unused leases are room.

    budget_test.py STAGE PROGRAM [faults]       PROGRAM: tenants/allocator; faults: the build has
                                                the points (-Dfaults=true)
"""

import os
import subprocess
import sys
import unittest

from moves_harness import TIMEOUT_S, MovesCase, gantry, telling, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tenants"))
from tenants_test import FAILED, MIB, Allocator  # noqa: E402

FAULTS = "faults" in sys.argv[3:]
MovesCase.stage, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])
BUDGET = 64 * MIB


class Budget(MovesCase):
    def with_budget(self, name, **options):
        """A gantryd whose device has the budget."""
        path = os.path.join(self.work, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write("[device pthread]\nmemory = {}\n".format(BUDGET))
        return self.daemon(name, args=["--config", path], **options)

    def allocates(self, daemon):
        """A program that begins in a worker."""
        env = dict(daemon.program_env(), GANTRY_MODE="remote")
        p = Allocator([PROGRAM], env, stdin=subprocess.PIPE)
        self.addCleanup(p.__exit__)
        return p

    def start(self, *words, env=None):
        """A program of the default tenant, at a gantryd with the budget."""
        self.gantryd = self.with_budget("gantryd", env=env, passthrough=True)
        modes = ("--mode", "remote", "--mode", "passthrough")
        self.gantryd.ctl("tenant", "set", "default", *modes, *words)
        self.allocator = self.allocates(self.gantryd)
        return self.allocator

    def vgpu(self):
        return self.gantryd.vgpus()[0]

    def leased(self):
        """On the device, and to the program."""
        (device,) = gantry(self.gantryd, "devices")[1]["devices"]
        return device["leased_bytes"], self.vgpu()["leased_bytes"]

    def is_alone(self, n_bytes):
        """The books have the program's lease once, as soon as the other process has ended."""
        self.assertTrue(wait_until(lambda: len(set(self.leased())) == 1, TIMEOUT_S), self.leased())
        self.assertGreaterEqual(self.leased()[0], n_bytes)
        self.assertEqual(self.vgpu()["memory_bytes"], n_bytes)

    def well(self, *words):
        status, said = gantry(self.gantryd, *words)
        self.assertLessEqual(self.leased()[0], BUDGET)
        self.assertEqual(status, 0, said)

    def has_the_rest(self, n_bytes, limit=BUDGET):
        """Neither more nor less is free than beside these bytes."""
        rest = self.allocator.make("buffer", limit - n_bytes)
        self.assertEqual(self.allocator.do("buffer", 1), FAILED)
        self.assertEqual(self.leased(), (limit, limit))
        self.assertEqual(self.allocator.do("free", rest), "freed")

    def test_a_program_above_half_of_the_budget(self):
        p = self.start()
        held = p.make("buffer", 40 * MIB)
        for how in (("migrate", "local"), ("mode", "passthrough"), ("mode", "remote"),
                    ("migrate", "local", "--stop-and-copy"), ("mode", "passthrough"),
                    ("migrate", "local")):
            with self.subTest(how=how):
                self.well(how[0], self.vgpu()["id"], *how[1:])
                self.is_alone(40 * MIB)
                self.assertEqual(p.do("touch", held), "same")
                self.has_the_rest(40 * MIB)

    def test_a_program_above_half_of_its_tenants_limit(self):
        p = self.start("--memory", "50M")
        held = p.make("buffer", 40 * MIB)
        self.well("migrate", self.vgpu()["id"], "local")
        self.is_alone(40 * MIB)
        self.assertEqual(p.do("touch", held), "same")
        self.has_the_rest(40 * MIB, 50 * MIB)

    def test_copies_beside_what_is_shared(self):
        p = self.start()
        held, copied = p.make("buffer", 24 * MIB), p.make("host", 18 * MIB)
        for how in (("migrate", "local"), ("mode", "passthrough"), ("mode", "remote")):
            with self.subTest(how=how):
                self.well(how[0], self.vgpu()["id"], *how[1:])
                self.is_alone(42 * MIB)
                self.assertEqual((p.do("touch", held), p.do("touch", copied)), ("same", "same"))
                self.has_the_rest(42 * MIB)

    def is_refused(self, *words, missing):
        """Nothing starts, and the reply names the missing bytes and a remedy."""
        before = self.vgpu()
        status, said = gantry(self.gantryd, words[0], before["id"], *words[1:])
        self.assertEqual(status, 1, said)
        self.assertIn(missing, said["error"]["why"])
        self.assertIn("gantry checkpoint --stop", said["error"]["fix"])
        self.assertNotIn("the vGPU was not moved", self.gantryd.log())
        self.assertEqual(self.vgpu()["worker_pid"], before["worker_pid"])

    def test_a_copy_without_room_is_refused_before_anything_stops(self):
        p = self.start()
        copied = p.make("host", 40 * MIB)
        for how in (("migrate", "local"), ("mode", "passthrough")):
            self.is_refused(*how, missing="it needs 40 MiB of device memory for a second copy of "
                                          "its contents, 16 MiB more than the device has left")
        self.is_alone(40 * MIB)
        file = os.path.join(self.work, "a.ckpt")
        self.well("checkpoint", self.vgpu()["id"], file, "--stop")
        self.well("restore", file)
        self.assertEqual(p.do("touch", copied), "same")
        self.assertEqual(p.do("free", copied), "freed")
        copied = p.make("host", 20 * MIB)
        self.well("migrate", self.vgpu()["id"], "local")  # the source's unused lease is room
        self.assertEqual(p.do("touch", copied), "same")
        self.has_the_rest(20 * MIB)

    def test_a_copy_beyond_the_tenants_limit_is_refused_before_anything_stops(self):
        p = self.start("--memory", "32M")
        p.make("host", 20 * MIB)
        self.is_refused("migrate", "local", missing="8 MiB more than its tenant has left")

    def test_unused_leases_keep_nobody_out(self):
        a, b = self.daemon("a"), self.with_budget("b")
        p = self.allocates(a)
        held = p.make("buffer", 50 * MIB)
        self.assertGreater(a.vgpus()[0]["leased_bytes"], BUDGET)
        status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
        self.assertEqual(status, 0, said)
        status, said = gantry(b, "migrate", b.vgpus()[0]["id"], a.address)
        self.assertEqual(status, 0, said)
        self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))
        q = self.allocates(b)
        q.make("buffer", 10 * MIB)
        self.assertGreater(b.vgpus()[0]["leased_bytes"], BUDGET - 50 * MIB)
        status, said = gantry(a, "migrate", a.vgpus()[0]["id"], b.address)
        self.assertEqual(status, 0, said)
        self.assertEqual(p.do("touch", held), "same")
        q.make("buffer", 4 * MIB)
        self.assertEqual(q.do("buffer", 1), FAILED)

    @unittest.skipUnless(FAULTS, "the build has no fault points")
    def test_a_destination_that_dies_leaves_the_books_as_they_were(self):
        for point in ("load-begun", "load-last", "load-done"):
            with self.subTest(point=point):
                p = self.start(env={"GANTRY_FAULT": point})
                held = p.make("buffer", 40 * MIB)
                before = self.vgpu()
                status, said = gantry(self.gantryd, "migrate", before["id"], "local")
                self.assertEqual(status, 1, said)
                self.is_alone(40 * MIB)
                self.assertEqual(self.vgpu()["worker_pid"], before["worker_pid"])
                self.assertEqual(p.do("touch", held), "same")
                self.has_the_rest(40 * MIB)
                p.kill()


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[4:] if FAULTS else sys.argv[3:])
