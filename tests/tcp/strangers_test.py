#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers at a tcp port with a certificate of its own and none asked for: bounded in number and time until their greeting is admitted, and
never in the way of anybody else."""

import collections
import os
import select
import shutil
import socket
import ssl
import struct
import sys

from authority import Authority, openssl
from refusals_test import TokenCase
from tcp_harness import ANSWER_S, SKIP, STAGE, daemon, main

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "edges"))

from gantry import descriptors, held_kib  # noqa: E402

MOST = 256            # strangers at a time
EACH_KIB = 200        # of gantryd's memory, and of its TLS library's
FLOOD = "127.0.0.2"   # an address of the attacker's
CLAIM = 4             # a feature of the greeting: it claims a vGPU that comes from another gantryd


class Strangers(TokenCase):
    def setUp(self):
        super().setUp()
        pki = os.path.join(self.work.name, "pki")
        os.mkdir(pki)
        self.authority = Authority(pki)
        self.served = self.authority.server()[:4]  # a certificate and its key, and no authority for clients'
        self.ARGS = [*self.served, "--config", self.config]

    def stranger(self, gantry, address=FLOOD):
        """Has shaken hands, and says nothing."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S, source_address=(address, 0))
        s = context.wrap_socket(plain)
        self.addCleanup(s.close)
        return s

    @staticmethod
    def is_closed(s):
        """Waits until the other side hangs up."""
        try:
            while s.recv(4096):
                pass
        except OSError:
            pass
        return True

    def is_served(self, gantry):
        p = self.program(gantry, GANTRY_TENANT="alice", GANTRY_TOKEN=self.token)
        self.assertEqual(p.ready, "ready 0", gantry.log())
        self.assertEqual(p.do("rounds 2"), 0)
        self.assertEqual(p.end(), 0)
        self.until(lambda: not gantry.vgpus(), "the vGPU outlives its program")

    def test_who_does_not_greet_is_not_kept(self):
        greeting = struct.pack("<IHHII", 168, 1, 0, 1, 0) + struct.pack("<IIQII128s", 0x79727467, 1, CLAIM, 1, 0, b"test")
        with self.gantry() as gantry:
            self.is_served(gantry)
            # Its kernel cache is closed a moment after it.
            self.until(lambda: not any(".kept.lock" in name for name in descriptors(gantry.process.pid).values()),
                       "the kernel cache is not closed")
            before = collections.Counter(descriptors(gantry.process.pid).values())
            silent, half, claims = (self.stranger(gantry) for _ in range(3))
            half.sendall(greeting[:100])
            claims.sendall(greeting)
            self.assertEqual(claims.recv(8)[4:6], b"\x02\0", "a claim is not welcomed")  # and shows no ticket
            for s in (silent, half, claims):
                self.assertTrue(self.is_closed(s))
            self.until(lambda: gantry.log().count("it did not greet in time") == 3, "no line in the log")
            # gantryd's own, of the vGPU before, may close meanwhile.
            self.until(lambda: not collections.Counter(descriptors(gantry.process.pid).values()) - before, "descriptors are left")
            self.is_served(gantry)

    def test_a_flood_is_bounded_and_its_address_gives_way(self):
        with self.gantry() as gantry:
            self.is_served(gantry)
            held, n_files = held_kib(gantry.process.pid), len(descriptors(gantry.process.pid))
            honest = self.stranger(gantry, "127.0.0.3")  # older than all of the flood but slow, and not pushed out
            flood = []
            try:
                while len(flood) < 2 * MOST:
                    flood.append(self.stranger(gantry))
            except OSError:
                pass  # its handshakes have cost too much by now
            self.assertGreater(len(flood), 20)
            # gantryd may not have looked at the last of them yet.
            self.until(lambda: sum(not select.select([s], [], [], 0)[0] for s in flood) < MOST, "the flood is not bounded")
            self.assertLess(len(descriptors(gantry.process.pid)) - n_files, 4 * MOST)
            if not os.environ.get("SANITIZED"):  # which keep what is freed
                self.assertLess(held_kib(gantry.process.pid) - held, MOST * EACH_KIB)
            self.assertEqual(select.select([honest], [], [], 0)[0], [])
            self.is_served(gantry)
            self.assertLess(len([line for line in gantry.log().splitlines() if "refused a connection" in line]), 40)

    def test_a_handshake_that_takes_its_time_holds_up_nobody(self):
        hold = os.path.join(self.work.name, "hold")
        counts = os.path.join(self.work.name, "counts")
        env = {"GANTRY_TLS_MODULE": os.environ["HELD_TLS"], "REAL_TLS": os.path.join(os.path.abspath(STAGE), "lib", "libgantry-tls.so"),
               "TLS_HOLD": hold, "TLS_COUNTS": counts}
        with self.gantry(env=env) as gantry:
            with open(hold, "w", encoding="utf-8"):
                pass
            first = socket.create_connection(("127.0.0.1", self.port(gantry)), timeout=ANSWER_S)
            first.sendall(b"\x16\x03\x01")
            self.until(lambda: os.path.exists(hold + ".held"), "no handshake has begun")
            # It stands in the middle of its work, and gantryd works.
            self.assertEqual(gantry.ctl("ls")["vgpus"], [])
            os.unlink(hold)
            first.close()
            for _ in range(5):
                self.is_served(gantry)
            with open(counts, encoding="utf-8") as f:
                what = f.read()
            self.assertEqual(what.count("c"), 1, "the certificate is read for each connection")
            self.assertGreaterEqual(what.count("s"), 6)

    def certificate(self, gantry):
        with self.stranger(gantry) as s:
            return s.getpeercert(binary_form=True)

    def test_a_changed_certificate_is_served(self):
        with self.gantry() as gantry:
            first = self.certificate(gantry)
            self.assertEqual(self.certificate(gantry), first)
            self.replace(b"half of a certificate")
            self.assertEqual(self.certificate(gantry), first)
            self.until(lambda: "the changed certificate cannot be used" in gantry.log(), "no line in the log")
            # The same key, another certificate.
            path = self.authority.path
            openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
                    "-days", "3", "-extfile", path("names"), "-out", path("next.pem"))
            with open(path("next.pem"), "rb") as f:
                self.replace(f.read())
            second = self.certificate(gantry)
            self.assertNotEqual(second, first)
            self.assertEqual(self.certificate(gantry), second)
            self.is_served(gantry)

    def replace(self, contents):
        with open(self.authority.path("new"), "wb") as f:
            f.write(contents)
        os.rename(self.authority.path("new"), self.authority.path("server.pem"))


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("SKIP: openssl is not installed: run 'make deps'")
        sys.exit(SKIP)
    main()
