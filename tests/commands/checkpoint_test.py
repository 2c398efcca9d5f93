#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry checkpoint against a gantryd that answers, and a worker that goes on holding its end of what the file comes through: gantryd's
word is the last one."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import unittest

from commands_harness import CommandTest, FakeGantryd

from gantryd_harness import CONTROL, PATIENCE, frame

FILE = 24


class Holding(FakeGantryd):
    """Keeps what it is sent."""

    def __init__(self, path, reply, silent=False):
        self.kept, self.has_file = [], threading.Event()
        text = json.dumps({"version": 1, **reply}).encode()
        super().__init__(path, lambda op, seq: FakeGantryd.greeting(op, seq) or (b"" if op == FILE or silent else frame(CONTROL, seq, text)))

    def _talk(self, c):
        while True:
            head, fds, _, _ = socket.recv_fds(c, 16, 4, socket.MSG_WAITALL)
            self.kept += fds
            if len(head) < 16:
                return
            size, op, _, seq, _ = struct.unpack("<IHHII", head)
            c.recv(size - 16, socket.MSG_WAITALL)
            if op == FILE:
                self.has_file.set()
            c.sendall(self.answer(op, seq))

    def __exit__(self, *exc):
        super().__exit__(*exc)
        for fd in self.kept:
            os.close(fd)


class Checkpoint(CommandTest):
    def test_a_worker_that_does_not_let_go(self):
        path = os.path.join(self.dir, "s")
        for reply, says in (({"error": {"what": "it was given up", "why": "the workers took too long"}}, "the workers took too long"),
                            ({"checkpoint": {"id": "00000001", "state": "running", "bytes": 5}}, "fewer bytes arrived")):
            for how in ((), ("--stop",)):
                with self.subTest(says=says, how=how), Holding(path, reply) as fake:
                    self.refused(1, says, "checkpoint", "--quiet", "1", os.path.join(self.dir, "a.ckpt"), *how, address="unix:" + path)
                    self.assertEqual(len(fake.kept), 1)
                os.unlink(path)

    def test_a_gantryd_that_says_nothing_is_not_waited_for_after_a_second_interrupt(self):
        path, to = os.path.join(self.dir, "s"), os.path.join(self.dir, "a.ckpt")
        with Holding(path, {}, silent=True) as fake:
            p = subprocess.Popen([self.prefix.gantry, "checkpoint", "--quiet", "1", to], env=self.prefix.env("unix:" + path),
                                 stdin=subprocess.DEVNULL)
            try:
                self.assertTrue(fake.has_file.wait(PATIENCE))
                p.send_signal(signal.SIGINT)
                given_up = select.poll()
                given_up.register(fake.kept[0], 0)
                self.assertTrue(given_up.poll(PATIENCE * 1000))
                p.send_signal(signal.SIGINT)
                self.assertEqual(p.wait(PATIENCE), -signal.SIGINT)
            finally:
                p.kill()
                p.wait()
        self.assertEqual(os.listdir(self.dir), ["s"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
