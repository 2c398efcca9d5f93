#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who is not let in over tcp: refused, one line in the log, no worker, and everybody else is served meanwhile."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from authority import Authority
from tcp_harness import ANSWER_S, SKIP, STAGE, TcpCase, daemon, main

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attacks"))

from wire import Wire  # noqa: E402

HELLO = struct.pack("<IHHII", 168, 1, 0, 1, 0) + struct.pack("<IIQII128s", 0x79727467, 1, 0, 1, 0, b"test")
CLIENT_HELLO = bytes.fromhex("160301008001000 07c0303".replace(" ", ""))
DATA = b"gtrydata" + struct.pack("<II", 1, 0)


class Listener:
    """Somebody on the way: passes connections on, and keeps what the data connections among them begin with."""

    def __init__(self, port):
        self.to, self.heard = port, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.ends = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        try:
            while True:
                near, far = self.socket.accept()[0], socket.create_connection(("127.0.0.1", self.to))
                self.ends += [near, far]
                threading.Thread(target=self.pump, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self.pump, args=(far, near, False), daemon=True).start()
        except OSError:
            pass

    def pump(self, source, to, listens):
        try:
            first = source.recv(80, socket.MSG_WAITALL) if listens else source.recv(65536)
            if listens and first.startswith(b"gtrydata"):
                self.heard.append(first)
            while first:
                to.sendall(first)
                first = source.recv(65536)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.socket.close()
        for s in self.ends:
            s.close()


