#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in passthrough: their vGPUs live in them. Results are right, gantryd sees and bounds them, and whichever side ends, the
other one learns of it.

    direct_test.py STAGE HOSTED MOVED LOAD LEAVING    STAGE: what make stage leaves; LOAD: gantry-load; LEAVING: a driver that can be unloaded
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import Daemon, STEPS, TIMEOUT_S, command, gantry, rest_of, start_again, telling, wait_until  # noqa: E402

MEMORY_BYTES_AT = 40   # struct gn_counters
STAGE, HOSTED, MOVED, LOAD, LEAVING = (os.path.abspath(p) for p in sys.argv[1:6])


class Direct(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-direct-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def daemon(self, *args, **more):
        return Daemon(STAGE, self.work, args=args, passthrough=True, **more)

    def start(self, daemon, *command, **env):
        program = subprocess.Popen(command, env={**daemon.program_env(), **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        if program.poll() is None:
            program.kill()
        program.wait()
        program.stdin.close()
        print(rest_of(program), end="", file=sys.stderr)
        program.stdout.close()

    def says(self, program, line):
        said = program.stdout.readline().strip()
        if said != line:
            self.fail("it says {!r} and not {!r}\n{}".format(said, line, rest_of(program)))

    def step(self, program):
        self.on(program)
        self.says(program, "step 0")

    @staticmethod
    def on(*programs):
        for program in programs:
            program.stdin.write("on\n")
            program.stdin.flush()

    def run_to_end(self, daemon, *command, **env):
        program = self.start(daemon, *command, **env)
        out, _ = program.communicate(timeout=TIMEOUT_S)
        return program.returncode, out

    def test_it_is_listed_as_what_it_is(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps")
            self.says(program, "ready")
            (vgpu,) = daemon.vgpus()
            self.assertEqual((vgpu["link"], vgpu["mode"]), ("direct", "passthrough"))
            self.assertEqual((vgpu["pid"], vgpu["worker_pid"]), (program.pid, program.pid))
            self.assertGreater(vgpu["memory_bytes"], 0)
            calls = vgpu["calls"]
            self.on(program)
            self.says(program, "step 0")
            self.assertGreater(daemon.vgpus()[0]["calls"], calls)
            with open("/proc/{}/maps".format(program.pid), encoding="utf-8") as f:
                self.assertIn("libgantry-vgpu.so", f.read())
            program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0)

    def test_remote_programs_load_nothing_of_it(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps", GANTRY_MODE="remote")
            self.says(program, "ready")
            self.assertEqual((daemon.vgpus()[0]["link"], daemon.vgpus()[0]["mode"]), ("shm", "remote"))
            with open("/proc/{}/maps".format(program.pid), encoding="utf-8") as f:
                maps = f.read()
            self.assertNotIn("libgantry-vgpu.so", maps)
            self.assertNotIn("pocl", maps)
            program.communicate(timeout=TIMEOUT_S)

    def test_threads_and_children(self):
        with self.daemon() as daemon:
            self.assertEqual(self.run_to_end(daemon, HOSTED, "add"), (0, "right\n"))
            status, out = self.run_to_end(daemon, HOSTED, "fork")
            self.assertEqual((status, sorted(out.splitlines())), (0, ["child right", "right"]))

    def switch_of_a_child(self, daemon, *modes):
        """What `gantry mode CHILD passthrough` gives for a child of a program that has been in these modes."""
        program = self.start(daemon, HOSTED, "fork", "steps", GANTRY_MODE=modes[0])
        self.says(program, "ready")
        for mode in modes[1:]:
            self.switch(daemon, mode)
        self.on(program)
        self.says(program, "ready")
        (vgpu,) = [v["id"] for v in daemon.vgpus() if v["pid"] != program.pid]
        said = gantry(daemon, "mode", vgpu, "passthrough")
        self.step(program)
        out, _ = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual((program.returncode, sorted(out.splitlines())), (0, ["child right", "right"]))
        return said

    def test_a_child_does_not_load_its_parents_driver(self):
        for modes in (("passthrough",), ("passthrough", "remote"), ("remote", "passthrough", "remote")):
            with self.subTest(modes=modes), self.daemon() as daemon:
                status, said = self.switch_of_a_child(daemon, *modes)
                self.assertEqual(status, 1, said)
                self.assertIn("was forked from one that had loaded a driver", json.dumps(said))

    def test_a_child_loads_a_driver_that_its_parent_has_not(self):
        with self.daemon() as daemon:
            status, said = self.switch_of_a_child(daemon, "remote")
            self.assertEqual(status, 0, said)

    def test_something_of_each_kind(self):
        with self.daemon() as daemon:
            program = self.start(daemon, MOVED)
            out, _ = program.communicate("on\n" * 8, timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0, out)
            self.assertTrue(out.endswith("kernel says 42\nright\n"), out)

    def switch(self, daemon, mode):
        before = daemon.vgpus()[0]
        status, said = gantry(daemon, "mode", before["id"], mode)
        self.assertEqual(status, 0, said)
        after = daemon.vgpus()[0]
        self.assertEqual((after["id"], after["mode"], after["link"]),
                         (before["id"], mode, {"remote": "shm", "passthrough": "direct"}[mode]))
        self.assertEqual(after["worker_pid"] == after["pid"], mode == "passthrough")
        return said["move"]

    def test_switched_with_something_of_each_kind(self):
        for first in ("passthrough", "remote"):
            with self.subTest(first=first), self.daemon() as daemon:
                program = self.start(daemon, MOVED, GANTRY_MODE=first)
                for name in STEPS:
                    self.says(program, name)
                    modes = ("remote", "passthrough") if daemon.vgpus()[0]["mode"] == "passthrough" else ("passthrough", "remote")
                    self.switch(daemon, modes[0])
                    if name != "images":
                        self.switch(daemon, modes[1])
                    self.on(program)
                out, _ = program.communicate(timeout=TIMEOUT_S)
                self.assertEqual((program.returncode, out), (0, "kernel says 42\nright\n"))

    def test_switched_while_it_runs(self):
        with self.daemon() as daemon:
            for load in ("matrixmul", "histogram", "scan", "srad"):
                with self.subTest(load=load):
                    program = self.start(daemon, LOAD, load, "--seconds", "36000", "--check", "--no-profile")
                    self.assertTrue(wait_until(lambda: program.poll() is not None or daemon.vgpus(), TIMEOUT_S))
                    for i in range(6):
                        self.switch(daemon, "passthrough" if i % 2 else "remote")
                    program.send_signal(signal.SIGTERM)   # it measures no longer, and checks what it has
                    out, _ = program.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(program.returncode, 0, out)
                    self.assertIn("result: right", out)

    def test_switched_while_it_keeps_its_turn(self):
        """Who is about to call again keeps the device for a moment, and hears of the gate all the same."""
        with self.daemon("--policy", "fair") as daemon:
            kept = self.start(daemon, LOAD, "spin", "--size", "2000", "--batch", "1", "--reads", "3", "--seconds", "36000", "--no-profile")
            other = self.start(daemon, LOAD, "matrixmul", "--seconds", "36000", "--no-profile", GANTRY_MODE="remote")

            def both_had_turns():
                devices = [d for v in daemon.vgpus() for d in v["devices"]]
                return len(devices) == 2 and all(d["grants"] > 3 for d in devices)

            self.assertTrue(wait_until(both_had_turns, TIMEOUT_S), daemon.vgpus())
            vgpu = next(v["id"] for v in daemon.vgpus() if v["pid"] == kept.pid)
            for i in range(40):
                status, said = gantry(daemon, "mode", vgpu, "passthrough" if i % 2 else "remote")
                self.assertEqual(status, 0, said)
            for program in (kept, other):
                program.send_signal(signal.SIGTERM)
                out, _ = program.communicate(timeout=TIMEOUT_S)
                self.assertEqual(program.returncode, 0, out)

    def test_nothing_is_left_in_the_program(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps")
            self.says(program, "ready")
            self.on(program)
            self.says(program, "step 0")

            def shared(of=program):
                with open("/proc/{}/maps".format(of.pid), encoding="utf-8") as f:
                    maps = sum("memfd:gantry" in line for line in f)
                return maps, len(os.listdir("/proc/{}/fd".format(of.pid)))

            other = self.start(daemon, HOSTED, "steps", GANTRY_MODE="remote")
            self.says(other, "ready")
            self.step(other)
            maps, here = shared(other)[0], shared()
            other.communicate(timeout=TIMEOUT_S)
            self.switch(daemon, "remote")
            self.assertTrue(wait_until(lambda: shared()[0] == maps, TIMEOUT_S), (here, shared(), maps))
            self.on(program)
            self.says(program, "step 0")
            there = shared()
            self.assertLess(there, here)
            for _ in range(3):
                self.switch(daemon, "passthrough")
                self.on(program)
                self.says(program, "step 0")
                self.switch(daemon, "remote")
                self.on(program)
                self.says(program, "step 0")
            self.assertTrue(wait_until(lambda: shared() <= there, TIMEOUT_S), (there, shared()))
            program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0)

    def with_leaving(self):
        vendors = os.path.join(self.work, "vendors")
        os.mkdir(vendors)
        with open(os.path.join(vendors, "leaving.icd"), "w", encoding="utf-8") as f:
            f.write(LEAVING + "\n")
        return self.daemon(env={"OCL_ICD_VENDORS": vendors})

    def stays(self, daemon, why):
        done = subprocess.run(command(daemon, "mode", daemon.vgpus()[0]["id"], "passthrough"), capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(why, done.stderr)
        self.assertEqual(daemon.vgpus()[0]["mode"], "remote")

    def test_nothing_is_left_of_a_start_that_fails(self):
        away = os.path.join(self.work, "away")
        with self.with_leaving() as daemon:
            program = self.start(daemon, HOSTED, "buffers", GANTRY_MODE="remote", LEAVING_AWAY=away)
            self.says(program, "ready")
            self.step(program)

            def held():
                proc = "/proc/{}".format(program.pid)
                with open(proc + "/maps", encoding="utf-8") as f:
                    return len(os.listdir(proc + "/fd")), sum("memfd:gantry" in line for line in f)

            with open(away, "w", encoding="utf-8"):
                self.stays(daemon, "no longer has device 0")
                self.step(program)
                before = held()   # the libraries have been loaded
                for _ in range(3):
                    self.stays(daemon, "no longer has device 0")
                    self.step(program)
                self.assertTrue(wait_until(lambda: held() == before, TIMEOUT_S), (before, held()))
            os.unlink(away)
            self.switch(daemon, "passthrough")
            self.step(program)
            self.switch(daemon, "remote")

            def unloaded():
                with open("/proc/{}/maps".format(program.pid), encoding="utf-8") as f:
                    return os.path.basename(LEAVING) not in f.read()

            self.assertTrue(wait_until(unloaded, TIMEOUT_S))
            self.step(program)
            program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0)

    def test_why_a_start_fails_is_told(self):
        here, vendors = os.path.join(self.work, "lib"), os.path.join(self.work, "alone")
        os.mkdir(here)
        os.mkdir(vendors)
        library = shutil.copy(os.path.join(STAGE, "lib", "libgantry-opencl.so"), here)   # without the one that belongs beside it
        with open(os.path.join(vendors, "gantry.icd"), "w", encoding="utf-8") as f:
            f.write(library + "\n")
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps", GANTRY_MODE="remote", OCL_ICD_VENDORS=vendors)
            self.says(program, "ready")
            self.stays(daemon, "cannot load what passthrough needs")
            self.step(program)
            program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0)

    def test_a_driver_that_can_is_unloaded(self):
        report = os.path.join(self.work, "report")
        with self.with_leaving() as daemon:
            program = self.start(daemon, HOSTED, "buffers", LEAVING_REPORT=report)
            self.says(program, "ready")
            self.step(program)

            def driver():
                """Is its library there, its device, its thread?"""
                proc = "/proc/{}".format(program.pid)
                with open(proc + "/maps", encoding="utf-8") as f:
                    maps = os.path.basename(LEAVING) in f.read()
                return maps, "/dev/full" in [os.readlink(os.path.join(proc, "fd", fd)) for fd in os.listdir(proc + "/fd")]

            def said():
                try:
                    with open(report, encoding="utf-8") as f:
                        return f.read().splitlines()
                except OSError:
                    return []

            self.assertEqual((driver(), said()), ((True, True), []))
            for n in range(1, 4):
                self.switch(daemon, "remote")
                self.assertTrue(wait_until(lambda: len(said()) == n, TIMEOUT_S), said())
                self.assertEqual(said()[-1], "unloaded: 0 contexts, 0 queues, 0 buffers, 0 events, 0 bytes")
                self.assertTrue(wait_until(lambda: driver() == (False, False), TIMEOUT_S), driver())
                self.assertNotIn("driver_stays", daemon.vgpus()[0])
                threads = len(os.listdir("/proc/{}/task".format(program.pid)))
                if n > 1:
                    self.assertEqual(threads, there)
                there = threads
                self.step(program)
                self.switch(daemon, "passthrough")
                self.assertEqual(driver(), (True, True))
                self.step(program)
            program.communicate(timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0)

    def test_a_driver_that_cannot_is_told_of(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps")
            self.says(program, "ready")
            self.assertNotIn("driver_stays", daemon.vgpus()[0])
            self.switch(daemon, "remote")
            self.step(program)
            self.assertIs(daemon.vgpus()[0]["driver_stays"], True)
            listed = subprocess.run([os.path.join(STAGE, "bin", "gantry"), "ls", "--connect", daemon.address], stdout=subprocess.PIPE,
                                    text=True, check=True, timeout=TIMEOUT_S).stdout
            self.assertIn("remote+driver", listed)
            self.switch(daemon, "passthrough")
            self.step(program)
            self.assertNotIn("driver_stays", daemon.vgpus()[0])
            program.communicate(timeout=TIMEOUT_S)

    def test_switched_after_it_was_restored(self):
        """By a gantryd that the program has found by itself."""
        with self.daemon() as daemon:
            for mode in ("remote", "passthrough"):
                with self.subTest(mode=mode):
                    file = os.path.join(self.work, mode + ".ckpt")
                    program = self.start(daemon, HOSTED, "steps", GANTRY_MODE=mode)
                    self.says(program, "ready")
                    self.step(program)
                    if mode == "passthrough":
                        self.switch(daemon, "remote")   # from where alone it can be saved
                    self.assertEqual(gantry(daemon, "checkpoint", "--stop", daemon.vgpus()[0]["id"], file)[0], 0)
                    start_again(daemon)
                    self.assertTrue(wait_until(lambda: [v["state"] for v in daemon.vgpus()] == ["stopped"], TIMEOUT_S), daemon.vgpus())
                    self.assertEqual(gantry(daemon, "restore", file)[0], 0)
                    self.step(program)
                    for to in ("passthrough", "remote", "passthrough"):
                        self.switch(daemon, to)
                        self.step(program)
                    program.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(program.returncode, 0)

    def test_switches_that_are_none(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps")
            self.says(program, "ready")
            for allowed, mode, says in ((("remote", "passthrough"), "passthrough", "already"), (("passthrough",), "remote", "may not use")):
                daemon.ctl("tenant", "set", "default", *(word for a in allowed for word in ("--mode", a)))
                done = subprocess.run(command(daemon, "mode", daemon.vgpus()[0]["id"], mode), capture_output=True, text=True, timeout=TIMEOUT_S)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(says, done.stderr)
            self.on(program)
            self.says(program, "step 0")
            program.communicate(timeout=TIMEOUT_S)

    def test_loads(self):
        listed = subprocess.run([LOAD, "--list", "--json"], stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S).stdout
        loads = [load["name"] for load in json.loads(listed)["loads"] if load["name"] != "lavaMD"]   # seconds a round
        self.assertGreater(len(loads), 5)
        with self.daemon() as daemon:
            for load in loads:
                with self.subTest(load=load):
                    status, out = self.run_to_end(daemon, LOAD, load, "--iterations", "3", "--check", "--no-profile")
                    self.assertEqual(status, 0, out)
                    self.assertIn("result: right", out)

    def test_gantry_run_asks_for_it(self):
        with self.daemon() as daemon:
            env = daemon.program_env()
            del env["GANTRY_MODE"]
            done = subprocess.run([os.path.join(STAGE, "bin", "gantry"), "run", "--connect", daemon.address, "--mode", "passthrough", "--",
                                   HOSTED, "add"], env=env, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "right\n", ""))

    def test_who_may_not(self):
        with self.daemon() as daemon:
            daemon.ctl("tenant", "set", "default", "--mode", "remote")
            run = [os.path.join(STAGE, "bin", "gantry"), "run", "--mode", "passthrough", "--connect", daemon.address, "--", "true"]
            done = subprocess.run(run, env=daemon.program_env(), capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertIn("may not use the mode passthrough", done.stderr)
            status, out = self.run_to_end(daemon, HOSTED, "add")
            self.assertEqual(status, 1)
            self.assertIn("no device", out)
            self.assertEqual(self.run_to_end(daemon, HOSTED, "add", GANTRY_MODE="remote"), (0, "right\n"))
            daemon.ctl("tenant", "set", "default", "--mode", "passthrough")
            self.assertEqual(self.run_to_end(daemon, HOSTED, "add"), (0, "right\n"))
            self.assertEqual(self.run_to_end(daemon, HOSTED, "add", GANTRY_MODE="remote")[0], 1)

    def test_the_program_is_killed(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "hold", "60000")
            self.says(program, "ready")
            self.on(program)
            self.assertEqual(len(daemon.vgpus()), 1)
            program.send_signal(signal.SIGKILL)
            program.wait(TIMEOUT_S)
            self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def test_gantryd_is_killed(self):
        for how in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(how=how):
                daemon = self.daemon()
                with daemon:
                    program = self.start(daemon, HOSTED, "steps")
                    self.says(program, "ready")
                    self.on(program)
                    self.says(program, "step 0")
                    first = daemon.process
                    first.send_signal(how)
                    first.wait(TIMEOUT_S)
                    # Its calls fail as they do in the other mode, from when it is noticed; nothing hangs, and it ends as it likes.
                    def failed():
                        self.on(program)
                        return program.stdout.readline().strip() == "step -5"
                    self.assertTrue(wait_until(failed, TIMEOUT_S))
                    out, _ = program.communicate(timeout=TIMEOUT_S)
                    self.assertEqual((program.returncode, out), (0, "right\n"))
                    daemon.__enter__()   # what it leaves behind is looked at there

    def test_memory(self):
        with self.daemon() as daemon:
            daemon.ctl("tenant", "set", "default", "--memory", "64M")
            one = self.start(daemon, HOSTED, "take")
            took = one.stdout.readline().split()
            self.assertEqual(took[2], "-4")
            n = int(took[1].rstrip(":"))
            self.assertLessEqual(n, 64)
            self.assertGreater(n, 48)
            self.assertLessEqual(daemon.vgpus()[0]["memory_bytes"], 64 << 20)
            # All of the tenant's together, however they are hosted.
            for mode in ("remote", "passthrough"):
                other = self.start(daemon, HOSTED, "take", GANTRY_MODE=mode)
                self.assertLess(int(other.stdout.readline().split()[1].rstrip(":")), 64 - n + 1)
                other.communicate("on\n", timeout=TIMEOUT_S)
            one.communicate("on\n", timeout=TIMEOUT_S)
            last = self.start(daemon, HOSTED, "take")
            self.assertEqual(last.stdout.readline(), " ".join(took) + "\n")
            last.communicate("on\n", timeout=TIMEOUT_S)

    def test_memory_past_the_lease(self):
        with self.daemon() as daemon:
            program = self.start(daemon, HOSTED, "steps")
            self.says(program, "ready")
            where = "/proc/{}/fd".format(program.pid)
            (counters,) = {os.path.realpath(os.path.join(where, fd)): os.path.join(where, fd) for fd in os.listdir(where)
                           if "gantry-counters" in os.readlink(os.path.join(where, fd))}.values()
            with open(counters, "r+b", buffering=0) as f:
                f.seek(MEMORY_BYTES_AT)
                f.write((1 << 50).to_bytes(8, "little"))
            program.wait(TIMEOUT_S)
            self.assertEqual(program.returncode, -signal.SIGKILL)
            self.assertIn("bytes of device memory and may use", daemon.log())

    def test_turns(self):
        with self.daemon("--policy", "fair") as daemon:
            programs = [self.start(daemon, HOSTED, "hold", "3600000", GANTRY_MODE=mode) for mode in ("passthrough", "remote", "passthrough")]
            for program in programs:
                self.says(program, "ready")
            self.on(*programs)

            def all_had_turns():
                devices = [v["devices"][0] for v in daemon.vgpus()]
                return len(devices) == 3 and all(d["grants"] > 3 and d["used_ns"] > 0 for d in devices)

            self.assertTrue(wait_until(all_had_turns, TIMEOUT_S), daemon.vgpus())
            for program in programs:
                out, _ = program.communicate(timeout=TIMEOUT_S)
                self.assertEqual((program.returncode, out), (0, "held 0\nright\n"))

    def test_a_drivers_handlers_of_faults_work_on_our_threads(self):
        for policy in ("fair", "none"):
            with self.daemon("--policy", policy) as daemon:
                program = self.start(daemon, HOSTED, "zero")
                out, _ = program.communicate(timeout=TIMEOUT_S)
                self.assertEqual((program.returncode, out), (0, "zero 0\nright\n"), policy)

    def test_who_has_nothing_left_to_do_keeps_nobody_from_the_device(self):
        # What comes after a finish is given without a wait for the grant, by a thread of the program's.
        for steps in (["copy", "finish"], ["copy 20", "finish"], ["copy"], ["copy 20"], ["copy", "finish", "copy"],
                      ["copy", "finish", "copy 20"]):
            with self.subTest(steps), self.daemon("--kernel-limit", "0.5") as daemon:
                idle = self.start(daemon, HOSTED, "late")
                other = self.start(daemon, HOSTED, "hold", "300", GANTRY_MODE="remote")
                self.says(idle, "ready")
                self.says(other, "ready")
                for step in ["make", *steps]:
                    idle.stdin.write(step + "\n")
                    idle.stdin.flush()
                    self.says(idle, step.split()[0] + " 0")
                self.on(other)
                out, _ = other.communicate(timeout=TIMEOUT_S)
                self.assertEqual((other.returncode, out), (0, "held 0\nright\n"))
                self.assertNotIn("others waiting for the device", daemon.log())
                out, _ = idle.communicate("check\n", timeout=TIMEOUT_S)
                self.assertEqual((idle.returncode, out), (0, "check 0\nright\n"))

    def test_who_keeps_others_from_the_device(self):
        with self.daemon("--policy", "fair", "--kernel-limit", "0.5") as daemon:
            hog = self.start(daemon, HOSTED, "hold", "60000", "2000000000")   # one launch lasts for many seconds
            other = self.start(daemon, HOSTED, "hold", "500", GANTRY_MODE="remote")
            self.says(hog, "ready")
            self.says(other, "ready")
            self.on(hog)
            self.assertTrue(wait_until(lambda: any(v["pid"] == hog.pid and v["state"] == "running" for v in daemon.vgpus()), TIMEOUT_S))
            self.on(other)
            hog.wait(timeout=TIMEOUT_S)
            self.assertEqual(hog.returncode, -signal.SIGKILL)
            self.assertIn("others waiting for the device", daemon.log())
            out, _ = other.communicate(timeout=TIMEOUT_S)
            self.assertEqual((other.returncode, out), (0, "held 0\nright\n"))


if __name__ == "__main__":
    telling.main(STAGE, sys.argv[6:])
