# SPDX-License-Identifier: Apache-2.0
"""Tenants on a real device: limits to the byte, live changes, who is admitted, and that one does not notice another.

    tenants_test.py BUILD [unittest arguments]
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "edges"))

from gantry import Gantry, Program, built_tree, wait_until  # noqa: E402

MIB = 1 << 20
FAILED = "error -4"     # CL_MEM_OBJECT_ALLOCATION_FAILURE
TOO_LARGE = "error -61"  # CL_INVALID_BUFFER_SIZE
NOBODY = 65534
BUILD = None


class Allocator(Program):
    def do(self, *words):
        """Sends a command; its answer."""
        self.process.stdin.write((" ".join(str(w) for w in words) + "\n").encode())
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        while b"\n" not in self.unread:
            if not self._read():
                raise AssertionError("the program ended: {}".format(self.errors.decode(errors="replace")))
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def start(self, *words):
        self.process.stdin.write((" ".join(str(w) for w in words) + "\n").encode())
        self.process.stdin.flush()

    def make(self, *words):
        """Must be made; its number."""
        kind, _, number = self.do(*words).partition(" ")
        if kind != "made":
            raise AssertionError("{}: {} {}".format(words, kind, number))
        return int(number)


class TenantTest(unittest.TestCase):
    extra_env = {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="gn-tenants-", dir="/tmp")
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.folder = folder.name
        tree = built_tree(os.path.join(folder.name, "tree"), BUILD)
        cls.gantry = Gantry(tree, os.path.join(folder.name, "work"), args=cls.daemon_args(),
                            env=dict(cls.extra_env, POCL_MAX_PTHREAD_COUNT="1"))
        cls.gantry.__enter__()
        cls.addClassCleanup(cls.gantry.__exit__, None, None, None)
        cls.command = os.path.join(BUILD, "tests/tenants/allocator")

    @classmethod
    def daemon_args(cls):
        return []

    def setUp(self):
        self.name = "t" + str(abs(hash(self.id())) % 10**9)

    def ctl(self, *args, status=0):
        """Runs `gantry ... --json`; its object."""
        p = subprocess.run([os.path.join(BUILD, "src/ctl/gantry"), *args, "--connect", self.gantry.address, "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(p.returncode, status, p.stderr)
        return json.loads(p.stdout)

    def kill_worker_of(self, program):
        """Returns when the worker has ended."""
        worker = self.gantry.worker_of(program)
        end = os.pidfd_open(worker)
        os.kill(worker, signal.SIGKILL)
        select.select([end], [], [])
        os.close(end)

    def tenant(self, *args):
        """A tenant of this test's own; this user may attach unless the test says which users may."""
        self.ctl("tenant", "add", self.name, *([] if "--uid" in args else ["--uid", str(os.getuid())]), *args)
        self.addCleanup(self.remove)

    def remove(self):
        self.assertTrue(wait_until(lambda: not self.seen()["vgpus"], 60))
        self.ctl("tenant", "rm", self.name)

    def seen(self, name=None):
        return next(t for t in self.ctl("tenant", "ls")["tenants"] if t["name"] == (name or self.name))

    def program(self, tenant=None, **env):
        env["GANTRY_TENANT"] = self.name if tenant is None else tenant
        p = Allocator([self.command], dict(self.gantry.program_env(), **env), stdin=subprocess.PIPE)
        self.addCleanup(p.__exit__)
        return p

    def vgpu(self, p):
        return self.gantry.vgpu_of(p)


