# SPDX-License-Identifier: Apache-2.0
"""Tests of gantryd, its templates and its workers through a program's connection.

The workers are those of idle_vgpu.c: they print and echo the bytes from the session socket, and end
when they must. Needs GANTRYD, GANTRY_WORKER and FAKE_VENDOR_LIBRARY in the environment.
"""
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

from gantryd_harness import (ATTACH, ATTACHED, ERROR, HELLO, PATIENCE, SEGMENT, SEGMENT_MADE,
                             WELCOME, Gantryd, attach, children, cmdline, count_fds, frame, hello,
                             wait_gone)

F_GET_SEALS = 1034
PTRACE_SEIZE = 0x4206
WAIT = 26
SEALED = 1 | 2 | 4  # SEAL, SHRINK, GROW
FAKE = {"OCL_ICD_VENDORS": os.environ["FAKE_VENDOR_LIBRARY"]}


def wait_gone_now(pidfd):
    return bool(select.select([pidfd], [], [], 0)[0])


def vgpus(client):
    return json.loads(client.control(b'{"version":1,"request":"ls"}'))["vgpus"]


def change(client, what, name, **settings):
    text = json.dumps(dict(settings, version=1, request="tenant-" + what, name=name))
    return json.loads(client.control(text.encode()))


def open_status(pid):
    with open("/proc/%d/status" % pid) as f:
        return {key: value.strip() for key, value in (line.split(":", 1) for line in f)}


class Attached:
    """A client with a vGPU."""

    def __init__(self, gantryd, **how):
        self.client = gantryd.client()
        self.reply = self.client.attach(**how)
        assert self.reply.op == ATTACHED, self.reply.error()
        (self.id, self.platform, self.ring_bytes, self.events_bytes, self.data_bytes,
         self.limit) = struct.unpack("<IIQQQQ", self.reply.payload)
        self.session = socket.socket(fileno=self.reply.fds[0])
        self.session.settimeout(PATIENCE)
        self.segments = self.reply.fds[1:]
        operator = gantryd.operator()
        self.worker = next(v["worker_pid"] for v in vgpus(operator) if int(v["id"], 16) == self.id)
        operator.close()
        self.pidfd = os.pidfd_open(self.worker)

    def close(self):
        self.client.close()
        self.session.close()
        for fd in self.segments:
            os.close(fd)
        os.close(self.pidfd)


