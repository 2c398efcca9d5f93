# SPDX-License-Identifier: Apache-2.0
"""What the suites of moves share: gantry's commands on a gantryd of one's own, a gantryd started again, and files put together anew."""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "stream"))
import daemon as daemons  # noqa: E402
import telling  # noqa: E402,F401
from daemon import descendants, stage_ready, wait_until  # noqa: E402,F401
from xxh3 import xxh3  # noqa: E402

TIMEOUT_S = 240    # ends a wait that would never end; no verdict depends on it
DRAIN_S = 60
WAITS = ("migrate", "drain", "checkpoint", "mode")   # these wait for the device's work
STEPS = ("buffers", "images", "user event, in order", "user event, out of order", "let go", "shared memory", "shared memory, again", "printf")


class Daemon(daemons.Daemon):
    """What all of these suites build is built once."""

    def __init__(self, stage, work, cache=None, **options):
        super().__init__(stage, work, cache=cache or daemons.shared_kernels("default"), **options)


class Load:
    """gantry-load that goes on until it is told to end, and checks its results then: whatever is done to it is done while it runs."""

    def __init__(self, path, name, env):
        self.process = subprocess.Popen([path, name, "--seconds", "36000", "--check", "--no-profile"], env=env, stdout=subprocess.PIPE, text=True)

    def ends_well(self):
        """None, or what was wrong."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        right = self.process.returncode == 0 and "result: right" in out
        return None if right else "status {}: {}".format(self.process.returncode, out)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def command(daemon, *words):
    """gantry, with what it is asked of this gantryd. The device's work takes as long as the machine is slow: no move fails by the seconds that it
    may take when nobody says how many."""
    where = [] if words[0] == "inspect" else ["--connect", daemon.address]
    patient = ["--drain-timeout", str(DRAIN_S)] if words[0] in WAITS and not {"--drain-timeout", "--undo"}.intersection(words) else []
    return [os.path.join(daemon.stage, "bin", "gantry"), words[0], *where, *patient, *words[1:]]


def gantry(daemon, *words, **options):
    """Its status and what it said."""
    done = subprocess.run(command(daemon, words[0], "--json", *words[1:]), capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options)
    if not done.stdout and done.stderr:
        print(done.stderr, file=sys.stderr)   # it has ended in a way that is none of its own
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def start_again(daemon, how=signal.SIGKILL):
    """Another gantryd in the place of this one."""
    daemon.process.send_signal(how)
    daemon.process.wait()
    daemon.drain.wait()
    daemon.__enter__()


def rest_of(process):
    """What a program that went wrong has still said, with its worker where both say it on stdout."""
    if process.stdout.closed:
        return ""   # all of it has been read
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout), daemon=True)
    reader.start()
    reader.join(5)   # it may go on, and say nothing
    return "".join(said)


def cpu_seconds(pid):
    with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def checksum(b):
    return xxh3(b)[0]


def rewritten(data, change):
    """A stream whose sections' bodies are change(name, body), with all checksums right (docs/migration-stream.md)."""
    out, at, chain, number = bytearray(data[:24]), 24, 0, 0
    while at < len(data):
        name, version, flags, _, n_body, n_bulk, _ = struct.unpack_from("<16sHHIQQQ", data, at)
        body, bulk = data[at + 48:at + 48 + n_body], data[at + 56 + n_body:at + 56 + n_body + n_bulk]
        plain = name.rstrip(b"\0").decode()
        if plain == "commit":
            body = struct.pack("<QQQQ", number, len(out), chain, 0)
        else:
            body = change(plain, body)
        head = struct.pack("<16sHHIQQ", name, version, flags, number, len(body), n_bulk)
        out += head + struct.pack("<Q", checksum(head)) + body + struct.pack("<Q", checksum(body)) + bulk
        chain = checksum(struct.pack("<QQQ", chain, checksum(head), checksum(body)))
        number += 1
        at += 56 + n_body + n_bulk
    return bytes(out)


class Program:
    """`moved`, which goes from step to step."""

    def __init__(self, path, daemon, env=None):
        self.process = subprocess.Popen([path], env=dict(daemon.program_env(), **(env or {})), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def at(self):
        return self.process.stdout.readline().strip()

    def on(self):
        self.process.stdin.write("on\n")
        self.process.stdin.flush()

    def ends_well(self):
        """None, or what was wrong."""
        lines, _ = self.process.communicate(timeout=TIMEOUT_S)
        right = lines.split("\n") == ["kernel says 42", "right", ""] and self.process.returncode == 0
        return None if right else "status {}: {}".format(self.process.returncode, lines)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class TcpCase(unittest.TestCase):
    """Two gantryds and programs that reach them over tcp. `stage` and `path` (the program's) are set by whoever runs it."""

    stage = path = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-moves-tcp-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def listening(self, name, *args, insecure=True, fault=None):
        """Not started yet."""
        listen = ["--listen", "tcp:127.0.0.1:0", *(["--insecure"] if insecure else [])]
        env = {"GANTRY_LOG": "info", **({"GANTRY_FAULT": fault} if fault else {})}
        return Daemon(self.stage, os.path.join(self.work, name), args=[*listen, *args], env=env)

    def daemon(self, name, *args, **options):
        daemon = self.listening(name, *args, **options)
        daemon.__enter__()
        self.addCleanup(lambda: daemon.__exit__(None, None, None))
        return daemon

    def program(self, daemon, **env):
        program = Program(self.path, daemon, env=env)
        self.addCleanup(program.kill)
        return program

    def ends_well(self, program, done=1):
        for name in STEPS[done:]:
            program.on()
            self.assertEqual(program.at(), name)
        program.on()
        self.assertIsNone(program.ends_well())
