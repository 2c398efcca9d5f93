#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose vGPUs go from one gantryd of this machine to another and back while they run: what they compute is what they compute
undisturbed, and whatever is asked wrongly changes nothing.

    daemons_test.py STAGE PROGRAM LOAD      STAGE: what make stage leaves; PROGRAM: moved; LOAD: gantry-load
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "daemon"))
from gantryd_harness import Client, beside, frame  # noqa: E402
from moves_harness import (  # noqa: E402
    BetweenTwo, MovesCase, STEPS, TIMEOUT_S, command, gantry, slow, start_again, telling,
    wait_until)

HELLO, WELCOME, CONTROL, ERROR, CLAIM, CLAIMED, GO, FILE = 1, 2, 7, 8, 20, 21, 23, 24
MOVE, COMES, LEAVE, LEFT, READY = 11, 12, 13, 15, 22
CONTROL_ONLY, CLAIMS = 2, 4
ADDRESS_BYTES = 272
MovesCase.stage, MovesCase.path, LOAD = (os.path.abspath(p) for p in sys.argv[1:4])


def hello_for(features):
    return struct.pack("<IIQII128s", 0x79727467, 1, features, os.getpid(), 0, b"test")


def control(daemon, request):
    c = Client(beside(daemon.socket, "control"), greet=False)
    c.ask(HELLO, hello_for(CONTROL_ONLY))
    reply = json.loads(c.control(json.dumps(dict(request, version=1)).encode()))
    c.socket.close()
    return reply


