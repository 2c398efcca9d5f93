# SPDX-License-Identifier: Apache-2.0
"""What the suites of moves share: gantry's commands on a gantryd of one's own, a gantryd started again, and files put together anew."""

import json
import os
import signal
import socket
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
# For a test that waits for a minute of gantryd's: the suite soak has it.
slow = unittest.skipUnless(os.environ.get("MOVES_SLOW"), "waits for a minute: make soak")
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


def holds(pid):
    """It stands at the point that $GANTRY_HOLD names: it catches this signal from then on, and no other process does (src/base/fault.h)."""
    try:
        with open("/proc/{}/status".format(pid), encoding="utf-8", errors="replace") as f:
            caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(caught >> (signal.SIGCONT - 1) & 1)


def held(daemon):
    """The worker of its that stands at the point that $GANTRY_HOLD names, or None."""
    return next((pid for pid in descendants(daemon.process.pid) if holds(pid)), None)


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


class MovesCase(unittest.TestCase):
    """A folder of the test's own, gantryds in it, programs that go from step to step. `stage` and `path` (the program's) are set by whoever runs it."""

    stage = path = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gn-moves-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def not_started(self, name, **options):
        return Daemon(self.stage, os.path.join(self.work, name), **options)

    def daemon(self, name, *args, **options):
        """Started, and ended with the test."""
        daemon = self.not_started(name, *args, **options)
        daemon.__enter__()
        self.addCleanup(lambda: daemon.__exit__(None, None, None))
        return daemon

    def address_of(self, there):
        """Where a gantryd is, for another one's vGPUs."""
        return there.address

    def program(self, daemon, **env):
        program = Program(self.path, daemon, env=env)
        self.addCleanup(program.kill)
        return program

    def at_first(self, daemon, **env):
        """One that has come to its first step."""
        program = self.program(daemon, **env)
        self.assertEqual(program.at(), STEPS[0])
        return program

    def ends_well(self, program, done=1):
        for name in STEPS[done:]:
            program.on()
            self.assertEqual(program.at(), name)
        program.on()
        self.assertIsNone(program.ends_well())

    def drain(self, here, there, status, *how):
        """What it says, by vGPU."""
        got, said = gantry(here, "drain", self.address_of(there), *how)
        self.assertEqual(got, status, said)
        drain = said["drain"]
        self.assertEqual(drain["to"], self.address_of(there))
        self.assertEqual(drain["moved"], sum(v["result"] == "moved" for v in drain["vgpus"]))
        self.assertEqual(drain["stay"], sum(v["result"] == "stays" for v in drain["vgpus"]))
        return {v["id"]: v for v in drain["vgpus"]}


class BusyCase(MovesCase):
    """The same with the program `busy`."""

    def start(self, daemon, *words):
        program = subprocess.Popen([self.path, *words], env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "goes")
        return program

    def end(self, program):
        """What it has said since, in lines."""
        out, _ = program.communicate("on\n", timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, 0, out)
        return out.split("\n")


