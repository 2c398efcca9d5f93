# SPDX-License-Identifier: Apache-2.0
"""A program that Gantry gives no vGPU: one line on its stderr says why. And the tenant of a program that names none."""

import fcntl
import json
import os
import socket
import subprocess
import unittest

from commands_harness import FAKE, PATIENCE, CommandTest, as_nobody

from gantryd_harness import Gantryd, beside, Client

HOLDER = os.environ["HOLDER"]
NOBODY = 65534
NO_GANTRYD = "gantry: no gantryd listens at unix:{}; start gantryd, or say where it is with --connect or GANTRY_CONNECT\n"


class ToldTest(CommandTest):
    def environment(self, address=None, **more):
        env = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")
               if name in os.environ}
        env.update(OCL_ICD_VENDORS=self.prefix.vendors, XDG_RUNTIME_DIR=self.dir)
        if address:
            env["GANTRY_CONNECT"] = address
        env.update({name: value for name, value in more.items() if value is not None})
        return env

    def program(self, *before, stderr=subprocess.PIPE, **env):
        """Looks for a platform, and ends."""
        return subprocess.run([*before, HOLDER], env=self.environment(**env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=stderr, text=True, timeout=PATIENCE)


class OneLine(ToldTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "nope.sock")
        if os.path.exists("/etc/gantry") or os.path.exists("/run/gantry/gantry.sock"):
            self.skipTest("Gantry is set up on this machine")

    def test_no_gantryd(self):
        p = self.program(address="unix:" + self.path)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (3, "", NO_GANTRYD.format(self.path)))

    def test_silence(self):
        self.assertEqual(self.program(address="unix:" + self.path, GANTRY_LOG="none").stderr, "")
        # Nothing of Gantry's is set up: the ICD file alone says nothing.
        self.assertEqual(self.program().stderr, "")

    def test_any_of_its_variables_or_its_socket(self):
        for name in ("GANTRY_TENANT", "GANTRY_MODE", "GANTRY_LOG"):
            self.assertEqual(self.program(**{name: "x"}).stderr, NO_GANTRYD.format("/run/gantry/gantry.sock"))
        path = os.path.join(self.dir, "gantry", "gantry.sock")
        os.mkdir(os.path.dirname(path))
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)
        self.assertEqual(self.program().stderr, NO_GANTRYD.format(path))

    def test_streams_that_take_nothing_do_not_stop_or_end_the_program(self):
        address = "unix:" + self.path
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        self.assertEqual(self.program(address=address, stderr=write).returncode, 3)     # full
        os.close(read)
        self.assertEqual(self.program(address=address, stderr=write).returncode, 3)     # nobody reads
        os.close(write)
        a, b = socket.socketpair()
        a.setblocking(False)
        try:
            while True:
                a.send(b"x" * 4096)
        except BlockingIOError:
            a.setblocking(True)
        self.assertEqual(self.program(address=address, stderr=a).returncode, 3)
        b.close()
        self.assertEqual(self.program(address=address, stderr=a).returncode, 3)
        a.close()
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assertEqual(self.program(address=address, stderr=full).returncode, 3)
        limited = ["prlimit", "--fsize=0"]
        with open(os.path.join(self.dir, "file"), "w", encoding="ascii") as f:
            self.assertEqual(self.program(*limited, address=address, stderr=f).returncode, 3)
        closed = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
        self.assertEqual(self.program(*closed, address=address).returncode, 3)

    def test_what_is_written_is_whole_and_appended(self):
        path = os.path.join(self.dir, "said")
        with open(path, "a", encoding="ascii") as f:
            f.write("before\n")
            f.flush()
            self.program(address="unix:" + self.path, stderr=f)
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "before\n" + NO_GANTRYD.format(self.path))


