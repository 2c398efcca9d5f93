#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that the owner of a vGPU has by the program socket, where its tenant allows them; and that nobody else has them.

    owner_test.py STAGE PROGRAM      STAGE: what make stage leaves; PROGRAM: moved
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "daemon")]
from moves_harness import STEPS, TIMEOUT_S, Daemon, Program, command, gantry, telling, wait_until  # noqa: E402

STAGE, PROGRAM = (os.path.abspath(p) for p in sys.argv[1:3])
OWNER, OTHER = 65534, 65533
ONLY_OPERATORS = "only operators may, by gantryd's control socket"
ALL = "kill,checkpoint,restore,migrate,mode"


def as_user(uid):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]


class UsersProgram(Program):
    def __init__(self, daemon, uid, cache):
        self.process = subprocess.Popen([*as_user(uid), PROGRAM], env=dict(daemon.program_env(), POCL_CACHE_DIR=cache), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)


class Owners(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs several users")
        if subprocess.run([*as_user(OWNER), "test", "-x", PROGRAM], check=False).returncode:
            self.skipTest("an ordinary user cannot run what is built here")
        folder = tempfile.TemporaryDirectory(prefix="gn-owner-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.files = os.path.join(folder.name, "files")
        os.mkdir(self.files)
        os.chmod(self.files, 0o777)
        self.file = os.path.join(self.files, "a.ckpt")
        self.cache = os.path.join(folder.name, "cache")   # of a driver in passthrough
        os.mkdir(self.cache)
        os.chown(self.cache, OWNER, OWNER)
        self.daemon = self.enterContext(Daemon(STAGE, os.path.join(folder.name, "daemon")))
        os.chmod(self.daemon.socket_dir, 0o755)
        self.daemon.ctl("tenant", "set", "default", "--uid", "any", "--mode", "remote", "--mode", "passthrough")

    def program(self):
        program = UsersProgram(self.daemon, OWNER, self.cache)
        self.addCleanup(program.kill)
        self.assertEqual(program.at(), STEPS[0])
        return program, self.daemon.vgpus()[0]["id"]

    def asked(self, uid, *words):
        """What gantry makes of it for this user."""
        done = subprocess.run([*as_user(uid), *command(self.daemon, words[0], "--json", *words[1:])], capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        return done.returncode, json.loads(done.stdout)

    def may(self, *words):
        status, said = self.asked(OWNER, *words)
        self.assertEqual(status, 0, said)
        return said

    def may_not(self, uid, words, what):
        status, said = self.asked(uid, *words)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))

    def goes_on(self, program, each=lambda: None):
        for step in STEPS[1:]:
            program.on()
            self.assertEqual(program.at(), step)
            each()
        program.on()
        self.assertIsNone(program.ends_well())

    def commands(self, vgpu):
        return (["migrate", vgpu, "local"], ["mode", vgpu, "passthrough"], ["checkpoint", vgpu, self.file], ["kill", vgpu])

    def test_the_owner_has_what_the_tenant_allows(self):
        self.daemon.ctl("tenant", "set", "default", "--owner", ALL)
        program, vgpu = self.program()
        for words in self.commands(vgpu):
            self.may_not(OTHER, words, "only the owner of vGPU {} and operators may do that".format(vgpu))
        self.assertEqual(os.listdir(self.files), [])
        self.may("migrate", vgpu, "local")
        self.may("mode", vgpu, "passthrough")
        self.may("mode", vgpu, "remote")
        self.may("checkpoint", vgpu, self.file)
        os.unlink(self.file)
        self.assertEqual(self.may("checkpoint", vgpu, self.file, "--stop")["checkpoint"]["state"], "stopped")
        os.chmod(self.file, 0o644)
        self.may_not(OTHER, ["restore", self.file], "only the owner of vGPU {} and operators may do that".format(vgpu))
        self.assertEqual(self.may("restore", self.file)["restore"]["result"], "restored")
        # Another gantryd is an operator's.
        self.may_not(OWNER, ["migrate", vgpu, "unix:" + os.path.join(self.files, "b.sock")], ONLY_OPERATORS)
        self.goes_on(program, lambda: self.may("migrate", vgpu, "local"))
        self.may_not(OWNER, ["restore", self.file], "has ended, or waits at another gantryd")

    def test_each_right_is_one_of_its_own(self):
        program, vgpu = self.program()
        rights = ("migrate", "mode", "checkpoint", "kill")
        for words in self.commands(vgpu)[:3]:
            self.may_not(OWNER, words, ONLY_OPERATORS)   # otherwise kill alone
        for right in rights:
            self.daemon.ctl("tenant", "set", "default", "--owner", right)
            for other, words in zip(rights, self.commands(vgpu)):
                if other != right:
                    self.may_not(OWNER, words, ONLY_OPERATORS)
        self.daemon.ctl("tenant", "set", "default", "--owner", "none")
        for words in self.commands(vgpu):
            self.may_not(OWNER, words, ONLY_OPERATORS)
        self.assertEqual([v["id"] for v in self.daemon.vgpus()], [vgpu])
        self.assertEqual(os.listdir(self.files), [])
        self.goes_on(program)

    def test_a_vgpu_that_is_killed_is_lost_to_a_program_that_goes_on(self):
        program, vgpu = self.program()
        self.assertEqual(self.may("kill", vgpu[:5])["kill"], [{"id": vgpu, "result": "ended"}])
        # Listed as lost until the program notices.
        self.assertTrue(wait_until(lambda: all(v["state"] == "lost" for v in self.daemon.vgpus()), TIMEOUT_S))
        self.assertIsNone(program.process.poll())
        status, said = self.asked(OWNER, "kill", vgpu)
        self.assertEqual((status, said["kill"][0]["result"]), (1, "gone"))
        self.assertIn('of the tenant "default" is ended by its owner', self.daemon.log())

    def test_what_cannot_be_killed_says_why(self):
        _, vgpu = self.program()
        self.daemon.ctl("mode", vgpu, "passthrough")
        self.may_not(OWNER, ["kill", vgpu], "it lives in its program, which would end with it")
        self.daemon.ctl("mode", vgpu, "remote")
        gantry(self.daemon, "checkpoint", vgpu, self.file, "--stop")
        self.may_not(OWNER, ["kill", vgpu], "it is stopped, and in a file")


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[3:])
