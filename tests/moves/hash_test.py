#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Moves whose pages are hashed by the device, as where its memory is not the host's: what programs end with is what they end with
undisturbed, the stop reads no more than what has changed, and where a device cannot, pages are read and hashed by the processor.

    hash_test.py STAGE PROGRAM LESSER      STAGE: what make stage leaves; PROGRAM: busy; LESSER: PoCL with devices that have less
"""

import os
import sys

from moves_harness import BusyCase, TIMEOUT_S, gantry, telling, wait_until

BusyCase.stage, BusyCase.path, LESSER = (os.path.abspath(p) for p in sys.argv[1:4])
PAGE = 4096
# Of busy: three buffers have been given to kernels to write.
HASHED = 3 * (2 << 20) // PAGE
OWN_MEMORY = "1035=0"   # CL_DEVICE_HOST_UNIFIED_MEMORY
A_GPU = "1000=4"        # CL_DEVICE_TYPE
SHAPES = {"item": "a work-item a page", "group": "a work-group a page"}


class Hash(BusyCase):
    def daemon(self, name, **env):
        return super().daemon(name, env={"GANTRY_LOG": "debug", **env})

    def lesser(self, name, words, **env):
        vendors = os.path.join(self.work, name + "-vendors")
        os.mkdir(vendors)
        with open(os.path.join(vendors, "lesser.icd"), "w", encoding="utf-8") as f:
            f.write(LESSER + "\n")
        return self.daemon(name, OCL_ICD_VENDORS=vendors, LESSER=words, **env)

    def move(self, daemon, *how):
        status, said = gantry(daemon, "migrate", daemon.vgpus()[0]["id"], "local", *how)
        self.assertEqual(status, 0, said)
        return said["move"]

    def log_says(self, daemon, words):
        """A worker's line may be written a moment after the move."""
        self.assertTrue(wait_until(lambda: words in daemon.log(), TIMEOUT_S), daemon.log())

    def none_is_read(self, daemon, shape):
        program = self.start(daemon, "still")
        moved = self.move(daemon)
        self.assertEqual((moved["pages"]["hashed"], moved["pages"]["device"]), (HASHED, HASHED), moved)
        self.assertEqual((moved["pages"]["stop"], moved["stop_read_bytes"]), (0, 0), moved)
        self.log_says(daemon, "the device hashes pages: " + SHAPES[shape])
        self.assertEqual(self.end(program)[0], "right")

    def test_devices_of_their_own_memory(self):
        self.none_is_read(self.lesser("processor", OWN_MEMORY), "item")
        self.none_is_read(self.lesser("gpu", OWN_MEMORY + " " + A_GPU), "group")

    def test_only_what_has_changed_is_read(self):
        for shape in SHAPES:
            daemon = self.daemon(shape, GANTRY_PAGE_HASH=shape)
            program = self.start(daemon, "few")
            for how in ((), ("--rounds", "3")):
                moved = self.move(daemon, *how)
                self.assertGreater(moved["pages"]["device"], 0, moved)
                self.assertEqual(moved["pages"]["hashed"], moved["pages"]["device"], moved)
                self.assertEqual(moved["stop_read_bytes"], PAGE * moved["pages"]["stop"], moved)
            self.log_says(daemon, "the device hashes pages: " + SHAPES[shape])
            self.assertEqual(self.end(program)[0], "right")

    def test_the_processors_memory_is_hashed_in_its_place(self):
        daemon = self.daemon("a")
        program = self.start(daemon, "still")
        moved = self.move(daemon)
        self.assertEqual((moved["pages"]["hashed"] + moved["pages"]["sampled"], moved["pages"]["device"]), (HASHED, 0), moved)
        # One of the three is not for the host to map.
        self.assertEqual(moved["stop_read_bytes"], PAGE * HASHED // 3, moved)
        self.assertEqual(self.end(program)[0], "right")

    def test_the_processor_is_asked_for(self):
        daemon = self.lesser("host", OWN_MEMORY, GANTRY_PAGE_HASH="host")
        program = self.start(daemon, "still")
        moved = self.move(daemon)
        self.assertEqual((moved["pages"]["device"], moved["stop_read_bytes"]), (0, PAGE * HASHED), moved)
        self.assertEqual(self.end(program)[0], "right")

    def test_all_that_writes(self):
        for shape, ways in (("item", ((), ("--stop-and-copy",))), ("group", (("--rounds", "2"), ()))):
            daemon = self.daemon(shape, GANTRY_PAGE_HASH=shape)
            program = self.start(daemon, "all")
            self.assertGreater(sum(self.move(daemon, *how)["pages"]["device"] for how in ways), 0)
            disturbed = self.end(program)
            self.assertEqual(self.end(self.start(daemon, "all", disturbed[0])), disturbed)

    def test_devices_that_cannot(self):
        for word, why in (("nobuild", "clBuildProgram gives"), ("idle", "computes wrong page hashes"), ("norun", "clEnqueueNDRangeKernel gives")):
            with self.subTest(word):
                daemon = self.lesser(word, OWN_MEMORY + " " + word)
                program = self.start(daemon, "still")
                moved = self.move(daemon)
                self.assertEqual((moved["pages"]["device"], moved["pages"]["stop"]), (0, 0), moved)
                self.assertEqual(moved["stop_read_bytes"], PAGE * HASHED, moved)
                self.log_says(daemon, why)
                self.log_says(daemon, "pages will be read and hashed by the processor")
                self.assertEqual(self.end(program)[0], "right")
        program = self.start(daemon, "all")
        self.assertEqual(self.move(daemon, "--rounds", "2")["pages"]["device"], 0)
        disturbed = self.end(program)
        self.assertEqual(self.end(self.start(daemon, "all", disturbed[0])), disturbed)


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[4:])
