#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What transfers that nobody waits for make both machines keep: bounded, however slow the network and whatever the program has under way."""

import os
import re

import refusals_test as refusals
from tcp_harness import TcpCase, main

ALLOCATION_FAILURE = -4
STAGED_MIB = 128   # of transfers under way
OTHERS_MIB = 800 if os.environ.get("SANITIZED") else 200  # a process of either side without them
SENT = 80          # transfers of 16 MiB: 1.3 GiB


def status_mib(pid, field):
    with open("/proc/{}/status".format(pid), encoding="utf-8") as f:
        return int(re.search(r"(?m)^{}:\s+(\d+) kB".format(field), f.read()).group(1)) / 1024


class Memory(TcpCase):
    def bounded(self, *pids):
        for pid in pids:
            self.assertLess(status_mib(pid, "VmHWM"), STAGED_MIB + OTHERS_MIB)

    def test_what_is_under_way_is_bounded(self):
        """By a network that lets nothing pass while the program sends."""
        with self.gantry() as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay)
            worker = gantry.vgpus()[0]["worker_pid"]
            self.assertEqual(p.do("made 16"), 0)
            relay.hold()
            p.say("writes {} 16".format(SENT))
            self.until(lambda: status_mib(p.process.pid, "RssShmem") > STAGED_MIB - 17, "it does not send ahead")
            relay.hold()
            self.assertEqual(p.heard(), 0)
            self.bounded(p.process.pid, worker)
            self.assertEqual(p.do("reads {} 16".format(SENT)), 0)
            self.bounded(p.process.pid, worker)
            # Small ones are counted, too.
            self.assertEqual(p.do("writes {} 1".format(16 * SENT)), 0)
            self.bounded(p.process.pid, worker)
            p.end()

    def test_what_the_program_holds_back_itself_is_refused_in_time(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("gated 20 16"), 0)
            self.assertEqual(p.do("gated {} 16".format(SENT)), ALLOCATION_FAILURE)
            self.assertEqual(p.do("rounds 3"), 0)
            self.assertEqual(len(gantry.vgpus()), 1)
            p.end()

    def test_large_transfers_leave_nothing(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            worker = gantry.vgpus()[0]["worker_pid"]
            for word in ("writes 2 200", "reads 2 200"):
                self.assertEqual(p.do(word), 0)
                self.assertEqual(p.do("rounds 1"), 0)  # at the next calls what is not needed any more goes back
                for pid in (worker, p.process.pid):
                    self.until(lambda pid=pid: status_mib(pid, "RssShmem") < 64, "{} MiB are left after {}".format(
                        status_mib(pid, "RssShmem"), word))
            p.end()


class SmallMachine(TcpCase):
    """A program without a limit may hold a quarter of the machine's memory in the session's, and fill twice that and 640 MiB."""
    attached, received = refusals.Plain.attached, refusals.Plain.received

    def gantry(self, *more, **how):
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return super().gantry(*more, env={"LD_PRELOAD": os.environ["SMALL_MACHINE"], "ASAN_OPTIONS": asan}, **how)

    def test_buffers_beyond_a_quarter_lie_in_the_drivers_memory(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("buffers 16 100"), 0)  # all of them in the session's would be more than it may fill
            self.assertEqual(p.do("rounds 2"), 0)
            p.end()

    def test_a_sender_is_ended(self):
        with self.gantry() as gantry:
            other = self.program(gantry)
            control, data = self.attached(gantry, 0)
            data.sendall(refusals.record(9, 1, 256 << 30))
            full, sent = bytes(1 << 20), 0
            try:
                while sent < 3072:
                    data.sendall(refusals.record(2, 1, sent << 20, full))
                    sent += 1
            except ConnectionError:
                pass
            self.assertLess(sent, 1664 + 64)
            self.until(lambda: "fills more memory than it may have" in gantry.log(), "no reason in the log")
            self.assertEqual(other.do("rounds 2"), 0)
            control.close()
            other.end()


if __name__ == "__main__":
    main()
