# SPDX-License-Identifier: Apache-2.0
"""Tests of gantryd's scheduler with workers that request a device.

They cover grants, listings, and changes by operators. The workers are those of idle_vgpu.c: a byte
over the session socket makes one acquire, park or yield. Needs GANTRYD, GANTRY_WORKER and
FAKE_VENDOR_LIBRARY in the environment.
"""
import json
import os
import signal
import socket
import struct
import time
import unittest

from gantryd_harness import ATTACH, ATTACHED, PATIENCE, Gantryd, attach, frame

FAKE = {"OCL_ICD_VENDORS": os.environ["FAKE_VENDOR_LIBRARY"]}
NONE, WANTED, HELD, RESTING = b"0", b"1", b"2", b"3"
POLICIES = ["fair", "credit", "credit-hs", "strict", "rr", "xenocredit"]
SHARE_KEYS = {"name", "index", "share", "entitled", "device_ns", "used_ns", "waited_ns", "grants",
              "interactive", "used"}


class Player:
    """A vGPU with a worker that follows commands about its grant."""

    def __init__(self, gantryd, **how):
        self.client = gantryd.client()
        reply = self.client.attach(**how)
        assert reply.op == ATTACHED, reply.error()
        self.id = "%08x" % struct.unpack("<I", reply.payload[:4])
        self.session = socket.socket(fileno=reply.fds[0])
        self.session.settimeout(PATIENCE)
        for fd in reply.fds[1:]:
            os.close(fd)

    def tell(self, byte):
        self.session.sendall(byte)

    def hear(self):
        return self.session.recv(1)

    def do(self, byte):
        self.tell(byte)
        return self.hear()

    def take(self):
        """Waits until the grant is held."""
        state = self.do(b"T")
        return state if state == HELD else self.do(b"W")

    def close(self):
        self.client.close()
        self.session.close()