class Limits(TenantTest):
    def test_a_limit_is_what_the_device_is_said_to_have(self):
        self.tenant("--memory", "64M")
        p = self.program()
        self.assertEqual(p.do("info"), "info {} {}".format(64 * MIB, 64 * MIB))
        q = self.program(GANTRY_MEMORY="16M")
        self.assertEqual(q.do("info"), "info {} {}".format(16 * MIB, 16 * MIB))
        r = self.program(GANTRY_MEMORY="1T")
        self.assertEqual(r.do("info"), "info {} {}".format(64 * MIB, 64 * MIB))
        free = self.program("default").do("info").split()
        self.assertGreater(int(free[1]), 64 * MIB)
        self.assertEqual((self.vgpu(q)["memory_limit_bytes"], self.vgpu(p)["memory_limit_bytes"]), (16 * MIB, 64 * MIB))

    def test_to_the_byte(self):
        self.tenant("--memory", str(3 * MIB + 5))
        p = self.program()
        first = p.make("buffer", 2 * MIB)
        self.assertEqual(p.do("buffer", MIB + 6), FAILED)
        last = p.make("buffer", MIB + 5)
        self.assertEqual(self.vgpu(p)["memory_bytes"], 3 * MIB + 5)
        self.assertEqual(self.seen()["memory_bytes"], 3 * MIB + 5)
        self.assertEqual(p.do("buffer", 1), FAILED)
        # Nothing else has changed: what is there works, and a byte that is freed can be had again.
        self.assertEqual(p.do("touch", first), "same")
        self.assertEqual(p.do("touch", last), "same")
        self.assertEqual(p.do("free", last), "freed")
        self.assertEqual(self.vgpu(p)["memory_bytes"], 2 * MIB)
        p.make("buffer", MIB + 5)
        self.assertEqual(p.do("freeall"), "freed")
        self.assertEqual(self.seen()["memory_bytes"], 0)
        p.make("buffer", 3 * MIB + 5)

    def test_errors_are_the_specifications(self):
        self.tenant("--memory", "8M")
        p = self.program()
        self.assertEqual(p.do("buffer", 8 * MIB + 1), TOO_LARGE)
        self.assertEqual(p.do("buffer", 1 << 50), TOO_LARGE)
        self.assertEqual(p.do("buffer", 0), TOO_LARGE)
        held = p.make("buffer", 8 * MIB)
        for words in (("buffer", 1), ("host", 1), ("copy", 4096), ("image", 64, 64), ("image", 1024, 0)):
            self.assertEqual(p.do(*words), FAILED, words)
        self.assertEqual(p.do("svm", 1), "error 0")
        # What is wrong in other ways is still said so.
        self.assertEqual(p.do("flags", 1), "error -30")
        self.assertEqual(p.do("flags", 1 << 40), "error -30")
        self.assertEqual(p.do("image", 1 << 30, 1), self.program("default").do("image", 1 << 30, 1))
        self.assertEqual(p.do("touch", held), "same")

    def test_everything_counts_and_comes_back(self):
        self.tenant("--memory", "64M")
        p = self.program()
        sizes = {("buffer", 1000): 1000, ("host", 5000): 5000, ("copy", 7000): 7000, ("image", 100, 50): 100 * 50 * 4,
                 ("image", 300, 0): 300 * 4, ("svm", 12345): 12345}
        total = 0
        made = {}
        for words, size in sizes.items():
            made[words] = p.make(*words)
            total += size
            self.assertEqual(self.vgpu(p)["memory_bytes"], total, words)
        for words, size in sizes.items():
            self.assertEqual(p.do("free", made[words]), "freed")
            total -= size
            self.assertEqual(self.vgpu(p)["memory_bytes"], total, words)

    def test_a_printf_buffer_counts_once(self):
        """It is the device's, as large as the driver says, from the first program on that may print."""
        self.tenant("--memory", "64M")
        p = self.program()
        p.do("build", 0)
        self.assertEqual(self.vgpu(p)["memory_bytes"], 0)
        _, built, linked, size = p.do("build", 1).split()
        self.assertEqual((built, linked), ("0", "0"))
        self.assertEqual(self.vgpu(p)["memory_bytes"], int(size))
        p.do("build", 1)
        self.assertEqual(self.vgpu(p)["memory_bytes"], int(size))
        self.assertEqual(p.do("buffer", 64 * MIB - int(size) + 1), FAILED)
        p.make("buffer", 64 * MIB - int(size))
        q = self.program()
        self.assertEqual(q.do("build", 0).split()[1:3], ["0", "0"])
        self.assertEqual(q.do("build", 1).split()[1:3], ["-5", "-5"])     # CL_OUT_OF_RESOURCES
        self.assertEqual(self.vgpu(q)["memory_bytes"], 0)

    def test_a_sub_buffer_takes_nothing_and_keeps_its_buffer(self):
        self.tenant("--memory", "2M")
        p = self.program()
        whole = p.make("buffer", 2 * MIB)
        part = p.make("sub", whole, MIB)
        self.assertEqual(self.vgpu(p)["memory_bytes"], 2 * MIB)
        self.assertEqual(p.do("free", whole), "freed")
        self.assertEqual(self.vgpu(p)["memory_bytes"], 2 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(p.do("free", part), "freed")
        self.assertEqual(self.vgpu(p)["memory_bytes"], 0)
        p.make("buffer", 2 * MIB)

    def test_a_programs_own_limit(self):
        self.tenant("--memory", "32M")
        p, q = self.program(GANTRY_MEMORY="4M"), self.program()
        p.make("buffer", 3 * MIB)
        self.assertEqual(p.do("buffer", 2 * MIB), FAILED)
        q.make("buffer", 29 * MIB)
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.assertEqual(p.do("buffer", MIB), FAILED)   # there is none left in the tenant

    def test_slack_of_one_is_anothers(self):
        """What a worker has freed lies in its lease; the tenant's others can have it."""
        self.tenant("--memory", "32M")
        p, q = self.program(), self.program()
        p.make("buffer", 30 * MIB)
        self.assertEqual(p.do("freeall"), "freed")
        self.assertGreaterEqual(self.seen()["leased_bytes"], 30 * MIB)
        q.make("buffer", 32 * MIB)
        self.assertEqual((self.seen()["memory_bytes"], self.seen()["leased_bytes"]), (32 * MIB, 32 * MIB))
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_what_one_has_let_go_another_can_have(self):
        """At once: a release that its worker has not even read yet counts."""
        self.tenant("--memory", "32M")
        p, q = self.program(), self.program()
        held = p.make("buffer", 32 * MIB)
        for _ in range(50):
            self.assertEqual(p.do("drop", held), "dropped")
            held = q.make("buffer", 32 * MIB)
            p, q = q, p

    def test_without_a_limit(self):
        p = self.program("default")
        p.make("buffer", 100 * MIB)
        v = self.vgpu(p)
        self.assertEqual(v["memory_bytes"], 100 * MIB)
        self.assertGreaterEqual(v["leased_bytes"], 100 * MIB)
        self.assertNotIn("memory_limit_bytes", v)
        # What no device has is refused by the driver, and leaves no lease behind.
        self.assertEqual(p.do("buffer", 1 << 50), TOO_LARGE)
        self.assertLess(self.vgpu(p)["leased_bytes"], 1 << 40)


class Together(TenantTest):
    def watch(self, stop, limit, wrong):
        """Asks without pause; every answer must agree with itself and with the limit."""
        while not stop.is_set():
            t = self.seen()
            vgpus = [v for v in self.gantry.vgpus() if v["tenant"] == self.name]
            if not t["memory_bytes"] <= t["leased_bytes"] <= limit:
                wrong.append(t)
            if any(not v["memory_bytes"] <= v["leased_bytes"] <= limit for v in vgpus):
                wrong.append(vgpus)

    def test_eight_at_once_are_never_a_byte_over(self):
        limit = 48 * MIB + 7
        self.tenant("--memory", str(limit))
        programs = [self.program() for _ in range(8)]
        for p in programs:
            p.do("info")
        stop, wrong = threading.Event(), []
        watcher = threading.Thread(target=self.watch, args=(stop, limit, wrong))
        watcher.start()
        for i, p in enumerate(programs):
            p.start("storm", 12345 + i * 7919, 2000, 4 * MIB)
        results = [p.answer().split() for p in programs]
        stop.set()
        watcher.join()
        self.assertEqual(wrong, [])
        held = [int(r[1]) for r in results]
        self.assertEqual([r[0] for r in results], ["storm"] * 8)
        self.assertLessEqual(sum(held), limit)
        self.assertGreater(sum(int(r[2]) for r in results), 0)    # the limit was met,
        self.assertGreater(sum(int(r[3]) for r in results), 2000)  # and allocations went on.
        self.assertEqual([self.vgpu(p)["memory_bytes"] for p in programs], held)
        self.assertEqual(self.seen()["memory_bytes"], sum(held))
        # All that is left can be had, and not a byte more.
        left = limit - sum(held)
        if left:
            programs[0].make("buffer", left)
        for p in programs:
            self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(self.seen()["memory_bytes"], limit)
        for p in programs:
            self.assertEqual(p.do("freeall"), "freed")
        self.assertEqual(self.seen()["memory_bytes"], 0)

    def test_death_frees(self):
        self.tenant("--memory", "32M")
        for round_ in range(10):
            p, q = self.program(), self.program()
            p.make("buffer", 20 * MIB)
            q.make("buffer", 12 * MIB)
            p.process.send_signal(signal.SIGKILL)
            p.process.wait()
            # No waiting here: gantryd knows that a worker is on its way out.
            q.make("buffer", 20 * MIB)
            q.process.kill()
            q.process.wait()

    def test_a_killed_worker_frees(self):
        self.tenant("--memory", "32M")
        p, q = self.program(), self.program()
        p.make("buffer", 32 * MIB)
        q.do("info")
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.kill_worker_of(p)
        self.assertTrue(wait_until(lambda: self.seen()["leased_bytes"] == 0, 60))
        q.make("buffer", 32 * MIB)

    def test_a_silent_worker_keeps_nobody_waiting_for_long(self):
        self.tenant("--memory", "32M")
        p, q = self.program(), self.program()
        p.make("buffer", 20 * MIB)
        self.assertEqual(p.do("freeall"), "freed")
        worker = self.gantry.worker_of(p)
        os.kill(worker, signal.SIGSTOP)
        try:
            other = self.program("default")
            self.assertEqual(q.do("buffer", 20 * MIB), FAILED)  # after a bounded time
            q.make("buffer", 4 * MIB)
            other.make("buffer", 64 * MIB)
        finally:
            os.kill(worker, signal.SIGCONT)
        # Awake again, it answers what it was asked.
        self.assertTrue(wait_until(lambda: self.seen()["leased_bytes"] < 20 * MIB, 60))
        q.make("buffer", 20 * MIB)

    def test_two_tenants_do_not_meet(self):
        self.tenant("--memory", "16M")
        second = self.name + "b"
        self.ctl("tenant", "add", second, "--uid", str(os.getuid()), "--memory", "16M")
        p, q = self.program(), self.program(second)
        p.make("buffer", 16 * MIB)
        held = q.make("buffer", 16 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(q.do("buffer", 1), FAILED)
        p.process.kill()
        p.process.wait()
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.assertEqual(q.do("touch", held), "same")
        q.process.kill()
        q.process.wait()
        self.assertTrue(wait_until(lambda: not self.seen(second)["vgpus"], 60))
        self.ctl("tenant", "rm", second)


class Live(TenantTest):
    def test_a_lowered_limit_stops_allocations_and_nothing_else(self):
        self.tenant("--memory", "64M")
        p, q = self.program(), self.program()
        held = p.make("buffer", 24 * MIB)
        slack = p.make("buffer", 8 * MIB)
        q.make("buffer", 8 * MIB)
        self.assertEqual(p.do("free", slack), "freed")
        self.ctl("tenant", "set", self.name, "--memory", "16M")
        t = self.seen()
        self.assertEqual((t["memory_bytes"], t["leased_bytes"], t["memory_limit_bytes"]), (32 * MIB, 32 * MIB, 16 * MIB))
        # Not even what had been freed before, nor what is freed now, until it is below.
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.assertEqual(p.do("touch", held), "same")
        self.assertEqual(q.do("freeall"), "freed")
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.assertEqual(p.do("freeall"), "freed")
        self.assertTrue(wait_until(lambda: self.seen()["leased_bytes"] == 0, 60))
        q.make("buffer", 16 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        # What the device is said to have is what it was at the attach.
        self.assertEqual(p.do("info"), "info {} {}".format(64 * MIB, 64 * MIB))
        self.assertEqual(self.program().do("info"), "info {} {}".format(16 * MIB, 16 * MIB))

    def test_a_raised_limit_holds_at_once(self):
        self.tenant("--memory", "8M")
        p = self.program()
        p.make("buffer", 8 * MIB)
        self.assertEqual(p.do("buffer", MIB), FAILED)
        self.ctl("tenant", "set", self.name, "--memory", "16M")
        p.make("buffer", 8 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.ctl("tenant", "set", self.name, "--memory", "none")
        p.make("buffer", 8 * MIB)
        self.assertNotIn("memory_limit_bytes", self.seen())

    def test_a_limit_that_is_lifted_is_so_for_good(self):
        """What bounds a worker's own memory on a device whose memory is this machine's follows."""
        self.tenant("--memory", "1G")
        p = self.program()
        p.make("buffer", 1024 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.ctl("tenant", "set", self.name, "--memory", "none")
        for _ in range(5):      # hardly touched
            self.assertEqual(p.do("poke", p.make("buffer", 1024 * MIB)), "poked 0")

    def test_a_limit_for_who_had_none(self):
        self.tenant()
        p = self.program()
        p.make("buffer", 8 * MIB)
        self.assertGreater(self.seen()["leased_bytes"], 8 * MIB)
        self.ctl("tenant", "set", self.name, "--memory", "8M")
        self.assertEqual(self.seen()["leased_bytes"], 8 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_a_tenant_with_vgpus_stays(self):
        self.tenant()
        p = self.program()
        p.do("info")
        error = self.ctl("tenant", "rm", self.name, status=1)["error"]
        self.assertIn("has 1 vGPU", error["why"])
        self.assertEqual(set(error), {"what", "why", "fix"})
        p.make("buffer", 1)

    def test_an_unknown_tenant_gets_no_device(self):
        p = self.program("nobody-knows-me")
        self.assertEqual(p.do("platforms"), "platforms 0")
        q = subprocess.run([os.path.join(BUILD, "src/ctl/gantry"), "tenant", "set", "nobody-knows-me", "--weight", "1", "--connect",
                            self.gantry.address], stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(q.returncode, 1)
        self.assertIn('there is no tenant "nobody-knows-me"', q.stderr)


class Admission(TenantTest):
    """What strangers may. Needs a second user, so the superuser to be one."""

    TOKEN = "an-example-of-a-token-0123456789"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        os.chmod(self.gantry.socket_dir, 0o755)

    def as_nobody(self, *command, text="platforms\n", **env):
        return subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *command],
                              env=dict(self.gantry.program_env(), LC_ALL="C", **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, input=text, timeout=60)

    def ls(self, **env):
        return self.as_nobody(os.path.join(BUILD, "src/ctl/gantry"), "ls", "--json", **env)

    def refused(self, says, **env):
        p = self.ls(**env)
        self.assertEqual(p.returncode, 1, p.stdout)
        self.assertIn(says, p.stderr)
        self.assertIn(says, json.loads(p.stdout)["error"]["why"])

    def admitted(self, **env):
        p = self.ls(**env)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return json.loads(p.stdout)["vgpus"]

    def mode(self):
        return os.stat(self.gantry.socket).st_mode & 0o777

    def test_the_socket_is_its_owners_until_others_are_admitted(self):
        self.assertEqual(self.mode(), 0o600)
        self.refused("Permission denied")
        self.tenant("--uid", str(NOBODY))
        self.assertEqual(self.mode(), 0o666)
        self.refused('uid 65534 may not attach to "default"', GANTRY_TENANT="default")
        self.admitted()   # the only tenant that admits this user
        self.admitted(GANTRY_TENANT=self.name)
        self.ctl("tenant", "set", self.name, "--uid", "none")
        self.assertEqual(self.mode(), 0o600)

    def test_by_user_group_and_any(self):
        self.tenant("--uid", str(NOBODY + 1))
        refusal = 'uid 65534 may not attach to "{}"'.format(self.name)
        self.refused(refusal, GANTRY_TENANT=self.name)
        self.refused(refusal.replace(self.name, "not-there"), GANTRY_TENANT="not-there")   # no more is told
        for how in (("--uid", str(NOBODY)), ("--uid", "any"), ("--uid", "none", "--gid", str(NOBODY))):
            self.ctl("tenant", "set", self.name, *how)
            self.admitted(GANTRY_TENANT=self.name)
        self.ctl("tenant", "set", self.name, "--gid", "none", "--uid", "1")
        self.refused(refusal, GANTRY_TENANT=self.name)

    def test_by_token(self):
        path = os.path.join(self.folder, self.name)
        with open(path, "w", encoding="ascii") as f:
            f.write(self.TOKEN + "\n")
        self.tenant("--token-file", path)
        self.assertTrue(self.seen()["token"])
        self.refused("may not attach", GANTRY_TENANT=self.name)
        self.refused("the token is not that of", GANTRY_TENANT=self.name, GANTRY_TOKEN=self.TOKEN[:-1])
        self.refused("the token is not that of", GANTRY_TENANT=self.name, GANTRY_TOKEN=self.TOKEN + "0")
        self.refused("the token is too long", GANTRY_TENANT=self.name, GANTRY_TOKEN="x" * 300)
        self.refused("may not attach", GANTRY_TENANT="default", GANTRY_TOKEN=self.TOKEN)
        self.admitted(GANTRY_TENANT=self.name, GANTRY_TOKEN=self.TOKEN)
        self.assertNotIn(self.TOKEN, json.dumps(self.ctl("tenant", "ls")))
        # Tokens are not to be tried one after the other.
        for _ in range(30):
            p = self.ls(GANTRY_TENANT=self.name, GANTRY_TOKEN="x" * 20)
            self.assertEqual(p.returncode, 1)
        self.assertIn("too many wrong tokens", p.stderr)
        # Whoever runs gantryd is not kept out by it.
        self.program(self.name, GANTRY_TOKEN=self.TOKEN).do("info")
        self.assertEqual(self.program(self.name, GANTRY_TOKEN="x" * 20).do("platforms"), "platforms 0")
        lines = [line for line in self.gantry.log().splitlines() if "refused" in line and self.name in line]
        self.assertGreater(len(lines), 0)
        self.assertLess(len(lines), 15, lines)
        self.assertNotIn(self.TOKEN[:-1], self.gantry.log())

    def test_a_strangers_program_has_a_device_and_its_limit(self):
        self.tenant("--uid", str(NOBODY), "--memory", "8M")
        p = self.as_nobody(self.command, GANTRY_TENANT=self.name, text="platforms\ninfo\nbuffer 8388608\ntouch 0\nbuffer 1\n")
        self.assertEqual((p.stdout.splitlines(), p.stderr),
                         (["platforms 1 1", "info {0} {0}".format(8 * MIB), "made 0", "same", FAILED], ""))

    def test_strangers_see_their_own_and_change_nothing(self):
        self.tenant("--uid", str(NOBODY), "--uid", str(os.getuid()))
        mine, other = self.program(self.name), self.program("default")
        for p in (mine, other):
            p.do("info")
        self.assertEqual([v["tenant"] for v in self.admitted(GANTRY_TENANT=self.name)], [self.name])
        command = os.path.join(BUILD, "src/ctl/gantry")
        p = self.as_nobody(command, "tenant", "ls", "--json", GANTRY_TENANT=self.name)
        self.assertEqual([t["name"] for t in json.loads(p.stdout)["tenants"]], [self.name])
        for args in (("set", self.name, "--memory", "none"), ("add", "mine"), ("rm", self.name)):
            p = self.as_nobody(command, "tenant", *args, "--json", GANTRY_TENANT=self.name)
            self.assertEqual(p.returncode, 1)
            self.assertIn("only operators may, by gantryd's control socket", json.loads(p.stdout)["error"]["why"])
        self.assertEqual(self.seen()["uids"], [NOBODY, os.getuid()])


class Configured(TenantTest):
    @classmethod
    def daemon_args(cls):
        path = os.path.join(cls.folder, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write("[tenant default]\nmemory = 24M\n[tenant blue]\nweight = 300\nmemory = 8M\nuid = root\nmode = remote\n"
                    "device = pthread\n[tenant away]\nmode = passthrough\n")
        return ["--config", path]

    def test_the_configuration_holds(self):
        tenants = {t["name"]: t for t in self.ctl("tenant", "ls")["tenants"]}
        self.assertEqual(list(tenants), ["default", "blue", "away"])
        self.assertEqual((tenants["blue"]["weight"], tenants["blue"]["memory_limit_bytes"], tenants["blue"]["uids"],
                          tenants["blue"]["modes"], tenants["blue"]["devices"], tenants["blue"]["token"]),
                         (300, 8 * MIB, [0], ["remote"], ["pthread"], False))
        self.assertEqual(tenants["away"]["modes"], ["passthrough"])
        p = self.program("")
        self.assertEqual(p.do("info"), "info {} {}".format(24 * MIB, 24 * MIB))
        p.make("buffer", 24 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_a_mode_that_a_tenant_may_not_use(self):
        self.assertEqual(self.program("away").do("platforms"), "platforms 0")


class OverTcp(TenantTest):
    """A token over TLS, from what might be another machine."""

    TOKEN = "an-example-of-a-token-0123456789"

    @classmethod
    def daemon_args(cls):
        token, conf = os.path.join(cls.folder, "token"), os.path.join(cls.folder, "gantry.conf")
        with open(token, "w", encoding="ascii") as f:
            f.write(cls.TOKEN)
        os.chmod(token, 0o600)
        with open(conf, "w", encoding="ascii") as f:
            f.write("[tenant blue]\ntoken-file = {}\nmemory = 8M\n[tenant red]\nuid = any\n".format(token))
        return ["--config", conf, "--listen", "tcp:127.0.0.1:0", "--tcp-grace", "1"]

    def address(self):
        return next(line.split()[1] for line in self.gantry.log().splitlines() if line.startswith("listening "))

    def remote(self, tenant, token):
        env = {"GANTRY_CONNECT": self.address()}
        if token:
            env["GANTRY_TOKEN"] = token
        return self.program(tenant, **env)

    def test_a_tenants_token_admits_to_its_tenant(self):
        p = self.remote("blue", self.TOKEN)
        self.assertEqual(p.do("info"), "info {} {}".format(8 * MIB, 8 * MIB))
        self.assertEqual((self.vgpu(p)["tenant"], self.vgpu(p)["link"]), ("blue", "tcp"))
        p.make("buffer", 8 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(p.do("touch", 0), "same")
        self.ctl("tenant", "set", "blue", "--memory", "9M")
        p.make("buffer", MIB)

    def kill(self, vgpu, token):
        p = subprocess.run([os.path.join(BUILD, "src/ctl/gantry"), "kill", vgpu, "--json"], stdout=subprocess.PIPE,
                           env=dict(self.gantry.program_env(), GANTRY_CONNECT=self.address(), GANTRY_TENANT="blue", GANTRY_TOKEN=token))
        return json.loads(p.stdout)["kill"][0]

    def test_the_token_that_attached_a_vgpu_is_its_owner(self):
        other = "another-token-of-the-same-tenant"
        path = os.path.join(self.folder, "other")
        with open(path, "w", encoding="ascii") as f:
            f.write(other)
        p = self.remote("blue", self.TOKEN)
        p.do("info")
        vgpu = self.vgpu(p)["id"]
        self.ctl("tenant", "set", "blue", "--token-file", path)
        self.assertIn("only the owner of vGPU {} and operators may do that".format(vgpu), self.kill(vgpu, other)["why"])
        q = self.remote("blue", other)
        q.do("info")
        later = self.vgpu(q)["id"]
        self.assertEqual(self.kill(later, other), {"id": later, "result": "ended"})
        self.ctl("tenant", "set", "blue", "--token-file", os.path.join(self.folder, "token"))
        self.assertIn("only the owner", self.kill(vgpu, self.TOKEN)["why"])   # it may be anybody's by now
        r = self.remote("blue", self.TOKEN)
        r.do("info")
        self.assertEqual(self.kill(self.vgpu(r)["id"], self.TOKEN)["result"], "ended")

    def test_nothing_else_does(self):
        for tenant, token in (("blue", self.TOKEN[:-1]), ("blue", None), ("default", self.TOKEN), ("red", self.TOKEN), ("red", None)):
            self.assertEqual(self.remote(tenant, token).do("platforms"), "platforms 0", (tenant, token))


class Devices(TenantTest):
    extra_env = {"POCL_DEVICES": "pthread basic"}

    def test_a_tenant_sees_its_devices(self):
        names = [d["name"] for d in self.ctl("devices")["devices"]]
        self.assertEqual(len(names), 2)
        self.tenant("--device", names[1])
        p = self.program()
        self.assertEqual(p.do("platforms"), "platforms 1 1")
        self.assertEqual([d["name"] for d in self.vgpu(p)["devices"]], [names[1]])
        self.assertEqual([d["vgpus"] for d in self.ctl("devices")["devices"]], [0, 1])
        self.assertEqual(self.program("default").do("platforms"), "platforms 1 2")
        error = self.ctl("tenant", "set", self.name, "--device", "no-such-device", status=1)["error"]
        self.assertIn("no-such-device", error["why"])
        self.assertEqual(self.seen()["devices"], [names[1]])
        self.ctl("tenant", "set", self.name, "--device", "any")
        self.assertEqual(self.program().do("platforms"), "platforms 1 2")


class Placement(TenantTest):
    extra_env = {"POCL_DEVICES": "pthread basic"}

    @classmethod
    def daemon_args(cls):
        return ["--policy", "fair"]

    def setUp(self):
        super().setUp()
        self.names = [d["name"] for d in self.ctl("devices")["devices"]]
        self.assertTrue(wait_until(lambda: not self.ctl("ls")["vgpus"], 60))

    def placed(self, *tenant, **env):
        """A program that has a queue: the numbers of the devices that it works on, as both sides tell."""
        p = self.program(*tenant, **env)
        p.make("buffer", 4096)
        self.assertEqual(p.do("poke", 0), "poked 0")
        used = [d["index"] for d in self.vgpu(p)["devices"] if d["used"]]
        self.assertEqual([self.names[i] for i in used], [p.do("device").split(" ", 1)[1]])
        return used[0], p

    def test_who_does_not_choose_goes_to_the_least_loaded(self):
        self.tenant("--weight", "300")
        heavy, _ = self.placed()
        self.assertEqual(heavy, 0)
        # Three light ones of one tenant count once, and still less than the heavy one.
        places = [self.placed("default") for _ in range(3)]
        self.assertEqual([where for where, _ in places], [1, 1, 1])
        # Whoever goes makes room.
        for _, p in places:
            p.__exit__()
        self.assertTrue(wait_until(lambda: len(self.ctl("ls")["vgpus"]) == 1, 60))
        self.assertEqual(self.placed("default", ALLOCATOR_DEVICE="default")[0], 1)

    def test_who_has_not_begun_is_expected(self):
        first, second = self.program("default"), self.program("default")
        self.assertEqual([p.do("platforms") for p in (first, second)], ["platforms 1 2"] * 2)
        self.assertEqual([[d["used"] for d in self.vgpu(p)["devices"]] for p in (first, second)], [[False, False]] * 2)
        for p, where in ((second, 1), (first, 0)):
            p.make("buffer", 4096)
            self.assertEqual(p.do("device"), "device " + self.names[where])

    def test_who_chooses_gets_what_it_chose(self):
        for chosen in (1, 1, 0):
            self.assertEqual(self.placed("default", ALLOCATOR_DEVICE=str(chosen))[0], chosen)
        # And counts where he is.
        self.assertEqual(self.placed("default")[0], 0)

    def test_only_among_those_that_the_tenant_may_use(self):
        self.placed("default", ALLOCATOR_DEVICE="1")
        self.tenant("--device", self.names[1])
        self.assertEqual(self.placed()[0], 1)


if __name__ == "__main__":
    if not os.path.exists("/etc/OpenCL/vendors/pocl.icd"):
        print("SKIP: PoCL is not installed")
        sys.exit(77)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
