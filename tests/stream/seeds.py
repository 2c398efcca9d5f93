#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of tests/fuzz/vgpu_stream_fuzz.c and far_session_fuzz.c anew, after a change of docs/migration-stream.md.

    tests/stream/seeds.py
"""

import os
import struct

from decoder import Builder

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus")
NAMES = ("announce", "tenant", "devices", "objects", "events", "calls", "commands", "maps", "session", "memory", "gone", "round",
         "pages", "commit", "later", "stream")


class Seed(Builder):
    """Sections as the target takes them: it puts in the checksums."""

    def __init__(self):
        super().__init__()
        self.out = bytearray(b"s")

    def section(self, name, body=b"", bulk=b"", version=1, flags=0, number=None):
        if name != "stream":
            sizes = struct.pack("<HH", len(body), len(bulk)) if name == "pages" else struct.pack("<H", len(body))
            self.out += bytes([NAMES.index(name), flags | version - 1 << 1]) + sizes + body + bulk
        self.number += 1
        return self


def begun(**announced):
    return Seed().announce(memory=1 << 16, entries=1 << 14, **announced)


def write(target, seeds):
    folder = os.path.join(CORPUS, target)
    os.makedirs(folder, exist_ok=True)
    for name, seed in seeds.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(seed)


def stood(held=0, areas=0, said=0, first=0, acknowledged=0):
    """The first frame, as the target makes it of this."""
    return struct.pack("<BHQBBB", held | areas << 2 | said << 4, 0, 0, 0, first, acknowledged)


def frame(op, payload, seq=0):
    return struct.pack("<BH", op - 80 | seq << 6, len(payload)) + payload


def record(kind, part, at, payload=b""):
    return struct.pack("<IHHQ", len(payload), kind, part, at) + payload


def area(at, data, segment=0):
    return frame(82, struct.pack("<IIQ", segment, 0, at) + data)


def sessions():
    reply = record(16, 0, 3, b"an answer")
    message = struct.pack("<QIHHIi", 1, 24, 1, 0, 5, 0) + bytes(8)
    bulk = struct.pack("<IHHQ", 4096, 3, 0, 4096)
    return {
        "nothing-under-way": b"\0" + stood(),
        "one-of-each": b"\0" + stood(1, 1, 1) + frame(81, message) + area(4096, bytes(range(200))) + frame(83, reply),
        "bulk-data": b"\0" + stood(areas=1, said=1) + area(4096, bytes(4096)) + frame(83, bulk, 1),
        "taken-in-part": b"\4" + stood(said=2, acknowledged=4) + frame(83, reply) + frame(83, record(17, 2, 7), 1),
        "half-a-record": b"\0" + stood(said=2) + frame(83, reply[:10]) + frame(83, reply[10:]),
        "acknowledged-too-much": b"\0" + stood(said=1, acknowledged=200) + frame(83, reply),
        "an-area-outside": b"\0" + stood(areas=1) + area((1 << 20) - 100, bytes(200)),
        "of-no-segment": b"\0" + stood(areas=1) + area(0, bytes(200), segment=7),
        "bulk-data-outside": b"\0" + stood(said=1) + frame(83, struct.pack("<IHHQ", 4096, 2, 0, (1 << 20) - 1), 1),
        "out-of-order": b"\0" + stood(1, 1, 1) + frame(83, reply) + area(0, b"x") + frame(81, message),
        "a-message-too-short": b"\0" + stood(1) + frame(81, message[:12]),
        "not-the-first": b"\0" + frame(82, bytes(17), 3),
    }


def main():
    data = bytes(range(256)) * 16
    b = begun()
    seeds = {
        "nothing": begun().commit(),
        "objects": begun().table("objects", b.entry(1, 3), b.entry(2, 4, [1, 0], [(2, b"a request"), (2, b"")]), b.entry(1, 3))
        .table("commands", b.entry(1, 40, [2], [(1, bytes(32)), (33, bytes(4))])).gone(2, 1).commit(),
        "pages": begun().memory(7, 4 * 4096 + 9).round(1, 1).pages(7, (0, 2, None), (2, 2, data * 2), (4, 1, b"the tail."))
        .round(2, 2).pages(7, (1, 1, data)).commit(),
        "pages-missing": begun().memory(7, 4 * 4096).round(1, 1).pages(7, (0, 3, None)).commit(),
        "packed": begun().memory(7, 4 * 4096).round().pages(7, (0, 3, data * 3), (3, 1, None), packed=True).commit(),
        "packed-to-two-runs": begun().memory(7, 4 * 4096).round().pages(7, (2, 2, data * 2), (0, 2, data * 2), packed=True).commit(),
        "kept-and-gone": begun().memory(7, 1 << 15, flags=1).gone(7, 2).memory(7, 5).round().pages(7, (0, 1, b"again")).commit(),
        "optional": begun().section("later", b"new", flags=1, version=3).section("later", b"new").commit(),
        "newer-section": begun().section("objects", version=2).commit(),
        "raw-stream": b"r" + Builder().announce(memory=1 << 16, entries=1 << 14).memory(1, 3).round()
        .pages(1, (0, 1, b"abc")).commit(),
    }
    write("vgpu_stream", seeds)
    write("far_session", sessions())


if __name__ == "__main__":
    main()
