#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The emulated discrete GPU by itself, through an ICD loader: its refusals, copies, poison and counts, and the sharing between processes.

    discrete_test.py DEVICE ICD      DEVICE: device.c's program; ICD: libdiscrete-icd.so
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))

import daemon                           # noqa: E402
from device_state import Device         # noqa: E402

PROGRAM, ICD = (os.path.abspath(p) for p in sys.argv[1:3])
MIB = 1 << 20
TIMEOUT_S = 120


class Discrete(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name

    def env(self, device, **more):
        return {**daemon.clean_env(), "POCL_CACHE_DIR": daemon.shared_kernels("discrete"), **device.env(), **more}

    def run_case(self, case, options, *words, **more):
        """The counts that it leaves."""
        device = Device(ICD, self.work, options)
        done = subprocess.run([PROGRAM, case, *words], env=self.env(device, **more), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return device.counts()

    def has(self, counts, **right):
        self.assertEqual({name: counts[name] for name in right}, right)

    def test_facts(self):
        self.run_case("facts", "capacity=512M", str(512 * MIB))

    def test_a_wrong_option_is_refused(self):
        for options in ("capacity", "capacity=", "capacity=1X", "async=1", "some", "bus=12G,lost"):
            done = subprocess.run([PROGRAM, "facts"], env=self.env(Device(ICD, self.work, options)), stderr=subprocess.PIPE, text=True,
                                  timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is not an option", done.stderr)

    def test_capacity(self):
        self.has(self.run_case("capacity", "capacity=8M"), peak_bytes=7 * MIB, refusals=4,
                 creations=4)

    def test_lazy(self):
        self.has(self.run_case("lazy", "capacity=8M,lazy"), peak_bytes=8 * MIB, refusals=2, launches=1)

    def test_creations_that_fail(self):
        self.has(self.run_case("fail", "fail=3"), refusals=1, creations=3)

    def hold(self, device, mib):
        holder = subprocess.Popen([PROGRAM, "hold", str(mib * MIB)], env=self.env(device), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)

        def end():
            holder.kill()
            holder.communicate()
        self.addCleanup(end)
        return holder, holder.stdout.readline().strip()

    def test_processes_share_it(self):
        device = Device(ICD, self.work, "capacity=10M")
        first, said = self.hold(device, 6)
        self.assertEqual(said, "holds")
        self.assertEqual(self.hold(device, 5)[1], "refused")
        self.assertEqual(self.hold(device, 4)[1], "holds")
        first.communicate("\n", timeout=TIMEOUT_S)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(self.hold(device, 6)[1], "holds")
        self.has(device.counts(), refusals=1, peak_bytes=10 * MIB, reclaimed_bytes=0)

    def test_a_killed_process_gives_its_memory_back(self):
        device = Device(ICD, self.work, "capacity=10M")
        first, said = self.hold(device, 6)
        self.assertEqual(said, "holds")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(timeout=TIMEOUT_S)
        self.assertEqual(self.hold(device, 10)[1], "holds")
        self.has(device.counts(), refusals=0, peak_bytes=10 * MIB, reclaimed_bytes=6 * MIB)

    def test_bus(self):
        # A byte in a nanosecond: 9 MiB there; 4, 1 and a map's 2 back.
        self.has(self.run_case("bus", "bus=1000000000,latency=100us"), bus_to_ns=9 * MIB, bus_from_ns=7 * MIB, to_device_bytes=9 * MIB,
                 from_device_bytes=7 * MIB, transfers=6)

    def test_no_bus_no_time(self):
        self.has(self.run_case("bus", ""), bus_to_ns=0, bus_from_ns=0, to_device_bytes=9 * MIB, from_device_bytes=7 * MIB)

    def test_poison(self):
        self.run_case("poison", "")

    def test_host_pointers(self):
        counts = self.run_case("host_pointer", "")
        self.has(counts, maps=1, to_device_bytes=4096 + 1024, from_device_bytes=3 * 4096 + 1024)

    def test_maps_copy(self):
        counts = self.run_case("maps", "")
        self.has(counts, maps=3, to_device_bytes=1024 + 96, from_device_bytes=1024 + 4096 + 4096 + 4096)

    def test_images(self):
        self.has(self.run_case("images", ""), maps=1, to_device_bytes=12 + 4, from_device_bytes=4 + 12)

    def test_async(self):
        self.has(self.run_case("asynchronous", ""), held=0)
        self.has(self.run_case("asynchronous", "async"), held=8)

    def test_late(self):
        self.has(self.run_case("late", "capacity=4M,late=1000s"), refusals=1)
        self.run_case("late_but_not_never", "capacity=4M,late=20ms")

    def test_kernels_that_keep_arguments(self):
        self.has(self.run_case("retain", "capacity=5M,retain"), refusals=1, launches=1)

    def test_a_released_argument_ends_the_process(self):
        for case in ("released", "replaced"):
            device = Device(ICD, self.work)
            done = subprocess.run([PROGRAM, case], env=self.env(device), stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, -signal.SIGABRT, case)
            self.assertIn("kernel set is launched with argument 0, which has been released", done.stderr)
            self.has(device.counts(), launches=0)

    def test_the_report_says_what_the_state_counts(self):
        report = os.path.join(self.work, "report")
        for case, options in (("launches", ""), ("bus", "bus=4G"), ("capacity", "capacity=8M")):
            counts = self.run_case(case, options, DISCRETE_REPORT=report)
            with open(report, encoding="utf-8") as f:
                self.assertEqual({name: int(n) for name, n in (line.split() for line in f)}, counts)
        self.has(self.run_case("launches", ""), launches=3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
