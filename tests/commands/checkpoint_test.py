#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry checkpoint against a gantryd that answers, and a worker that goes on holding its end of what the file comes through: gantryd's
word is the last one."""

import json
import os
import socket
import struct
import unittest

from commands_harness import CommandTest, FakeGantryd

from gantryd_harness import CONTROL, frame

FILE = 24


class Holding(FakeGantryd):
    """Keeps what it is sent."""

    def __init__(self, path, reply):
        self.kept = []
        text = json.dumps({"version": 1, **reply}).encode()
        super().__init__(path, lambda op, seq: FakeGantryd.greeting(op, seq) or (b"" if op == FILE else frame(CONTROL, seq, text)))

    def _talk(self, c):
        while True:
            head, fds, _, _ = socket.recv_fds(c, 16, 4, socket.MSG_WAITALL)
            self.kept += fds
            if len(head) < 16:
                return
            size, op, _, seq, _ = struct.unpack("<IHHII", head)
            c.recv(size - 16, socket.MSG_WAITALL)
            c.sendall(self.answer(op, seq))

    def __exit__(self, *exc):
        super().__exit__(*exc)
        for fd in self.kept:
            os.close(fd)


class Checkpoint(CommandTest):
    def test_a_worker_that_does_not_let_go(self):
        path = os.path.join(self.dir, "s")
        for reply, says in (({"error": {"what": "it was given up", "why": "the workers took too long"}}, "the workers took too long"),
                            ({"checkpoint": {"id": "00000001", "state": "running", "bytes": 5}}, "wrote more than came")):
            for how in ((), ("--stop",)):
                with self.subTest(says=says, how=how), Holding(path, reply) as fake:
                    self.refused(1, says, "checkpoint", "--quiet", "1", os.path.join(self.dir, "a.ckpt"), *how, address="unix:" + path)
                    self.assertEqual(len(fake.kept), 1)
                os.unlink(path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