class Grants(unittest.TestCase):
    def start(self, *args):
        policy = () if {"--policy", "--config"} & set(args) else ("--policy", "fair")
        self.gantryd = Gantryd(*args, *policy, env=FAKE)
        self.addCleanup(self.gantryd.__exit__)
        self.operator = self.gantryd.operator()
        self.addCleanup(self.operator.close)

    def player(self, **how):
        p = Player(self.gantryd, **how)
        self.addCleanup(p.close)
        return p

    def ask(self, request, **more):
        text = json.dumps(dict(more, version=1, request=request))
        return json.loads(self.operator.control(text.encode()))

    def tenant(self, what, name, **settings):
        reply = self.ask("tenant-" + what, name=name, **settings)
        self.assertNotIn("error", reply)
        return reply["tenants"][0]

    def seen_at_once(self, *players):
        """Their entries for their first device, from one listing."""
        listed = {v["id"]: v["devices"] for v in self.ask("ls")["vgpus"]}
        for device in [d for devices in listed.values() for d in devices]:
            self.assertEqual(set(device), SHARE_KEYS)
            self.assertTrue(0 <= device["share"] <= 1 and 0 <= device["entitled"] <= 1, device)
        return [listed[p.id][0] for p in players]

    def seen(self, player):
        return self.seen_at_once(player)[0]

    def test_turns(self):
        self.start()
        a, b = self.player(), self.player()
        self.assertEqual(self.seen(a), {"name": self.seen(a)["name"], "index": 0, "share": 0,
                                        "entitled": 0, "device_ns": 0, "used_ns": 0, "waited_ns": 0,
                                        "grants": 0, "interactive": False, "used": False})
        self.assertEqual(a.take(), HELD)
        # Alone: it is charged for nothing and has the whole device.
        alone = self.seen(a)
        self.assertEqual((alone["share"], alone["entitled"], alone["used_ns"], alone["grants"]),
                         (1, 1, 0, 1))
        self.assertEqual(b.do(b"T"), WANTED)
        self.assertEqual(a.do(b"P"), HELD)
        # Preempted, it is charged; the waiting one has had nothing.
        x, y = self.seen_at_once(a, b)
        self.assertEqual((x["share"], y["share"], x["entitled"], y["entitled"]), (1, 0, 0.5, 0.5))
        self.assertEqual((x["grants"], y["grants"], y["used_ns"], x["waited_ns"]),
                         (1, 0, 0, alone["waited_ns"]))
        self.assertGreater(x["used_ns"], 0)
        self.assertGreater(y["waited_ns"], 0)
        self.assertEqual(a.do(b"A"), WANTED)
        self.assertEqual(b.do(b"W"), HELD)
        z, y = self.seen_at_once(a, b)
        self.assertEqual((z["grants"], y["grants"], z["entitled"], y["entitled"]), (1, 1, 0.5, 0.5))
        self.assertGreaterEqual(z["used_ns"], x["used_ns"])
        self.assertGreater(z["waited_ns"], x["waited_ns"])
        self.assertGreater(y["used_ns"], 0)
        self.assertGreater(y["share"], 0)
        self.assertAlmostEqual(z["share"] + y["share"], 1, places=4)
        self.assertEqual(b.do(b"G"), NONE)
        self.assertEqual(a.do(b"W"), HELD)
        # No vGPU uses the other device.
        self.assertEqual([v["devices"][1]["grants"] for v in self.ask("ls")["vgpus"]], [0, 0])

    def test_who_rests_is_passed_over(self):
        self.start()
        a, b = self.player(), self.player()
        self.assertEqual(a.take(), HELD)
        self.assertEqual(a.do(b"R"), RESTING)
        self.assertEqual(a.take(), HELD)            # without a word to gantryd
        self.assertEqual(a.do(b"R"), RESTING)
        self.assertEqual(self.seen(a)["grants"], 1)
        self.assertEqual(b.take(), HELD)
        self.assertEqual(a.do(b"L"), NONE)
        self.assertEqual(self.seen(a)["used_ns"], 0)

    def test_weights_reach_the_scheduler(self):
        """Weights of both levels, with changes at once.

        The entitled part comes from the scheduler's own weights.
        """
        self.start()
        self.tenant("add", "blue", weight=300, uids=[os.getuid()])
        players = [self.player(weight=w, tenant=t)
                   for w, t in ((100, b""), (300, b""), (0, b"blue"))]
        for p in players:
            self.assertIn(p.do(b"T"), (WANTED, HELD))
        # The scheduler sees the request a moment later.
        for p in players:
            while not (self.seen(p)["waited_ns"] or self.seen(p)["grants"]):
                pass
        for weight, entitled in ((300, (0.0625, 0.1875, 0.75)), (100, (0.125, 0.375, 0.5))):
            self.tenant("set", "blue", weight=weight)
            for got, wanted in zip(self.seen_at_once(*players), entitled):
                self.assertAlmostEqual(got["entitled"], wanted, places=5)

    def test_a_cap_holds_even_alone(self):
        self.start()
        cap, window = 0.1, 0.1
        self.tenant("add", "blue", cap=cap, uids=[os.getuid()])
        p = self.player(tenant=b"blue")
        began = time.monotonic()
        for _ in range(8):
            self.assertEqual(p.take(), HELD)
            self.assertEqual(p.do(b"P"), HELD)      # asked for it although nobody waits
            # Not the last grant: the time used is from before it.
            used = self.seen(p)["used_ns"] / 1e9
            held = time.monotonic()
            while time.monotonic() < held + 0.01:
                pass
            self.assertEqual(p.do(b"G"), NONE)
        # The last grant came only once the time used before was within the cap.
        self.assertEqual(p.take(), HELD)
        self.assertLessEqual(used, cap * (time.monotonic() - began + window) + 0.001)
        # Without the cap, it is not preempted.
        self.assertNotIn("cap", self.tenant("set", "blue", cap=0))
        self.assertEqual(p.do(b"G"), NONE)
        for _ in range(50):
            self.assertEqual(p.take(), HELD)
            self.assertEqual(p.do(b"R"), RESTING)

    def test_a_cap_comes_and_goes_while_the_device_is_held(self):
        self.start()
        p = self.player()
        self.assertEqual(p.take(), HELD)
        p.tell(b"P")
        self.assertEqual(self.tenant("set", "default", cap=0.5)["cap"], 0.5)
        self.assertEqual(p.hear(), HELD)
        # The cap delays it for longer than this test waits; it goes on when the cap is lifted.
        self.tenant("set", "default", cap=0.000001)
        self.assertEqual(p.do(b"A"), WANTED)
        self.assertEqual(p.do(b"L"), WANTED)
        p.tell(b"W")
        self.tenant("set", "default", cap=0)
        self.assertEqual(p.hear(), HELD)

    def test_who_keeps_it_too_long_is_ended(self):
        self.start("--kernel-limit", "0.1")
        a, b = self.player(), self.player()
        self.assertEqual(a.take(), HELD)
        self.assertEqual(b.take(), HELD)
        self.assertEqual(a.hear(), b"")
        while any(v["id"] == a.id and v["state"] != "lost" for v in self.ask("ls")["vgpus"]):
            pass
        self.assertEqual(self.seen(a)["share"], 0)
        self.assertIn("--kernel-limit", self.gantryd.stop()[1])

    def worker_of(self, player):
        return next(v["worker_pid"] for v in self.ask("ls")["vgpus"] if v["id"] == player.id)

    def test_a_stopped_worker_is_ended_without_any_limit(self):
        self.start("--kernel-limit", "0")
        a, b = self.player(), self.player()
        self.assertEqual(a.take(), HELD)
        os.kill(self.worker_of(a), signal.SIGSTOP)
        self.assertEqual(b.take(), HELD)
        self.assertEqual(a.hear(), b"")
        said = self.gantryd.stop()[1]
        self.assertEqual(said.count("while its worker is stopped"), 1, said)

    def test_ends_for_keeping_the_device_count_as_breaches(self):
        for limit, says in (("0", "while its worker is stopped"), ("0.1", "--kernel-limit")):
            self.start("--kernel-limit", limit, "--breach-pause", "60000")
            for _ in range(11):
                a, b = self.player(), self.player()
                self.assertEqual(a.take(), HELD)
                if limit == "0":
                    os.kill(self.worker_of(a), signal.SIGSTOP)
                self.assertEqual(b.take(), HELD)
                self.assertEqual(a.hear(), b"")
                a.close()
                b.close()
            c = self.gantryd.client()
            self.addCleanup(c.close)
            c.send(frame(ATTACH, 9, attach(stdio=0)))
            # the next frame of this connection is answered, and the attach is not
            c.control(b'{"version":1,"request":"ls"}')
            said = self.gantryd.stop()[1]
            self.assertEqual(said.count(says), 11, said)
            self.assertEqual(said.count("they may start one vGPU every 60000 ms"), 1, said)

    def test_a_policy_is_changed_live(self):
        self.start("--policy", "rr")
        reply = self.ask("policy")
        self.assertEqual((reply["policy"], [p["name"] for p in reply["policies"]]),
                         ("rr", ["none"] + POLICIES))
        a, b = self.player(), self.player()
        self.assertEqual(a.take(), HELD)
        self.assertEqual(b.do(b"T"), WANTED)
        holder, other = a, b
        grants = 1
        for name in POLICIES + POLICIES[::-1]:
            self.assertEqual(self.ask("policy-set", name=name)["policy"], name)
            self.assertEqual(holder.do(b"A"), WANTED)
            # One of them gets the device: one that was waiting or one that has come back.
            a.tell(b"L")
            b.tell(b"L")
            states = [a.hear(), b.hear()]
            while HELD not in states:
                states = [a.do(b"L"), b.do(b"L")]
            holder, other = (a, b) if states[0] == HELD else (b, a)
            self.assertEqual(other.do(b"L"), WANTED)
            grants += 1
            self.assertEqual(self.seen(a)["grants"] + self.seen(b)["grants"], grants)
        refused = self.ask("policy-set", name="fare")["error"]
        self.assertEqual((refused["what"], refused["why"]),
                         ("cannot change the policy", 'there is no policy "fare"'))
        self.assertEqual(refused["fix"], "the policies are none, " + ", ".join(POLICIES))
        self.assertEqual(self.ask("policy")["policy"], "fair")

    def test_floors_and_caps_from_the_configuration(self):
        with Gantryd(env=FAKE) as g:
            path = os.path.join(g.dir, "conf")
            with open(path, "w") as f:
                f.write("[gantryd]\npolicy = credit\nslice = 2.5\nkernel-limit = 30\n"
                        "[tenant blue]\ncap = 75%\nfloor = 0.25\n")
            self.start("--config", path)
        tenants = {t["name"]: t for t in self.ask("tenants")["tenants"]}
        self.assertEqual((tenants["blue"]["cap"], tenants["blue"]["floor"]), (0.75, 0.25))
        self.assertFalse({"cap", "floor"} & set(tenants["default"]))
        self.assertEqual(self.ask("policy")["policy"], "credit")


if __name__ == "__main__":
    unittest.main(verbosity=2)
