#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry drain where there is nothing to move: who may, who is let in, and what other commands say of it (tests/moves moves programs)."""

import json
import os
import unittest

from commands_harness import FAKE, CommandTest, as_nobody

from gantryd_harness import ERROR, Gantryd

REFUSAL = "this gantryd is draining and accepts no new programs"


class Drain(CommandTest):
    daemon = True

    def setUp(self):
        super().setUp()
        self.other = self.enterContext(Gantryd(env={"OCL_ICD_VENDORS": FAKE}))
        self.there = "unix:" + self.other.path
        self.addCleanup(self.prefix.run, "drain", "--undo", address=self.address)

    def drained(self, *args):
        p = self.prefix.run("drain", *args, address=self.address)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout

    def test_others_may_not(self):
        nobody = as_nobody(self, self.prefix.gantry)
        if not nobody:
            self.skipTest("needs two users")
        for d in (self.gantryd, self.other):
            address = "unix:" + d.path
            self.assertEqual(self.prefix.run("tenant", "set", "default", "--uid", "any", address=address).returncode, 0)
            os.chmod(d.dir, 0o755)
        self.addCleanup(self.prefix.run, "tenant", "set", "default", "--uid", "none", address=self.address)
        self.addCleanup(os.chmod, self.gantryd.dir, 0o700)
        says = "only operators may, by gantryd's control socket"
        self.refused(1, says, "drain", self.there, address=self.address, before=nobody)
        self.assertEqual(self.prefix.run("ls", address=self.address).stderr, "")
        self.drained(self.there)
        self.refused(1, says, "drain", "--undo", address=self.address, before=nobody)
        # They are told in the same words.
        self.refused(125, REFUSAL, "run", "--", "true", address=self.address, before=nobody)

    def test_nothing_to_move(self):
        self.assertEqual(self.drained(self.there),
                         "0 moved to " + self.there + ", 0 stay; new programs are refused until gantry drain --undo, or until gantryd ends\n")
        said = json.loads(self.drained(self.there, "--json"))
        self.assertEqual(said, {"version": 1, "drain": {"to": self.there, "moved": 0, "stay": 0, "interrupted": False, "vgpus": []}})
        self.sentence(self.prefix.run("ls", address=self.address), 0, "gantry ls", REFUSAL)
        findings = json.loads(self.prefix.run("doctor", "--json", address=self.address).stdout)["findings"]
        self.assertIn(("warn", "gantryd is draining and accepts no new programs"), [(f["status"], f["finding"]) for f in findings])
        self.refused(125, REFUSAL, "run", "--", "true", address=self.address)
        client = self.gantryd.client()
        self.addCleanup(client.close)
        reply = client.attach()
        self.assertEqual(reply.op, ERROR)
        self.assertIn(REFUSAL, reply.error()[1])
        # Who was refused is let in on the same connection when it is over.
        self.assertEqual(self.drained("--undo"), "new programs are admitted again; programs that have moved stay there\n")
        reply = client.attach()
        self.assertNotEqual(reply.op, ERROR)
        reply.close()
        self.assertEqual(self.prefix.run("run", "--", "true", address=self.address).returncode, 0)

    def test_no_daemon(self):
        gone = "unix:" + os.path.join(self.dir, "s")
        self.refused(1, "no gantryd listens at " + gone, "drain", gone, address=self.address)
        self.refused(1, "no gantryd listens at " + gone, "drain", self.there, address=gone)
        self.refused(1, "no gantryd listens at " + gone, "drain", "--undo", address=gone)
        for d in (self.address, self.there):
            self.assertEqual(self.prefix.run("ls", address=d).stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
