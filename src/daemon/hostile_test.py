# SPDX-License-Identifier: Apache-2.0
"""Tests of gantryd against programs that break the protocol, do not read, or exhaust descriptors.

Needs GANTRYD, GANTRY_WORKER and FAKE_VENDOR_LIBRARY in the environment.
"""
import os
import resource
import select
import socket
import struct
import time
import unittest

from gantryd_harness import (ATTACH, ATTACHED, CONTROL, ERROR, HELLO, PATIENCE, SEGMENT,
                             SEGMENT_MADE, WELCOME, Gantryd, attach, count_fds, frame, hello)
from gantryd_test import FAKE, Attached, vgpus


class Hostile(unittest.TestCase):
    """Invalid frames end the connection of their sender and no other."""

    def setUp(self):
        self.gantryd = Gantryd(env=FAKE)
        self.addCleanup(self.gantryd.__exit__)
        self.good = self.gantryd.client()
        self.addCleanup(self.good.close)

    def ended(self, data, fds=(), greet=True, partly=False):
        c = self.gantryd.client(greet=greet)
        try:
            c.send(data, fds)
        except (BrokenPipeError, ConnectionResetError):
            pass
        if partly:
            c.socket.shutdown(socket.SHUT_WR)
        reply = c.receive()
        self.assertIsNone(reply, data[:40])
        c.close()

    def test_frames_that_are_none(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 16, b"\xff" * 64,
                     frame(HELLO, 1, hello(), size=15),
                     frame(HELLO, 1, hello(), size=65537), frame(HELLO, 1, hello(), zero=1),
                     frame(HELLO, 1, hello(), flags=2)):
            self.ended(data, greet=False)
        self.assertEqual(vgpus(self.good), [])

    def test_greetings_that_are_none(self):
        for payload in (b"", hello()[:-1], hello() + b"x", hello(magic=1), hello(zero=1),
                        hello(program=b"x" * 128)):
            self.ended(frame(HELLO, 1, payload), greet=False)
        self.ended(frame(HELLO, 2, hello()))  # twice
        self.ended(frame(ATTACH, 1, attach()), (2, 2), greet=False)  # before the greeting
        self.ended(frame(CONTROL, 1, b"{}"), greet=False)

    def test_another_version_gets_a_sentence(self):
        c = self.gantryd.client(greet=False)
        reply = c.ask(HELLO, hello(version=2))
        self.assertEqual(reply.op, ERROR)
        self.assertIn("version", reply.error()[1])
        self.assertIsNone(c.receive())
        c.close()

    def test_attaches_that_are_none(self):
        for payload, fds in ((b"", ()), (attach()[:-1], (2, 2)), (attach(zero=2), (2, 2)),
                             (attach(stdio=4), (2,)),
                             (attach(stdio=3), (2,)), (attach(stdio=3), ()),
                             (attach(stdio=1), (2, 2)),
                             (attach(stdio=0), (2,)), (attach(stdio=3), (2,) * 8),
                             (attach(tenant=b"x" * 64), (2, 2))):
            self.ended(frame(ATTACH, 2, payload), fds)
        self.assertEqual(vgpus(self.good), [])

    def test_frames_out_of_place(self):
        for op in (0, WELCOME, ATTACHED, SEGMENT_MADE, ERROR, 9, 32, 40, 43, 48, 65535):
            self.ended(frame(op, 2, b""))
        self.ended(frame(ATTACH, 2, attach(), flags=1), (2, 2))
        self.ended(frame(SEGMENT, 2, b""))

    def test_descriptors_that_nobody_asked_for_are_closed(self):
        before = count_fds(self.gantryd.pid)
        self.ended(frame(SEGMENT, 2, struct.pack("<Q", 4096)), (2,))
        self.ended(frame(CONTROL, 2, b"{}"), (2,) * 8)
        self.ended(frame(HELLO, 1, hello()), (2,) * 9, greet=False)
        self.ended(frame(ATTACH, 2, attach())[:20], (2,) * 5, partly=True)
        vgpus(self.good)
        while count_fds(self.gantryd.pid) != before:  # by a thread of its own, in its own time
            time.sleep(0.01)

    def test_every_strict_prefix_of_an_attach(self):
        whole = frame(ATTACH, 2, attach())
        for n in range(len(whole)):
            self.ended(whole[:n], (2, 2) if n else (), partly=True)
        self.assertEqual(vgpus(self.good), [])

    def test_names_command_nobody_who_reads_the_log(self):
        with Gantryd(env=FAKE) as g:
            for name in (b"\x1b[31mred", b"\xc2\x9b31mred", b"\x9b31mred", b"\xe2\x80\xaegnp.exe",
                         b"\xe2\x81\xa6a\xe2\x81\xa9", b"a\nb"):
                c = g.client(greet=False)
                self.assertEqual(c.ask(HELLO, hello(program=name)).op, WELCOME)
                c.send(frame(99, 1))
                self.assertIsNone(c.receive())
                c.close()
            _, log = g.stop()
        lines = [line for line in log.splitlines() if "unknown frame" in line]
        self.assertEqual(len(lines), 6, log)
        self.assertEqual([c for c in log if c in "\x1b\x9b\u202e\u2066\u2069\ufffd"], [], log)

    def test_a_log_that_nobody_reads_holds_up_nobody(self):
        with Gantryd(env=dict(FAKE, GANTRY_LOG="debug")) as g:
            # lines of 200 bytes: more than the pipe and gantryd's own memory hold
            for _ in range(2500):
                c = g.client(greet=False)
                self.assertEqual(c.ask(HELLO, hello(program=b"n" * 127)).op, WELCOME)
                c.send(frame(99, 1))
                self.assertIsNone(c.receive())
                c.close()
            g.client().close()
            said = b""
            while b"lines were left out here" not in said:
                said += os.read(g.process.stderr.fileno(), 65536)
            status, rest = g.stop()
        lines = (said.decode() + rest).splitlines()
        dropped = sum(int(line.split()[2]) for line in lines if "lines were left out here" in line)
        self.assertEqual(status, 0)
        self.assertEqual(sum("unknown frame" in line for line in lines) + dropped, 2500)

    def test_a_log_that_is_never_read_does_not_keep_gantryd_from_ending(self):
        with Gantryd(env=dict(FAKE, GANTRY_LOG="debug")) as g:
            for _ in range(600):
                c = g.client(greet=False)
                self.assertEqual(c.ask(HELLO, hello(program=b"n" * 127)).op, WELCOME)
                c.send(frame(99, 1))
                self.assertIsNone(c.receive())
                c.close()
            g.process.terminate()
            self.assertEqual(g.process.wait(PATIENCE), 0)

    def test_a_request_without_end(self):
        c = self.gantryd.client()
        part = frame(CONTROL, 2, b" " * 60000, flags=1)
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for _ in range(1000):
                c.send(part)
        c.close()
        vgpus(self.good)

    def test_without_descriptors_the_tcp_port_pauses(self):
        with Gantryd("--listen", "tcp:127.0.0.1:0", "--insecure", env=FAKE) as g:
            listening = next(line for line in g.lines if line.startswith("listening tcp:"))
            port = int(listening.rsplit(":", 1)[1])
            _, hard = resource.prlimit(g.pid, resource.RLIMIT_NOFILE)
            was = resource.prlimit(g.pid, resource.RLIMIT_NOFILE, (3, hard))
            c = socket.create_connection(("127.0.0.1", port))
            c.settimeout(PATIENCE)
            self.assertTrue(select.select([g.process.stderr], [], [], PATIENCE)[0])
            self.assertIn("cannot accept another connection to tcp:",
                          g.process.stderr.readline().decode())
            resource.prlimit(g.pid, resource.RLIMIT_NOFILE, was)
            c.sendall(frame(99, 1, b"x" * 16))
            self.assertNotEqual(select.select([c], [], [], PATIENCE)[0], [])  # it is heard
            c.close()

    def test_without_descriptors_who_is_idle_makes_room_at_the_tcp_port(self):
        with Gantryd("--listen", "tcp:127.0.0.1:0", "--insecure", env=FAKE) as g:
            listening = next(line for line in g.lines if line.startswith("listening tcp:"))
            port = int(listening.rsplit(":", 1)[1])
            before = set(os.listdir("/proc/%d/fd" % g.pid))
            idle = socket.create_connection(("127.0.0.1", port))
            idle.settimeout(PATIENCE)
            idle.sendall(frame(HELLO, 1, hello()))
            size = struct.unpack("<I", idle.recv(4, socket.MSG_WAITALL))[0]
            idle.recv(size - 4, socket.MSG_WAITALL)  # welcome
            own = set(os.listdir("/proc/%d/fd" % g.pid)) - before
            self.assertEqual(len(own), 1)
            _, hard = resource.prlimit(g.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(g.pid, resource.RLIMIT_NOFILE, (int(own.pop()) + 1, hard))
            late = socket.create_connection(("127.0.0.1", port))
            late.settimeout(PATIENCE)
            self.assertEqual(idle.recv(1), b"")
            late.sendall(frame(99, 1, b"x" * 16))
            self.assertEqual(late.recv(1), b"")
            for s in (idle, late):
                s.close()

    def refused_or_attached(self, client, pid):
        """Tries with room for 0, 1, 2 and more descriptors until it succeeds.

        Returns the errors before that.
        """
        _, hard = was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        lowest = next(fd for fd in range(hard) if not os.path.lexists("/proc/%d/fd/%d" % (pid, fd)))
        refused = []
        for room in (0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest + room, hard))
            reply = client.attach()
            resource.prlimit(pid, resource.RLIMIT_NOFILE, was)
            if reply.op == ATTACHED:
                reply.close()
                return refused
            refused.append(reply.error())
        self.fail("it never suffices: %s" % refused)

    def test_without_descriptors_attaches_are_refused_and_all_goes_on(self):
        with Gantryd(env=FAKE) as g:
            Attached(g).close()
            template = g.template()
            for pid, says in ((g.pid, "gantryd has no descriptors left"),
                              (template, "a template has no descriptors left")):
                client = g.client()
                refused = self.refused_or_attached(client, pid)
                self.assertIn(says, [text for _, text, _ in refused])
                for _, text, _ in refused:
                    self.assertRegex(text, "descriptors|Too many open files|there is room for")
                self.assertEqual(g.template(), template)
                client.close()
            Attached(g).close()

    def test_a_peer_that_never_reads(self):
        """A peer is not read until it reads its answers; none of them is lost."""
        c = self.gantryd.operator()  # whose requests are not metered
        request = frame(CONTROL, 2, b'{"version":1,"request":"devices"}')
        c.socket.setblocking(False)
        sent = 0
        try:
            while sent < 100 << 20:
                sent += c.socket.send(request * 50)
            self.fail("gantryd takes in 100 MiB of requests whose answers nobody reads")
        except BlockingIOError:
            pass
        vgpus(self.good)
        c.socket.setblocking(True)
        c.socket.settimeout(PATIENCE)
        for _ in range(sent // len(request)):
            reply = c.receive()
            self.assertTrue(reply and reply.op == CONTROL)
        c.close()
        vgpus(self.good)


if __name__ == "__main__":
    unittest.main(verbosity=2)
