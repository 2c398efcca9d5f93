# SPDX-License-Identifier: Apache-2.0
"""Tests of hangs while a vGPU starts: of a driver's template, and of a driver in its worker.

No start waits for longer than --start-limit, and programs keep the vGPUs that they have. Needs
GANTRYD, GANTRY_WORKER and FAKE_VENDOR_LIBRARY in the environment.
"""
import os
import signal
import unittest

from gantryd_harness import ATTACH, ERROR, Gantryd, attach, children, frame, wait_gone
from gantryd_test import FAKE, Attached, vgpus

LIMIT_S = 1


def echoes(a):
    a.session.send(b"x")
    return a.session.recv(1) == b"x"


class Hangs(unittest.TestCase):
    def start(self, **env):
        g = Gantryd("--start-limit", str(LIMIT_S), env=dict(FAKE, **env))
        self.addCleanup(g.__exit__)
        return g

    def test_a_template_that_hangs_is_replaced_and_its_workers_go_on(self):
        g = self.start()
        old = g.template()
        before, second = Attached(g), Attached(g)
        gone = os.pidfd_open(old)
        self.addCleanup(os.close, gone)
        os.kill(old, signal.SIGSTOP)
        mine, its = os.pipe()
        with g.client() as c, g.client() as left, g.client() as other:
            left.send(frame(ATTACH, 2, attach()), (its, its))
            left.close()
            other.send(frame(ATTACH, 2, attach()), (its, its))
            os.close(its)
            reply = c.attach()
            self.assertEqual(reply.op, ERROR)
            self.assertIn("template process does not answer", reply.error()[1])
            self.assertEqual(other.receive().op, ERROR)
            # No process has the descriptors that they passed as their stdout any more.
            self.assertEqual(os.read(mine, 1), b"")
            os.close(mine)
            after = Attached(g)
            self.assertEqual(len(children(g.pid)), 2)  # templates
            self.assertTrue(all(echoes(a) for a in (before, second, after)))
            # Its workers end, one with its program, one by itself, and the template with the last.
            before.close()
            os.kill(second.worker, signal.SIGKILL)
            self.assertTrue(wait_gone(gone))
            second.close()
            while len(vgpus(c)) > 1:
                pass
            after.close()
        status, log = g.stop()
        self.assertEqual(status, 0)
        replaced = "has not answered for {} s; another takes its place".format(LIMIT_S)
        self.assertEqual(log.count(replaced), 1, log)
        self.assertEqual(log.count("its template does not report how"), 1, log)

    def test_one_that_goes_on_later_hurts_nobody(self):
        g = self.start()
        old = g.template()
        before = Attached(g)
        os.kill(old, signal.SIGSTOP)
        with g.client() as c:
            self.assertEqual(c.attach().op, ERROR)
        os.kill(old, signal.SIGCONT)
        after = Attached(g)
        for a in (before, after):
            self.assertTrue(echoes(a))
            a.close()
        self.assertEqual(g.stop()[0], 0)

    def test_gantryds_end_is_the_end_of_one_that_hangs(self):
        g = self.start()
        old = g.template()
        before = Attached(g)
        gone = os.pidfd_open(old)
        self.addCleanup(os.close, gone)
        os.kill(old, signal.SIGSTOP)
        with g.client() as c:
            self.assertEqual(c.attach().op, ERROR)
        self.assertEqual(g.stop()[0], 0)
        self.assertTrue(wait_gone(gone))
        self.assertTrue(wait_gone(before.pidfd))
        before.close()

    def test_a_driver_that_hangs_in_its_worker_is_given_up(self):
        g = self.start(FAKE_VENDOR="hang-in-worker")
        with g.client() as c:
            for _ in range(2):
                reply = c.attach()
                self.assertEqual(reply.op, ERROR)
                self.assertIn("has not started the driver within {} s".format(LIMIT_S),
                              reply.error()[1])
            self.assertEqual(vgpus(c), [])
        status, log = g.stop()
        self.assertEqual(status, 0)
        killed = "has not started its driver within {} s, and is killed".format(LIMIT_S)
        self.assertEqual(log.count(killed), 2, log)


if __name__ == "__main__":
    unittest.main()