class Refusals(TcpCase):
    ARGS = []

    def setUp(self):
        super().setUp()
        pki = os.path.join(self.work.name, "pki")
        os.mkdir(pki)
        self.authority = Authority(pki)

    def start_refused(self, says, *args):
        done = subprocess.run([os.path.join(STAGE, "bin/gantryd"), "--socket", os.path.join(self.work.name, "s"), *args],
                              env=daemon.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=ANSWER_S, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr.splitlines()[-1])

    def ls(self, gantry, **env):
        return subprocess.run([os.path.join(STAGE, "bin/gantry"), "ls", "--connect", gantry.tcp_address], env={**daemon.clean_env(), **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=ANSWER_S)

    def dial(self, gantry, first=b""):
        s = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S)
        self.addCleanup(s.close)
        s.sendall(first)
        return s

    @staticmethod
    def is_closed(s):
        """Waits until the other side hangs up; what it says before does not count."""
        try:
            while s.recv(4096):
                pass
        except ConnectionError:
            pass
        return True

    def refusals(self, gantry):
        return [line for line in gantry.log().splitlines() if "refused" in line]

    def served(self, gantry):
        """Somebody with credentials gets what he wants."""
        p = self.program(gantry, **self.authority.client())
        self.assertEqual(p.ready, "ready 0")
        self.assertEqual(p.do("rounds 2"), 0)
        self.assertEqual(p.end(), 0)
        self.until(lambda: not gantry.vgpus(), "the vGPU outlives its program")

    def test_listening_wants_credentials(self):
        listen = ["--listen", "tcp:127.0.0.1:0"]
        self.start_refused("without credentials would let anybody in", *listen)
        self.start_refused("go together", *listen, "--tls-certificate", self.authority.path("server.pem"))
        self.start_refused("key values mismatch", *listen, "--tls-certificate", self.authority.path("server.pem"),
                           "--tls-key", self.authority.path("own.key"))
        self.start_refused("cannot use the certificate /nonexistent: No such file or directory", *listen, "--tls-certificate", "/nonexistent", "--tls-key", "/nonexistent")

    def test_who_is_refused(self):
        with self.gantry(*self.authority.server()) as gantry:
            self.served(gantry)
            self.assertEqual(self.refusals(gantry), [])
            strangers = (
                ("no certificate", "gantryd wants a certificate; set GANTRY_TLS_CERT and GANTRY_TLS_KEY, or",
                 lambda: self.ls(gantry, GANTRY_TLS_CA=self.authority.path("ca.pem"))),
                ("one of his own", "gantryd does not accept the certificate of GANTRY_TLS_CERT; set",
                 lambda: self.ls(gantry, **self.authority.client("own"))),
                ("no belief in us", "the certificate of the other side is refused",
                 lambda: self.ls(gantry, **self.authority.client(authority="own.pem"))),
                ("no credentials at all", "this gantryd requires credentials over tcp; set GANTRY_TOKEN",
                 lambda: self.ls(gantry)),
                ("a token of nobody's", "gantryd does not know this token; see that GANTRY_TOKEN", lambda: self.ls(gantry, GANTRY_TOKEN="not-a-token-of-anybody")),
                ("a token of nobody's, and an authority", "GANTRY_TOKEN to a tenant's token",
                 lambda: self.ls(gantry, GANTRY_TOKEN="not-a-token-of-anybody", GANTRY_TLS_CA=self.authority.path("ca.pem"))),
                ("plain text", None, lambda: self.is_closed(self.dial(gantry, HELLO))),
                ("something else", None, lambda: self.is_closed(self.dial(gantry, b"GET / HTTP/1.1\r\n\r\n"))),
                ("a session that is none", None, lambda: self.is_closed(self.dial(gantry, DATA + bytes(64)))),
                ("TLS that is none", None, lambda: self.is_closed(self.dial(gantry, b"\x16" + bytes(300)))),
            )
            for n, (who, says, tries) in enumerate(strangers, 1):
                with self.subTest(who):
                    result = tries()
                    if result is not True:
                        self.assertEqual(result.returncode, 1, result.stderr)
                        self.assertEqual(result.stdout, "")
                        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                        self.assertIn(says, result.stderr)
                    self.until(lambda: len(self.refusals(gantry)) >= n, "no line in the log")
                    self.assertEqual(len(self.refusals(gantry)), n, gantry.log())
            self.assertEqual(gantry.vgpus(), [])
            self.assertEqual(gantry.log().count("attached"), 1)
            self.served(gantry)

    def test_who_takes_his_time(self):
        with self.gantry(*self.authority.server()) as gantry:
            silent = self.dial(gantry)
            half = self.dial(gantry, CLIENT_HELLO)
            name = self.dial(gantry, DATA[:11])
            self.served(gantry)
            for s in (silent, half, name):
                self.assertTrue(self.is_closed(s))
            self.until(lambda: len(self.refusals(gantry)) >= 3, "no line in the log")
            self.assertEqual(len(self.refusals(gantry)), 3, gantry.log())
            self.assertTrue(any("did not finish its handshake" in line for line in self.refusals(gantry)))

    def test_a_flood_is_bounded(self):
        with self.gantry(*self.authority.server()) as gantry:
            held = [self.dial(gantry) for _ in range(400)]
            self.served(gantry)
            # The oldest made room, and were told of in few lines.
            self.assertTrue(self.is_closed(held[0]))
            self.assertLessEqual(len(self.refusals(gantry)), 20, gantry.log())

    def test_somebody_elses_session(self):
        """Knowing a session's name is not enough: the worker asks for its key, and goes on with the connection it has."""
        with self.gantry(*self.authority.server()) as gantry:
            listener = Listener(self.port(gantry))
            self.addCleanup(listener.close)
            p = self.program(gantry, listener, **self.authority.client())
            self.assertEqual(p.do("rounds 1"), 0)
            name = listener.heard[0]
            self.assertEqual(len(name), 80)
            self.assertEqual(name[48:], bytes(32), "the key travels in the clear")
            for rest in (b"", bytes(200), CLIENT_HELLO):
                self.dial(gantry, name + rest)
                self.assertEqual(p.do("rounds 2"), 0)
            # More at once than the worker talks to: the program's own connection is not touched.
            held = [self.dial(gantry, name) for _ in range(12)]
            self.assertEqual(p.do("rounds 2"), 0)
            for s in held:
                self.assertTrue(self.is_closed(s))
            self.assertIn("a data connection is refused", gantry.log())
            self.assertEqual(p.do("rounds 2"), 0)
            p.end()


