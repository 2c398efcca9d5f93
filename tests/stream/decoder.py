# SPDX-License-Identifier: Apache-2.0
"""The stream of a vGPU once more, from docs/migration-stream.md alone: a reader that checks everything the document promises, and a
writer that can be told to break any of it. Shares no code and no header with src/stream."""

import ctypes
import struct

from xxh3 import xxh3

MAGIC = bytes([0x89, 0x47, 0x56, 0x47, 0x50, 0x55, 0x0D, 0x0A])
TABLES = ("tenant", "devices", "objects", "events", "calls", "commands", "maps", "session")
STATES = {"tenant": 24, "devices": 32, "events": 40, "calls": 8, "commands": 32, "maps": 32}
LINK = 6   # of `session`'s kinds


class Refused(Exception):
    pass


def check(condition, why):
    if not condition:
        raise Refused(why)


def checksum(b):
    return xxh3(b)[0]


def hash_bytes(b):
    return struct.pack("<QQ", *xxh3(b))


class Zstd:
    def __init__(self):
        self.lib = ctypes.CDLL("libzstd.so.1")
        for name in ("ZSTD_compress", "ZSTD_decompress", "ZSTD_compressBound"):
            getattr(self.lib, name).restype = ctypes.c_size_t

    def pack(self, b):
        room = ctypes.create_string_buffer(self.lib.ZSTD_compressBound(ctypes.c_size_t(len(b))))
        n = self.lib.ZSTD_compress(room, ctypes.c_size_t(len(room)), b, ctypes.c_size_t(len(b)), 3)
        return room.raw[:n]

    def unpack(self, b, n):
        room = ctypes.create_string_buffer(n)
        got = self.lib.ZSTD_decompress(room, ctypes.c_size_t(n), b, ctypes.c_size_t(len(b)))
        check(got == n, "zstd")
        return room.raw


ZSTD = Zstd()


class Bytes:
    """Takes fields off the front; all of it must be taken."""

    def __init__(self, b):
        self.b, self.at = b, 0

    def bytes(self, n):
        check(self.at + n <= len(self.b), "too short")
        self.at += n
        return self.b[self.at - n:self.at]

    def take(self, fmt):
        found = struct.unpack("<" + fmt, self.bytes(struct.calcsize("<" + fmt)))
        return found if len(found) > 1 else found[0]

    def left(self):
        return len(self.b) - self.at

    def end(self):
        check(self.left() == 0, "too long")


def text(b):
    n = b.find(b"\0")
    check(n >= 0 and not b[n:].strip(b"\0") and all(32 <= c < 127 for c in b[:n]), "text")
    return b[:n].decode()


