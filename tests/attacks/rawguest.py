# SPDX-License-Identifier: Apache-2.0
"""A program that speaks to its vGPU by hand (docs/link.md, docs/ring.md, docs/wire.md), well or badly.

    with RawGuest(gantry.socket) as g:
        g.send(message("Context").u64(handle(2)).null().inline(words(handle(1))).u32(0, 1, 0, 0).bytes())
        result, payload = g.answer()
"""

import ctypes
import mmap
import os
import re
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
NOWHERE = 0xffffffff
NO_EVENT = 0xffffffff
SYS_FUTEX, FUTEX_WAKE = 202, 1
FOLDERS = 3


class Wrong(Exception):
    pass


def ops():
    """{name: op}, of the calls that travel and those that don't."""
    with open(os.path.join(HERE, "../../api/numbers.lock"), encoding="ascii") as f:
        return {m.group(1): int(m.group(2)) for m in re.finditer(r"^(\w+) (\d+)$", f.read(), re.M)}


OPS = ops()
KINDS = {name: i for i, name in enumerate(("platform", "device", "context", "queue", "mem", "sampler", "program", "kernel", "event",
                                           "svm"), 1)}


def handle(index, generation=1):
    return generation << 32 | index


PLATFORM, DEVICE = handle(0), handle(1)


def words(*values):
    return struct.pack("<%dQ" % len(values), *values)


class message:
    """A message, field by field; what is given inline is put behind the fields, and a span where the field is."""

    def __init__(self, op):
        self.op = OPS[op] if isinstance(op, str) else op
        self.fields = []

    def u64(self, *values):
        self.fields += [struct.pack("<Q", v & (1 << 64) - 1) for v in values]
        return self

    def u32(self, *values):
        self.fields += [struct.pack("<I", v & 0xffffffff) for v in values]
        return self

    def span(self, segment, n_bytes, offset):
        self.fields.append(struct.pack("<IIQ", segment, n_bytes, offset))
        return self

    def null(self):
        return self.span(NOWHERE, 0, 0)

    def inline(self, data):
        self.fields.append((data,))
        return self

    def head(self, queue, waits=None, event=NO_EVENT):
        """How a command begins."""
        self.u64(queue)
        self.inline(struct.pack("<%dI" % len(waits), *waits)) if waits else self.null()
        return self.u32(event, 0)

    def bytes(self, flags=0, reply=1 << 8, assumed=0, size=None):
        end = 16 + sum(16 if isinstance(f, tuple) else len(f) for f in self.fields)
        fixed, tail = b"", b""
        for f in self.fields:
            if isinstance(f, tuple):
                tail += bytes(-(end + len(tail)) % 8)
                fixed += struct.pack("<IIQ", 0, len(f[0]), end + len(tail))
                tail += f[0]
            else:
                fixed += f
        body = fixed + tail
        return struct.pack("<IHHIi", 16 + len(body) if size is None else size, self.op, flags, reply, assumed) + body


# What most attacks begin with. Handles: 2 a context, 3 a queue, 4 a buffer, 5 a program, 6 a kernel.
def context(id_=handle(2)):
    return message("Context").u64(id_).null().inline(words(DEVICE)).u32(0, 1, 0, 0).bytes()


def queue(id_=handle(3), in_context=handle(2)):
    return message("clCreateCommandQueue").u64(id_, in_context, DEVICE, 0).bytes()


def buffer(id_=handle(4), in_context=handle(2), size=4096, flags=1, contents=None, n_contents=0):
    m = message("Buffer").u64(id_, in_context).null().u64(flags, size)
    m.span(contents[0], 0, contents[1]) if contents else m.span(NOWHERE, 0, 0)
    return m.u64(n_contents, 0).u32(1 if flags & 0x28 else 0, 0).bytes()


def read_buffer(id_=handle(4), offset=0, size=4096, to=0, event=1, on=handle(3), waits=None, segment=1):
    return message("clEnqueueReadBuffer").head(on, waits, event).u64(id_, offset, size).span(segment, 0, to).bytes(reply=0)


def write_buffer(id_=handle(4), offset=0, size=4096, source=0, event=1, on=handle(3), waits=None, segment=1):
    return message("clEnqueueWriteBuffer").head(on, waits, event).u64(id_, offset, size).span(segment, 0, source).bytes(reply=0)


def question():
    """Something that is answered: how long is the device's type?"""
    return message("clGetDeviceInfo").u64(DEVICE, 0).null().span(0, 8, 0).u32(0x1000, 0).bytes()


def user_event(index):
    return message("UserEvent").u32(index, 0).bytes(reply=0)


def destroy(id_, kind):
    return message("DestroyObject").u64(id_).u32(KINDS[kind], 0).bytes(reply=0)


class RawGuest:
    def __init__(self, socket_path, **attach):
        self.client = gantryd_harness.Client(socket_path)
        reply = self.client.attach(**attach)
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
