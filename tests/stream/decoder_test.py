#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two readers and two writers of docs/migration-stream.md against each other: what one writes the other reads to the same end, and
what breaks a promise of the document both refuse, the project's reader in one sentence."""

import os
import random
import subprocess
import unittest

from decoder import Builder, Decoder, Refused
from xxh3 import xxh3

TOOL = os.environ["STREAM_TOOL"]


def make(packing):
    return subprocess.run([TOOL, "make", packing], stdout=subprocess.PIPE, check=True, timeout=60).stdout


def dump(stream):
    p = subprocess.run([TOOL, "dump"], input=stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stdout.decode().splitlines(), p.stderr.decode()


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def begun(**announced):
    return Builder().announce(**announced)


def with_memory(size=3 * 4096 + 5):
    return begun().memory(7, size).round()


class BothWays(unittest.TestCase):
    def refused(self, stream, *words):
        """By both; the sentence of the project's reader says these words."""
        with self.assertRaises(Refused):
            Decoder(stream).decode()
        code, lines, errors = dump(stream)
        self.assertEqual((code, errors), (1, ""), lines)
        self.assertTrue(lines[-1].startswith("refused: "), lines)
        self.assertFalse([line for line in lines if line.startswith(("contents", "commit"))])
        for word in words:
            self.assertIn(word, lines[-1])

    def taken(self, stream):
        code, lines, errors = dump(stream)
        self.assertEqual((code, errors), (0, ""), lines)
        self.assertEqual(lines, Decoder(stream).decode())
        return lines

    def test_hash_is_the_published_one(self):
        self.assertEqual(xxh3(b""), (0x6001C324468D497F, 0x99AA06D3014798D8))

    def test_what_the_writer_writes(self):
        for packing in "raw", "zstd":
            stream = make(packing)
            lines = self.taken(stream)
            self.assertEqual(sum(line.startswith("entry ") for line in lines), 12)
            self.assertEqual(sum(line.startswith("round ") for line in lines), 2)

    def test_what_the_reader_reads(self):
        b = Builder(page_bytes=65536, purpose=2).announce(memory=1 << 30)
        b.table("tenant", b.entry(1, parts=[(1, bytes(24)), (3, b"blue")]))
        b.table("objects", b.entry(1 << 32, 3), b.entry(2 << 32, 4, [1 << 32, 0], [(2, b""), (2, b"odd"), (5000, noise(100))]))
        b.table("objects", b.entry(2 << 32, 4, [1 << 32]))  # instead of the other
        b.memory(1, 1 << 20, 2 << 32).memory(2, 0).memory(3, 70000).memory(4, 1 << 20, flags=1)
        b.round(1, 1)
        b.pages(1, (0, 4, None), (8, 1, noise(65536)), (4, 4, noise(4 << 16)), size=65536)
        b.pages(1, (9, 7, b"a" * (7 << 16)), size=65536, packed=True)
        b.pages(3, (0, 2, noise(70000)), size=65536)
        b.gone(3, 2).memory(3, 5)
        b.section("later", b"what nobody knows yet", flags=1, version=9)
        b.round(2, 2)
        b.pages(3, (0, 1, b"abcde"), size=65536)
        b.pages(1, (2, 1, noise(65536, 2)), size=65536)
        b.table("commands", b.entry(1, 40, [2 << 32], [(1, bytes(32)), (33, bytes(8))]))
        lines = self.taken(b.commit())
        self.assertEqual([line.split()[1] for line in lines if line.startswith("contents")], ["1", "2", "3", "4"])

    def test_cut(self):
        stream = make("zstd")
        for n in sorted(random.Random(3).sample(range(len(stream)), 60)):
            self.refused(stream[:n])
        self.refused(stream + b"\0", "follows")

    def test_altered(self):
        stream = make("zstd")
        for at in random.Random(4).sample(range(8 * len(stream)), 60):
            altered = bytearray(stream)
            altered[at // 8] ^= 1 << at % 8
            self.refused(bytes(altered))

    def test_newer(self):
        self.refused(Builder(version=2).announce().commit(), "version 2", "version 1")
        self.refused(begun().section("objects", version=3).commit(), "'objects'", "version 3", "version 1")
        self.refused(begun().section("later").commit(), "'later'", "does not know")

    def test_order(self):
        self.refused(Builder().memory(1, 5).commit(), "before the announcement")
        self.refused(begun().section("round", number=9).commit(), "number 9")
        self.refused(begun().round(2).commit(), "'round'")
        self.refused(begun().round(1, 2).round(2, 2).commit(), "follows the last")
        self.refused(begun().memory(7, 5).pages(7, (0, 1, b"abcde")).round().commit(), "before a round")
        self.refused(begun().round().pages(7, (0, 1, None)).commit(), "has not come")
        self.refused(begun().gone(7, 1).commit(), "never came")

    def test_pages(self):
        whole = (0, 4, noise(3 * 4096 + 5))
        self.taken(with_memory().pages(7, whole).commit())
        self.taken(with_memory().pages(7, (0, 4, None)).commit())
        self.refused(with_memory().commit(), "4 of 4 pages", "never came")
        self.refused(with_memory().pages(7, (0, 3, noise(3 * 4096))).commit(), "1 of 4 pages")
        self.refused(with_memory().pages(7, (1, 4, None)).commit(), "run 0")
        self.refused(with_memory().pages(7, (0, 0, None), (0, 4, None)).commit(), "run 0")
        self.refused(with_memory().pages(7, (2 ** 64 - 1, 2, None)).commit(), "run 0")
        self.refused(with_memory().pages(7, whole).pages(7, (1, 1, None)).commit(), "twice")
        self.refused(with_memory().pages(7, (0, 4, None), n_hashes=1).commit())
        self.refused(with_memory().pages(7, (0, 4, None), bulk=b"x").commit(), "lengths")
        self.refused(with_memory().pages(7, (0, 4, noise(3 * 4096 + 5)), bulk=noise(3 * 4096 + 5, 2)).commit(), "page 0", "damaged")
        self.refused(with_memory(1 << 20).pages(7, (0, 256, bytes(9) + noise(1 << 20)[9:]), packed=True).commit(), "lengths")
        self.refused(with_memory().pages(7, (0, 4, b"a" * 12293), packed=True, bulk=b"no zstd frame").commit(), "unpacked")

    def test_more_than_announced(self):
        self.refused(begun(memory=4096).memory(7, 4097).commit(), "more than was announced")
        self.refused(begun(memories=1).memory(7, 1).memory(8, 1).commit(), "more than was announced")
        self.refused(begun(rounds=0).round().commit(), "more than was announced")
        b = begun(objects=1)
        self.refused(b.table("objects", b.entry(1), b.entry(2)).commit(), "announced")
        b = begun(entries=32)
        self.refused(b.table("objects", b.entry(1, parts=[(2, b"x")])).commit(), "announced")

    def test_entries(self):
        for body in (b"x" * 31, b"\1" + bytes(31), Builder().entry(1)[:-8] + b"\x28" + bytes(7),
                     Builder().entry(1, parts=[(2, b"x")])[:-1] + b"x", Builder().entry(0), Builder().entry(1, refs=[9])):
            self.refused(begun().section("objects", body).commit(), "'objects'")
        b = begun()
        self.refused(b.table("objects", b.entry(1, 3), b.entry(1, 4)).commit(), "something else")

    def test_commit(self):
        for wrong in ({"n": 0}, {"at": 1}, {"chain": 1}, {"zero": 1}):
            self.refused(begun().commit(**wrong), "'commit'")
        self.refused(begun().memory(7, 0, of=5).commit(), "never came")
        self.refused(begun().round().out, "before its commit")

    def test_limits_of_the_loading_side(self):
        """What is allowed is the project's own; the document's reader has none."""
        code, lines, _ = dump(begun(memory=1 << 40).commit())
        self.assertEqual(code, 1)
        self.assertIn("1099511627776 bytes of memory are announced, and 1073741824 are allowed", lines[-1])


if __name__ == "__main__":
    unittest.main()
