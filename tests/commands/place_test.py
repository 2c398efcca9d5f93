#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry place: what it prints and refuses.

With a gantryd that places no memory, and a simulated one that does."""

import json
import os
import unittest

from commands_harness import CommandTest, FakeGantryd

from gantryd_harness import CONTROL, HELLO, frame

POLICIES = ["turn", "first-fit", "size", "utilization"]


class Places(CommandTest):
    daemon = True

    def place(self, *args, address=None, status=0):
        p = self.prefix.run("place", *args, "--json", address=address or self.address)
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(p.stdout.count("\n"), 1)
        return json.loads(p.stdout)

    def test_no_memory_is_placed(self):
        reply = self.place()
        self.assertEqual(set(reply), {"version", "policies"})
        self.assertEqual([p["name"] for p in reply["policies"]], POLICIES)
        p = self.prefix.run("place", address=self.address)
        self.assertEqual((p.returncode, p.stderr),
                         (0, "gantry place: no device's memory is placed: each vGPU's memory "
                             "stays on its device; gantryd --oversubscribe changes that\n"))
        lines = p.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["POLICY", "STATE", "WHAT"])
        self.assertEqual([line.split()[:2] for line in lines[1:]],
                         [[name, "-"] for name in POLICIES])
        self.refused(1, "no device's memory is placed; start gantryd with --oversubscribe",
                     "place", "size", address=self.address)
        self.assertEqual(self.place("size", status=1)["error"]["what"],
                         "cannot change the placement policy")
        self.assertEqual(self.place(), reply)

    def test_wrong_names(self):
        for name in ("left", "Turn", "", "fair"):
            self.refused(2, 'there is no placement policy "{}"; the policies are {}'.format(
                name, ", ".join(POLICIES)), "place", name, address=self.address)
        self.refused(2, 'unexpected argument "size"', "place", "turn", "size",
                     address=self.address)

    def test_a_policy_in_force(self):
        reply = {"version": 1, "place": "size", "policies": [{"name": "turn", "about": "a"},
                                                             {"name": "size", "about": "b"}]}
        address = "unix:" + os.path.join(self.dir, "s")

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(
                CONTROL, seq, json.dumps(reply).encode())
        with FakeGantryd(address[5:], answer):
            p = self.prefix.run("place", address=address)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertEqual([line.split() for line in p.stdout.splitlines()[1:]],
                             [["turn", "-", "a"], ["size", "in", "force", "b"]])
            self.assertEqual(self.place(address=address), reply)

    def test_no_daemon(self):
        gone = "unix:" + os.path.join(self.dir, "s")
        for args in ([], ["turn"]):
            self.refused(1, "no gantryd listens at " + gone, "place", *args, address=gone)


if __name__ == "__main__":
    unittest.main(verbosity=2)
