#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Running programs whose vGPUs are put into files and back: what they compute is what they compute undisturbed; whatever goes wrong with
the file, the program goes on or waits on.

    checkpoint_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import itertools
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "daemon")]
from moves_harness import (STEPS, TIMEOUT_S, Daemon, Load, Program, checksum, command, cpu_seconds, gantry, rewritten,  # noqa: E402
                           telling, start_again, wait_until)
from gantryd_harness import templates  # noqa: E402

STAGE, PROGRAM, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-checkpoint-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.files = os.path.join(folder.name, "files")
        os.mkdir(self.files)
        self.file = os.path.join(self.files, "a.ckpt")

    def program(self, daemon, env=None):
        program = Program(PROGRAM, daemon, env)
        self.addCleanup(program.kill)
        self.assertEqual(program.at(), STEPS[0])
        return program

    def vgpu(self, daemon):
        vgpus = gantry(daemon, "ls")[1]["vgpus"]
        self.assertEqual(len(vgpus), 1, vgpus)
        return vgpus[0]

    def well(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, said)
        return said

    def refused(self, daemon, words, what, **options):
        status, said = gantry(daemon, *words, **options)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))

    def stop(self, daemon):
        before = self.vgpu(daemon)
        said = self.well(daemon, "checkpoint", before["id"][:6], self.file, "--stop")["checkpoint"]
        self.assertEqual((said["id"], said["state"], said["bytes"]), (before["id"], "stopped", os.path.getsize(self.file)))
        after = self.vgpu(daemon)
        self.assertEqual((after["id"], after["state"]), (before["id"], "stopped"))
        # A stop waits two seconds at most for its worker to end (GN_TX_SETTLE).
        self.assertTrue(wait_until(lambda: "worker_pid" not in self.vgpu(daemon), TIMEOUT_S))
        self.assertEqual(self.vgpu(daemon)["memory_bytes"], 0)
        self.assertEqual(os.listdir(self.files), ["a.ckpt"])
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
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
        self.assertEqual(after["id"], before["id"])
        self.assertIn(after["state"], ("running", "idle"))
        self.assertNotEqual(after["worker_pid"], before["worker_pid"])

    def go_through(self, program, each):
        """each(step): what happens to it at each; it may have said itself that the program is to go on."""
        for step in STEPS:
            if step != STEPS[0]:
                self.assertEqual(program.at(), step)
            if not each(step):
                program.on()
        self.assertIsNone(program.ends_well())

    def test_the_program_goes_on(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)

            def each(_step):
                vgpu = self.vgpu(daemon)
                said = self.well(daemon, "checkpoint", vgpu["id"], self.file)["checkpoint"]
                self.assertEqual((said["state"], said["bytes"]), ("running", os.path.getsize(self.file)))
                self.assertEqual(os.listdir(self.files), ["a.ckpt"])
                self.assertEqual(self.vgpu(daemon)["worker_pid"], vgpu["worker_pid"])
                seen = self.well(daemon, "inspect", self.file)["checkpoint"]
                self.assertEqual((seen["vgpu"]["id"], seen["vgpu"]["name"]), (vgpu["id"], "default"))
                self.assertTrue(seen["devices"][0]["name"])
            self.go_through(program, each)
            self.refused(daemon, ("restore", self.file), "without --stop")

    def test_all_of_it_is_in_the_file_of_one_that_goes_on(self):
        with Daemon(STAGE, self.work) as daemon:
            program = Load(LOAD, "matrixmul", daemon.program_env())
            self.addCleanup(program.kill)
            self.assertTrue(wait_until(lambda: [v for v in daemon.vgpus() if v["memory_bytes"] and v["state"] == "running"], TIMEOUT_S))
            vgpu = self.vgpu(daemon)
            self.well(daemon, "checkpoint", vgpu["id"], self.file)
            seen = self.well(daemon, "inspect", self.file)["checkpoint"]
            self.assertGreater(sum(m["sent_bytes"] for m in seen["memories"]), vgpu["memory_bytes"] // 2)
            self.assertIsNone(program.ends_well())

    def test_stopped_and_restored(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)

            def each(_step):
                before = self.stop(daemon)
                program.on()  # and what it asks for now is done when there is somebody again
                self.restore(daemon, before)
                return True
            self.go_through(program, each)

    def test_restored_by_another_gantryd(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            kills = itertools.cycle((signal.SIGKILL, signal.SIGTERM))

            def each(_step):
                before = self.stop(daemon)
                start_again(daemon, next(kills))
                self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                program.on()
                self.restore(daemon, self.drawn_anew(daemon, before))
                return True
            self.go_through(program, each)

    def test_a_load_that_runs(self):
        with Daemon(STAGE, self.work) as daemon:
            for load in ("matrixmul", "histogram", "scan"):
                with self.subTest(load=load):
                    program = Load(LOAD, load, daemon.program_env())
                    self.addCleanup(program.kill)
                    self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
                    for _ in range(4):
                        self.restore(daemon, self.stop(daemon))
                        self.well(daemon, "checkpoint", self.vgpu(daemon)["id"], self.file)
                    self.assertIsNone(program.ends_well())
                    self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_who_waits_uses_no_processor(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            before = self.stop(daemon)
            program.on()
            for gone in (False, True):
                if gone:
                    daemon.process.kill()
                    daemon.process.wait()
                at = cpu_seconds(program.process.pid)
                time.sleep(2)  # what is looked at is the time itself
                self.assertLess(cpu_seconds(program.process.pid) - at, 0.2)
            start_again(daemon)
            self.assertTrue(wait_until(daemon.vgpus, TIMEOUT_S))
            self.restore(daemon, self.drawn_anew(daemon, before))
            for step in STEPS[1:]:
                self.assertEqual(program.at(), step)
                program.on()
            self.assertIsNone(program.ends_well())

    def test_a_program_that_has_gone_on_is_not_taken_back(self):
        old = os.path.join(self.files, "old")
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            before = self.stop(daemon)
            shutil.copy(self.file, old)
            self.restore(daemon, before)
            os.rename(old, self.file)
            self.refused(daemon, ("restore", self.file), "has gone on since")
            shutil.copy(self.file, self.work + "/old")
            before = self.stop(daemon)
            self.refused(daemon, ("restore", self.work + "/old"), "waits for a later checkpoint")
            self.restore(daemon, before)
            program.on()
            for step in STEPS[1:]:
                self.assertEqual(program.at(), step)
                program.on()
            self.assertIsNone(program.ends_well())
            self.refused(daemon, ("restore", self.file), "no program waits")

    def test_files_that_are_not_right(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            program.on()
            self.assertEqual(program.at(), "images")  # whose contents do not lie with the program
            before = self.stop(daemon)
            with open(self.file, "rb") as f:
                good = f.read()
            newer = good[:8] + struct.pack("<II", 2, 0)
            newer += struct.pack("<Q", checksum(newer)) + good[24:]
            another = rewritten(good, lambda name, body: body.replace(b"default", b"another") if name == "tenant" else body)
            device = rewritten(good, lambda name, body: body.replace(b"OpenCL 3.0", b"OpenCL 9.0") if name == "devices" else body)
            kept = rewritten(good, lambda name, body: body[:24] + struct.pack("<I", 1) + body[28:] if name == "memory" else body)
            bad = {
                "of contents that do not come": (kept, "retained contents that are not here"),
                "empty": (b"", "too short"),
                "cut in its head": (good[:100], "ends"),
                "cut": (good[:len(good) * 2 // 3], "ends"),
                "without its commit": (good[:-90], "ends"),
                "altered": (good[:len(good) // 2] + bytes([good[len(good) // 2] ^ 1]) + good[len(good) // 2 + 1:], ""),
                "with more behind it": (good + b"x", ""),
                "newer": (newer, "version 2"),
                "another tenant's": (another, "of the tenant"),
                "of another device": (device, "lacks OpenCL 9.0 (it has 3.0)"),
            }
            self.assertNotEqual(another, good)
            self.assertFalse(kept == good)
            self.assertEqual(rewritten(good, lambda name, body: body), good)
            for name, (data, what) in bad.items():
                with self.subTest(name):
                    path = os.path.join(self.work, "bad")
                    with open(path, "wb") as f:
                        f.write(data)
                    if data == good:
                        continue
                    self.refused(daemon, ("restore", path), what)
                    self.assertTrue(wait_until(lambda: self.vgpu(daemon)["state"] == "stopped", TIMEOUT_S))
            self.refused(daemon, ("restore", self.work), "not a regular file")
            self.refused(daemon, ("restore", os.path.join(self.work, "none")), "No such file")
            self.restore(daemon, before)
            program.on()
            for step in STEPS[2:]:
                self.assertEqual(program.at(), step)
                program.on()
            self.assertIsNone(program.ends_well())

    def test_a_disk_that_is_full(self):
        def little():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            before = self.vgpu(daemon)
            for more in ((), ("--stop",)):
                self.refused(daemon, ("checkpoint", before["id"], self.file, *more), "File too large", preexec_fn=little)
                self.assertEqual(os.listdir(self.files), [])
            script = 'mount -t tmpfs -o size=16k none "$1" && { head -c 64k /dev/zero >"$1/all"; shift; exec "$@"; } 2>&1'
            own = ["unshare", "-m", "sh", "-c", script, "sh", self.files]
            with open(os.path.join(STAGE, "bin", "gantry"), "rb") as binary:
                sanitized = b"__asan_init" in binary.read()  # which reads its options in /proc, and ends where there is none
            if not sanitized and os.geteuid() == 0 and subprocess.run(own + ["true"], capture_output=True, check=False).returncode == 0:
                for more in ((), ("--stop",)):
                    done = subprocess.run(own + command(daemon, "checkpoint", before["id"], self.file, *more), capture_output=True, text=True,
                                          check=False, timeout=TIMEOUT_S)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("cannot write", done.stdout)
                    self.assertIn("No space left", done.stdout.split("cannot write")[1])
            self.assertEqual(self.vgpu(daemon)["worker_pid"], before["worker_pid"])
            self.go_through(program, lambda step: None)

    def test_a_gantry_that_is_killed_leaves_nothing(self):
        """Its worker stands still, so that it is surely killed in the midst of it; once more where it cannot use a file without a name."""
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            vgpu = self.vgpu(daemon)
            for more in ((), ("--stop",)):
                os.kill(vgpu["worker_pid"], signal.SIGSTOP)
                saving = subprocess.Popen(command(daemon, "checkpoint", vgpu["id"], self.file, *more), stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                self.addCleanup(saving.kill)

                def writes():
                    fds = "/proc/{}/fd".format(saving.pid)
                    return any(os.readlink(os.path.join(fds, fd)).startswith(self.files) for fd in os.listdir(fds))
                try:
                    self.assertTrue(wait_until(writes, TIMEOUT_S))
                    self.assertEqual(os.listdir(self.files), [])
                finally:
                    saving.kill()
                    saving.wait()
                    os.kill(vgpu["worker_pid"], signal.SIGCONT)
                self.assertEqual(os.listdir(self.files), [])
                self.assertTrue(wait_until(lambda: gantry(daemon, "checkpoint", vgpu["id"], self.file)[0] == 0, TIMEOUT_S))
                os.unlink(self.file)
            own = ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
            with open(os.path.join(STAGE, "bin", "gantry"), "rb") as binary:
                sanitized = b"__asan_init" in binary.read()  # which reads its options in /proc, and ends where there is none
            if not sanitized and os.geteuid() == 0 and subprocess.run(own + ["true"], capture_output=True, check=False).returncode == 0:
                for _ in range(2):  # there is nothing yet; there is one already
                    subprocess.run(own + command(daemon, "checkpoint", vgpu["id"], self.file), stdout=subprocess.DEVNULL, check=True,
                                   timeout=TIMEOUT_S)
                    self.assertEqual(os.listdir(self.files), ["a.ckpt"])
                    self.well(daemon, "inspect", self.file)
            self.go_through(program, lambda step: None)

    def test_an_interrupted_restore_says_what_becomes_of_it(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            before = self.stop(daemon)
            hosts = templates(daemon.process.pid)
            self.assertTrue(hosts)
            for pid in hosts:
                os.kill(pid, signal.SIGSTOP)  # no worker comes about
            restoring = subprocess.Popen(command(daemon, "restore", self.file), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                self.assertTrue(wait_until(lambda: self.vgpu(daemon)["state"] == "moving", TIMEOUT_S))
                restoring.send_signal(signal.SIGINT)
                _, errors = restoring.communicate(timeout=TIMEOUT_S)
            finally:
                for pid in hosts:
                    os.kill(pid, signal.SIGCONT)
            self.assertEqual(restoring.returncode, 1)
            self.assertIn("interrupted: its program still waits", errors)
            self.assertTrue(wait_until(lambda: self.vgpu(daemon)["state"] == "stopped", TIMEOUT_S))
            self.restore(daemon, before)
            self.go_through(program, lambda step: None)

    def test_what_is_asked_wrongly_changes_nothing(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            vgpu = self.vgpu(daemon)
            with open(self.file, "w", encoding="utf-8") as f:
                f.write("what was there")
            self.refused(daemon, ("checkpoint", "zz", self.file), "no vGPU")
            self.refused(daemon, ("checkpoint", vgpu["id"], self.files), "not a regular file")
            self.refused(daemon, ("checkpoint", vgpu["id"], "/none/such"), "No such file")
            with open(self.file, encoding="utf-8") as f:
                self.assertEqual(f.read(), "what was there")
            self.assertEqual(os.listdir(self.files), ["a.ckpt"])
            status, _ = gantry(daemon, "checkpoint", vgpu["id"])
            self.assertEqual(status, 2)
            before = self.stop(daemon)
            self.refused(daemon, ("checkpoint", vgpu["id"], self.work + "/b"), "it is stopped")
            self.refused(daemon, ("migrate", vgpu["id"], "local"), "it is stopped")
            self.restore(daemon, before)
            self.go_through(program, lambda step: None)

    def test_the_program_ends_while_it_is_stopped(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)
            self.stop(daemon)
            program.kill()
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))
            self.refused(daemon, ("restore", self.file), "no program waits")

    def test_moved_then_saved_then_moved(self):
        with Daemon(STAGE, self.work) as daemon:
            program = self.program(daemon)

            def each(_step):
                self.well(daemon, "migrate", self.vgpu(daemon)["id"], "local")
                before = self.stop(daemon)
                self.restore(daemon, before)
                self.well(daemon, "migrate", before["id"], "local")
            self.go_through(program, each)


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[4:])
