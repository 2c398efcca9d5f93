# SPDX-License-Identifier: Apache-2.0
"""A gantryd of a test's own, and programs on it whose traces are looked for: workers, descriptors, memory, files."""

import json
import os
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "../programs"), os.path.join(HERE, "../../src/daemon")]

import gantryd_harness  # noqa: E402
from daemon import Daemon, LeftBehind, descendants, gone, wait_until  # noqa: E402

PATIENCE = float(os.environ.get("EDGES_PATIENCE_S", "240"))  # seconds; only a hang takes so long


class Wrong(Exception):
    """The test has failed, and why."""


def read_file(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def threads_of(pid):
    """[(tid, name, state)] of a process."""
    try:
        tids = os.listdir("/proc/{}/task".format(pid))
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = []
    for tid in tids:
        stat = read_file("/proc/{}/task/{}/stat".format(pid, tid))
        if stat:
            name = stat[stat.index("(") + 1:stat.rindex(")")]
            found.append((int(tid), name, stat.rsplit(")", 1)[1].split()[0]))
    return found


def stopped(pid):
    threads = threads_of(pid)
    return bool(threads) and all(state == "T" for _, _, state in threads)


def descriptors(pid):
    """{descriptor: what it is} of a process; sockets and pipes without their numbers."""
    found = {}
    try:
        for fd in os.listdir("/proc/{}/fd".format(pid)):
            try:
                found[fd] = os.readlink("/proc/{}/fd/{}".format(pid, fd)).split(":[")[0]
            except (FileNotFoundError, ProcessLookupError):
                pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def status_kib(pid, field):
    for line in read_file("/proc/{}/status".format(pid)).splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise Wrong("process {} has no memory: is it gone?".format(pid))


def resident_kib(pid):
    return status_kib(pid, "VmRSS")


def held_kib(pid):
    """What the process itself holds: a page of its program or libraries, read when code first runs, is the kernel's to keep."""
    return status_kib(pid, "RssAnon")


class Gantry(Daemon):
    """One gantryd; `with` it, then run programs. What programs leave behind is looked for after each of them."""

    def __enter__(self):
        super().__enter__()
        self.at_start = sorted(descriptors(self.process.pid).values())
        return self

    def control(self, request, **more):
        client = gantryd_harness.Client(gantryd_harness.beside(self.socket, "control"))
        try:
            return json.loads(client.control(json.dumps({"version": 1, "request": request, **more}).encode()))
        finally:
            client.close()

    def vgpus(self):
        return self.control("ls")["vgpus"]

    def traces(self):
        """All that a program might leave behind."""
        family = sorted(descendants(self.process.pid))
        return {
            "processes": family,
            "descriptors of gantryd": sorted(descriptors(self.process.pid).values()),
            "descriptors of its children": [sorted(descriptors(pid).values()) for pid in family],
            "files beside the socket": os.listdir(self.socket_dir),
            "shared memory": sorted(name for name in os.listdir("/dev/shm") if "gantry" in name.lower()),
            "vgpus": self.vgpus(),  # last: a connection of ours is a descriptor of gantryd's for a moment
        }

    def settle_first(self):
        """After the first program: what is there now, and may not grow from now on. gantryd holds what it did when it was ready."""
        before = {}

        def only_a_template():
            nonlocal before
            before = self.traces()
            return len(before["processes"]) == 1 and not before["vgpus"]

        # The look that is kept is the one that was judged: gantryd may have a child for a moment in between.
        if not wait_until(only_a_template, 60):
            raise Wrong("more is left than a template: {}".format(before))
        before["descriptors of gantryd"] = self.at_start
        self.settle(before)
        return before

    def settle(self, before, seconds=60):
        """Waits until the traces are what they were; Wrong when they never are."""
        now = {}

        def same():
            nonlocal now
            now = self.traces()
            return now == before

        if not wait_until(same, seconds):
            raise Wrong("left behind: " + "; ".join("{}: {} instead of {}".format(k, now[k], before[k])
                                                    for k in before if now[k] != before[k]))

    def program(self, command, **how):
        return Program(command, dict(self.program_env(), **how.pop("env", {})), **how)

    def vgpu_of(self, program):
        """Its line of `ls`, waited for."""
        found = []

        def there():
            found[:] = [v for v in self.vgpus() if v["pid"] == program.pid]
            return bool(found)

        if not wait_until(there, 60):
            raise Wrong("no vGPU of process {}".format(program.pid))
        return found[0]

    def worker_of(self, program):
        return self.vgpu_of(program)["worker_pid"]


class Program:
    """A program that talks in lines."""

    def __init__(self, command, env, stdin=subprocess.PIPE, cwd=None):
        self.process = subprocess.Popen(command, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        bufsize=0, start_new_session=True)
        self.name = " ".join(os.path.basename(command[0]) if i == 0 else c for i, c in enumerate(command))
        self.pid = self.process.pid
        self.unread = b""
        self.errors = b""

    def _read(self):
        """Some of its output; False at the end of both."""
        open_ones = [f for f in (self.process.stdout, self.process.stderr) if not f.closed]
        if not open_ones:
            return False
        ready, _, _ = select.select(open_ones, [], [], PATIENCE)
        if not ready:
            self.kill()
            raise Wrong("{} hangs; it has said on stderr: {}".format(self.name, self.errors.decode(errors="replace")))
        for f in ready:
            piece = os.read(f.fileno(), 65536)
            if not piece:
                f.close()
            elif f is self.process.stdout:
                self.unread += piece
            else:
                self.errors += piece
        return True

    def hear(self, word):
        """Its next line, which must begin so; returns the words after it."""
        while b"\n" not in self.unread:
            if not self._read():
                raise Wrong("{} ended, status {}, before it said '{}': {}".format(
                    self.name, self.process.wait(PATIENCE), word, self.errors.decode(errors="replace")))
        line, self.unread = self.unread.split(b"\n", 1)
        words = line.decode().split()
        if words[:1] != [word]:
            raise Wrong("{} said '{}' and not '{}'".format(self.name, line.decode(), word))
        return words[1:]

    def tell(self):
        self.process.stdin.write(b"go\n")

    def end(self, status=0, errors=b""):
        """Waits for its end, which must be of this status, with nothing said but `errors` on stderr."""
        while self._read():
            pass
        try:
            got = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong("{} does not end".format(self.name))
        if self.process.stdin:
            self.process.stdin.close()
        if got != status or self.errors != errors or self.unread:
            raise Wrong("{} ended with status {} instead of {}; stdout: {}; stderr: {}".format(
                self.name, got, status, self.unread.decode(errors="replace"), self.errors.decode(errors="replace")))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def last_words(self):
        """All that has been said on its stderr, by its worker, too, once both have ended."""
        while self._read():
            pass
        return self.errors.decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for f in (self.process.stdin, self.process.stdout, self.process.stderr):
            if f and not f.closed:
                f.close()


def built_tree(folder, build):
    """A tree that looks like an installed one, of what lies in a build folder: nothing needs to be staged for a test."""
    library = os.path.join(os.path.abspath(build), "src/guest/libgantry-opencl.so")
    worker = os.path.join(os.path.abspath(build), "src/worker/gantry-worker")
    gantryd = os.path.join(os.path.abspath(build), "src/daemon/gantryd")
    for part in (library, worker, gantryd):
        if not os.path.exists(part):
            raise Wrong("{} is not built".format(part))
    vendors = os.path.join(folder, "etc/OpenCL/vendors")
    os.makedirs(vendors)
    os.makedirs(os.path.join(folder, "bin"))
    with open(os.path.join(vendors, "gantry.icd"), "w", encoding="utf-8") as f:
        f.write(library + "\n")
    script = os.path.join(folder, "bin/gantryd")
    with open(script, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nGANTRY_WORKER='{}' exec '{}' \"$@\"\n".format(worker, gantryd))
    os.chmod(script, 0o755)
    return folder


def monotonic_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


__all__ = ["Gantry", "LeftBehind", "PATIENCE", "Program", "Wrong", "built_tree", "descendants", "descriptors", "gone",
           "monotonic_ns", "read_file", "resident_kib", "stopped", "threads_of", "wait_until"]