class Daemons(BetweenTwo, MovesCase):
    load = LOAD
    kept = ("tenant", "pid", "weight", "memory_limit_bytes", "program")

    def test_the_one_that_was_left_may_end(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        self.move(a, b)
        start_again(a)
        program.on()
        self.assertEqual(program.at(), STEPS[1])
        self.move(b, a)
        start_again(b, signal.SIGTERM)
        for name in STEPS[2:]:
            program.on()
            self.assertEqual(program.at(), name)
        program.on()
        self.assertIsNone(program.ends_well())

    def test_into_a_file_where_it_has_gone(self):
        a, b = self.daemon("a"), self.daemon("b")
        path = os.path.join(self.work, "v.gnc")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        self.move(a, b)
        status, said = gantry(b, "checkpoint", b.vgpus()[0]["id"], path, "--stop")
        self.assertEqual(status, 0, said)
        start_again(b)  # the program looks for it where it was, not where it has begun
        status, said = gantry(b, "restore", path)
        self.assertEqual(status, 0, said)
        self.assertEqual(a.vgpus(), [])
        self.move(b, a)
        self.ends_well(program)

    def test_what_is_asked_wrongly_changes_nothing(self):
        a, b = self.daemon("a", env={"POCL_DEVICES": "pthread basic"}), self.daemon("b", args=["--device", "pthread"])
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        self.refused(a, "there is no vGPU", "migrate", "zz", b.address)
        self.refused(a, "no gantryd listens", "migrate", vgpu, "unix:" + os.path.join(self.work, "nobody"))
        self.refused(a, "there already", "migrate", vgpu, a.address)
        self.refused(a, "no gantryd listens", "migrate", vgpu, "tcp:127.0.0.1:1")
        self.refused(a, "it has 2 devices of its platform", "migrate", vgpu, b.address)
        self.assertEqual(b.vgpus(), [])
        self.ends_well(program)

    def between(self, b):
        """The address of one that hands on what a program and b say to each other until it has claimed, and says CLAIMED twice."""
        path = os.path.join(self.work, "between")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()

        def hand_on():
            program, there = Client.__new__(Client), Client(b.socket, greet=False)
            program.socket = listener.accept()[0]
            for n_times in (1, 2):
                asked = program.receive()
                there.send(frame(asked.op, asked.seq, asked.payload), asked.fds)
                reply = there.receive()
                program.send(n_times * frame(reply.op, reply.seq, reply.payload))
                for fd in asked.fds:
                    os.close(fd)
            program.receive()  # its hang-up
            program.socket.close()
            there.socket.close()
        thread = threading.Thread(target=hand_on)
        thread.start()
        self.addCleanup(listener.close)
        self.addCleanup(thread.join)
        return "unix:" + path

    def test_a_gantryd_that_repeats_itself_gets_nothing(self):
        """Else a program would listen to it for as long as it likes."""
        a, b = self.daemon("a"), self.daemon("b")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        _, ticket, _ = self.announced(a, b)
        mover = Client(beside(a.socket, "control"), greet=False)
        self.addCleanup(mover.socket.close)
        mover.socket.settimeout(TIMEOUT_S)
        self.assertEqual(mover.ask(HELLO, hello_for(CONTROL_ONLY)).op, WELCOME)
        mover.send(frame(FILE, 7), [self.stream.fileno()])
        said = json.loads(mover.control(json.dumps({"version": 1, "request": "migrate", "vgpu": vgpu, "to": self.between(b),
                                                    "ticket": ticket.hex()}).encode()))
        self.assertIn("the other gantryd says the same twice", said["error"]["why"])
        self.assertEqual([v["id"] for v in a.vgpus()], [vgpu])
        self.ends_well(program)

    def announced(self, a, b):
        """A ticket of b's for a's vGPU, and the connection that has it."""
        asker = Client(beside(b.socket, "control"), greet=False)
        self.addCleanup(asker.socket.close)
        self.assertEqual(asker.ask(HELLO, hello_for(CONTROL_ONLY)).op, WELCOME)
        about = control(a, {"request": "about", "vgpu": a.vgpus()[0]["id"]})["about"]
        ends = socket.socketpair()
        self.addCleanup(lambda: [e.close() for e in ends])
        self.stream = ends[0]
        asker.send(frame(FILE, 7), [ends[1].fileno()])
        said = asker.control(json.dumps({"version": 1, "request": "receive", "about": about}).encode())
        return asker, bytes.fromhex(json.loads(said)["receive"]["ticket"]), int(about["id"], 16)

    def claim(self, b, ticket, vgpu, ring):
        claimer = Client(b.socket, greet=False)
        self.addCleanup(claimer.socket.close)
        self.assertEqual(claimer.ask(HELLO, hello_for(CLAIMS)).op, WELCOME)
        reply = claimer.ask(CLAIM, struct.pack("<II32s", vgpu, 0, ticket), [ring])
        return claimer, reply

    def test_tickets(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        attached = Client(b.socket)
        ring = attached.attach().fds[1]  # some session's: a claim must bring one
        attached.socket.close()
        self.assertTrue(wait_until(lambda: not b.vgpus(), TIMEOUT_S))
        asker, ticket, vgpu = self.announced(a, b)

        def refused(ticket, vgpu, ring):
            claimer, reply = self.claim(b, ticket, vgpu, ring)
            self.assertEqual(reply.op, ERROR)
            self.assertIsNone(claimer.receive())
            return reply.error()[1]
        self.assertIn("the ticket is unknown there", refused(os.urandom(32), vgpu, ring))
        self.assertIn("the ticket is unknown there", refused(ticket[:31] + bytes([ticket[31] ^ 1]), vgpu, ring))
        self.assertIn("no session", refused(ticket, vgpu, asker.socket.fileno()))
        with open(os.devnull, "rb") as null:
            self.assertIn("no session", refused(ticket, vgpu, null.fileno()))
        self.assertTrue(wait_until(lambda: "the ticket is unknown there" in b.log(), TIMEOUT_S), b.log())
        # Used: nobody else has it after, and who has it is not asked for before all is there.
        # The ticket decides which vGPU it is: the program may know it by an older id.
        claimer, reply = self.claim(b, ticket, vgpu ^ 1, ring)
        self.assertEqual(reply.op, CLAIMED)
        self.assertEqual(struct.unpack_from("<I", reply.payload)[0], vgpu)
        self.assertIn("the ticket is unknown there", refused(ticket, vgpu, ring))
        claimer.send(frame(GO, 0))
        self.assertIsNone(claimer.receive())
        # Its asker has gone.
        asker, ticket, vgpu = self.announced(a, b)
        asker.socket.close()
        self.assertTrue(wait_until(lambda: "ticket is unknown" in refused(ticket, vgpu, ring), TIMEOUT_S))
        # A connection for other things claims nothing, and one for a claim attaches to nothing.
        other = Client(b.socket)
        self.assertIsNone(other.ask(CLAIM, struct.pack("<II32s", vgpu, 0, ticket), [ring]))
        claimer = Client(b.socket, greet=False)
        claimer.ask(HELLO, hello_for(CLAIMS))
        self.assertEqual(claimer.attach(tenant=b"default").op, ERROR)
        claimer.socket.close()
        os.close(ring)
        self.assertEqual(b.vgpus(), [])
        self.move(a, b)
        self.ends_well(program)

    def test_no_tenant_takes_all_places(self):
        a, b = self.daemon("a"), self.daemon("b")
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        about = control(a, {"request": "about", "vgpu": a.vgpus()[0]["id"]})["about"]
        control(b, {"request": "tenant-add", "name": "other"})
        asker = Client(beside(b.socket, "control"), greet=False)
        self.addCleanup(asker.socket.close)
        self.assertEqual(asker.ask(HELLO, hello_for(CONTROL_ONLY)).op, WELCOME)

        def announce(tenant):
            ends = socket.socketpair()
            self.addCleanup(lambda: [e.close() for e in ends])
            asker.send(frame(FILE, 7), [ends[1].fileno()])
            return json.loads(asker.control(json.dumps({"version": 1, "request": "receive", "about": dict(about, tenant=tenant)}).encode()))
        for _ in range(16):
            self.assertIn("ticket", announce("default")["receive"])
        self.assertIn('16 vGPUs of the tenant "default" are on their way there already', announce("default")["error"]["why"])
        self.assertIn("ticket", announce("other")["receive"])
        self.ends_well(program)

    @slow
    def test_a_program_that_does_not_say_where_it_goes_on(self):
        """Who moves it is told so and waits no longer; the program may still say it."""
        a, b = self.daemon("a"), self.daemon("b")
        there = Client(a.socket)
        there.socket.settimeout(TIMEOUT_S)
        self.addCleanup(there.socket.close)
        ring = there.attach().fds[1]
        vgpu = a.vgpus()[0]["id"]
        move = subprocess.Popen(command(a, "migrate", "--quiet", vgpu, b.address), stderr=subprocess.PIPE, text=True)
        self.addCleanup(move.communicate)
        self.addCleanup(move.kill)
        told = there.receive()
        self.assertEqual(told.op, MOVE)
        claimer, reply = self.claim(b, told.payload[ADDRESS_BYTES:ADDRESS_BYTES + 32], int(vgpu, 16), ring)
        self.assertEqual(reply.op, CLAIMED)
        there.send(frame(COMES, told.seq))
        self.assertEqual(there.receive().op, LEAVE)
        self.assertEqual(claimer.receive().op, READY)
        _, said = move.communicate(timeout=TIMEOUT_S)
        self.assertEqual(move.returncode, 1, said)
        self.assertIn("the program of %s does not say where it goes on" % vgpu, said)
        self.assertEqual([v["id"] for v in a.vgpus()], [vgpu])
        claimer.send(frame(GO, 0))
        there.send(frame(LEFT, told.seq, bytes(16)))
        self.assertIsNone(there.receive())
        self.assertTrue(wait_until(lambda: not a.vgpus(), TIMEOUT_S))
        self.assertEqual([v["id"] for v in b.vgpus()], [vgpu])
        os.close(ring)

    def test_a_device_with_too_small_a_budget_is_refused_before_anything_stops(self):
        budget = os.path.join(self.work, "budget.conf")
        with open(budget, "w", encoding="ascii") as f:
            f.write("[device pthread]\nmemory = 1M\n")
        a, b = self.daemon("a"), self.daemon("b", args=["--config", budget])
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        self.refused(a, "its devices have 1 left there and 0 of these promised", "migrate",
                     a.vgpus()[0]["id"], b.address)

    def test_it_is_refused_before_anything_stops(self):
        a, b = self.daemon("a"), self.daemon("b")
        b.ctl("tenant", "set", "default", "--memory", "1M")
        a.ctl("tenant", "add", "blue", "--uid", str(os.getuid()))
        program = self.program(a)
        self.assertEqual(program.at(), STEPS[0])
        vgpu = a.vgpus()[0]["id"]
        self.refused(a, "of device memory", "migrate", vgpu, b.address)
        blue = self.at_first(a, GANTRY_TENANT="blue")
        other = [v["id"] for v in a.vgpus() if v["tenant"] == "blue"][0]
        self.refused(a, "there is no tenant", "migrate", other, b.address)
        b.ctl("tenant", "add", "blue")
        status, said = gantry(a, "migrate", other, b.address)
        self.assertEqual(status, 0, said)
        self.assertEqual([v["tenant"] for v in b.vgpus()], ["blue"])
        for p in (program, blue):
            self.ends_well(p)


if __name__ == "__main__":
    telling.main(MovesCase.stage, sys.argv[4:])
