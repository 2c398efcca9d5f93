# SPDX-License-Identifier: Apache-2.0
"""Starts gantryd for a test, and exchanges valid and invalid frames with it (docs/link.md)."""
import array
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

HELLO, WELCOME, ATTACH, ATTACHED, SEGMENT, SEGMENT_MADE, CONTROL, ERROR = range(1, 9)
MORE = 1
PATIENCE = 60  # seconds; only a hang takes so long


def frame(op, seq, payload=b"", flags=0, size=None, zero=0):
    size = 16 + len(payload) if size is None else size
    return struct.pack("<IHHII", size, op, flags, seq, zero) + payload


def hello(magic=0x79727467, version=1, program=b"test", zero=0):
    return struct.pack("<IIQII128s", magic, version, 0, os.getpid(), zero, program)


def attach(platform=0, weight=0, memory=0, stdio=3, zero=0, tenant=b""):
    return struct.pack("<IIQII64s", platform, weight, memory, stdio, zero, tenant)


def beside(path, role):
    """The socket of a role beside the program socket at this path."""
    return (path[:-len(".sock")] if path.endswith(".sock") else path) + "." + role


def sockets(path):
    """All sockets of the gantryd with this program socket."""
    return [path, beside(path, "view"), beside(path, "control")]


def count_fds(pid="self"):
    return len(os.listdir("/proc/%s/fd" % pid))


def wait_gone(pidfd):
    """Whether the process of this pidfd has ended."""
    return bool(select.select([pidfd], [], [], PATIENCE)[0])


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def cmdline(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def templates(pid):
    """Children of a gantryd, without the short-lived ones that maintain kernel caches."""
    return [p for p in children(pid) if {b"--template", b"--late-template"} & set(cmdline(p))]


class Reply:
    def __init__(self, op, flags, seq, payload, fds):
        self.op, self.flags, self.seq, self.payload, self.fds = op, flags, seq, payload, fds

    def error(self):
        code, _, what, fix = struct.unpack("<II384s256s", self.payload)
        return code, what.split(b"\0")[0].decode(), fix.split(b"\0")[0].decode()

    def close(self):
        for fd in self.fds:
            os.close(fd)


class Client:
    """One connection."""

    def __init__(self, path, greet=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)  # with a time limit it would fail at once where the queue is full
        self.socket.settimeout(PATIENCE)
        self.seq = 0
        if greet:
            reply = self.ask(HELLO, hello())
            assert reply.op == WELCOME, reply.op

    def send(self, data, fds=()):
        if fds:
            sent = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                 array.array("i", fds))])
            assert sent == len(data)
        else:
            self.socket.sendall(data)

    def receive(self):
        """Returns a reply, or None at the end of the connection."""
        try:
            head, fds, _, _ = socket.recv_fds(self.socket, 16, 8)
            while 0 < len(head) < 16:
                more = self.socket.recv(16 - len(head))
                if not more:
                    return None
                head += more
            if not head:
                return None
            size, op, flags, seq, _ = struct.unpack("<IHHII", head)
            payload = b""
            while len(payload) < size - 16:
                part = self.socket.recv(size - 16 - len(payload))
                if not part:
                    return None
                payload += part
            return Reply(op, flags, seq, payload, fds)
        except ConnectionResetError:
            return None

    def ask(self, op, payload=b"", fds=()):
        self.seq += 1
        self.send(frame(op, self.seq, payload), fds)
        return self.receive()

    def attach(self, **how):
        """Returns the ATTACHED or ERROR reply; the worker's stdout and stderr go to stderr."""
        return self.ask(ATTACH, attach(**how), (2, 2))

    def control(self, request):
        self.seq += 1
        self.send(frame(CONTROL, self.seq, request))
        text = b""
        while True:
            reply = self.receive()
            assert reply and reply.op == CONTROL and reply.seq == self.seq
            text += reply.payload
            if not reply.flags & MORE:
                return text

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Gantryd:
    """A gantryd in a directory of its own. Use as a context; ready on entry."""

    def __init__(self, *args, env=None, socket_path=None, wait=True):
        self.dir = tempfile.mkdtemp(prefix="gantryd-test-")
        self.path = socket_path or os.path.join(self.dir, "s")
        self.env = dict(os.environ, POCL_CACHE_DIR=os.path.join(self.dir, "pocl"))
        self.env.pop("GANTRY_LOG", None)
        self.env.update(env or {})
        # Unbuffered: communicate() would not find bytes read ahead of a line.
        self.process = subprocess.Popen([os.environ["GANTRYD"], "--socket", self.path, *args],
                                        env=self.env,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0)
        self.lines = []
        if wait:
            for said in self.process.stderr:
                line = said.decode()
                self.lines.append(line)
                if line.startswith("ready "):
                    break
            else:
                raise AssertionError("gantryd did not get ready: %s" % self.lines)

    pid = property(lambda self: self.process.pid)

    def client(self, **how):
        return Client(self.path, **how)

    def operator(self, **how):
        return Client(beside(self.path, "control"), **how)

    def template(self):
        """The pid of the first template.

        It exists when gantryd is ready, but may not have called exec yet.
        """
        while True:
            for pid in children(self.pid):
                if {b"--template", b"--late-template"} & set(cmdline(pid)):
                    return pid

    def stop(self, with_signal=signal.SIGTERM):
        """Ends it; returns its exit status and its output since it was ready."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        _, rest = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest.decode()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.process.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)
