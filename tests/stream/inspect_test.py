#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry inspect: what it shows of a checkpoint, and the one sentence for a file that is none."""

import json
import os
import re
import subprocess
import tempfile
import unittest

from decoder import Builder

GANTRY, TOOL = os.environ["GANTRY"], os.environ["STREAM_TOOL"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Inspect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.ckpt")

    def gantry(self, *args):
        p = subprocess.run([GANTRY, "inspect", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                           stdin=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C.UTF-8"))
        return p.returncode, p.stdout, p.stderr

    def write(self, stream):
        with open(self.path, "wb") as f:
            f.write(stream)
        return self.path

    def sample(self, packing="zstd"):
        return subprocess.run([TOOL, "make", packing], stdout=subprocess.PIPE, check=True, timeout=60).stdout

    def shown(self, stream):
        code, out, errors = self.gantry("--json", self.write(stream))
        self.assertEqual((code, errors), (0, ""))
        reply = json.loads(out)
        self.assertEqual(reply["version"], 1)
        return reply["checkpoint"]

    def refused(self, path, *words, code=1):
        status, out, errors = self.gantry(path)
        self.assertEqual((status, out, errors.count("\n")), (code, "", 1), errors)
        for word in words:
            self.assertIn(word, errors)
        status, out, errors = self.gantry("--json", path)
        self.assertEqual((status, errors.count("\n")), (code, 1))
        self.assertEqual(set(json.loads(out)["error"]), {"what", "why", "fix"})

    def test_json(self):
        stream = self.sample()
        c = self.shown(stream)
        self.assertEqual((c["format"], c["api"], c["creator"], c["file_bytes"]), (1, "opencl", "gantry test", len(stream)))
        self.assertEqual(c["vgpu"], {"id": "1a2b3c4d", "name": "default", "weight": 100, "memory_limit_bytes": 1 << 30,
                                     "memory_bytes": 82020})
        self.assertEqual([(d["name"], d["type"], d["facts"]) for d in c["devices"]], [("a device", "cpu", 1)])
        self.assertEqual([(o["name"], o["count"]) for o in c["objects"]],
                         [(name, 1) for name in ("context", "queue", "mem", "program", "kernel")])
        [m] = c["memories"]
        # Counting in pages 0, 1 and 3 to 7, noise in 16, then 9, 10 and 20 anew.
        self.assertEqual((m["bytes"], m["pages"], m["zero_pages"], m["kept"]), (82020, 21, 21 - 7 - 1 - 3, False))
        self.assertEqual(c["pages"]["sent"], 25)
        self.assertLess(m["packed_bytes"], m["sent_bytes"])
        self.assertEqual((c["rounds"], c["events"], c["callbacks"], c["maps"]), (2, 2, 1, 1))
        self.assertEqual([(x["event"], x["work_groups_done"]) for x in c["commands"]], [(8, 3)])

    def test_text(self):
        code, out, errors = self.gantry(self.write(self.sample("raw")))
        self.assertEqual((code, errors), (0, ""))
        for words in ("format 1, a move of opencl", "vGPU      1a2b3c4d of tenant default, weight 100", "21 pages of 4096 bytes, 10 of",
                      "pending   1 command, 2 events, 1 callback, 1 map"):
            self.assertIn(words, out)
        self.assertTrue(re.search(r"^program +1 ", out, re.M), out)

    def test_what_came_again_or_is_gone(self):
        b = Builder().announce()
        b.table("objects", b.entry(1, 3), b.entry(2, 77), b.entry(1, 3, (), [(2, b"more")])).gone(2, 1)
        b.memory(5, 1 << 15, flags=1).gone(5, 2).memory(5, 4096).round().pages(5, (0, 1, None))
        c = self.shown(b.commit())
        self.assertEqual([(o["kind"], o["count"], o["bytes"]) for o in c["objects"]], [(3, 1, 56)])
        self.assertEqual([(m["bytes"], m["zero_pages"]) for m in c["memories"]], [(4096, 1)])
        self.assertNotIn("vgpu", c)

    def test_a_strangers_words(self):
        b = Builder().announce()
        b.table("tenant", b.entry(1, parts=[(1, bytes(24)), (3, b"\x1b[2Jhello\n\xff" + b"x" * 500)]))
        stream = b.commit()
        self.assertEqual(self.shown(stream)["vgpu"]["name"][:11], "?[2Jhello??")
        code, out, _ = self.gantry(self.path)
        self.assertEqual((code, "\x1b" in out), (0, False))

    def test_refusals(self):
        stream = self.sample()
        at = stream.index(b"objects\0")
        altered = bytearray(stream)
        altered[at + 60] ^= 4
        self.refused(self.write(altered), self.path, "section 'objects' at byte {}".format(at), "checksum")
        self.refused(self.write(stream[:-1]), "ends in section 'commit'")
        self.refused(self.write(stream + b"x"), "something follows")
        self.refused(self.write(Builder(version=2).announce().commit()), "version 2", "version 1")
        self.refused(self.write(b""), "no stream of a vGPU")
        self.refused(self.write(b"#!/bin/sh\n" * 20), "no stream of a vGPU")
        self.refused(self.write(Builder().announce(memory=1 << 60).commit()), "announced")
        self.refused(self.path + ".not", "No such file")
        self.refused(os.path.dirname(self.path), "not a regular file")
        os.mkfifo(self.path + ".fifo")
        self.refused(self.path + ".fifo", "not a regular file")

    def test_usage(self):
        self.assertEqual(self.gantry()[0], 2)
        self.assertEqual(self.gantry("a", "b")[0], 2)

    def test_kinds_are_those_of_the_description(self):
        with open(os.path.join(ROOT, "api", "opencl.api"), encoding="utf-8") as f:
            kinds = re.search(r"^handles (.*)$", f.read(), re.M).group(1).split()
        b = Builder().announce()
        b.table("objects", *(b.entry(i, i) for i in range(1, len(kinds) + 2)))
        self.assertEqual([o["name"] for o in self.shown(b.commit())["objects"]], kinds + ["kind {}".format(len(kinds) + 1)])

    def test_calls_are_those_of_the_description(self):
        """Commands that the description does not name as OpenCL does are those of a call that its guest's code answers."""
        others = {"Finish": "clFinish", "Launch": "clEnqueueNDRangeKernel", "SvmCopy": "clEnqueueSVMMemcpy", "SvmFill": "clEnqueueSVMMemFill",
                  "SvmMap": "clEnqueueSVMMap", "SvmUnmap": "clEnqueueSVMUnmap", "SvmMigrate": "clEnqueueSVMMigrateMem",
                  "EnqueueCommandBuffer": "clEnqueueCommandBufferKHR"}
        with open(os.path.join(ROOT, "api", "opencl.api"), encoding="utf-8") as f:
            found = re.findall(r"^(?:call|message) (\w+) (\d+) (?:.* )?command\b", f.read(), re.M)
        calls = {int(number): others.get(name, name) for name, number in found}
        self.assertGreater(len(calls), 20)
        b = Builder().announce()
        b.table("objects", b.entry(1, 4))
        b.table("commands", *(b.entry(i, op, (1,), [(1, b"\xff" * 4 + bytes(28))]) for i, op in enumerate([*calls, 999, 999, 181], 1)))
        shown = self.shown(b.commit())
        self.assertEqual([c["call"] for c in shown["commands"]], [*calls.values(), "request-999", "request-999", "clEnqueueNDRangeKernel"])
        self.assertEqual(shown["pending"][:3], [{"call": "clEnqueueNDRangeKernel", "op": 181, "count": 2}, {"call": "request-999", "op": 999, "count": 2},
                                                {"call": "clFinish", "op": 38, "count": 1}])
        _, out, _ = self.gantry(self.path)
        self.assertRegex(out, r"PENDING +COUNT\nclEnqueueNDRangeKernel +2\n")
        self.assertRegex(out, r"COMMAND  CALL +QUEUE +EVENT\n +1  clFinish +0x1 +-\n")


if __name__ == "__main__":
    unittest.main()
