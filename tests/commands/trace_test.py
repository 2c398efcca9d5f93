#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry trace: turns that workers play, as a timeline; who may have one, how it ends."""

import json
import os
import signal
import socket
import struct
import subprocess
import unittest

from commands_harness import FAKE, CommandTest, as_nobody

from gantryd_harness import ATTACHED, PATIENCE, Gantryd
from turns import check

DEVICES = 1


class Trace(CommandTest):
    def setUp(self):
        super().setUp()
        self.gantryd = Gantryd("--policy", "fair", env={"OCL_ICD_VENDORS": FAKE})
        self.addCleanup(self.gantryd.__exit__)
        self.address = "unix:" + self.gantryd.path
        self.operator = self.gantryd.operator()
        self.addCleanup(self.operator.close)
        self.path = os.path.join(self.dir, "turns.json")

    def attach(self):
        """A worker that plays: a byte to its session makes it do something, and it answers with its state (idle_vgpu.c)."""
        client = self.gantryd.client()
        self.addCleanup(client.close)
        reply = client.attach()
        self.assertEqual(reply.op, ATTACHED)
        session = socket.socket(fileno=reply.fds[0])
        self.addCleanup(session.close)
        session.settimeout(PATIENCE)
        for fd in reply.fds[1:]:
            os.close(fd)

        def do(byte):
            session.sendall(byte)
            return session.recv(1)
        do.id = "%08x" % struct.unpack("<I", reply.payload[:4])
        do.close = client.close
        return do

    def ask(self, request, client=None, **more):
        return json.loads((client or self.operator).control(json.dumps(dict(more, version=1, request=request)).encode()))

    def start(self, *args, **how):
        p = subprocess.Popen([self.prefix.gantry, "trace", *args], env=self.prefix.env(self.address), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(self.drop, p)
        # It traces when another one may not.
        while "another gantry trace" not in json.dumps(self.ask("trace-start", vgpu="ffffffff00")):
            self.assertIsNone(p.poll())
        return p

    @staticmethod
    def drop(p):
        if p.poll() is None:
            p.kill()
        p.communicate()

    def finish(self, p, status=0):
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, status, err)
        return out, err

    def load(self, text=None):
        if text is None:
            with open(self.path, encoding="utf-8") as f:
                text = f.read()
        trace = json.loads(text)
        return trace, check(trace)

    def hand_over(self, a, b):
        """a has the turn; b gets it, and a again."""
        self.assertEqual(b(b"T"), b"1")
        self.assertEqual(a(b"P"), b"2")
        # Not wanting it again before b has it: which of two that want it is next is the policy's affair.
        self.assertEqual(a(b"G"), b"0")
        self.assertEqual(b(b"W"), b"2")
        self.assertEqual(a(b"T"), b"1")
        self.assertEqual(b(b"G"), b"0")
        self.assertEqual(a(b"W"), b"2")

    def take(self, a):
        if a(b"T") != b"2":
            self.assertEqual(a(b"W"), b"2")

    def test_turns(self):
        a, b = self.attach(), self.attach()
        self.take(a)
        p = self.start("-o", self.path)
        for _ in range(20):
            self.hand_over(a, b)
        _, err = self.finish(p)
        self.assertRegex(err, r"^gantry trace: \d+ events of [\d.]+ s in .*turns\.json; ui\.perfetto\.dev")
        trace, spans = self.load()
        holders = [name.split()[0] for _, _, name in spans[DEVICES, 1]]
        self.assertEqual(holders, [a.id, b.id] * 20 + [a.id])
        pids = {e["args"]["name"].split()[1]: e["pid"] for e in trace["traceEvents"]
                if e["name"] == "process_name" and e["pid"] != DEVICES}
        self.assertEqual(set(pids), {a.id, b.id})
        self.assertEqual([n for _, _, n in spans[pids[a.id], 1]], ["held"] + ["wanted", "held"] * 20)
        self.assertEqual([n for _, _, n in spans[pids[b.id], 1]], ["wanted", "held"] * 20)
        # The same turns on both tracks, to the nanosecond.
        self.assertEqual([s[:2] for s in spans[pids[b.id], 1] if s[2] == "held"],
                         [s[:2] for s in spans[DEVICES, 1] if s[2].startswith(b.id)])
        presses = [e for e in trace["traceEvents"] if e["name"] == "press"]
        self.assertEqual([e["pid"] for e in presses[:1]], [pids[a.id]])
        begins = [e for e in trace["traceEvents"] if e["ph"] == "B" and e["pid"] == DEVICES]
        self.assertTrue(all(e["args"]["tenant"] == "default" for e in begins))
        self.assertEqual(trace["otherData"]["lost"], 0)
        # What was charged is no more than it was held.
        ends = {e["args"].get("charged_ns", 0) <= 1000 * (end - begin) + 1000 for e, (begin, end, _) in zip(begins, spans[DEVICES, 1])}
        self.assertEqual(ends, {True})

    def test_who_comes_and_goes(self):
        p = self.start("-o", "-")
        a = self.attach()
        self.take(a)
        self.ask("tenant-add", name="blue")
        self.ask("policy-set", name="rr")
        a.close()
        while self.ask("ls")["vgpus"]:
            pass
        out, _ = self.finish(p)
        trace, spans = self.load(out)
        names = [e["name"] for e in trace["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([n for n in names if n in ("attach", "end", "tenant blue", "policy rr")],
                         ["attach", "tenant blue", "policy rr", "end"])
        self.assertEqual(len(spans[DEVICES, 1]), 1)

    def test_a_recording_is_what_sim_runs(self):
        a, b = self.attach(), self.attach()
        self.take(a)
        p = self.start("-o", self.path, "--recording")
        for _ in range(20):
            self.hand_over(a, b)
        _, err = self.finish(p)
        self.assertRegex(err, r"; \d+ turns$")
        with open(self.path, encoding="utf-8") as f:
            names, *lines = [line.strip().split(",") for line in f]
        self.assertEqual(names, ["start_ns", "vgpu", "tenant", "kernel_ns"])
        self.assertEqual({line[1] for line in lines}, {a.id + ".0", b.id + ".0"})
        self.assertEqual({line[2] for line in lines}, {"default"})
        # Forty turns have ended; one for which nothing is charged is none.
        self.assertLessEqual(len(lines), 40)
        self.assertGreater(len(lines), 0)
        self.assertTrue(err.rstrip().endswith("; {} turns".format(len(lines))))
        for vgpu in (a, b):
            starts = [int(line[0]) for line in lines if line[1].startswith(vgpu.id)]
            self.assertEqual(starts, sorted(starts))
        ran = self.prefix.run("sim", "--trace", self.path, "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        said = json.loads(ran.stdout)
        self.assertIn("default", ran.stdout)
        self.assertEqual(said["version"], 1)

    def test_one_alone(self):
        a, b = self.attach(), self.attach()
        p = self.start("-o", self.path, "--vgpu", b.id)
        self.take(a)
        self.hand_over(a, b)
        self.finish(p)
        _, spans = self.load()
        self.assertEqual({name.split()[0] for _, _, name in spans[DEVICES, 1]}, {b.id})

    def test_a_time(self):
        p = self.prefix.run("trace", "-o", self.path, "--seconds", "0.1", address=self.address)
        self.assertEqual((p.returncode, p.stdout), (0, ""))
        self.assertEqual(self.load()[1], {})

    def test_a_tracer_that_dies_ends_it(self):
        p = self.start("-o", self.path)
        p.kill()
        p.wait()
        while "error" in self.ask("trace-start"):
            pass
        self.assertIn("trace", self.ask("trace-stop"))
        self.assertEqual(self.ask("trace-read")["trace"]["events"], [])
        # Somebody else's connection has no part in it.
        other = self.gantryd.operator()
        self.addCleanup(other.close)
        self.assertIn("has not started", self.ask("trace-read", other)["error"]["why"])

    def test_what_does_not_fit_is_told(self):
        self.assertIn("trace", self.ask("trace-start"))
        for _ in range(9000):
            self.ask("policy-set", name="rr")
        seen = [self.ask("trace-read")["trace"] for _ in range(3)]
        self.assertEqual([t["more"] for t in seen], [True, True, False])
        self.assertEqual([len(t["events"]) for t in seen], [4096, 4096, 0])
        self.assertEqual(sum(t["dropped"] for t in seen), 9000 - 8192)

    def test_gantryd_goes(self):
        a = self.attach()
        self.take(a)
        p = self.start("-o", self.path)
        self.gantryd.stop()
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, len(err.splitlines())), (1, 1), err)
        self.assertEqual(len(self.load()[1][DEVICES, 1]), 1)

    def test_what_cannot_be(self):
        self.refused(2, "-o FILE", "trace", address=self.address)
        self.refused(2, "vGPU's id", "trace", "-o", self.path, "--vgpu", "../x", address=self.address)
        self.refused(2, "time", "trace", "-o", self.path, "--seconds", "0", address=self.address)
        self.refused(1, "cannot write", "trace", "-o", os.path.join(self.dir, "no/such"), address=self.address)
        self.refused(1, "no gantryd", "trace", "-o", self.path, "--connect", "unix:" + os.path.join(self.dir, "none"))
        p = self.prefix.run("trace", "-o", self.path, "--vgpu", "0000", address=self.address)
        self.sentence(p, 1, "gantry trace", "there is no vGPU")
        p = self.prefix.run("trace", "-o", "/dev/full", "--seconds", "0.1", address=self.address)
        self.sentence(p, 1, "gantry trace", "No space left")

    def test_who_is_refused_leaves_the_file_as_it_was(self):
        old = self.file("turns.json", "an older one")
        p = self.start("-o", "-")  # a file of its own would come about at any time
        self.refused(1, "another gantry trace", "trace", "-o", old, address=self.address)
        self.finish(p)
        with open(old, encoding="utf-8") as f:
            self.assertEqual(f.read(), "an older one")

    def test_others_may_not(self):
        self.ask("tenant-set", name="default", uids="any")
        os.chmod(self.gantryd.dir, 0o755)
        before = as_nobody(self, self.gantryd.dir)
        if not before:
            self.skipTest("nobody else is here")
        p = self.prefix.run("trace", "-o", "-", before=before, address=self.address)
        self.sentence(p, 1, "gantry trace", "only operators may, by gantryd's control socket")


if __name__ == "__main__":
    unittest.main(verbosity=2)