class Decoder:
    """Reads all of a stream; `lines` is what it holds, as `stream-tool dump` prints it; `commands` what is said of each pending one; `frames` where a
    session over tcp stood."""

    def __init__(self, b):
        self.b = Bytes(b)
        self.lines, self.objects, self.memories, self.commands = [], {}, {}, []
        self.frames = []
        self.announced, self.entries_bytes = None, 0
        self.round = self.round_kind = 0
        self.chain = self.number = 0

    def decode(self):
        b = self.b
        check(b.bytes(8) == MAGIC, "magic")
        version, zero = b.take("II")
        check(b.take("Q") == checksum(b.b[:16]), "preamble")
        check((version, zero) == (1, 0), "version")
        while self.section() != "commit":
            pass
        b.end()
        return self.lines

    def section(self):
        b, start = self.b, self.b.at
        head = b.bytes(40)
        name, version, flags, number, n_body, n_bulk = struct.unpack("<16sHHIQQ", head)
        head_sum = b.take("Q")
        check(head_sum == checksum(head), "head")
        name = name.rstrip(b"\0").decode()
        check(name.isalpha() and name.islower() and len(name) < 16 and number == self.number and flags in (0, 1), "head's fields")
        body = b.bytes(n_body)
        body_sum = b.take("Q")
        check(body_sum == checksum(body), "body")
        known = name in TABLES or hasattr(self, "on_" + name)
        check(known or flags == 1 and n_bulk == 0, "unknown")
        if known:
            check(version == 1 and flags == 0, "version")
            check((name == "stream") == (number == 0), "order")
            check(name in ("stream", "announce") or self.announced, "not announced")
            self.start, self.bulk = start, b.bytes(n_bulk)
            check(name == "pages" or n_bulk == 0, "bulk")
            if name in TABLES:
                self.table(name, body)
            else:
                body = Bytes(body)
                getattr(self, "on_" + name)(body)
                body.end()
        self.chain = checksum(struct.pack("<QQQ", self.chain, head_sum, body_sum))
        self.number += 1
        return name

    def say(self, *words):
        self.lines.append(" ".join(str(word) for word in words))

    def on_stream(self, b):
        purpose, self.page_bytes, _, _ = b.take("IIQQ")
        check(purpose in (1, 2) and self.page_bytes in (4096, 8192, 16384, 32768, 65536), "stream")
        self.say("stream", purpose, self.page_bytes, text(b.bytes(16)) + "|" + text(b.bytes(32)))

    def on_announce(self, b):
        *self.announced, zero = b.take("QQIIII")
        check(zero == 0, "announce")
        self.say("announce", *self.announced)

    def table(self, name, body):
        self.entries_bytes += len(body)
        check(self.entries_bytes <= self.announced[1], "more entries than announced")
        b = Bytes(body)
        while b.left():
            start = b.at
            ident, kind, n_refs, n_parts, zero, n = b.take("QIIIIQ")
            check(zero == 0 and n % 8 == 0, "entry")
            words = ["entry", name, ident, kind]
            for _ in range(n_refs):
                ref = b.take("Q")
                check(ref == 0 or ref in self.objects, "reference")
                words += ["ref", ref]
            for _ in range(n_parts):
                part, zero, size = b.take("IIQ")
                content = b.bytes(size)
                check(zero == 0 and not b.bytes(-size % 8).strip(b"\0"), "part")
                if part == 1 and name in STATES:
                    check(size == STATES[name], "state")
                if (name, kind) == ("session", LINK):
                    self.frame(ident, part, content)
                if part == 1 and name == "commands":
                    event, zero, done, submit_ns, start_ns = struct.unpack("<IIQQQ", content)
                    self.commands.append({"id": ident, "event": event, "done": done, "submit_ns": submit_ns, "start_ns": start_ns})
                words += ["part", part, size, "{:016x}".format(checksum(content))]
            check(b.at - start == n, "entry's length")
            if name == "objects":
                check(ident != 0 and self.objects.get(ident, kind) == kind, "object")
                self.objects[ident] = kind
                check(len(self.objects) <= self.announced[2], "more objects than announced")
            self.say(*words)

    def frame(self, ident, part, content):
        if part == 1:
            check(ident == len(self.frames) and len(content) == 8, "frame")
            self.frames.append([*struct.unpack("<II", content), None])
        else:
            check(part == 1024 and ident == len(self.frames) - 1 and self.frames[ident][2] is None, "frame's payload")
            self.frames[ident][2] = content

    def on_memory(self, b):
        while b.left():
            ident, of, size, flags, zero = b.take("QQQII")
            check(ident and ident not in self.memories and flags in (0, 1) and zero == 0, "memory")
            pages = -(-size // self.page_bytes)
            self.memories[ident] = {"object": of, "bytes": bytearray(size), "pages": pages, "in_round": set(),
                                    "missing": set() if flags else set(range(pages))}
            check(len(self.memories) <= self.announced[3], "more memories than announced")
            check(sum(len(m["bytes"]) for m in self.memories.values()) <= self.announced[0], "more memory than announced")
            self.say("memory", ident, of, size, flags)

    def on_gone(self, b):
        while b.left():
            ident, what, zero = b.take("QII")
            check(what in (1, 2) and zero == 0 and ident in (self.objects, self.memories)[what - 1], "gone")
            del (self.objects, self.memories)[what - 1][ident]
            self.say("gone", ident, what)

    def on_round(self, b):
        number, kind, _ = b.take("IIQ")
        check(number == self.round + 1 <= self.announced[4] and kind in (1, 2) and self.round_kind != 2, "round")
        self.round, self.round_kind = number, kind
        for m in self.memories.values():
            m["in_round"] = set()
        self.say("round", number, kind)

    def on_pages(self, b):
        ident, n_runs, n_hashes, packing, zero, packed_sum = b.take("QIIIIQ")
        check(ident in self.memories and self.round and 1 <= n_runs <= 256 and packing in (0, 1) and zero == 0, "pages")
        memory, size = self.memories[ident], self.page_bytes
        runs = [b.take("QII") for _ in range(n_runs)]
        hashes = [b.bytes(16) for _ in range(n_hashes)]
        pages = []
        for first, n, zeros in runs:
            check(n and zeros in (0, 1) and first + n <= memory["pages"], "run")
            check(memory["in_round"].isdisjoint(range(first, first + n)), "a page twice")
            memory["in_round"].update(range(first, first + n))
            memory["missing"] -= set(range(first, first + n))
            pages += [(page, zeros) for page in range(first, first + n)]
        lengths = [min(size, len(memory["bytes"]) - page * size) for page, _ in pages]
        total = sum(n for n, (_, zeros) in zip(lengths, pages) if not zeros)
        check(total <= 1 << 20 and sum(not zeros for _, zeros in pages) == n_hashes, "lengths")
        bulk = self.bulk
        if packing:
            check(packed_sum == checksum(bulk) and len(bulk) < total, "packed")
            bulk = ZSTD.unpack(bulk, total)
        else:
            check(packed_sum == 0, "packed checksum")
        check(len(bulk) == total, "bulk")
        at = 0
        for (page, zeros), n in zip(pages, lengths):
            content = bytes(n) if zeros else bulk[at:at + n]
            if not zeros:
                at += n
                check(hash_bytes(content) == hashes.pop(0), "page")
            memory["bytes"][page * size:page * size + n] = content
        self.say("pages", ident, *(word for run in runs for word in ("run", *run)))

    def on_commit(self, b):
        n_sections, stream_bytes, chain, zero = b.take("QQQQ")
        check((n_sections, stream_bytes, chain, zero) == (self.number, self.start, self.chain, 0), "commit")
        for ident, m in sorted(self.memories.items()):
            check(not m["missing"], "missing pages")
            check(m["object"] == 0 or m["object"] in self.objects, "memory's object")
            low, high = xxh3(bytes(m["bytes"]))
            self.say("contents", ident, len(m["bytes"]), "{:016x}{:016x}".format(high, low))
        self.say("commit", self.b.at)


class Builder:
    """Writes what it is told, right or wrong, with checksums that are right unless told otherwise."""

    def __init__(self, version=1, page_bytes=4096, api=b"opencl", purpose=1):
        self.out, self.chain, self.number = bytearray(), 0, 0
        head = MAGIC + struct.pack("<II", version, 0)
        self.out += head + struct.pack("<Q", checksum(head))
        self.section("stream", struct.pack("<IIQQ16s32s", purpose, page_bytes, 0, 0, api, b"decoder.py"))

    def section(self, name, body=b"", bulk=b"", version=1, flags=0, number=None):
        head = struct.pack("<16sHHIQQ", name.encode(), version, flags, self.number if number is None else number, len(body),
                           len(bulk))
        sums = checksum(head), checksum(body)
        self.out += head + struct.pack("<Q", sums[0]) + body + struct.pack("<Q", sums[1]) + bulk
        self.chain = checksum(struct.pack("<QQQ", self.chain, *sums))
        self.number += 1
        return self

    def announce(self, memory=1 << 20, entries=1 << 16, objects=100, memories=100, rounds=10):
        return self.section("announce", struct.pack("<QQIIII", memory, entries, objects, memories, rounds, 0))

    def entry(self, ident, kind=0, refs=(), parts=()):
        body = b"".join(struct.pack("<IIQ", part, 0, len(b)) + b + bytes(-len(b) % 8) for part, b in parts)
        body = struct.pack("<{}Q".format(len(refs)), *refs) + body
        return struct.pack("<QIIIIQ", ident, kind, len(refs), len(parts), 0, 32 + len(body)) + body

    def table(self, name, *entries):
        return self.section(name, b"".join(entries))

    def memory(self, ident, size, of=0, flags=0):
        return self.section("memory", struct.pack("<QQQII", ident, of, size, flags, 0))

    def gone(self, ident, what):
        return self.section("gone", struct.pack("<QII", ident, what, 0))

    def round(self, number=1, kind=2):
        return self.section("round", struct.pack("<IIQ", number, kind, 0))

    def pages(self, ident, *runs, packed=False, size=4096, bulk=None, n_hashes=None):
        """Runs: (first, n, contents or None)."""
        heads = b"".join(struct.pack("<QII", first, n, content is None) for first, n, content in runs)
        raw = b"".join(content or b"" for _, _, content in runs)
        hashes = b"".join(hash_bytes(content[at:at + size]) for _, _, content in runs if content
                          for at in range(0, len(content), size))
        data = bulk if bulk is not None else ZSTD.pack(raw) if packed else raw
        head = struct.pack("<QIIIIQ", ident, len(runs), len(hashes) // 16 if n_hashes is None else n_hashes, packed, 0,
                           checksum(data) if packed else 0)
        return self.section("pages", head + heads + hashes, data)

    def commit(self, **changes):
        what = dict(n=self.number, at=len(self.out), chain=self.chain, zero=0)
        what.update(changes)
        return bytes(self.section("commit", struct.pack("<QQQQ", what["n"], what["at"], what["chain"], what["zero"])).out)