class Refused(ToldTest):
    daemon = True

    def test_the_reason_is_gantryds(self):
        p = self.program(address=self.address, GANTRY_TENANT="elsewhere")
        self.assertEqual((p.returncode, p.stderr),
                         (3, 'gantry: uid {} may not attach to "elsewhere"; set GANTRY_TENANT to one of: default\n'.format(os.getuid())))

    def test_a_gantryd_that_is_drained(self):
        operator = Client(beside(self.gantryd.path, "control"))
        self.addCleanup(operator.close)
        operator.control(b'{"version":1,"request":"drain"}')
        p = self.program(address=self.address)
        operator.control(b'{"version":1,"request":"drain","undo":true}')
        self.assertEqual(p.stderr, "gantry: this gantryd is draining and accepts no new programs; use another gantryd "
                                   "(GANTRY_CONNECT), or try again later\n")


class TenantByUser(ToldTest):
    daemon = True

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        os.chmod(self.gantryd.dir, 0o755)
        self.nobody = as_nobody(self, HOLDER)
        self.operator = Client(beside(self.gantryd.path, "control"))
        self.addCleanup(self.operator.close)
        self.made = []
        self.addCleanup(self.remove)

    def ask(self, request, **words):
        reply = json.loads(self.operator.control(json.dumps(dict(words, version=1, request=request)).encode()))
        self.assertNotIn("error", reply)
        return reply

    def tenant(self, name, **rules):
        self.ask("tenant-add", name=name, **rules)
        self.made.append(name)

    def remove(self):
        for name in self.made:
            self.ask("tenant-rm", name=name)

    def seen_by_nobody(self, **env):
        """The tenants that its `gantry` is told of, or the refusal."""
        p = subprocess.run([*self.nobody, self.prefix.gantry, "tenant", "ls", "--json"], env=self.prefix.env(self.address, **env),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return p.stderr if p.returncode else [t["name"] for t in json.loads(p.stdout)["tenants"]]

    def test_the_only_one_that_admits_it(self):
        self.tenant("red", uids=[NOBODY + 1])
        self.tenant("blue", uids=[NOBODY])
        self.tenant("locked", token="0123456789abcdef0123")
        self.assertEqual(self.seen_by_nobody(), ["blue"])
        self.assertEqual(self.seen_by_nobody(GANTRY_TENANT=""), ["blue"])
        self.assertEqual(self.seen_by_nobody(GANTRY_TOKEN="0123456789abcdef0123"), ["blue"])     # it is not tried at others

    def test_by_group(self):
        self.tenant("team", gids=[NOBODY + 7])
        self.nobody = [*self.nobody[:-1], "--regid", str(NOBODY), "--groups", str(NOBODY + 7)]
        self.assertEqual(self.seen_by_nobody(), ["team"])

    def test_several(self):
        self.tenant("red", uids=[NOBODY + 1])
        self.tenant("blue", uids=[NOBODY])
        self.tenant("green", uids="any")
        says = 'uid 65534 may not attach to "default"; set GANTRY_TENANT to one of: blue, green\n'
        self.assertEqual(self.seen_by_nobody(), "gantry tenant: " + says)
        self.assertEqual(self.program(*self.nobody, address=self.address).stderr, "gantry: " + says)
        self.assertEqual(self.seen_by_nobody(GANTRY_TENANT="green"), ["green"])

    def test_more_than_a_line_holds(self):
        for i in range(30):
            self.tenant("a-tenant-of-some-length-{}".format(i), uids=[NOBODY])
        said = self.seen_by_nobody()
        self.assertRegex(said, r"one of: (a-tenant-of-some-length-\d+, )+a-tenant-of-some-length-\d+ and \d+ more\n$")
        self.assertEqual(said.count("a-tenant") + int(said.split()[-2]), 30)

    def test_default_comes_first(self):
        self.tenant("blue", uids=[NOBODY])
        self.ask("tenant-set", name="default", uids=[NOBODY])
        try:
            self.assertEqual(self.seen_by_nobody(), ["default"])
        finally:
            self.ask("tenant-set", name="default", uids=[0])

    def test_none(self):
        self.tenant("red", uids=[NOBODY + 1])
        self.assertIn('uid 65534 may not attach to "default"; ask an operator', self.seen_by_nobody())


if __name__ == "__main__":
    unittest.main(verbosity=2)
