# SPDX-License-Identifier: Apache-2.0
"""A program that speaks to its vGPU by hand (docs/link.md, docs/ring.md), well or badly; wire.py makes the messages.

    with RawGuest(gantry.socket) as g:
        g.need(wire.context(), wire.queue())
        result, payload = g.ask(wire.question())
"""

import ctypes
import mmap
import os
import select
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../src/daemon"))

import gantryd_harness  # noqa: E402

PATIENCE = 30
HEADER, SLOTS, SLOT, PAYLOAD = 4096, 1024, 64, 56
REPLIES_AT = 86272
SYS_FUTEX, FUTEX_WAKE = 202, 1
FOLDERS = 3


class Wrong(Exception):
    pass


class RawGuest:
    def __init__(self, socket_path, asked=None, **attach):
        """asked: a client that has asked for its vGPU already."""
        self.client = asked or gantryd_harness.Client(socket_path)
        reply = asked.receive() if asked else self.client.attach(**attach)
        if not reply or reply.op != gantryd_harness.ATTACHED:
            raise Wrong("no vGPU: {}".format(reply.error() if reply else "the connection is closed"))
        self.id, _, ring_bytes, events_bytes, data_bytes, _ = struct.unpack("<IIQQQQ", reply.payload[:40])
        self.session, *rest = reply.fds
        self.ring, self.events, self.data = (mmap.mmap(fd, n) for fd, n in zip(rest, (ring_bytes, events_bytes, data_bytes)))
        for fd in rest:
            os.close(fd)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.words = (ctypes.c_uint32 * (ring_bytes // 4)).from_buffer(self.ring)  # struct writes a number in several pieces
        self.tail = 0
        self.token = 1 << 8

    def wake(self):
        if self.words[HEADER // 4]:
            self.words[HEADER // 4] = 0
            self.libc.syscall(SYS_FUTEX, ctypes.byref(self.words, HEADER), FUTEX_WAKE, 1, None, None, 0)

    def slot_at(self, position):
        return HEADER + 128 + position % SLOTS * SLOT

    def free(self, n):
        at = self.tail + n - 1
        return self.words[self.slot_at(at) // 4] == at & ~(SLOTS - 1) & 0xffffffff

    def send(self, data, n_bytes=None, published=1):
        """One message; waits for room, or for the vGPU's end (False)."""
        n = max(1, (len(data) + PAYLOAD - 1) // PAYLOAD)
        end = time.monotonic() + PATIENCE
        while not self.free(n):
            if self.ended(0.001):
                return False
            if time.monotonic() > end:
                raise Wrong("the ring stays full")
        for i in reversed(range(n)):
            at = self.slot_at(self.tail + i)
            piece = data[i * PAYLOAD:(i + 1) * PAYLOAD]
            self.ring[at + 8:at + 8 + len(piece)] = piece
            self.words[at // 4 + 1] = (len(data) if n_bytes is None else n_bytes) if i == 0 else 0
            self.words[at // 4] = ((self.tail + i) & ~(SLOTS - 1)) + published & 0xffffffff
        self.tail += n
        self.wake()
        return True

    def answer(self, token=1 << 8):
        """(result, payload) of the reply slot; None when the vGPU has ended instead."""
        at = REPLIES_AT + (token & 255) * 64
        end = time.monotonic() + PATIENCE
        while struct.unpack_from("<I", self.ring, at)[0] & ~255 != token & ~255:
            if self.ended(0.0005):
                return None
            if time.monotonic() > end:
                raise Wrong("no answer")
        result, n = struct.unpack_from("<iI", self.ring, at + 8)
        return result, self.ring[at + 16:at + 16 + n]

    def ask(self, data):
        """Sends with a token of its own, waits; the answer, or None at the vGPU's end."""
        self.token += 1 << 8
        data = data[:8] + struct.pack("<I", self.token) + data[12:]
        return self.answer(self.token) if self.send(data) else None

    def need(self, *messages):
        for m in messages:
            got = self.ask(m)
            if not got or got[0]:
                raise Wrong("an honest message was refused: {}".format(got))

    def event_over(self, index):
        """An event's error, waited for; None when the vGPU has ended instead."""
        end = time.monotonic() + PATIENCE
        while struct.unpack_from("<I", self.events, index * 64)[0] & 7:
            if self.ended(0.001):
                return None
            if time.monotonic() > end:
                raise Wrong("the event does not end")
        return struct.unpack_from("<i", self.events, index * 64 + 4)[0]

    def arm(self, index):
        struct.pack_into("<Ii", self.events, index * 64, 7, 0)

    def tell(self, data, fds=()):
        """Bytes and descriptors on the session's socket."""
        import array
        import socket
        s = socket.socket(fileno=os.dup(self.session))
        try:
            s.setblocking(False)
            s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        finally:
            s.close()

    def ended(self, seconds=PATIENCE):
        """Has the worker gone within these?"""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.session], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            try:
                if not os.read(self.session, 65536):
                    return True
            except ConnectionResetError:
                return True

    def close(self):
        if self.session >= 0:
            self.client.close()
            os.close(self.session)
            self.session = -1
            self.words = None
            for m in (self.ring, self.events, self.data):
                try:
                    m.close()
                except BufferError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
