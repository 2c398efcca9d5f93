#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry policy: what it prints, what it changes, and what it refuses."""

import json
import os
import unittest

from commands_harness import CommandTest, as_nobody

POLICIES = ["none", "fair", "credit", "credit-hs", "strict", "rr", "xenocredit"]


class Policies(CommandTest):
    daemon = True

    def policy(self, *args, status=0):
        p = self.prefix.run("policy", *args, "--json", address=self.address)
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(p.stdout.count("\n"), 1)
        reply = json.loads(p.stdout)
        self.assertEqual(reply["version"], 1)
        return reply

    def test_what_there_is(self):
        reply = self.policy()
        self.assertEqual(set(reply), {"version", "policy", "policies"})
        self.assertEqual([p["name"] for p in reply["policies"]], POLICIES)
        self.assertEqual(reply["policy"], "fair")  # nobody has chosen one
        for p in reply["policies"]:
            self.assertEqual(set(p), {"name", "about"})
            self.assertTrue(p["about"])
        p = self.prefix.run("policy", address=self.address)
        lines = p.stdout.splitlines()
        self.assertEqual((p.returncode, p.stderr, lines[0].split()), (0, "", ["POLICY", "STATE", "WHAT"]))
        self.assertEqual([line.split()[0] for line in lines[1:]], POLICIES)
        for line, one in zip(lines[1:], reply["policies"]):
            self.assertTrue(line.endswith(one["about"]))
            self.assertEqual("in force" in line, one["name"] == reply["policy"])

    def test_a_change(self):
        self.addCleanup(self.policy, self.policy()["policy"])
        for name in POLICIES:
            p = self.prefix.run("policy", name, address=self.address)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))
            self.assertEqual(self.policy()["policy"], name)
        self.assertEqual(self.policy("rr")["policy"], "rr")
        self.assertEqual(self.policy("rr")["policy"], "rr")

    def test_what_is_refused_changes_nothing(self):
        before = self.policy()
        for name in ("fare", "Fair", "", "fair ", "credit\u00e9"):
            self.refused(2, 'there is no policy "{}"; the policies are {}'.format(name, ", ".join(POLICIES)), "policy", name, address=self.address)
        error = self.policy("fare", status=2)["error"]
        self.assertEqual(error["what"], "cannot change the policy")
        self.assertEqual((error["what"], error["why"]), ("cannot change the policy", 'there is no policy "fare"'))
        self.refused(2, 'unexpected argument "rr"', "policy", "fair", "rr", address=self.address)
        self.refused(2, "unknown option --set", "policy", "--set", "rr", address=self.address)
        self.assertEqual(self.policy(), before)

    def test_others_may_look_alone(self):
        nobody = as_nobody(self, self.prefix.gantry)
        if not nobody:
            self.skipTest("needs two users")
        p = self.prefix.run("tenant", "set", "default", "--uid", "any", address=self.address)
        self.assertEqual(p.returncode, 0)
        self.addCleanup(self.prefix.run, "tenant", "set", "default", "--uid", "none", address=self.address)
        self.addCleanup(os.chmod, self.gantryd.dir, 0o700)
        os.chmod(self.gantryd.dir, 0o755)
        before = self.policy()
        self.refused(1, "only operators may, by gantryd's control socket; run it as gantryd's own user, as root or as a member of the group gantry-operator", "policy", "rr", address=self.address, before=nobody)
        p = self.prefix.run("policy", "--json", address=self.address, before=nobody)
        self.assertEqual((p.returncode, json.loads(p.stdout)), (0, before))

    def test_no_daemon(self):
        gone = "unix:" + os.path.join(self.dir, "s")
        for args in ([], ["rr"]):
            self.refused(1, "no gantryd listens at " + gone, "policy", *args, address=gone)


if __name__ == "__main__":
    unittest.main(verbosity=2)