class TcpCase(MovesCase):
    """The same with gantryds and programs that reach each other over tcp. `network` is the tcp suite's relay."""

    network = None

    def not_started(self, name, *args, insecure=True, fault=None, env=None, **options):
        listen = ["--listen", "tcp:127.0.0.1:0", *(["--insecure"] if insecure else [])]
        env = {"GANTRY_LOG": "info", **({"GANTRY_FAULT": fault} if fault else {}), **(env or {})}
        return super().not_started(name, args=[*listen, *args], env=env, **options)

    def address_of(self, there):
        return there.tcp_address

    def relay(self, port):
        """A network in the way to that port, and its address."""
        relay = subprocess.Popen([self.network, str(port)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (relay.kill(), relay.wait(), relay.stdout.close()))
        return relay, "tcp:127.0.0.1:" + relay.stdout.readline().strip()

    def is_broken(self, daemon, vgpu):
        """Of one that is being moved or saved: does gantryd know of no connection of its program's?"""
        status, said = gantry(daemon, "migrate", vgpu["id"], "local")
        self.assertEqual(status, 1, said)
        why = json.dumps(said["error"])
        if "the connection to its program is broken" in why:
            return True
        self.assertIn("being moved already", why)
        return False

    def cut(self, daemon, vgpu, relay):
        """Its program's connections break, and it comes through by no other until the relay is told so."""
        relay.send_signal(signal.SIGUSR2)
        relay.send_signal(signal.SIGUSR1)
        self.assertTrue(wait_until(lambda: self.is_broken(daemon, vgpu), TIMEOUT_S))

    def private(self, name, text):
        """A file's path. Nobody else can read it, as becomes a token's."""
        path = os.path.join(self.work, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
        return path


class StopsCase(TcpCase):
    """The same, for vGPUs that go into files: `file`, in `files`, and a gantryd that is at the same address when it is started again."""

    def setUp(self):
        super().setUp()
        self.files = os.path.join(self.work, "files")
        os.mkdir(self.files)
        self.file = os.path.join(self.files, "a.ckpt")

    def vgpu(self, daemon):
        vgpus = daemon.vgpus()
        self.assertEqual([v["link"] for v in vgpus], ["tcp"])
        return vgpus[0]

    def well(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, said)
        return said

    def at_one_port(self, *args, **options):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        return self.daemon("a", "--listen", "tcp:127.0.0.1:{}".format(port), *args, **options)


class FarCase(TcpCase):
    """The same with programs that share memory with their vGPUs until those go elsewhere over tcp. `moved` is told to use no shared virtual memory."""

    def here(self, name="a", **options):
        """Programs reach it by its socket; it listens over tcp as well, so that they may go on to it."""
        return self.daemon(name, **options)

    def shared(self, daemon, **env):
        return self.program(daemon, GANTRY_CONNECT=daemon.address, MOVED_WITHOUT_SVM="1", **env)

    def start(self, daemon, *words, connect=None, stderr=None):
        env = dict(daemon.program_env(), GANTRY_CONNECT=connect or daemon.address)
        program = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.addCleanup(lambda: (program.kill(), program.wait(), program.stdin.close(), program.stdout.close()))
        return program

    def move(self, here, there, *how, link="shm", then="tcp"):
        before = here.vgpus()
        self.assertEqual([v["link"] for v in before], [link])
        status, said = gantry(here, "migrate", before[0]["id"], there.tcp_address, *how)
        self.assertEqual(status, 0, said)
        self.assertEqual(said["move"]["to"], there.tcp_address)
        self.assertGreater(said["move"]["downtime_ns"], 0)
        after = there.vgpus()
        self.assertEqual(here.vgpus(), [])
        self.assertEqual([(v["id"], v["link"]) for v in after], [(before[0]["id"], then)])
        for same in ("tenant", "weight", "memory_limit_bytes", "program"):
            self.assertEqual(after[0].get(same), before[0].get(same))
        return said["move"]

    def refused(self, here, what, *words):
        before = here.vgpus()
        status, said = gantry(here, *words)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))
        self.assertEqual([(v["worker_pid"], v["link"]) for v in here.vgpus()], [(v["worker_pid"], v["link"]) for v in before])


class BetweenTwo:
    """For a MovesCase: what holds of moves from one gantryd to another, whatever way leads there. `load` is gantry-load; `link` what `gantry ls`
    says of the program's, None: it is not looked at; `kept` what it says the same of there; `how` what each move is told."""

    load = link = None
    kept = ()
    how = ()

    def move(self, here, there, *how):
        before = here.vgpus()
        self.assertEqual(len(before), 1)
        if self.link:
            self.assertEqual(before[0]["link"], self.link)
        status, said = gantry(here, "migrate", before[0]["id"][:6], self.address_of(there), *self.how, *how)
        self.assertEqual(status, 0, said)
        self.assertEqual(said["move"]["result"], "moved")
        self.assertEqual(said["move"]["to"], self.address_of(there))
        self.assertGreater(said["move"]["downtime_ns"], 0)
        after = there.vgpus()
        self.assertEqual(here.vgpus(), [])
        self.assertEqual([v["id"] for v in after], [before[0]["id"]])
        for same in self.kept:
            self.assertEqual(after[0].get(same), before[0].get(same))
        return said["move"]

    def refused(self, here, what, *words):
        before = here.vgpus()
        status, said = gantry(here, *words)
        self.assertEqual(status, 1, said)
        self.assertIn(what, json.dumps(said["error"]))
        self.assertEqual([v["worker_pid"] for v in here.vgpus()], [v["worker_pid"] for v in before])

    def test_something_of_each_kind_there_and_back(self):
        a, b = self.daemon("a"), self.daemon("b")
        for how in ((), ("--stop-and-copy",), ("--rounds", "2")):
            with self.subTest(how=how):
                program = self.program(a)
                for name in STEPS:
                    self.assertEqual(program.at(), name)
                    self.move(a, b, *how)
                    self.move(b, a, *how)
                    program.on()
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))

    def test_loads_that_run(self):
        a, b = self.daemon("a"), self.daemon("b")
        for load in ("matrixmul", "histogram", "scan"):
            with self.subTest(load=load):
                program = Load(self.load, load, a.program_env())
                self.addCleanup(program.kill)
                self.assertTrue(wait_until(a.vgpus, TIMEOUT_S))
                here, there = a, b
                for _ in range(7):
                    self.move(here, there)
                    here, there = there, here
                self.assertIsNone(program.ends_well())
                self.assertTrue(wait_until(lambda: not a.vgpus() and not b.vgpus(), TIMEOUT_S))
