#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of tests/fuzz/vgpu_stream_fuzz.c anew, after a change of docs/migration-stream.md.

    tests/stream/seeds.py
"""

import os
import struct

from decoder import Builder

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus/vgpu_stream")
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


def main():
    os.makedirs(FOLDER, exist_ok=True)
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
    for name, seed in seeds.items():
        with open(os.path.join(FOLDER, name), "wb") as f:
            f.write(seed)


if __name__ == "__main__":
    main()
