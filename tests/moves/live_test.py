#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory is sent while they change it: what they end with is what they end with undisturbed, and the stop sends no more
than what was changed.

    live_test.py STAGE PROGRAM      STAGE: what make stage leaves; PROGRAM: busy
"""

import json
import os
import signal
import subprocess
import sys

from moves_harness import BusyCase, Daemon, TIMEOUT_S, command, descendants, gantry, telling, wait_until

BusyCase.stage, BusyCase.path = (os.path.abspath(p) for p in sys.argv[1:3])
PAGE = 4096
BUFFER_PAGES = (2 << 20) // PAGE
IMAGE_PAGES = 256 * 256 * 4 // PAGE
# Of busy: five buffers and two images that do not lie in the program; three of the buffers have been given to kernels to write.
# Where workers evict memory, a sixth does not.
N_BUFFERS = 6 if os.environ.get("GANTRY_TEST_EVICT") else 5
ALL_PAGES = N_BUFFERS * BUFFER_PAGES + 2 * IMAGE_PAGES
FEW = 16


class Live(BusyCase):
    def move(self, daemon, *how):
        vgpus = gantry(daemon, "ls")[1]["vgpus"]
        self.assertEqual(len(vgpus), 1)
        status, said = gantry(daemon, "migrate", vgpus[0]["id"], "local", *how)
        self.assertEqual(status, 0, said)
        return said["move"]

    def test_all_that_writes(self):
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "all")
            ways = [(), (), ("--rounds", "3"), ("--bandwidth", "50M"), ("--stop-and-copy",), ("--rounds", "2", "--bandwidth", "100M")]
            for i in range(24):
                how = ways[i % len(ways)]
                moved = self.move(daemon, *how)
                pages = moved["pages"]
                # All of it has gone, at once or ahead. What comes and goes meanwhile may be sent, and be gone.
                self.assertGreaterEqual(pages["precopy"] + pages["stop"], ALL_PAGES, moved)
                self.assertEqual(pages["precopy"] == 0, "--stop-and-copy" in how, moved)
                self.assertLessEqual(pages["stop"], pages["total"], moved)
            disturbed = self.end(program)
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "all", disturbed[0])
            self.assertEqual(self.end(program), disturbed)

    def test_what_is_still_is_not_sent_again(self):
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "still")
            for hashed in (3 * BUFFER_PAGES, 0):
                pages = self.move(daemon)["pages"]
                self.assertEqual(pages["total"], ALL_PAGES)
                self.assertEqual(pages["precopy"], ALL_PAGES)
                self.assertEqual(pages["stop"], 0)
                # Three buffers are looked at again, the first time: nobody looks at what no kernel of this worker was given to write.
                self.assertEqual(pages["hashed"] + pages["sampled"], hashed)
            pages = self.move(daemon, "--stop-and-copy")["pages"]
            self.assertEqual((pages["precopy"], pages["stop"]), (0, ALL_PAGES))
            self.assertEqual(self.end(program)[0], "right")

    def test_the_stop_sends_what_was_written(self):
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "few")
            for how in ((), ("--bandwidth", "40M"), ("--rounds", "4")):
                pages = self.move(daemon, *how)["pages"]
                self.assertEqual(pages["total"], ALL_PAGES)
                self.assertGreaterEqual(pages["precopy"], ALL_PAGES)
                self.assertLessEqual(pages["precopy"], ALL_PAGES + 3 * FEW)
                self.assertLessEqual(pages["stop"], FEW)
            self.assertEqual(self.end(program)[0], "right")

    def test_what_others_were_made_of_goes_while_it_is_sent(self):
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "heirs")
            # The first round has told of all that there is, and lasts a second and more.
            asked = subprocess.Popen(command(daemon, "migrate", "--json", daemon.vgpus()[0]["id"], "local", "--rounds", "3", "--bandwidth", "4M"),
                                     stdout=subprocess.PIPE, text=True)
            self.assertTrue(wait_until(lambda: daemon.vgpus()[0].get("moving", {}).get("done_bytes", 0) > 0, TIMEOUT_S))
            program.stdin.write("on\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), "let go\n")
            out, _ = asked.communicate(timeout=TIMEOUT_S)
            self.assertEqual(asked.returncode, 0, out)
            # What was only kept for them has not come to stay.
            self.move(daemon)
            self.assertEqual(self.end(program)[0], "right")

    def test_the_program_ends_while_it_is_sent(self):
        with Daemon(self.stage, self.work) as daemon:
            program = self.start(daemon, "still")
            vgpu = gantry(daemon, "ls")[1]["vgpus"][0]["id"]
            before = len(descendants(daemon.process.pid))
            # Slow enough to last for minutes: it is under way when the new worker has got something.
            asked = subprocess.Popen(command(daemon, "migrate", "--json", vgpu, "local", "--bandwidth", "16K"), stdout=subprocess.PIPE, text=True)
            while len(descendants(daemon.process.pid)) == before:
                self.assertIsNone(asked.poll())
            program.send_signal(signal.SIGKILL)
            program.wait(timeout=TIMEOUT_S)
            out, _ = asked.communicate(timeout=TIMEOUT_S)
            # gantryd hears of the one's end or of the other's first: the worker ends with its program.
            self.assertRegex(json.loads(out)["error"]["why"], "its program has ended|own worker ended before all of it was saved")


if __name__ == "__main__":
    telling.main(BusyCase.stage, sys.argv[3:])
