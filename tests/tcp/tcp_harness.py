# SPDX-License-Identifier: Apache-2.0
"""A gantryd that listens over tcp, relays in front of it, and programs that do as they are told."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))

import daemon   # noqa: E402
import telling  # noqa: E402

SKIP = 77
STAGE = os.environ.get("GANTRY_STAGE", "build/stage")
ANSWER_S = 240  # ends a wait that would never end; no verdict depends on it


class Relay:
    def __init__(self, port, delay_us=0):
        self.process = subprocess.Popen([os.environ["RELAY"], str(port), str(delay_us)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def cut(self):
        self.process.send_signal(signal.SIGUSR1)

    def hold(self):
        """Nothing passes any more; or all does again."""
        self.process.send_signal(signal.SIGUSR2)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Wanderer:
    """A program; say() hands it a word, heard() is its answer, an OpenCL error code."""

    def __init__(self, env, prefix=()):
        self.process = subprocess.Popen([*prefix, os.environ["WANDERER"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines, self.rest = [], b""
        self.ready = self.line()

    def line(self):
        while not self.lines:
            if not self.has_answered(ANSWER_S):
                self.process.kill()
                raise AssertionError("the program hangs")
        return self.lines.pop(0).decode()

    def has_answered(self, seconds):
        """Whether something is there, maybe not yet a whole line."""
        if self.lines or not select.select([self.process.stdout], [], [], seconds)[0]:
            return bool(self.lines)
        piece = os.read(self.process.stdout.fileno(), 65536)
        if not piece:
            raise AssertionError("the program has ended, with status {}".format(self.process.wait(ANSWER_S)))
        *lines, self.rest = (self.rest + piece).split(b"\n")
        self.lines += lines
        return True

    def say(self, text):
        self.process.stdin.write((text + "\n").encode())
        self.process.stdin.flush()

    def heard(self):
        return int(self.line())

    def do(self, text):
        self.say(text)
        return self.heard()

    def end(self):
        """Lets it end by itself."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        status = self.process.wait(ANSWER_S)
        self.process.stdout.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class TcpCase(unittest.TestCase):
    ARGS = ["--insecure"]
    GRACE_S = 5

    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.cache = os.path.join(os.path.dirname(os.environ["WANDERER"]), "pocl-cache")

    def gantry(self, *more, grace=None, env=None, prefix=()):
        args = ["--listen", "tcp:127.0.0.1:0", "--tcp-grace", str(grace or self.GRACE_S), *self.ARGS, *more]
        return daemon.Daemon(STAGE, self.work.name, args=args, cache=self.cache, prefix=prefix,
                             env={"GANTRY_LOG": "info", **(env or {})})

    def relay(self, gantry, delay_us=0):
        relay = Relay(self.port(gantry), delay_us)
        self.addCleanup(relay.end)
        return relay

    @staticmethod
    def port(gantry):
        return int(gantry.tcp_address.rsplit(":", 1)[1])

    def program(self, gantry, relay=None, **env):
        all_env = gantry.program_env()
        if relay:
            all_env["GANTRY_CONNECT"] = "tcp:127.0.0.1:{}".format(relay.port)
        return Wanderer({**all_env, **env})

    def cut_while(self, program, relay, text, least):
        """Cuts again and again until the program has answered, but not before it can have come back from the last cut."""
        program.say(text)
        cuts = 0
        while not program.has_answered(0.05):
            relay.cut()
            cuts += 1
        self.assertGreaterEqual(cuts, least, "it was over before it could be cut")
        return program.heard()

    def until(self, condition, what):
        self.assertTrue(daemon.wait_until(condition, ANSWER_S), what)


def main():
    telling.main(STAGE, sys.argv[1:])
