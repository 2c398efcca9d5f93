#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry tenant: what it changes, what it prints, and that a change that is wrong in part changes nothing."""

import json
import os
import unittest

from commands_harness import CommandTest

KEYS = {"name", "weight", "vgpus", "memory_bytes", "leased_bytes", "uids", "gids", "token", "owner", "modes", "devices"}


class Tenants(CommandTest):
    daemon = True

    def tenant(self, *args, status=0):
        p = self.prefix.run("tenant", *args, "--json", address=self.address)
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(p.stdout.count("\n"), 1)
        reply = json.loads(p.stdout)
        self.assertEqual(reply["version"], 1)
        return reply

    def add(self, name, *args):
        added, = self.tenant("add", name, *args)["tenants"]
        self.addCleanup(self.tenant, "rm", name)
        return added

    def listed(self):
        return {t["name"]: t for t in self.tenant("ls")["tenants"]}

    def admitted(self):
        """Those that `default` admits while it has no rule."""
        return ["uid:{}".format(uid) for uid in sorted({os.getuid(), 0}, reverse=True)]

    def test_default_is_there(self):
        self.assertEqual(self.listed()["default"], {"name": "default", "weight": 100, "vgpus": 0, "memory_bytes": 0, "leased_bytes": 0,
                                                    "uids": sorted({os.getuid(), 0}, reverse=True), "gids": [], "token": False, "owner": ["kill"], "modes": ["remote"], "devices": []})
        self.assertIn("cannot be removed", self.tenant("rm", "default", status=1)["error"]["why"])

    def test_every_option(self):
        token = self.file("token", "0123456789abcdef", 0o600)
        all_ = self.add("blue", "--weight", "7", "--cap", "60%", "--floor", "0.3", "--memory", "3G", "--uid", "root", "--uid", "1234", "--gid", "0", "--token-file", token,
                        "--mode", "remote", "--mode=passthrough", "--device", "one", "--device", "Two:0")
        self.assertEqual(all_, {"name": "blue", "weight": 7, "cap": 0.6, "floor": 0.3, "vgpus": 0, "memory_bytes": 0, "leased_bytes": 0,
                                "memory_limit_bytes": 3 << 30, "uids": [0, 1234], "gids": [0], "token": True, "owner": ["kill"],
                                "modes": ["remote", "passthrough"], "devices": ["one", "Two:0"]})
        self.assertEqual(self.listed()["blue"], all_)
        # One at a time: nothing else changes.
        for args, key, value in ((["--weight", "8"], "weight", 8), (["--memory", "1K"], "memory_limit_bytes", 1024),
                                 (["--reserve", "1K"], "reserve_bytes", 1024), (["--reserve=512"], "reserve_bytes", 512),
                                 (["--vgpus", "3"], "vgpu_limit", 3), (["--vgpus=1000000"], "vgpu_limit", 1000000),
                                 (["--cap", "0.5"], "cap", 0.5), (["--floor", "50%"], "floor", 0.5), (["--cap", "1"], "cap", 1),
                                 (["--uid", "5"], "uids", [5]), (["--uid", "any"], "uids", "any"), (["--uid", "none"], "uids", []),
                                 (["--gid", "6", "--gid", "7"], "gids", [6, 7]), (["--gid", "none"], "gids", []),
                                 (["--token-file", "none"], "token", False), (["--owner", "mode,kill"], "owner", ["kill", "mode"]),
                                 (["--owner", "restore", "--owner", "checkpoint"], "owner", ["checkpoint", "restore"]),
                                 (["--owner", "none"], "owner", []), (["--mode", "remote"], "modes", ["remote"]),
                                 (["--device", "any"], "devices", [])):
            changed, = self.tenant("set", "blue", *args)["tenants"]
            self.assertEqual(changed, dict(all_, **{key: value}))
            all_ = changed
        del all_["vgpu_limit"]
        self.assertEqual(self.tenant("set", "--vgpus", "none", "blue")["tenants"], [all_])
        del all_["reserve_bytes"]
        self.assertEqual(self.tenant("set", "--reserve", "none", "blue")["tenants"], [all_])
        self.assertEqual(self.tenant("set", "--reserve", "0", "blue")["tenants"], [all_])
        del all_["memory_limit_bytes"]
        self.assertEqual(self.tenant("set", "--memory", "none", "blue")["tenants"], [all_])
        del all_["cap"]
        self.assertEqual(self.tenant("set", "--cap", "none", "blue")["tenants"], [all_])
        del all_["floor"]
        self.assertEqual(self.tenant("set", "--floor=0", "blue")["tenants"], [all_])

    def test_options_and_words_in_any_order(self):
        p = self.prefix.run("tenant", "--weight", "3", "add", "--json", "red", address=self.address)
        self.assertEqual(json.loads(p.stdout)["tenants"][0]["weight"], 3)
        p = self.prefix.run("tenant", "rm", "red", address=self.address)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))
        self.assertNotIn("red", self.listed())

    def test_a_table(self):
        self.add("blue", "--memory", "1536M", "--reserve", "4K", "--cap", "0.75", "--floor=12.5%", "--uid", "0", "--gid", "5", "--device", "One")
        p = self.prefix.run("tenant", "ls", address=self.address)
        lines = p.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["TENANT", "WEIGHT", "CAP", "FLOOR", "VGPUS", "MEMORY", "LEASED", "LIMIT", "RESERVE", "WHO", "MODES", "DEVICES"])
        self.assertEqual(lines[1].split(), ["default", "100", "-", "-", "0", "0", "0", "-", "-", *self.admitted(), "remote", "any"])
        self.assertEqual(lines[2].split(), ["blue", "100", "75%", "12.5%", "0", "0", "0", "1.5G", "4K", "uid:0,gid:5", "remote", "One"])

    def test_a_change_that_is_wrong_in_part_changes_nothing(self):
        before = self.add("blue", "--weight", "7")
        for args, says in ((["--weight", "8", "--device", "no-such"], '"no-such"'),
                           (["--weight", "8", "--device", "One:5"], "with that index"),
                           (["--weight", "8", "--device", "One,present-as=gpu"], "applies to all tenants")):
            self.assertIn(says, self.tenant("set", "blue", *args, status=1)["error"]["why"])
        self.assertEqual(self.listed()["blue"], before)
        self.assertIn("no-such", self.tenant("add", "red", "--device", "no-such", status=1)["error"]["why"])
        self.assertNotIn("red", self.listed())

    def test_floors_and_caps_that_cannot_be(self):
        blue = self.add("blue", "--weight", "7", "--floor", "0.6", "--cap", "0.8")
        green = self.add("green", "--floor", "40%")
        for args, says, fix in ((["--cap", "0.5"], "floor of the tenant \"blue\", 0.6, is above its cap, 0.5", "lower the floor"),
                                (["--floor", "0.9"], "0.9, is above its cap, 0.8", "raise the cap"),
                                (["--floor", "0.7"], "the floor 0.7 of the tenant \"blue\" and the floors of others, 0.4, together exceed "
                                 "the device \"Fake Device One\"", "at most 0.6 is left")):
            error = self.tenant("set", "blue", "--weight", "8", *args, status=1)["error"]
            self.assertEqual(error["what"], "cannot change the tenant")
            self.assertIn(says, error["why"])
            self.assertIn(fix, error["fix"])
        self.assertIn("the floors of others, 1, together", self.tenant("add", "red", "--floor", "0.000001", status=1)["error"]["why"])
        self.assertEqual([self.listed()[n] for n in ("blue", "green")], [blue, green])
        self.assertNotIn("red", self.listed())
        # By device: green keeps to one, and another who keeps to the other has room beside blue, whatever green has.
        self.tenant("set", "green", "--device", "One")
        self.add("red", "--floor", "0.4", "--device", "Two")
        self.assertIn("Fake Device Two", self.tenant("set", "green", "--device", "any", status=1)["error"]["why"])
        self.tenant("set", "blue", "--floor", "none")
        self.tenant("set", "green", "--floor", "0.6", "--device", "any")

    def test_reserves_that_cannot_be(self):
        listed = self.prefix.run("devices", "--json", address=self.address)
        memory = json.loads(listed.stdout)["devices"][0]["memory_bytes"]
        blue = self.add("blue", "--reserve", str(memory - 4096))
        self.add("green", "--reserve", "4096", "--memory", "8K")
        for name, args, says, fix in (
                ("green", ["--reserve", "4097"], "together exceed the memory of the device",
                 "at most 4096 bytes are left"),
                ("blue", ["--memory", "1K"], "is above its memory limit, 1024",
                 "lower the reserve, or raise"),
                ("green", ["--reserve", "1T"], "is above its memory limit, 8192",
                 "lower the reserve, or raise")):
            error = self.tenant("set", name, "--weight", "8", *args, status=1)["error"]
            self.assertIn(says, error["why"])
            self.assertIn(fix, error["fix"])
        self.assertEqual(self.listed()["blue"], blue)
        error = self.tenant("add", "red", "--reserve", "1", status=1)["error"]
        self.assertIn("together exceed", error["why"])
        self.assertNotIn("red", self.listed())
        self.tenant("set", "blue", "--reserve", "none")
        self.add("red", "--reserve", "1K")

    def test_names(self):
        self.add("blue")
        self.refused(1, 'there is a tenant "blue" already; change it with: gantry tenant set', "tenant", "add", "blue", address=self.address)
        for verb, more in (("set", ["--weight", "1"]), ("rm", [])):
            self.refused(1, 'there is no tenant "red"; gantry tenant ls lists', "tenant", verb, "red", *more, address=self.address)
        # To make the tenant that the environment names is no mistake.
        p = self.prefix.run("tenant", "add", "green", address=self.address, env={"GANTRY_TENANT": "green"})
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.tenant("rm", "green")

    def test_usage(self):
        token = self.file("token", "short")
        for args, says in (([], "no command is given; write gantry tenant add NAME"), (["make", "x"], 'there is no gantry tenant "make"'),
                           (["add"], "no tenant is named"), (["add", "a/b"], "is not a tenant's name"), (["add", "a", "b"], 'unexpected argument "b"; gantry help tenant shows'),
                           (["add", "x" * 64], "is not a tenant's name"), (["set", "blue"], "no change is given"),
                           (["rm", "blue", "--weight", "1"], "takes no settings"), (["ls", "blue"], 'unexpected argument "blue"'),
                           (["ls", "--weight", "1"], "takes no settings"), (["add", "a", "--weight", "0"], "is not a weight"),
                           (["add", "a", "--cap", "1.5"], '"1.5" is more than the whole device; write'), (["add", "a", "--cap", "-0.5"], "cannot be negative"),
                           (["add", "a", "--cap", "25"], "more than the whole"), (["add", "a", "--cap", "lots"], "is not a part of a device"),
                           (["add", "a", "--floor", "101%"], "more than the whole"), (["add", "a", "--floor="], "is not a part"),
                           (["add", "a", "--floor", "-1%"], "cannot be negative"), (["ls", "--cap", "1"], "takes no settings"),
                           (["add", "a", "--memory", "0"], "allows no memory; write --memory none"), (["add", "a", "--memory", "x"], "is not a size"),
                           (["add", "a", "--vgpus", "0"], "is not a number of vGPUs; write a whole number from 1 to 1000000, or none"),
                           (["add", "a", "--vgpus", "1000001"], "is not a number of vGPUs"), (["add", "a", "--vgpus", "few"], "is not a number of vGPUs"),
                           (["add", "a", "--uid", "no-such-user"], 'no user "no-such-user"'), (["add", "a", "--uid", "4294967295"], "no user"),
                           (["add", "a", "--gid", "no-such-group"], 'no group "no-such-group"'), (["add", "a", "--mode", "fast"], "is not a mode"),
                           (["add", "a", "--owner", "kill,"], "is not a list of owner rights"),
                           (["add", "a", "--owner", "kill,drain"], "is not a list of owner rights"),
                           (["add", "a", "--uid", ""], "needs a value"), (["add", "a", *["--uid", "1"] * 65], "too often"),
                           (["add", "a", *["--device", "x"] * 17], "at most 16 devices"), (["add", "a", "--token-file", token], "not 5"),
                           (["add", "a", "--tenant", "b"], "unknown option --tenant")):
            self.refused(2, says, "tenant", *args, address=self.address)
        self.refused(1, "No such file", "tenant", "add", "a", "--token-file", "/nonexistent", address=self.address)
        self.assertEqual(list(self.listed()), ["default"])
        p = self.prefix.run("tenant", "add", "--json", address=self.address)
        self.assertEqual(p.returncode, 2)
        self.assertEqual(set(json.loads(p.stdout)["error"]), {"what", "why", "fix"})

    def test_no_daemon(self):
        gone = "unix:" + os.path.join(self.dir, "s")
        for args in (["ls"], ["add", "a"], ["set", "a", "--weight", "1"], ["rm", "a"]):
            self.refused(1, "no gantryd listens at " + gone, "tenant", *args, address=gone)


if __name__ == "__main__":
    unittest.main(verbosity=2)