class Attaching(unittest.TestCase):
    def setUp(self):
        self.gantryd = Gantryd(env=FAKE)
        self.addCleanup(self.gantryd.__exit__)

    def attached(self, **how):
        a = Attached(self.gantryd, **how)
        self.addCleanup(a.close)
        return a

    def tenant(self, what, name, **settings):
        """Changes tenants; returns the reply."""
        c = self.gantryd.operator()
        self.addCleanup(c.close)
        return change(c, what, name, **settings)

    def test_a_program_is_told_the_platforms(self):
        c = self.gantryd.client(greet=False)
        self.addCleanup(c.close)
        reply = c.ask(HELLO, hello())
        self.assertEqual(reply.op, WELCOME)
        version, n, _ = struct.unpack_from("<IIQ", reply.payload)
        self.assertEqual((version, n, len(reply.payload)), (1, 1, 16 + 152))
        index, devices, api, name = struct.unpack_from("<II16s128s", reply.payload, 16)
        self.assertEqual((index, devices, api.rstrip(b"\0"), name.rstrip(b"\0")),
                         (0, 2, b"opencl", b"Fake Platform"))

    def test_segments_are_sealed_and_as_large_as_said(self):
        a = self.attached()
        sizes = (a.ring_bytes, a.events_bytes, a.data_bytes)
        self.assertEqual(a.events_bytes, 64 << 20)
        self.assertEqual(a.data_bytes, 64 << 20)
        for fd, size in zip(a.segments, sizes):
            self.assertEqual(os.fstat(fd).st_size, size)
            self.assertEqual(fcntl.fcntl(fd, F_GET_SEALS) & SEALED, SEALED)
            self.assertRaises(OSError, os.ftruncate, fd, size // 2)

    def test_what_a_worker_prints_is_the_programs(self):
        c = self.gantryd.client()
        self.addCleanup(c.close)
        out_read, out_write = os.pipe()
        reply = c.ask(ATTACH, attach(stdio=1), (out_write,))
        os.close(out_write)
        self.assertEqual(reply.op, ATTACHED)
        session = socket.socket(fileno=reply.fds[0])
        session.sendall(b"q")
        self.assertEqual(session.recv(1), b"q")
        vgpu = struct.unpack_from("<I", reply.payload)[0]
        self.assertEqual(os.read(out_read, 100), b"vgpu %08x read q\n" % vgpu)
        # gantryd keeps no copy, so the pipe ends with the worker.
        session.close()
        reply.fds[0] = os.dup(reply.fds[1])
        reply.close()
        self.assertEqual(os.read(out_read, 100), b"")
        os.close(out_read)

    def test_a_program_without_stdio_attaches(self):
        c = self.gantryd.client()
        self.addCleanup(c.close)
        reply = c.ask(ATTACH, attach(stdio=0))
        self.assertEqual(reply.op, ATTACHED)
        reply.close()

    def test_more_segments_reach_both_sides(self):
        a = self.attached()
        for index in (1, 2, 3):
            size = index << 20
            reply = a.client.ask(SEGMENT, struct.pack("<Q", size))
            self.assertEqual(reply.op, SEGMENT_MADE)
            self.assertEqual(struct.unpack("<IIQ", reply.payload), (index, 0, size))
            self.assertEqual(os.fstat(reply.fds[0]).st_size, size)
            self.assertEqual(fcntl.fcntl(reply.fds[0], F_GET_SEALS) & SEALED, SEALED)
            # The idle vGPU looks at its control socket before it answers on the session socket.
            a.session.sendall(b"s")
            a.session.recv(1)
            self.assertEqual(struct.unpack("<Q", os.pread(reply.fds[0], 8, 0))[0], size + index)
            reply.close()
        self.assertEqual(vgpus(a.client)[0]["calls"], 3)
        for bad in (0, 1, 4095, 1 << 41, 2**64 - 4096):
            self.assertEqual(a.client.ask(SEGMENT, struct.pack("<Q", bad)).op, ERROR)

    def test_ls_and_devices(self):
        self.tenant("add", "blue.team-1", uids=[os.getuid()])
        a = self.attached(tenant=b"blue.team-1", weight=7, memory=4096)
        operator = self.gantryd.operator()
        self.addCleanup(operator.close)
        v = vgpus(operator)
        self.assertEqual(len(v), 1)
        nothing = {"device_ns": 0, "used_ns": 0, "waited_ns": 0, "grants": 0, "interactive": False,
                   "used": False, "share": 0, "entitled": 0}
        self.assertEqual(v[0], {"id": "%08x" % a.id, "tenant": "blue.team-1", "program": "test",
                                "pid": os.getpid(),
                                "worker_pid": a.worker, "platform": "Fake Platform", "link": "shm",
                                "mode": "remote",
                                "state": "idle", "weight": 7, "memory_bytes": 0, "leased_bytes": 0,
                                "memory_limit_bytes": 4096,
                                "calls": 0, "sync_calls": 0,
                                "copies": {"two": 0, "mapped": 0, "bypass": 0},
                                "devices": [dict(nothing, name="Fake Device One", index=0),
                                            dict(nothing, name="Fake Device Two", index=1)]})
        d = json.loads(operator.control(b'{"version":1,"request":"devices"}'))["devices"]
        self.assertEqual([(x["name"], x["type"], x["present_as"], x["vgpus"]) for x in d],
                         [("Fake Device One", "gpu", "gpu", 1),
                          ("Fake Device Two", "accelerator", "accelerator", 1)])
        self.assertIn("error", json.loads(a.client.control(b"what?")))

    def pidfds(self):
        folder = "/proc/%d/fd" % self.gantryd.process.pid

        def is_pidfd(fd):
            try:
                return os.readlink(os.path.join(folder, fd)) == "anon_inode:[pidfd]"
            except FileNotFoundError:
                return False  # closed meanwhile, as others' descriptors are at any time
        return sum(is_pidfd(fd) for fd in os.listdir(folder))

    def test_a_program_is_watched_once(self):
        other, c = self.attached(), self.gantryd.client()
        before = self.pidfds()
        self.assertEqual(c.attach(zero=1).op, ERROR)  # passthrough, which is not allowed
        self.assertEqual(self.pidfds(), before + 1)
        ring = other.segments[0]
        c.send(frame(WAIT, 2, struct.pack("<IIIIQ32s", 0, 0, 0, 0, 0, b"")), (2, ring))
        while len(vgpus(other.client)) == 1:
            pass
        self.assertEqual(self.pidfds(), before + 1)
        c.close()
        while len(vgpus(other.client)) == 2:
            pass
        self.assertEqual(self.pidfds(), before)

    def test_wait_draws_a_new_id(self):
        other, c = self.attached(), self.gantryd.client()
        for wanted in (0x0badcafe, other.id):
            waiting = self.gantryd.client()
            waiting.send(frame(WAIT, 2, struct.pack("<IIIIQ32s", wanted, 0, 0, 0, 0, b"")),
                         (2, other.segments[0]))
            while len(vgpus(c)) == 1:
                pass
            ids = {int(v["id"], 16) for v in vgpus(c)} - {other.id}
            self.assertEqual(len(ids), 1)
            self.assertNotIn(wanted, ids)
            waiting.close()
            while len(vgpus(c)) == 2:
                pass
        c.close()

    def test_attaches_that_cannot_be_are_refused_and_the_connection_goes_on(self):
        c = self.gantryd.client()
        self.addCleanup(c.close)
        for how in (dict(platform=1), dict(platform=2**32 - 1), dict(tenant=b"a b"),
                    dict(tenant=b"\xff"), dict(tenant=b"nobody"),
                    dict(weight=2**32 - 1)):
            reply = c.attach(**how)
            self.assertEqual(reply.op, ERROR, how)
            self.assertTrue(reply.error()[1])
        self.assertEqual(c.ask(SEGMENT, struct.pack("<Q", 4096)).op, ERROR)
        reply = c.attach()
        self.assertEqual(reply.op, ATTACHED)
        self.assertEqual(c.attach().op, ERROR)  # one a connection
        self.assertEqual(len(vgpus(c)), 1)
        reply.close()

    def test_fifty_attaches_leak_nothing(self):
        template = self.gantryd.template()
        probe = self.gantryd.client()
        self.addCleanup(probe.close)
        self.assertEqual(vgpus(probe), [])
        at_rest = count_fds(self.gantryd.pid)
        warm = Attached(self.gantryd)
        pidfd = os.dup(warm.pidfd)
        warm.close()
        self.assertTrue(wait_gone(pidfd))
        os.close(pidfd)
        before = at_rest, count_fds(template), count_fds()
        for _ in range(50):
            a = Attached(self.gantryd)
            pidfd = os.dup(a.pidfd)
            a.close()
            self.assertTrue(wait_gone(pidfd))
            os.close(pidfd)
        # A short-lived process closes the kernel cache a moment after the last program has ended.
        after, deadline = None, time.monotonic() + PATIENCE
        while after != (before, [template], []) and time.monotonic() < deadline:
            descriptors = count_fds(self.gantryd.pid), count_fds(template), count_fds()
            after = descriptors, children(self.gantryd.pid), vgpus(probe)
        self.assertEqual(after, (before, [template], []))
        while children(template):
            pass  # the last one is reaped

    def test_a_worker_holds_only_its_own(self):
        first, second = self.attached(), self.attached()
        links = [os.readlink("/proc/%d/fd/%s" % (second.worker, fd))
                 for fd in os.listdir("/proc/%d/fd" % second.worker)]
        memfds = [l for l in links if l.startswith("/memfd:")]
        sockets = [l for l in links if l.startswith("socket:")]
        self.assertEqual(len(memfds), 5, links)     # ring, events, data, counters, grants
        self.assertEqual(len(sockets), 2, links)
        self.assertNotEqual(first.worker, second.worker)
        self.assertEqual(open_status(second.worker)["NoNewPrivs"], "1")
        self.assertEqual(open_status(second.worker)["Name"], "gn-%08x" % second.id)
        self.assertIn(b"%08x" % second.id, cmdline(second.worker))

    def test_many_at_once(self):
        done = []

        def one():
            a = Attached(self.gantryd)
            done.append(a)

        threads = [threading.Thread(target=one) for _ in range(40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(done), 40)
        self.assertEqual(len({a.id for a in done}), 40)
        self.assertEqual(len(vgpus(done[0].client)), 40)
        for a in done:
            a.close()

    def test_idle_means_no_wake_up(self):
        a = self.attached()
        pids = self.gantryd.pid, self.gantryd.template(), a.worker

        def switches():
            found = []
            for pid in pids:
                with open("/proc/%d/status" % pid) as f:
                    found.append([line for line in f if "ctxt_switches" in line])
            return found

        # All effects of the last request are over when two listings in a row are the same.
        last = None
        while last != (last := switches()):
            time.sleep(0.05)
        time.sleep(0.5)
        self.assertEqual(switches(), last)


class Deaths(unittest.TestCase):
    def start(self, env=None, **how):
        g = Gantryd(env=dict(FAKE, **(env or {})), **how)
        self.addCleanup(g.__exit__)
        return g

    def program(self, gantryd, then):
        """Starts a process that attaches, reports its worker and runs `then`.

        Returns its pid and the worker's pidfd.
        """
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            a = Attached(gantryd)
            os.write(write, struct.pack("<i", a.worker))
            os.close(write)
            then()
            while True:
                signal.pause()
        os.close(write)
        worker = struct.unpack("<i", os.read(read, 4))[0]
        self.addCleanup(os.close, read)
        return pid, os.pidfd_open(worker), read

    def test_a_killed_programs_worker_ends(self):
        g = self.start()
        pid, worker, _ = self.program(g, lambda: None)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertTrue(wait_gone(worker))
        c = g.client()
        while vgpus(c):
            pass
        c.close()

    def test_even_when_a_child_keeps_its_descriptors(self):
        g = self.start()
        stay_read, stay_write = os.pipe()

        def fork_a_child():
            if os.fork() == 0:
                os.close(stay_write)
                os.read(stay_read, 1)  # until the test ends
                os._exit(0)

        pid, worker, _ = self.program(g, fork_a_child)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertTrue(wait_gone(worker))
        os.close(stay_write)
        os.close(stay_read)

    def test_a_worker_that_does_not_end_is_killed(self):
        g = self.start()
        a = Attached(g)
        os.kill(a.worker, signal.SIGSTOP)
        pidfd = os.dup(a.pidfd)
        a.close()
        self.assertTrue(wait_gone(pidfd))
        os.close(pidfd)

    def test_gantryds_death_ends_everything_and_is_noticed(self):
        g = self.start()
        a, b = Attached(g), Attached(g)
        os.kill(b.worker, signal.SIGSTOP)  # the kernel ends this one, it cannot do it itself
        template = os.pidfd_open(g.template())
        g.process.kill()
        self.assertTrue(wait_gone(a.pidfd))
        self.assertTrue(wait_gone(b.pidfd))
        self.assertTrue(wait_gone(template))
        self.assertIsNone(a.client.receive())
        self.assertEqual(a.session.recv(1), b"")
        os.close(template)
        a.close()
        b.close()

    def test_sigterm_ends_everything_cleanly(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            g = self.start()
            a, b = Attached(g), Attached(g)
            os.kill(b.worker, signal.SIGSTOP)
            status, said = g.stop(sig)
            self.assertEqual((status, said), (0, ""))
            self.assertFalse(os.path.exists(g.path))
            self.assertTrue(wait_gone(a.pidfd) and wait_gone(b.pidfd))
            self.assertIsNone(a.client.receive())
            a.close()
            b.close()

    def test_what_operators_change_is_in_the_log(self):
        g = self.start()
        c = g.operator()
        for request in ({"request": "tenant-add", "name": "blue"},
                        {"request": "tenant-set", "name": "blue", "weight": 5},
                        {"request": "tenant-set", "name": "none-of-it"},
                        {"request": "policy-set", "name": "rr"},
                        {"request": "policy-set", "name": "rr"}, {"request": "drain"},
                        {"request": "drain", "undo": True},
                        {"request": "tenant-rm", "name": "blue"}):
            c.control(json.dumps(dict(request, version=1)).encode())
        c.close()
        by = ", by uid {}".format(os.getuid())
        self.assertEqual(g.stop()[1].splitlines(),
                         ["gantryd: warn: {}{}".format(what, by) for what in
                          ("added the tenant blue", "changed the tenant blue", "the policy is rr",
                           "no new programs are accepted: this gantryd is draining",
                           "new programs are accepted again",
                           "removed the tenant blue")])

    def test_a_lost_worker_is_seen_by_the_program_and_by_ls(self):
        g = self.start()
        a, other = Attached(g), Attached(g)
        os.kill(a.worker, signal.SIGKILL)
        self.assertEqual(a.session.recv(1), b"")
        while True:
            v = {v["id"]: v for v in vgpus(a.client)}
            if v["%08x" % a.id]["state"] == "lost":
                break
        self.assertNotIn("worker_pid", v["%08x" % a.id])
        self.assertEqual(v["%08x" % other.id]["state"], "idle")
        self.assertEqual(a.client.ask(SEGMENT, struct.pack("<Q", 4096)).op, ERROR)
        other.session.sendall(b"x")
        self.assertEqual(other.session.recv(1), b"x")
        a.close()
        c = g.client()
        while len(vgpus(c)) > 1:
            pass
        other.close()
        c.close()
        _, said = g.stop()
        self.assertRegex(said, r"^gantryd: warn: vgpu=%08x: its worker \d+ was ended by signal 9; "
                         r"\"test\" \(%d\)" % (a.id, os.getpid()))

    def test_a_worker_that_breaks_its_protocol_is_killed(self):
        g = self.start()
        for how in (b"-", b"!"):  # leaves its control socket; writes what is no frame
            a = Attached(g)
            a.session.sendall(how)
            self.assertTrue(wait_gone(a.pidfd))
            self.assertEqual(a.session.recv(1), b"")
            a.close()

    def test_a_worker_that_asks_without_end_keeps_nobody_waiting(self):
        g = self.start()
        a, other = Attached(g), Attached(g)
        a.session.sendall(b"%")
        while not wait_gone_now(a.pidfd):   # it reads no answers: that is the end of it
            self.assertEqual(len(vgpus(other.client)), 2)
            b = Attached(g)
            b.close()
            while len(vgpus(other.client)) > 2:
                pass
        other.session.sendall(b"x")
        self.assertEqual(other.session.recv(1), b"x")
        a.close()
        c = g.client()
        while [v["state"] for v in vgpus(c) if int(v["id"], 16) == a.id]:
            pass
        tenants = json.loads(c.control(b'{"version":1,"request":"tenants"}'))["tenants"]
        self.assertEqual([t["leased_bytes"] for t in tenants], [0])
        c.close()
        other.close()

    def test_a_lost_template_is_replaced(self):
        g = self.start()
        a = Attached(g)
        old = g.template()
        os.kill(old, signal.SIGKILL)
        self.assertTrue(wait_gone(a.pidfd))
        b = Attached(g)
        self.assertNotEqual(g.template(), old)
        a.close()
        b.close()

    def test_a_template_that_cannot_be_reaped_is_not_waited_for(self):
        g = self.start()
        old = g.template()
        # The tracer learns first that the process has ended; gantryd learns it when the tracer has
        # waited for it.
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(PTRACE_SEIZE, old, None, None):
            self.skipTest("may not trace: %s" % os.strerror(ctypes.get_errno()))
        pidfd = os.pidfd_open(old)
        try:
            os.kill(old, signal.SIGKILL)
            self.assertTrue(wait_gone(pidfd))
            c = g.client()
            reply = c.attach()
            self.assertEqual(reply.op, ATTACHED)
            reply.close()
            c.close()
            self.assertEqual(g.stop()[0], 0)
        finally:
            os.close(pidfd)
            os.waitpid(old, 0)

    def test_what_a_worker_leaves_behind_is_killed(self):
        g = self.start(env={"FAKE_VENDOR": "orphan-in-worker"})
        a = Attached(g)
        orphan, = children(a.worker)
        orphan_fd = os.pidfd_open(orphan)
        a.close()
        self.assertTrue(wait_gone(orphan_fd))
        os.close(orphan_fd)

    def test_a_program_that_leaves_while_it_attaches(self):
        g = self.start()
        for _ in range(20):
            c = g.client()
            c.send(frame(ATTACH, 2, attach(stdio=0)))
            c.close()
        c = g.client()
        self.assertEqual(c.attach().op, ATTACHED)
        while len(vgpus(c)) > 1:
            pass
        c.close()


class Drivers(unittest.TestCase):
    def test_a_worker_whose_driver_fails_is_an_error_and_no_more(self):
        for mode, says in (("crash-in-worker", "died"), ("exit-in-worker", "died"),
                           ("fail-in-worker", "offers no platform")):
            with Gantryd(env=dict(FAKE, FAKE_VENDOR=mode)) as g:
                c = g.client()
                for _ in range(3):
                    reply = c.attach()
                    self.assertEqual(reply.op, ERROR)
                    self.assertIn(says, reply.error()[1])
                self.assertEqual(vgpus(c), [])
                c.close()

    def test_a_driver_that_starts_threads_when_loaded_is_loaded_late(self):
        with Gantryd(env=dict(FAKE, FAKE_VENDOR="thread-on-load")) as g:
            a = Attached(g)
            self.assertEqual(len(os.listdir("/proc/%d/task" % g.template())), 1)
            self.assertEqual(len(os.listdir("/proc/%d/task" % a.worker)), 2)
            a.close()
            _, said = g.stop()
            # before it was ready, or after
            self.assertIn("starts threads when it is loaded", "".join(g.lines) + said)

    def test_several_drivers_are_several_platforms(self):
        with tempfile.TemporaryDirectory() as d:
            for name, library in (("1", "/nonexistent/lib.so"),
                                  ("2", os.environ["FAKE_VENDOR_LIBRARY"]),
                                  ("3", os.environ["FAKE_VENDOR_LIBRARY"])):
                with open(os.path.join(d, name + ".icd"), "w") as f:
                    f.write(library + "\n")
            with Gantryd(env={"OCL_ICD_VENDORS": d}) as g:
                self.assertEqual(len(g.lines), 2)
                self.assertRegex(g.lines[0],
                                 "^gantryd: warn: the driver /nonexistent/lib.so: .*, ignoring it$")
                a, b = Attached(g, platform=0), Attached(g, platform=1)
                parents = {int(open_status(x.worker)["PPid"]) for x in (a, b)}
                self.assertEqual(len(parents), 2)
                self.assertEqual(sorted(parents), sorted(children(g.pid)))
                c = g.client()
                self.assertEqual(c.attach(platform=2).op, ERROR)
                for x in (a, b, c):
                    x.close()

    def test_pocl_behind_gantryd(self):
        env = {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors/pocl.icd"}
        if not os.path.exists(env["OCL_ICD_VENDORS"]):
            self.skipTest("PoCL is not installed")
        with Gantryd("--device", "pthread,present-as=gpu", env=env) as g:
            a = Attached(g)
            a.session.sendall(b"p")
            self.assertEqual(a.session.recv(1), b"p")
            device, = json.loads(a.client.control(b'{"version":1,"request":"devices"}'))["devices"]
            self.assertEqual((device["type"], device["present_as"]), ("cpu", "gpu"))
            self.assertGreater(device["memory_bytes"], 0)
            with open("/proc/%d/maps" % g.pid) as f:
                self.assertNotIn("pocl", f.read())
            with open("/proc/%d/maps" % g.template()) as f:
                self.assertIn("pocl", f.read())
            self.assertEqual(len(os.listdir("/proc/%d/task" % g.template())), 1)
            a.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
