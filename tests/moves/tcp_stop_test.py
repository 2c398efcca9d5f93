#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are attached over tcp, whose vGPUs are put into files and back: what they compute is what they compute undisturbed; whatever goes
wrong with the file or the connection, the program goes on or waits on.

    tcp_stop_test.py STAGE PROGRAM LOAD RELAY      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load; RELAY: tcp suite's
"""

import itertools
import json
import os
import shutil
import signal
import struct
import sys
import time

from moves_harness import STEPS, TIMEOUT_S, Load, StopsCase, cpu_seconds, gantry, rewritten, start_again, telling, wait_until

from decoder import LINK, Decoder   # found by way of moves_harness

StopsCase.stage, StopsCase.path, LOAD, StopsCase.network = (os.path.abspath(p) for p in sys.argv[1:5])
SESSION_ENTRY = "<QIIIIQ"
TOKEN = "blue-has-a-token-that-is-long-enough"
BLUE = {"GANTRY_TENANT": "blue", "GANTRY_TOKEN": TOKEN}


def entries(body):
    at = 0
    while at < len(body):
        n = struct.unpack_from(SESSION_ENTRY, body, at)[5]
        yield struct.unpack_from(SESSION_ENTRY, body, at)[:2], body[at:at + n]
        at += n


def session_of(change):
    """A file whose entries of that kind are change(number, bytes)."""
    def each(name, body):
        if name != "session":
            return body
        return b"".join(change(i, e) if kind == LINK else e for (i, kind), e in entries(body))
    return each


class Stops(StopsCase):
    def secure(self):
        config = self.private("conf", "[tenant blue]\ntoken-file = {}\n".format(self.private("token", TOKEN + "\n")))
        return self.at_one_port("--config", config, insecure=False)

    def refused(self, daemon, what, *words, **options):
        status, said = gantry(daemon, *words, **options)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))

    def stop(self, daemon):
        before = self.vgpu(daemon)
        said = self.well(daemon, "checkpoint", before["id"], self.file, "--stop")["checkpoint"]
        self.assertEqual((said["id"], said["state"], said["bytes"]), (before["id"], "stopped", os.path.getsize(self.file)))
        after = self.vgpu(daemon)
        self.assertEqual((after["id"], after["state"]), (before["id"], "stopped"))
        # A stop waits two seconds at most for its worker to end (GN_TX_SETTLE).
        self.assertTrue(wait_until(lambda: "worker_pid" not in self.vgpu(daemon), TIMEOUT_S))
        self.assertEqual(self.vgpu(daemon)["memory_bytes"], 0)
        self.assertEqual(os.listdir(self.files), ["a.ckpt"])
        return before

    def drawn_anew(self, daemon, before):
        """As `before`, with the id that another gantryd has drawn for the program that waits."""
        waiting = self.vgpu(daemon)
        self.assertEqual(waiting["state"], "stopped")
        self.assertNotEqual(waiting["id"], before["id"])
        return dict(before, id=waiting["id"])

    def restore(self, daemon, before):
        said = self.well(daemon, "restore", self.file)["restore"]
        self.assertEqual((said["id"], said["result"]), (before["id"], "restored"))
        after = self.vgpu(daemon)
        self.assertIn(after["state"], ("running", "idle"))
        self.assertNotEqual(after["worker_pid"], before["worker_pid"])
        for same in ("id", "tenant", "weight", "memory_limit_bytes", "program"):
            self.assertEqual(after.get(same), before.get(same))

    def go_through(self, program, each):
        for step in STEPS:
            self.assertEqual(program.at(), step)
            each(program.on)
        self.assertIsNone(program.ends_well())

    def stops_and_goes_on(self, daemon, on):
        before = self.stop(daemon)
        on()  # and what it asks for now is done when there is somebody again
        self.restore(daemon, before)

    def stops_for_another(self, daemon, how, on):
        before = self.stop(daemon)
        start_again(daemon, how)
        self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
        on()
        self.restore(daemon, self.drawn_anew(daemon, before))

    def test_stopped_and_restored(self):
        a = self.at_one_port()
        self.go_through(self.program(a), lambda on: self.stops_and_goes_on(a, on))
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_stopped_and_restored_through_tls(self):
        a = self.secure()
        self.go_through(self.program(a, **BLUE), lambda on: self.stops_and_goes_on(a, on))

    def test_restored_by_another_gantryd(self):
        kills = itertools.cycle((signal.SIGKILL, signal.SIGTERM))
        for secure in (False, True):
            with self.subTest(secure=secure):
                a = self.secure() if secure else self.at_one_port()
                self.go_through(self.program(a, **(BLUE if secure else {})), lambda on, a=a: self.stops_for_another(a, next(kills), on))

    def test_loads_that_run(self):
        a = self.at_one_port()
        for load in ("matrixmul", "histogram", "scan"):
            with self.subTest(load=load):
                program = Load(LOAD, load, a.program_env())
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                for _ in range(4):
                    self.restore(a, self.stop(a))
                    self.well(a, "migrate", self.vgpu(a)["id"], "local")
                    self.well(a, "checkpoint", self.vgpu(a)["id"], self.file)
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))

    def test_who_waits_uses_no_processor(self):
        a = self.at_one_port()
        program = self.at_first(a)
        before = self.stop(a)
        program.on()
        for gone in (False, True):
            if gone:
                a.process.kill()
                a.process.wait()
            at = cpu_seconds(program.process.pid)
            time.sleep(2)  # what is looked at is the time itself
            self.assertLess(cpu_seconds(program.process.pid) - at, 0.2)
        start_again(a)
        self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
        self.restore(a, self.drawn_anew(a, before))
        self.assertEqual(program.at(), STEPS[1])
        self.ends_well(program, 2)

    def test_a_program_that_has_gone_on_is_not_taken_back(self):
        old = os.path.join(self.work, "old")
        a = self.at_one_port()
        program = self.at_first(a)
        before = self.stop(a)
        shutil.copy(self.file, old)
        self.restore(a, before)
        self.refused(a, "has gone on since", "restore", old)
        before = self.stop(a)
        self.refused(a, "waits for a later checkpoint", "restore", old)
        self.restore(a, before)
        self.ends_well(program)
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.refused(a, "no program waits", "restore", self.file)

    def test_files_that_are_not_right(self):
        a = self.at_one_port()
        program = self.at_first(a)
        before = self.stop(a)
        with open(self.file, "rb") as f:
            good = f.read()
        bad = {
            "cut": (good[:len(good) * 2 // 3], "ends"),
            "without its session": (rewritten(good, session_of(lambda i, e: b"")), "session"),
            "with half of it": (rewritten(good, session_of(lambda i, e: b"" if i else e)), "session"),
            "with more of it": (rewritten(good, session_of(lambda i, e: e + e)), "session"),
            "with none of its parts": (rewritten(good, session_of(lambda i, e: e[:32].replace(e[16:32], struct.pack("<IIQ", 0, 0, 32)))), "session"),
        }
        for name, (data, what) in bad.items():
            with self.subTest(name):
                path = os.path.join(self.work, "bad")
                with open(path, "wb") as f:
                    f.write(data)
                self.assertNotEqual(data, good)
                self.refused(a, what, "restore", path)
                self.assertTrue(wait_until(lambda: self.vgpu(a)["state"] == "stopped", TIMEOUT_S))
        self.restore(a, before)
        self.ends_well(program)

    def test_the_file_says_where_its_session_stood(self):
        """While commands wait for a user event, whose inputs have come and are nobody's yet."""
        a = self.at_one_port()
        program = self.program(a)
        for step in STEPS[:3]:
            self.assertEqual(program.at(), step)
            if step != STEPS[2]:
                program.on()
        before = self.stop(a)
        with open(self.file, "rb") as f:
            stream = Decoder(f.read())
        stream.decode()
        (op, _, first), *others = stream.frames
        self.assertEqual((op, len(first)), (80, 56))
        received, small, _, n_held, n_areas, begins, acknowledged, n_said, zero = struct.unpack("<QQQIIQQII", first)
        self.assertLessEqual(small, received)
        self.assertLessEqual(begins, acknowledged)
        self.assertEqual(zero, 0)
        self.assertGreater(n_areas, 0)
        self.assertEqual([op for op, _, _ in others], [81] * n_held + [82] * n_areas + [83] * n_said)
        self.restore(a, before)
        self.ends_well(program, 3)

    def test_the_program_ends_while_it_is_stopped(self):
        a = self.at_one_port("--tcp-grace", "1")
        program = self.at_first(a)
        self.stop(a)
        program.kill()
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.refused(a, "no program waits", "restore", self.file)

    def test_its_connection_breaks_while_it_is_stopped(self):
        """Before its grace is over, and after."""
        for grace in ("100", "1"):
            with self.subTest(grace=grace):
                a = self.at_one_port("--tcp-grace", grace)
                relay, address = self.relay(a.tcp_address.rsplit(":", 1)[1])
                program = self.at_first(a, GANTRY_CONNECT=address)
                before = self.stop(a)
                relay.send_signal(signal.SIGSTOP)
                program.on()
                time.sleep(1.5)
                relay.send_signal(signal.SIGCONT)
                self.assertTrue(wait_until(lambda: [v["state"] for v in a.vgpus()] == ["stopped"], TIMEOUT_S))
                self.restore(a, before)
                self.assertEqual(program.at(), STEPS[1])
                self.ends_well(program, 2)

    def test_a_program_that_does_not_say_that_it_waits_goes_on(self):
        a = self.at_one_port()
        program = self.at_first(a)
        before = self.vgpu(a)
        os.kill(program.process.pid, signal.SIGSTOP)
        try:
            self.refused(a, "does not say that it waits", "checkpoint", before["id"], self.file, "--stop")
        finally:
            os.kill(program.process.pid, signal.SIGCONT)
        self.assertEqual(os.listdir(self.files), [])
        self.assertEqual(self.vgpu(a)["worker_pid"], before["worker_pid"])
        self.ends_well(program)

    def test_one_that_has_come_from_elsewhere_is_refused(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.at_first(a)
        self.well(a, "migrate", self.vgpu(a)["id"], b.tcp_address, "--link", "tcp")
        before = self.vgpu(b)
        self.refused(b, "has no token", "checkpoint", before["id"], self.file, "--stop")
        self.assertEqual(self.vgpu(b)["worker_pid"], before["worker_pid"])
        self.ends_well(program)


if __name__ == "__main__":
    telling.main(StopsCase.stage, sys.argv[5:])
