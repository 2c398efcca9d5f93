#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gantryd that is emptied: its programs go on at another one, new ones are refused, what cannot go stays and is named.

    drain_test.py STAGE MOVED BUSY [TEST]...    STAGE: what make stage leaves; MOVED, BUSY: moved and busy; TEST: as unittest names it
"""

import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "daemon"))
import gantryd_harness  # noqa: E402
from gantryd_harness import ATTACH, ATTACHED, ERROR, Client, attach, templates, frame  # noqa: E402
from moves_harness import MovesCase, TIMEOUT_S, command, gantry, telling, start_again, wait_until  # noqa: E402

MovesCase.stage, MovesCase.path, BUSY = (os.path.abspath(p) for p in sys.argv[1:4])
MOVE = 11
# Its first thread has ended, as when a process is ending; what it has of gantryd is closed one after the other, the connection never.
ENDS = """
import ctypes, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from gantryd_harness import Client
client = Client(sys.argv[2])
reply = client.attach()
client.receive()
def rest():
    while open("/proc/self/stat").read().split(")")[1].split()[0] != "Z":
        time.sleep(0.01)
    reply.close()
    time.sleep(600)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
"""
REFUSAL = "this gantryd is draining and accepts no new programs"


class Drain(MovesCase):
    def attached(self, daemon, **env):
        """One that has come to its first step, and its vGPU's id."""
        before = {v["id"] for v in daemon.vgpus()}
        program = self.at_first(daemon, **env)
        new = [v["id"] for v in daemon.vgpus() if v["id"] not in before]
        self.assertEqual(len(new), 1)
        return program, new[0]

    def started(self, here, *words):
        process = subprocess.Popen(command(here, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
        self.addCleanup(end)
        return process

    def stop_worker(self, daemon, vgpu):
        """Its vGPU's move does not end before that worker is continued. Returns the worker's pid."""
        worker = next(v["worker_pid"] for v in daemon.vgpus() if v["id"] == vgpu)
        os.kill(worker, signal.SIGSTOP)
        return worker

    def at(self, daemon):
        return {v["id"] for v in daemon.vgpus()}

    def takes_in(self, daemon):
        client = Client(daemon.socket)
        reply = client.attach()
        what = None if reply.op == ATTACHED else reply.error()[1]
        reply.close()
        client.close()
        return what

    def test_all_of_them_go_while_they_run(self):
        a, b = self.daemon("a"), self.daemon("b")
        busy = []
        for _ in range(3):
            program = subprocess.Popen([BUSY, "all"], env=a.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(program.kill)
            self.assertEqual(program.stdout.readline().strip(), "goes")
            busy.append(program)
        before = {v["id"]: v for v in a.vgpus()}
        self.assertEqual(len(before), 3)
        went = self.drain(a, b, 0)
        self.assertEqual(set(went), set(before))
        for id_, v in went.items():
            self.assertEqual(v["result"], "moved")
            self.assertEqual(v["program"], before[id_]["program"])
            self.assertGreater(v["downtime_ns"], 0)
            self.assertEqual(v["downtime_ns"], v["move"]["downtime_ns"])
        self.assertEqual(self.at(a), set())
        self.assertEqual({v["id"]: v["pid"] for v in b.vgpus()}, {id_: v["pid"] for id_, v in before.items()})
        for program in busy:
            out, _ = program.communicate("on\n", timeout=TIMEOUT_S)
            self.assertEqual(program.returncode, 0, out)
            # The same steps undisturbed.
            alone = subprocess.run([BUSY, "all", out.split("\n")[0]], env=b.program_env(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=TIMEOUT_S, check=False)
            self.assertEqual((alone.returncode, alone.stdout.split("\n")[1:]), (0, out.split("\n")))

    def test_no_new_programs_until_it_is_undone(self):
        a, b = self.daemon("a"), self.daemon("b")
        self.assertNotIn("draining", a.ctl("ls"))
        waits = Client(a.socket)  # it has been greeted before
        self.assertEqual(self.drain(a, b, 0), {})
        self.assertTrue(a.ctl("ls")["draining"])
        shown = subprocess.run([os.path.join(self.stage, "bin", "gantry"), "ls", "--connect", a.address], capture_output=True, text=True, check=True,
                               timeout=TIMEOUT_S)
        self.assertIn(REFUSAL, shown.stderr)
        self.assertEqual(len(shown.stdout.splitlines()), 1)
        self.assertIn(REFUSAL, self.takes_in(a))
        reply = waits.attach()
        self.assertEqual(reply.op, ERROR)
        self.assertIn(REFUSAL, reply.error()[1])
        waits.close()
        run = subprocess.run([os.path.join(self.stage, "bin", "gantry"), "run", "--connect", a.address, "--", "true"], capture_output=True, text=True,
                             check=False, timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, 125)
        self.assertIn(REFUSAL, run.stderr)
        self.assertTrue(wait_until(lambda: REFUSAL in a.log(), TIMEOUT_S))
        # Nor one of another gantryd's.
        program, vgpu = self.attached(b)
        status, said = gantry(b, "migrate", vgpu, a.address)
        self.assertEqual(status, 1)
        self.assertIn("is draining itself", said["error"]["why"])
        self.assertEqual(gantry(b, "drain", a.address)[0], 1)
        self.assertNotIn("draining", b.ctl("ls"))
        path = os.path.join(self.work, "v.gnc")
        self.assertEqual(gantry(b, "migrate", vgpu, "local")[0], 0)
        # Once it is undone.
        self.assertEqual(gantry(a, "drain", "--undo"), (0, {"version": 1, "drain": {"draining": False}}))
        self.assertEqual(gantry(a, "drain", "--undo")[0], 0)
        self.assertNotIn("draining", a.ctl("ls"))
        self.assertIsNone(self.takes_in(a))
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.assertEqual({v: w["result"] for v, w in self.drain(b, a, 0).items()}, {vgpu: "moved"})
        # One that is in a file is in no list to be moved, and is not given a worker here.
        self.assertEqual(gantry(a, "checkpoint", vgpu, path, "--stop")[0], 0)
        self.assertEqual(gantry(b, "drain", "--undo")[0], 0)
        stays = self.drain(a, b, 1)[vgpu]
        self.assertEqual(stays["result"], "stays")
        self.assertIn("it is stopped", stays["why"])
        status, said = gantry(a, "restore", path)
        self.assertEqual(status, 1)
        self.assertIn("is draining", json.dumps(said["error"]))
        self.assertEqual(gantry(a, "drain", "--undo")[0], 0)
        self.assertEqual(gantry(a, "restore", path)[0], 0)
        self.ends_well(program)

    def test_what_cannot_go_stays_and_goes_on(self):
        a, b = self.daemon("a"), self.daemon("b")
        a.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        for d in (a, b):
            d.ctl("tenant", "add", "blue", "--uid", str(os.getuid()))
        b.ctl("tenant", "set", "blue", "--memory", "1M")
        large, blue = self.attached(a, GANTRY_TENANT="blue")
        # What the harness says of a driver in the program holds here: the search for leaks does not stand it.
        inside = self.at_first(a, GANTRY_MODE="passthrough", POCL_CACHE_DIR=a.cache,
                               ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        hosted = [v["id"] for v in a.vgpus() if v["mode"] == "passthrough"][0]
        goes, plain = self.attached(a)
        workers = {v["id"]: v["worker_pid"] for v in a.vgpus()}
        what = self.drain(a, b, 1)
        self.assertEqual({id_: v["result"] for id_, v in what.items()}, {blue: "stays", hosted: "stays", plain: "moved"})
        self.assertIn("of device memory", what[blue]["why"])
        self.assertIn("lives in its program", what[hosted]["why"])
        self.assertIn("gantry mode VGPU remote", what[hosted]["fix"])
        self.assertEqual({v["id"]: v["worker_pid"] for v in a.vgpus()}, {id_: workers[id_] for id_ in (blue, hosted)})
        self.assertEqual(self.at(b), {plain})
        self.assertIn(REFUSAL, self.takes_in(a))
        # Again, when what was in the way is gone.
        b.ctl("tenant", "set", "blue", "--memory", "none")
        self.assertEqual(gantry(a, "mode", hosted, "remote")[0], 0)
        self.assertEqual({id_: v["result"] for id_, v in self.drain(a, b, 0).items()}, {blue: "moved", hosted: "moved"})
        for program in (large, inside, goes):
            self.ends_well(program)

    def test_who_waits_for_memory_is_tried_again(self):
        a, b = self.daemon("a"), self.daemon("b")
        for d in (a, b):
            d.ctl("tenant", "add", "blue", "--uid", str(os.getuid()))
        b.ctl("tenant", "set", "blue", "--memory", "1M")
        large, blue = self.attached(a, GANTRY_TENANT="blue")
        held, plain = self.attached(a)
        worker = self.stop_worker(a, plain)
        drain = self.started(a, "drain", "--quiet", b.address)
        line = drain.stderr.readline()
        self.assertIn(blue, line)
        self.assertIn("waits for other migrations to end", line)
        b.ctl("tenant", "set", "blue", "--memory", "none")
        os.kill(worker, signal.SIGCONT)
        out, errors = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual((drain.returncode, errors), (0, ""), out)
        self.assertEqual(self.at(a), set())
        self.assertEqual(self.at(b), {blue, plain})
        lines = out.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:-1]], [plain, blue])
        for line in lines[:-1]:
            self.assertRegex(line, r"moved; it was paused for \d+\.\d ms$")
        self.assertRegex(lines[-1], r"^2 moved to .*, 0 stay; new programs are refused until gantry drain --undo")
        for program in (large, held):
            self.ends_well(program)

    def test_interrupted_it_says_what_has_moved(self):
        a, b = self.daemon("a"), self.daemon("b")
        programs = [self.attached(a) for _ in range(6)]
        workers = [self.stop_worker(a, vgpu) for _, vgpu in programs]
        drain = self.started(a, "drain", "--quiet", b.address)
        # None of them can end, so some never begin.
        self.assertTrue(wait_until(lambda: sum(v["state"] == "moving" for v in a.vgpus()) == 4, TIMEOUT_S))
        drain.send_signal(signal.SIGINT)
        self.assertIn("interrupted: no more migrations begin, waiting for 4", drain.stderr.readline())
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        out, _ = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual(drain.returncode, 1, out)
        said = {line.split()[0]: line for line in out.splitlines()[:-1]}
        self.assertEqual(set(said), {vgpu for _, vgpu in programs})
        self.assertEqual({vgpu for vgpu, line in said.items() if "moved; it was paused" in line}, self.at(b))
        self.assertEqual({vgpu for vgpu, line in said.items() if "stays: the drain ended before its migration began" in line}, self.at(a))
        self.assertIn("4 moved to ", out.splitlines()[-1])
        self.assertIn(", 2 stay; new programs are refused", out.splitlines()[-1])
        for program, _ in programs:
            self.ends_well(program)

    def test_who_ends_meanwhile_is_no_failure(self):
        a, b = self.daemon("a"), self.daemon("b")
        program, vgpu = self.attached(a)
        self.stop_worker(a, vgpu)
        drain = self.started(a, "drain", "--quiet", b.address)
        self.assertTrue(wait_until(lambda: any(v["state"] == "moving" for v in a.vgpus()), TIMEOUT_S))
        program.process.kill()
        out, errors = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual((drain.returncode, errors), (0, ""), out)
        self.assertRegex(out.splitlines()[0], "^" + vgpu + ".* has ended meanwhile$")
        self.assertIn("0 moved to ", out)

    def test_who_is_just_ending_is_no_failure(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = subprocess.Popen([sys.executable, "-c", ENDS, os.path.dirname(gantryd_harness.__file__), a.socket])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
        vgpu, = self.at(a)
        drain = self.started(a, "drain", "--quiet", b.address)
        out, errors = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual((drain.returncode, errors), (0, ""), out)
        self.assertRegex(out.splitlines()[0], "^" + vgpu + ".* has ended meanwhile$")

    def memory_of(self, daemon):
        """How many pieces of memory it has open."""
        folder = "/proc/{}/fd".format(daemon.process.pid)
        n = 0
        for fd in os.listdir(folder):
            try:
                n += os.readlink(os.path.join(folder, fd)).startswith("/memfd:")
            except FileNotFoundError:
                pass
        return n

    def test_who_is_on_its_way_here_stays_where_it_was(self):
        a, b, c = self.daemon("a"), self.daemon("b"), self.daemon("c")
        program, vgpu = self.attached(a)
        hosts = templates(b.process.pid)
        self.assertTrue(hosts)
        for pid in hosts:
            os.kill(pid, signal.SIGSTOP)  # no worker comes about
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        before = self.memory_of(b)
        move = self.started(a, "migrate", "--quiet", vgpu, b.address)
        self.assertTrue(wait_until(lambda: self.memory_of(b) > before, TIMEOUT_S))  # the program's: it has come, and waits
        self.assertEqual(self.drain(b, c, 0), {})
        _, errors = move.communicate(timeout=TIMEOUT_S)
        self.assertEqual(move.returncode, 1)
        self.assertIn("is draining itself", errors)
        for pid in hosts:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual((self.at(a), self.at(b), self.at(c)), ({vgpu}, set(), set()))
        self.ends_well(program)

    def test_who_was_let_in_before_goes_too(self):
        a, b = self.daemon("a"), self.daemon("b")
        hosts = templates(a.process.pid)
        self.assertTrue(hosts)
        for pid in hosts:
            os.kill(pid, signal.SIGSTOP)  # no worker comes about
        late = Client(a.socket)
        late.send(frame(ATTACH, 100, attach()), (2, 2))
        late.control(b'{"version":1,"request":"status"}')  # so it has been heard
        self.assertEqual(self.at(a), set())
        drain = self.started(a, "drain", "--quiet", b.address)
        self.assertTrue(wait_until(lambda: a.ctl("ls").get("draining"), TIMEOUT_S))
        for pid in hosts:
            os.kill(pid, signal.SIGCONT)
        reply = late.receive()
        self.assertEqual(reply.op, ATTACHED)
        self.assertEqual(late.receive().op, MOVE)
        late.close()
        reply.close()
        out, _ = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual(drain.returncode, 0, out)
        self.assertIn("has ended meanwhile", out)

    def test_this_gantryd_is_lost_meanwhile(self):
        a, b = self.daemon("a"), self.daemon("b")
        _, vgpu = self.attached(a)
        self.stop_worker(a, vgpu)
        drain = self.started(a, "drain", b.address, "--json")
        self.assertTrue(wait_until(lambda: any(v["state"] == "moving" for v in a.vgpus()), TIMEOUT_S))
        start_again(a)
        out, errors = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual(drain.returncode, 1, out)
        said = json.loads(out)
        self.assertEqual([(v["id"], v["result"]) for v in said["drain"]["vgpus"]], [(vgpu, "stays")])
        self.assertEqual(set(said["error"]), {"what", "why", "fix"})
        self.assertIn(said["error"]["why"], errors)
        self.assertTrue(wait_until(lambda: not self.at(b), TIMEOUT_S))

    def test_what_is_asked_wrongly_changes_nothing(self):
        a = self.daemon("a")
        program, vgpu = self.attached(a)
        link = os.path.join(self.work, "other.sock")
        os.symlink(a.socket, link)
        for what, status, words in (("no address is given", 2, ()), ("exclude each other", 2, ("--undo", a.address)),
                                    ("no gantryd listens", 1, ("unix:" + os.path.join(self.work, "nobody"),)),
                                    ("is this one", 1, (a.address,)),
                                    ("is this one", 1, ("unix:" + link,))):
            with self.subTest(words=words):
                got, said = gantry(a, "drain", *words)
                self.assertEqual(got, status, said)
                self.assertIn(what, json.dumps(said["error"]))
                self.assertNotIn("draining", a.ctl("ls"))
        self.assertEqual(self.at(a), {vgpu})
        self.assertIsNone(self.takes_in(a))
        self.ends_well(program)


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[4:])