class TokenCase(TcpCase):
    """A gantryd with a tenant that has a token."""
    ARGS = []

    def setUp(self):
        super().setUp()
        self.token = "a-token-that-nobody-guesses"
        self.file = os.path.join(self.work.name, "token")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(self.token + "\n")
        os.chmod(self.file, 0o600)
        self.config = os.path.join(self.work.name, "gantry.conf")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write("[tenant alice]\ntoken-file = {}\n".format(self.file))


class Tokens(TokenCase):
    """A token is all that it takes: it proves both sides to each other."""

    def test_who_has_it_is_let_in(self):
        with self.gantry("--config", self.config) as gantry:
            p = self.program(gantry, GANTRY_TENANT="alice", GANTRY_TOKEN=self.token)
            self.assertEqual(p.ready, "ready 0")
            self.assertEqual(p.do("rounds 2"), 0)
            self.assertEqual(p.do("bulk 1"), 0)
            self.assertEqual([(v["tenant"], v["link"]) for v in gantry.vgpus()], [("alice", "tcp")])
            p.end()

    def test_a_forked_child_touches_nothing_of_it(self):
        watched = {"GANTRY_TLS_MODULE": os.environ["WATCHED"], "WATCHED_TLS": os.path.join(os.path.abspath(STAGE), "lib", "libgantry-tls.so")}
        with self.gantry("--config", self.config) as gantry:
            p = self.program(gantry, GANTRY_TENANT="alice", GANTRY_TOKEN=self.token, **watched)
            self.assertEqual(p.do("rounds 2"), 0)
            self.assertEqual(p.do("fork"), 0)
            self.assertEqual(p.do("rounds 2"), 0)
            self.assertEqual([v["link"] for v in gantry.vgpus()], ["tcp"])
            p.end()

    def test_calls_of_exit_handlers(self):
        """They run while the process ends. Where OpenSSL has ended before, what they ask for is lost, at once."""
        with self.gantry("--config", self.config) as gantry:
            for exits, result in (("plain", 0), ("openssl", -5)):
                # OpenSSL's end forgets what it keeps for threads that are still there.
                leaks = {"ASAN_OPTIONS": "detect_leaks=0"} if exits == "openssl" else {}
                for _ in range(5):
                    p = self.program(gantry, GANTRY_TENANT="alice", GANTRY_TOKEN=self.token, WANDERER_EXIT=exits, **leaks)
                    self.assertEqual(p.do("rounds 2"), 0)
                    began = time.monotonic()
                    p.process.stdin.close()
                    self.assertEqual(p.heard(), result)
                    self.assertLess(time.monotonic() - began, self.GRACE_S)
                    self.assertEqual(p.end(), 0)

    def test_what_is_cut_comes_back(self):
        with self.gantry("--config", self.config) as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay, GANTRY_TENANT="alice", GANTRY_TOKEN=self.token)
            self.assertEqual(p.ready, "ready 0")
            self.assertEqual(self.cut_while(p, relay, "rounds 600", 2), 0)
            self.assertEqual(self.cut_while(p, relay, "bulk 6", 1), 0)
            p.end()

    def test_who_has_not_is_not(self):
        with self.gantry("--config", self.config) as gantry:
            for n, (env, says) in enumerate(((dict(GANTRY_TENANT="alice", GANTRY_TOKEN=self.token + "x"), "refuses the TLS handshake"),
                                             (dict(GANTRY_TENANT="alice"), "requires credentials"),
                                             (dict(GANTRY_TOKEN=self.token), "may not attach to"),
                                             (dict(GANTRY_TENANT="bob", GANTRY_TOKEN=self.token), "may not attach to"),
                                             ), 1):
                done = subprocess.run([os.path.join(STAGE, "bin/gantry"), "ls", "--connect", gantry.tcp_address],
                                      env={**daemon.clean_env(), **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, timeout=ANSWER_S)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(says, done.stderr)
                self.until(lambda: gantry.log().count("refused") >= n, "no line in the log")
                self.assertEqual(gantry.log().count("refused"), n, gantry.log())
            self.assertEqual(gantry.vgpus(), [])

    def test_a_new_one_holds_at_once_and_a_removed_one_no_more(self):
        with self.gantry("--config", self.config) as gantry:
            other = os.path.join(self.work.name, "other")
            with open(other, "w", encoding="utf-8") as f:
                f.write("another-token-of-enough-length\n")
            os.chmod(other, 0o600)
            gantry.ctl("tenant", "add", "carol", "--token-file", other)
            p = self.program(gantry, GANTRY_TENANT="carol", GANTRY_TOKEN="another-token-of-enough-length")
            self.assertEqual(p.ready, "ready 0")
            p.end()
            self.until(lambda: not gantry.vgpus(), "the vGPU outlives its program")
            gantry.ctl("tenant", "rm", "carol")
            p = self.program(gantry, GANTRY_TENANT="carol", GANTRY_TOKEN="another-token-of-enough-length")
            self.assertNotEqual(p.ready, "ready 0")
            p.end()


class TokensAndCertificates(TokenCase):
    """A gantryd that asks for certificates takes tokens as well; one of the two is enough, and a wrong one of them is not."""

    def setUp(self):
        super().setUp()
        pki = os.path.join(self.work.name, "pki")
        os.mkdir(pki)
        self.authority = Authority(pki)
        self.ARGS = self.authority.server()

    def test_either_is_enough(self):
        ca = {"GANTRY_TLS_CA": self.authority.path("ca.pem")}
        with self.gantry("--config", self.config) as gantry:
            for tenant, env in (("alice", dict(GANTRY_TOKEN=self.token)),
                                ("alice", dict(GANTRY_TOKEN=self.token, **ca)),
                                ("alice", dict(GANTRY_TOKEN=self.token, **self.authority.client())),
                                ("default", self.authority.client()),
                                ("default", dict(GANTRY_TOKEN="a-token-that-nobody-knows", **self.authority.client()))):
                with self.subTest(env):
                    p = self.program(gantry, GANTRY_TENANT=tenant, **env)
                    self.assertEqual(p.ready, "ready 0", gantry.log())
                    self.assertEqual(p.do("rounds 2"), 0)
                    self.assertEqual([(v["tenant"], v["link"]) for v in gantry.vgpus()], [(tenant, "tcp")])
                    p.end()
                    self.until(lambda: not gantry.vgpus(), "the vGPU outlives its program")

    def test_what_is_cut_comes_back_with_either(self):
        with self.gantry("--config", self.config) as gantry:
            for tenant, env in (("alice", dict(GANTRY_TOKEN=self.token)), ("default", self.authority.client())):
                relay = self.relay(gantry)
                p = self.program(gantry, relay, GANTRY_TENANT=tenant, **env)
                self.assertEqual(p.ready, "ready 0")
                self.assertEqual(self.cut_while(p, relay, "rounds 600", 2), 0)
                p.end()

    def test_neither_is_not(self):
        ca = {"GANTRY_TLS_CA": self.authority.path("ca.pem")}
        with self.gantry("--config", self.config) as gantry:
            for n, env in enumerate((dict(GANTRY_TENANT="alice", GANTRY_TOKEN=self.token + "x", **ca),
                                     dict(GANTRY_TENANT="alice", **ca),
                                     dict(GANTRY_TENANT="alice", **self.authority.client()),
                                     dict(GANTRY_TENANT="alice", **self.authority.client("own"))), 1):
                done = subprocess.run([os.path.join(STAGE, "bin/gantry"), "ls", "--connect", gantry.tcp_address],
                                      env={**daemon.clean_env(), **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, timeout=ANSWER_S)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.until(lambda: gantry.log().count("refused") >= n, "no line in the log")
            self.assertEqual(gantry.vgpus(), [])


def frame(op, seq, payload):
    return struct.pack("<IHHII", 16 + len(payload), op, 0, seq, 0) + payload


def record(kind, part, at, payload=b""):
    return struct.pack("<IHHQ", len(payload), kind, part, at) + payload


class Plain(TcpCase):
    """With --insecure: everybody, but still no session without its key."""

    def received(self, s, n):
        data = b""
        while len(data) < n:
            piece = s.recv(n - len(data))
            self.assertTrue(piece, "hung up")
            data += piece
        return data

    def attached(self, gantry, memory):
        """A session by hand: its control connection and its data connection."""
        control = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S)
        self.addCleanup(control.close)
        control.sendall(HELLO)
        size = struct.unpack("<I", self.received(control, 4))[0]
        self.received(control, size - 4)
        control.sendall(frame(3, 2, struct.pack("<IIQII64s", 0, 0, memory, 0, 0, b"")))
        size, op = struct.unpack("<IH", self.received(control, 6))
        answer = self.received(control, size - 6)
        self.assertEqual(op, 16, answer)
        session, key = answer[10 + 32:10 + 64], answer[10 + 64:10 + 96]
        data = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S)
        self.addCleanup(data.close)
        data.sendall(DATA + session + key + struct.pack("<QIIQQ", 0x316d61657274736e, 1, 0, 0, 0))
        self.received(data, 32)
        return control, data

    def test_memory_is_not_filled_by_sending(self):
        with self.gantry() as gantry:
            control, data = self.attached(gantry, 16 << 20)
            worker = gantry.vgpus()[0]["worker_pid"]
            self.assertTrue(worker)
            data.sendall(record(9, 1, 256 << 30))
            full = bytes(1 << 20)
            sent = 0
            try:
                while sent < 2000:
                    data.sendall(record(2, 1, sent << 20, full))
                    sent += 1
            except ConnectionError:
                pass
            self.assertLess(sent, 2000, "as much as it likes")
            self.assertGreaterEqual(sent, 512, gantry.log())
            self.until(lambda: "fills more memory than it may have" in gantry.log(), "no reason in the log")
            control.close()

    def test_records_that_are_none_end_the_session_alone(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            for bad in (record(99, 0, 0), record(2, 7, 0, b"x"), record(2, 0, 1 << 62, b"x"), record(8, 0, 0, bytes(2000)),
                        record(8, 0, 0, bytes(4)), record(1, 0, 1 << 60), record(9, 7, 4096), record(10, 0, 1 << 40),
                        record(4, 5, 1, bytes(3)), struct.pack("<IHHQ", 1 << 31, 2, 0, 0)):
                control, data = self.attached(gantry, 0)
                data.sendall(bad)
                self.assertEqual(data.recv(1), b"")
                control.close()
                data.close()
            self.assertEqual(p.do("rounds 3"), 0)
            self.assertEqual(gantry.log().count("is malformed"), 10, gantry.log())
            p.end()

    def test_no_more_is_put_aside_than_may_be_awaited(self):
        """Questions whose data are still to come: as many as there are slots for answers, each answered when they have."""
        wire = Wire(os.path.dirname(STAGE))
        slots = 256
        with self.gantry() as gantry:
            control, data = self.attached(gantry, 0)

            def put_aside(n, batch):
                question = wire.question()
                data.sendall(b"".join(record(8, 0, batch, question[:8] + struct.pack("<I", 1 << 8 | i & 255) + question[12:])
                                      for i in range(n)))

            put_aside(slots, 1)
            data.sendall(record(3, 0, 0))
            answered = set()
            while len(answered) < slots:
                size, kind, _, at = struct.unpack("<IHHQ", self.received(data, 16))
                self.received(data, size)
                if kind == 16:
                    self.assertEqual(at >> 32, 0)
                    answered.add(at & 255)
            put_aside(slots, 2)
            self.assertTrue(gantry.vgpus()[0]["worker_pid"])
            put_aside(1, 2)
            self.assertEqual(data.recv(1), b"")
            self.until(lambda: "is malformed" in gantry.log(), "no reason in the log")
            control.close()

    def test_a_session_wants_its_key(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("rounds 1"), 0)
            s = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S)
            s.sendall(DATA + os.urandom(64))
            self.assertEqual(s.recv(1), b"")
            s.close()
            self.assertEqual(p.do("rounds 1"), 0)
            p.end()


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("SKIP: openssl is not installed: run 'make deps'")
        sys.exit(SKIP)
    main()
