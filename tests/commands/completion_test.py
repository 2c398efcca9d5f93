#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in bash: what is offered where, and that it knows the options and commands of --help."""

import os
import shutil
import subprocess
import unittest
from unittest import mock

from commands_harness import ROOT, CommandTest
from man_test import options_of_help

COMPLETION = os.path.join(ROOT, "packaging", "completion")
# Words as readline hands them over: cut at : and =, which stand alone. The last is the one under the cursor.
DRIVER = """
set -u
. "$1/gantry"; . "$1/gantryd"; shift
compopt() { options="$*"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
spec=$(complete -p "$1") || exit 1
function=${spec#* -F }; ${function% *}
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(CommandTest):
    daemon = True

    def offered(self, *words, address=None):
        env = self.prefix.env(address, GANTRY_COMMAND=self.prefix.gantry)
        p = subprocess.run(["bash", "--norc", "-c", DRIVER, "bash", COMPLETION, *words], env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.dir)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.splitlines()

    def help(self, *command):
        return subprocess.run([*command, "--help"], stdout=subprocess.PIPE, text=True, check=True, env=self.prefix.env()).stdout

    def test_commands(self):
        text = self.help(self.prefix.gantry)
        commands = [line.split()[0] for line in text.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertEqual(self.offered("gantry", ""), commands + options_of_help(text))
        self.assertEqual(self.offered("gantry", "d"), ["devices", "drain", "doctor"])
        self.assertEqual(self.offered("gantry", "help", ""), commands)
        self.assertEqual(self.offered("gantry", "nonsense", ""), [])

    def test_options(self):
        for command in ("run", "ls", "devices", "tenant", "policy", "place", "migrate", "drain",
                        "kill", "mode", "checkpoint", "restore", "sim", "inspect", "doctor",
                        "help"):
            known = options_of_help(self.help(self.prefix.gantry, command))
            self.assertEqual(sorted(self.offered("gantry", command, "--")), sorted(known + (["--"] if command == "run" else [])))
        self.assertEqual(sorted(self.offered("gantryd", "--")), options_of_help(self.help(os.environ["GANTRYD"])))
        self.assertEqual(self.offered("gantry", "ls", "--json", "--co"), ["--connect"])

    def test_addresses(self):
        os.mkdir(os.path.join(self.dir, "sub"))
        self.file("one.sock")
        self.file("two words")
        self.assertEqual(self.offered("gantry", "ls", "--connect", ""), ["unix:"])
        self.assertEqual(self.offered("gantry", "ls", "--connect", "un"), ["unix:"])
        self.assertEqual(self.offered("gantry", "drain", ""), ["unix:"])
        self.assertEqual(self.offered("gantry", "drain", "unix", ":", "o"), ["one.sock"])
        self.assertEqual(sorted(self.offered("gantry", "ls", "--connect", "unix", ":")), ["one.sock", "sub/", "two\\ words"])
        self.assertEqual(self.offered("gantry", "ls", "--connect", "unix", ":", "o"), ["one.sock"])
        self.assertEqual(self.offered("gantry", "ls", "--connect", "=", "unix", ":", "s"), ["sub/"])
        self.assertEqual(self.offered("gantry", "run", "--connect", "=", "u"), ["unix:"])
        self.assertEqual(self.offered("gantry", "ls", "--connect", "unix", ":", "s", ""), ["--json", "--connect", "--help"])

    def test_values(self):
        self.assertEqual(self.offered("gantry", "run", "--mode", ""), ["remote", "passthrough"])
        self.assertEqual(self.offered("gantry", "run", "--mode", "=", "r"), ["remote"])
        self.assertEqual(self.offered("gantry", "run", "--weight", ""), [])

    def test_tenants(self):
        self.assertEqual(self.offered("gantry", "run", "--tenant", ""), ["default"])
        self.assertEqual(self.prefix.run("tenant", "add", "team.a", address=self.address).returncode, 0)
        self.addCleanup(self.prefix.run, "tenant", "rm", "team.a", address=self.address)
        self.assertEqual(self.offered("gantry", "run", "--tenant", "", address=self.address), ["default", "team.a"])
        self.assertEqual(self.offered("gantry", "run", "--tenant", "=", "t", address=self.address), ["team.a"])
        where = ["--connect", "unix", ":", self.gantryd.path]
        self.assertEqual(self.offered("gantry", "run", *where, "--tenant", "t"), ["team.a"])
        self.assertEqual(self.offered("gantry", "tenant", ""), ["add", "set", "rm", "ls"])
        self.assertEqual(self.offered("gantry", "tenant", "s"), ["set"])
        self.assertEqual(self.offered("gantry", "tenant", "set", "", address=self.address), ["default", "team.a"])
        self.assertEqual(self.offered("gantry", "tenant", "rm", "t", address=self.address), ["team.a"])
        self.assertEqual(self.offered("gantry", "tenant", "set", "default", "--mode", ""), ["remote", "passthrough"])
        self.assertEqual(self.offered("gantry", "tenant", "set", "default", "--uid", "=", "an"), ["any"])
        self.assertIn("root", self.offered("gantry", "tenant", "set", "default", "--gid", "roo"))
        self.assertEqual(self.offered("gantry", "tenant", "set", "default", "--device", "an", address=self.address), ["any"])
        self.file("the-token")
        self.assertEqual(self.offered("gantry", "tenant", "set", "default", "--token-file", "the"), ["the-token"])

    def test_vgpus(self):
        self.assertEqual(self.offered("gantry", "migrate", "", address=self.address)[0], "--device")   # there is none yet
        clients = [self.gantryd.client() for _ in range(2)]
        ids = sorted("%08x" % int.from_bytes(c.attach().payload[:4], "little") for c in clients)
        for c in clients:
            self.addCleanup(c.close)
        for command in ("migrate", "mode", "checkpoint", "kill"):
            self.assertEqual(self.offered("gantry", command, "", address=self.address), ids)
            self.assertEqual(self.offered("gantry", command, ids[0][:7], address=self.address), [ids[0]])
        self.assertEqual(self.offered("gantry", "kill", ids[0], "--reason", "x", "", address=self.address), ids)
        self.assertEqual(self.offered("gantry", "trace", "--vgpu", "", address=self.address), ids)
        self.assertEqual(self.offered("gantry", "mode", "1f", ""), ["remote", "passthrough"])
        self.assertEqual(self.offered("gantry", "mode", "--rounds", "2", "1f", "p"), ["passthrough"])
        self.assertEqual(self.offered("gantry", "migrate", "1f", ""), ["local", "unix:", "tcp:"])
        self.file("b.sock")
        self.assertEqual(self.offered("gantry", "migrate", "1f", "unix", ":", "b"), ["b.sock"])
        self.assertEqual(self.offered("gantry", "checkpoint", "1f", "b."), ["b.sock"])
        self.assertEqual(self.offered("gantry", "tenant", "set", "default", "--owner", "m"), ["migrate", "mode"])

    def test_policies(self):
        self.assertEqual(self.offered("gantry", "policy", ""), [])
        self.assertEqual(self.offered("gantry", "policy", "", address=self.address),
                         ["credit", "credit-hs", "fair", "none", "rr", "strict", "xenocredit"])
        self.assertEqual(self.offered("gantry", "policy", "cr", address=self.address), ["credit", "credit-hs"])
        self.assertEqual(self.offered("gantry", "place", "", address=self.address),
                         ["first-fit", "size", "turn", "utilization"])
        self.assertEqual(self.offered("gantryd", "--place", ""),
                         ["turn", "first-fit", "size", "utilization"])
        self.assertEqual(self.offered("gantryd", "--place", "=", "u"), ["utilization"])
        self.assertEqual(self.offered("gantryd", "--policy", ""), ["none", "fair", "credit", "credit-hs", "strict", "rr", "xenocredit"])
        self.assertEqual(self.offered("gantryd", "--policy", "=", "x"), ["xenocredit"])

    def test_simulations(self):
        self.file("lab.sim")
        self.assertEqual(self.offered("gantry", "sim", "--policy", ""), ["fair", "credit", "credit-hs", "strict", "rr", "xenocredit", "all"])
        self.assertEqual(self.offered("gantry", "sim", "--policy", "=", "x"), ["xenocredit"])
        self.assertEqual(self.offered("gantry", "sim", "--place", ""), ["turn", "first-fit", "size", "utilization", "all"])
        self.assertEqual(self.offered("gantry", "sim", "--sw"), ["--swap-share"])
        self.assertEqual(self.offered("gantry", "sim", "--memory", "l"), [])
        self.assertEqual(self.offered("gantry", "sim", "--trace", "la"), ["lab.sim"])
        self.assertEqual(self.offered("gantry", "sim", "--cost", "l"), ["lab.sim"])
        # Tenants of a simulation are no tenants of a gantryd.
        self.assertEqual(self.offered("gantry", "sim", "--tenant", "d", address=self.address), [])

    def test_top(self):
        self.assertEqual(self.offered("gantry", "top", "--sort", "=", "c"), ["calls"])
        self.assertEqual(self.offered("gantry", "top", "--sort", "t", ""), ["--once", "--delay", "--sort", "--json", "--connect", "--help"])

    def test_trace(self):
        self.file("turns.json")
        self.assertEqual(self.offered("gantry", "trace", "-o", "tu"), ["turns.json"])
        self.assertEqual(self.offered("gantry", "trace", "--output", "=", "tu"), ["turns.json"])
        self.assertEqual(self.offered("gantry", "trace", "--vgpu", ""), [])

    def test_programs(self):
        bin_dir = os.path.join(self.dir, "bin")
        os.mkdir(bin_dir)
        self.file("bin/gn-test-program", "#!/bin/sh\n", 0o755)
        with mock.patch.dict(os.environ, PATH=bin_dir + ":" + os.environ["PATH"]):
            for before in ([], ["--"], ["--weight", "3"], ["--weight", "=", "3", "--"], ["--connect", "unix", ":", "/s"]):
                self.assertEqual(self.offered("gantry", "run", *before, "gn-test-pro"), ["gn-test-program"], before)
        self.assertEqual(self.offered("gantry", "run", "./b"), ["./bin/"])
        # The program's own arguments are not ours to complete.
        self.assertEqual(self.offered("gantry", "run", "prog", "--"), [])
        self.assertEqual(self.offered("gantry", "run", "--", "prog", "--c"), [])

    def test_gantryds_values(self):
        self.file("one.conf")
        self.assertEqual(self.offered("gantryd", "--config", "o"), ["one.conf"])
        self.assertEqual(self.offered("gantryd", "--socket", "=", "o"), ["one.conf"])
        self.assertEqual(self.offered("gantryd", "--device", "Fa"), [])
        self.assertEqual(self.offered("gantryd", "--device", "Fa", address=self.address), ["Fake"])
        self.assertEqual(self.offered("gantryd", "--device", "Fake,"), ["Fake,present-as="])
        self.assertEqual(self.offered("gantryd", "--device", "Fake,present-as", "=", ""), ["gpu", "cpu", "accelerator"])
        self.assertEqual(self.offered("gantryd", "--device", "=", "Fake,present-as", "=", "c"), ["cpu"])

    def test_shellcheck_has_nothing_to_say(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        p = subprocess.run(["shellcheck", os.path.join(COMPLETION, "gantry"), os.path.join(COMPLETION, "gantryd")], stdout=subprocess.PIPE,
                           text=True)
        self.assertEqual((p.returncode, p.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
