#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs go to new workers beside the old ones while much is under way to and from them, and while nothing gets through: what
the old worker has said, and its program has not got, the new one says."""

import json
import os
import subprocess

import tcp_harness
from tcp_harness import ANSWER_S, STAGE, TcpCase

MOVES = 3


class Beside(TcpCase):
    GRACE_S = 3600

    def tries(self, gantry):
        """False: its program has not come back yet."""
        before = gantry.vgpus()[0]
        done = subprocess.run([os.path.join(STAGE, "bin/gantry"), "migrate", "--connect", gantry.address, "--json", "--drain-timeout", "60", before["id"],
                               "local"], stdout=subprocess.PIPE, text=True, timeout=ANSWER_S, check=False)
        if done.returncode:
            self.assertIn("the connection to its program is broken", done.stdout)
            return False
        self.assertEqual(json.loads(done.stdout)["move"]["result"], "moved")
        self.assertNotEqual(gantry.vgpus()[0]["worker_pid"], before["worker_pid"])
        return True

    def move(self, gantry):
        self.assertTrue(self.tries(gantry))

    def ends(self, p):
        self.assertEqual(p.do("query"), 0)  # it has come back: it says goodbye to somebody
        self.assertEqual(p.end(), 0)

    def test_while_much_is_under_way(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            self.assertEqual(p.ready, "ready 0")
            for text in ("rounds {}", "bulk {}"):
                moves, n = 0, 8
                while moves < MOVES:  # a machine that is fast is given more to do
                    p.say(text.format(n))
                    while not p.has_answered(0.02):
                        self.move(gantry)
                        moves += 1
                    self.assertEqual(p.heard(), 0)
                    n *= 2
            self.ends(p)

    def test_while_nothing_gets_through(self):
        """Before the move the network stops; after it, what was on its way is lost."""
        with self.gantry() as gantry:
            relay = self.relay(gantry, 200)
            p = self.program(gantry, relay)
            self.assertEqual(p.ready, "ready 0")
            for text in ("rounds {}", "bulk {}"):
                moves, n = 0, 8
                while moves < MOVES:
                    p.say(text.format(n))
                    while not p.has_answered(0.02):
                        self.until(lambda: self.tries(gantry), "the program does not come back")
                        relay.hold()
                        self.move(gantry)
                        self.move(gantry)  # also of what that one was handed
                        relay.cut()
                        relay.hold()
                        moves += 1
                    self.assertEqual(p.heard(), 0)
                    n *= 2
            self.ends(p)


if __name__ == "__main__":
    tcp_harness.main()
