#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry top: one frame as text and as JSON, and the live screen on a terminal."""

import json
import os
import re
import signal
import struct
import unittest

from commands_harness import FAKE, CommandTest, as_nobody

from gantryd_harness import ATTACHED, Gantryd
from screen import Screen

TITLES = ["TENANT", "VGPU", "CLASS", "SHARE", "BAR", "OF", "MEMORY", "LIMIT", "CALLS/S", "SYNC/S", "WAIT", "TIME", "STATE", "DEV",
          "PROGRAM"]
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7]")


class Top(CommandTest):
    def setUp(self):
        super().setUp()
        self.gantryd = Gantryd("--policy", "fair", env={"OCL_ICD_VENDORS": FAKE})
        self.addCleanup(self.gantryd.__exit__)
        self.address = "unix:" + self.gantryd.path
        self.clients = []
        self.addCleanup(lambda: [c.close() for c in self.clients])

    def attach(self, **how):
        client = self.gantryd.client()
        self.clients.append(client)
        reply = client.attach(**how)
        self.assertEqual(reply.op, ATTACHED)
        self.addCleanup(reply.close)
        return "%08x" % struct.unpack("<I", reply.payload[:4]), reply.fds[0]

    @staticmethod
    def take(fd):
        """Its worker asks for the device: idle_vgpu.c."""
        os.write(fd, b"T")

    def tenant(self, name, **settings):
        client = self.gantryd.operator()
        settings.setdefault("uids", [os.getuid()])
        client.control(json.dumps(dict(settings, version=1, request="tenant-add", name=name)).encode())
        client.close()

    def once(self, *args, **env):
        p = self.prefix.run("top", "--once", "--delay", "0.1", *args, address=self.address, env=env)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.splitlines()

    def screen(self, *args, columns=100, lines=24, **env):
        env = self.prefix.env(self.address, **dict({"TERM": "linux"}, **env))
        s = Screen([self.prefix.gantry, "top", "--delay", "0.1", *args], env, columns, lines)
        self.addCleanup(self.end, s)
        return s

    @staticmethod
    def end(s):
        if s.status is None:
            os.kill(s.pid, signal.SIGKILL)
            s.end()

    # ---- one frame

    def test_a_frame_for_scripts(self):
        self.tenant("blue", weight=300, memory_limit_bytes=3 << 29)
        mine, _ = self.attach()
        other, _ = self.attach(tenant=b"blue", memory=1 << 30)
        lines = self.once("--sort", "name")
        self.assertEqual(lines[0], "gantry top: 2 vGPUs of 2 tenants, 2 devices, policy fair")
        self.assertRegex(lines[1], r"^device 0: busy 0%, 0 turns a second, 0\.0 waiting  Fake Device One$")
        self.assertEqual(lines[3].split(), TITLES)
        rows = [line.split(None, len(TITLES) - 1) for line in lines[4:]]
        self.assertEqual([r[:2] for r in rows], [["blue", "-"], ["blue", other], ["default", "-"], ["default", mine]])
        for r in rows:
            self.assertEqual(len(r), len(TITLES), r)
            self.assertRegex(r[4], r"^\[[#.|]{%d}\]$" % (len(r[4]) - 2))
        self.assertEqual([dict(zip(TITLES, r))["LIMIT"] for r in rows], ["1.5G", "1G", "-", "-"])
        self.assertEqual([dict(zip(TITLES, r))["PROGRAM"] for r in rows], ["1 vGPU", "test", "1 vGPU", "test"])
        self.assertEqual([line for line in lines if line != line.rstrip() or "\x1b" in line], [])

    def test_who_holds_the_device_has_it(self):
        mine, fd = self.attach()
        self.take(fd)
        seen = {}
        while seen.get("SHARE") != "100%":
            seen, = [dict(zip(TITLES, line.split(None, len(TITLES) - 1))) for line in self.once() if mine in line]
        self.assertEqual((seen["CLASS"], seen["OF"], seen["DEV"]), ("bulk", "100%", "0"))

    def test_a_frame_of_a_given_width(self):
        self.attach()
        self.assertLessEqual(max(len(line) for line in self.once(COLUMNS="40")), 40)

    def test_nobody(self):
        self.assertIn("gantry run -- PROGRAM", "\n".join(self.once()))

    def test_as_json(self):
        self.tenant("blue", weight=300)
        mine, fd = self.attach(tenant=b"blue")
        self.take(fd)
        p = self.prefix.run("top", "--json", "--delay", "0.1", address=self.address)
        self.assertEqual((p.returncode, p.stderr, p.stdout.count("\n")), (0, "", 1))
        seen = json.loads(p.stdout)
        self.assertEqual((seen["version"], seen["policy"], len(seen["devices"])), (1, "fair", 2))
        self.assertGreaterEqual(seen["interval_ns"], 10**8)
        v, = seen["vgpus"]
        self.assertEqual((v["id"], v["calls_per_s"], v["sync_calls_per_s"], v["waiting"]), (mine, 0, 0, 0))
        blue, = [t for t in seen["tenants"] if t["name"] == "blue"]
        self.assertEqual([s["name"] for s in blue["shares"]], ["Fake Device One", "Fake Device Two"])
        # All that gantry ls says is in it.
        p = self.prefix.run("ls", "--json", address=self.address)
        self.assertLessEqual(set(json.loads(p.stdout)["vgpus"][0]), set(v))

    # ---- the screen

    def test_the_screen_lives(self):
        first, fd = self.attach()
        self.take(fd)
        s = self.screen()
        s.until(lambda t: first in t and "q quit" in t and "100%" in t)
        self.assertTrue(s.line(0).startswith("gantry top "))
        self.assertIn("q quit", s.line(23))
        second, _ = self.attach()
        s.until(lambda t: first in t and second in t)
        self.clients[1].close()
        s.until(lambda t: first in t and second not in t)
        self.assertIsNotNone(COLOUR.search(s.raw))
        s.send(b"q")
        self.assertEqual(s.end(), 0)
        # The terminal is as it was: the cursor is there again.
        self.assertGreater(s.raw.rfind(b"\x1b[?25h"), s.raw.rfind(b"\x1b[?25l"))

    def test_keys(self):
        ids = [self.attach()[0] for _ in range(3)]
        s = self.screen()
        s.until(lambda t: "sort [share]" in t)
        order = lambda t: [line.split()[0] for line in t.split("\n") if line.split()[:1] and line.split()[0] in ids]   # noqa: E731
        s.send(b"n")
        s.until(lambda t: "sort [name]" in t and order(t) == sorted(ids))
        s.send(b"r")
        s.until(lambda t: "[name, reversed]" in t and order(t) == sorted(ids, reverse=True))
        for key, name in ((b"m", "memory"), (b"c", "calls"), (b"y", "sync"), (b"w", "wait"), (b"t", "time"), (b"s", "share")):
            s.send(key)
            s.until(lambda t: "sort [" + name in t)
        s.send(b"d")
        s.until(lambda t: "[device 0]" in t and "Fake Device Two" not in t)
        s.send(b"d")
        s.until(lambda t: "[device 1]" in t and "Fake Device One" not in t)
        s.send(b"d")
        s.until(lambda t: "[device" not in t and "Fake Device One" in t)
        s.send(b"h")
        s.until(lambda t: "its entitlement by weight" in t)
        s.send(b"h ")
        s.until(lambda t: "PAUSED" in t and ids[0] in t)
        new, _ = self.attach()
        s.send(b" ")
        s.until(lambda t: "PAUSED" not in t and new in t)
        s.send(b"q")
        self.assertEqual(s.end(), 0)

    def test_a_small_terminal(self):
        ids = sorted(self.attach()[0] for _ in range(6))
        s = self.screen("--sort", "name", columns=50, lines=6)
        s.until(lambda t: ids[0] in t)
        self.assertNotIn(ids[5], s.text())
        self.assertNotIn("MEMORY", s.text())
        s.send(b"\x1b[B" * 10)
        s.until(lambda t: ids[5] in t and ids[0] not in t)
        s.resize(150, 30)
        s.until(lambda t: all(i in t for i in ids) and "MEMORY" in t)
        s.resize(12, 2)
        s.until(lambda t: "SHARE" in t)
        s.resize(1, 1)
        s.resize(100, 20)
        s.until(lambda t: all(i in t for i in ids))
        s.send(b"q")
        self.assertEqual(s.end(), 0)

    def test_no_colour(self):
        self.take(self.attach()[1])
        s = self.screen(NO_COLOR="1")
        s.until(lambda t: "q quit" in t and "100%" in t)
        s.send(b"q")
        self.assertEqual(s.end(), 0)
        self.assertIsNone(COLOUR.search(s.raw))

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        s = self.screen()
        s.until(lambda t: "q quit" in t)
        s.send(b"\x03")
        self.assertEqual(s.end(), 0)
        self.assertGreater(s.raw.rfind(b"\x1b[?25h"), s.raw.rfind(b"\x1b[?25l"))

    def test_gantryd_goes_and_another_one_comes(self):
        """As in an upgrade: the last frame stays, and then it is the other one's."""
        first, _ = self.attach()
        s = self.screen()
        s.until(lambda t: first in t)
        self.gantryd.stop()
        s.until(lambda t: "waiting for gantryd: " in t and first in t)
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=self.gantryd.path) as other:
            c = other.client()
            second = "%08x" % struct.unpack("<I", c.attach().payload[:4])
            s.until(lambda t: second in t and first not in t and "waiting for" not in t)
            c.close()
            s.send(b"q")
            self.assertEqual(s.end(), 0)

    def test_it_can_be_left_while_gantryd_is_gone(self):
        s = self.screen(columns=60, lines=5)
        s.until(lambda t: "q quit" in t)
        self.gantryd.stop()
        s.until(lambda t: "waiting for gantryd: " in t)
        s.send(b"q")
        self.assertEqual(s.end(), 0)
        self.assertGreater(s.raw.rfind(b"\x1b[?25h"), s.raw.rfind(b"\x1b[?25l"))

    def test_what_a_tenant_sees_of_others(self):
        """The device as busy as it is, and a row for all others together."""
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        nobody = as_nobody(self, self.prefix.gantry)
        os.chmod(self.gantryd.dir, 0o755)
        self.tenant("blue", uids=[65534])
        _, fd = self.attach()
        self.take(fd)

        def seen(*args):
            p = self.prefix.run(*args, address=self.address, before=nobody)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            return p.stdout
        rows = []
        while not rows or rows[0][3] != "100%":
            rows = [line.split() for line in seen("top", "--once", "--delay", "0.1").splitlines() if line.startswith("others ")]
        self.assertEqual(rows[0][-2:], ["1", "vGPU"])
        text = seen("top", "--once", "--delay", "0.1")
        self.assertIn("this tenant has no programs", text)
        self.assertNotIn("default", text)
        device = json.loads(seen("top", "--json", "--delay", "0.1"))["devices"][0]
        self.assertEqual((device["vgpus"], device["others"]["vgpus"], device["others"]["share"]), (1, 1, 1))
        self.assertEqual(json.loads(seen("ls", "--json"))["vgpus"], [])

    # ---- what goes wrong

    def test_no_gantryd(self):
        self.refused(1, "no gantryd", "top", "--once", "--connect", "unix:" + os.path.join(self.dir, "none"))

    def test_no_terminal(self):
        self.refused(1, "gantry top --once", "top", address=self.address)
        s = self.screen(TERM="no-such-terminal")
        self.assertEqual(s.end(), 1)
        self.assertIn(b"no-such-terminal", s.raw)

    def test_wrong_usage(self):
        self.refused(2, "sort key", "top", "--once", "--sort", "beauty", address=self.address)
        for delay in ("0", "-1", "1s", "", "0.01", "1e9", "."):
            self.refused(2, "time", "top", "--once", "--delay", delay, address=self.address)


if __name__ == "__main__":
    unittest.main(verbosity=2)
