#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs leave them (passthrough) and come back: what they end with is what they end with undisturbed, and on the way back
only what has changed meanwhile is sent.

    back_test.py STAGE PROGRAM      STAGE: what make stage leaves; PROGRAM: busy
"""

import os
import sys

from moves_harness import BusyCase, Daemon, gantry, telling

BusyCase.stage, BusyCase.path = (os.path.abspath(p) for p in sys.argv[1:3])
PAGE = 4096
BUFFER_PAGES = (2 << 20) // PAGE
# Of busy: five buffers and two images that do not lie in the program; three of the buffers have been given to kernels to write.
ALL_PAGES = 5 * BUFFER_PAGES + 2 * (256 * 256 * 4 // PAGE)
FEW = 16


class Back(BusyCase):
    def begin(self, *words, **env):
        daemon = self.daemon("a", passthrough=True, env=env)
        program = self.start(daemon, *words)
        self.assertEqual(daemon.vgpus()[0]["mode"], "passthrough")
        return daemon, program

    def switch(self, daemon, mode, *how):
        status, said = gantry(daemon, "mode", daemon.vgpus()[0]["id"], mode, *how)
        self.assertEqual(status, 0, said)
        return said["move"]["pages"]

    def leaves(self, daemon, *how):
        pages = self.switch(daemon, "remote", *how)
        self.assertEqual((pages["total"], pages["kept"]), (ALL_PAGES, 0))
        self.assertGreaterEqual(pages["precopy"] + pages["stop"], ALL_PAGES)

    def test_of_what_is_still_nothing_comes_back(self):
        for hashed in ({}, {"GANTRY_PAGE_HASH": "item"}):
            with self.subTest(hashed=hashed):
                daemon, program = self.begin("still", **hashed)
                for how in ((), ("--stop-and-copy",), ()):
                    self.leaves(daemon)
                    pages = self.switch(daemon, "passthrough", *how)
                    # What came in a stop, and would be hashed by the device, has no digest; nothing did here. All is compared once.
                    self.assertEqual({k: pages[k] for k in ("total", "kept", "precopy", "stop", "hashed")},
                                     {"total": ALL_PAGES, "kept": ALL_PAGES, "precopy": 0, "stop": 0, "hashed": ALL_PAGES if how else 0})
                self.assertEqual(self.end(program)[0], "right")
                self.doCleanups()
                self.setUp()

    def test_what_was_written_comes_back(self):
        for hashed in ({}, {"GANTRY_PAGE_HASH": "group"}):
            with self.subTest(hashed=hashed):
                daemon, program = self.begin("few", **hashed)
                for how in ((), ("--rounds", "3"), ("--stop-and-copy",)):
                    self.leaves(daemon)
                    pages = self.switch(daemon, "passthrough", *how)
                    self.assertEqual((pages["total"], pages["kept"]), (ALL_PAGES, ALL_PAGES))
                    # A few in each round, of which a slow machine has more.
                    self.assertLess(pages["precopy"], ALL_PAGES // 8)
                    self.assertLessEqual(pages["stop"], FEW)
                self.assertEqual(self.end(program)[0], "right")
                self.doCleanups()
                self.setUp()

    def test_what_a_kernel_wrote_and_nobody_knew_comes_back(self):
        for how in ((), ("--stop-and-copy",)):
            with self.subTest(how=how):
                daemon, program = self.begin("sneak")
                self.leaves(daemon)
                program.stdin.write("on\n")
                program.stdin.flush()
                self.assertEqual(program.stdout.readline(), "done\n")
                pages = self.switch(daemon, "passthrough", *how)
                self.assertEqual((pages["kept"], pages["precopy"] + pages["stop"]), (ALL_PAGES, 1))
                self.assertEqual(self.end(program)[0], "right")
                self.doCleanups()
                self.setUp()

    def test_a_checkpoint_and_a_move_between(self):
        daemon, program = self.begin("still")
        self.leaves(daemon)
        status, said = gantry(daemon, "checkpoint", daemon.vgpus()[0]["id"], os.path.join(self.work, "file"))
        self.assertEqual(status, 0, said)
        pages = self.switch(daemon, "passthrough")
        self.assertEqual((pages["kept"], pages["precopy"], pages["stop"]), (ALL_PAGES, 0, 0))
        # A worker to which it has not come from there knows nothing of that.
        self.leaves(daemon)
        status, said = gantry(daemon, "migrate", daemon.vgpus()[0]["id"], "local")
        self.assertEqual((status, said["move"]["pages"]["kept"]), (0, 0), said)
        pages = self.switch(daemon, "passthrough")
        self.assertEqual((pages["kept"], pages["precopy"], pages["stop"]), (0, ALL_PAGES, 0))
        self.assertEqual(self.end(program)[0], "right")

    def test_one_that_fails_and_one_that_does_not(self):
        daemon, program = self.begin("all")
        failed = 0
        while failed < 3:
            self.switch(daemon, "remote")
            # The first kernel that runs for longer than that ends it; by then what the program had kept may have been used up.
            status, said = gantry(daemon, "mode", daemon.vgpus()[0]["id"], "passthrough", "--drain-timeout", "0.001")
            if status:
                failed += 1
                self.assertIn("goes on where it was", said["error"]["fix"] + said["error"]["why"])
                self.assertEqual(daemon.vgpus()[0]["mode"], "remote")
                self.assertEqual(self.switch(daemon, "passthrough")["kept"], 0)
        disturbed = self.end(program)
        with Daemon(self.stage, self.work) as alone:
            self.assertEqual(self.end(self.start(alone, "all", disturbed[0])), disturbed)

    def test_all_that_writes(self):
        ways = [(), ("--rounds", "3"), ("--stop-and-copy",), ("--rounds", "2", "--bandwidth", "100M")]
        for hashed in ({}, {"GANTRY_PAGE_HASH": "item"}):
            with self.subTest(hashed=hashed):
                daemon, program = self.begin("all", **hashed)
                for i in range(12):
                    self.switch(daemon, "remote", *ways[i % 3])
                    pages = self.switch(daemon, "passthrough", *ways[i % len(ways)])
                    # What the program makes and lets go of meanwhile has never left.
                    self.assertGreaterEqual(pages["kept"], ALL_PAGES - BUFFER_PAGES, pages)
                disturbed = self.end(program)
                self.doCleanups()
                self.setUp()
                with Daemon(self.stage, self.work) as alone:
                    self.assertEqual(self.end(self.start(alone, "all", disturbed[0])), disturbed)


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[3:])
