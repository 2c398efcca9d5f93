# SPDX-License-Identifier: Apache-2.0
"""Kernels that attack: what their worker's walls keep from them, while another tenant's program goes on.

    walls.py --build DIR CASE

Status 0: the walls hold; 1: a sentence says which does not; 77: this machine cannot have that wall.
"""

import argparse
import errno
import glob
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../edges"))

from gantry import (Gantry, LeftBehind, Program, Wrong, built_tree, descendants, read_file,  # noqa: E402
                    wait_until)
from daemon import NotReady  # noqa: E402

OPEN, MKDIR, KILL, SOCKET, PTRACE, VM_READV, TKILL, RENAME, MMAP, MREMAP, MEMFD_CREATE = 2, 83, 62, 41, 101, 310, 200, 82, 9, 25, 319
FALLOCATE = 285
O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_DIRECTORY = 0, 1, 0o100, 0o1000, 0o200000
SECRET = "the-others-secret"
STRANGER = 54321  # a user that nobody is


def ours(*names):
    """The rules of tenants of this test's user."""
    return "".join("[tenant {}]\nuid = {}\n".format(name, os.geteuid()) for name in names)


TENANTS = ours("alice", "bob")


class Skip(Exception):
    """Not to be had on this machine, and why."""


class Intruder(Program):
    def ask(self, line, word=None):
        """Its answer's words; with `word` the first of them must be that."""
        self.process.stdin.write((line + "\n").encode())
        if word:
            return self.hear(word)
        while b"\n" not in self.unread:
            if not self._read():
                raise Wrong("{} ended".format(self.name))
        answer, self.unread = self.unread.split(b"\n", 1)
        return answer.decode(errors="replace").split(" ")

    def call(self, *words):
        """(what the system call returned, what it wrote)."""
        answer = self.ask("call " + " ".join(str(w) for w in words), "result")
        return int(answer[0]), answer[1] if len(answer) > 1 else ""

    def source(self, *lines):
        self.ask("source " + "\\n".join(lines), "source")

    def build(self, options=""):
        status, log = (self.ask("build " + options, "built") + [""])[:2]
        return int(status), log

    def right(self, rounds=20):
        self.ask("work {}".format(rounds), "right")


class Case:
    def __init__(self, options, work):
        self.options = options
        self.intruder = os.path.join(options.build, "tests/walls/intruder")
        self.without = os.path.join(options.build, "tests/walls/without")
        self.work = work
        self.stage = built_tree(os.path.join(work, "tree"), options.build)
        self.secret = os.path.join(work, "secret.h")
        self.folders = []  # to be removed at the end
        self.own = ("/proc/1/environ", "/proc/self/environ")  # of its own process, but not for a build's log
        with open(self.secret, "w", encoding="utf-8") as f:
            f.write(SECRET + "\n")
        os.chmod(self.secret, 0o644)

    def gantry(self, tenants=TENANTS, env=None, cache=None):
        path = os.path.join(self.work, "gantry.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write("[gantryd]\nwalls = available\n" + tenants)
        return Gantry(self.stage, os.path.join(self.work, "gantryd"), args=["--config", path], env=env, cache=cache)

    def run(self, *args, gantry):
        """What `gantry` prints."""
        return subprocess.run([os.path.join(self.options.build, "src/ctl/gantry"), *args, "--connect", gantry.address],
                              stdout=subprocess.PIPE, text=True, check=False, timeout=300).stdout

    def where(self, lacking):
        """A tree like the stage, whose gantryd lives on a machine without that."""
        tree = os.path.join(self.work, "without-" + lacking)
        os.makedirs(os.path.join(tree, "bin"))
        os.symlink(os.path.join(self.stage, "etc"), os.path.join(tree, "etc"))
        script = os.path.join(tree, "bin/gantryd")
        with open(script, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec '{}' {} '{}' \"$@\"\n".format(self.without, lacking, os.path.join(self.stage, "bin/gantryd")))
        os.chmod(script, 0o755)
        return tree

    def start(self, gantry, tenant="default", command=(), **env):
        p = Intruder([*command, self.intruder], dict(gantry.program_env(), GANTRY_TENANT=tenant, **env))
        if p.hear("ready") != ["0"]:
            raise Wrong("the intruder does not start: {}".format(gantry.log()))
        return p

    def need(self, gantry, wall):
        have = gantry.control("status")["gantryd"]["walls"]["have"].split(", ")
        if wall not in have:
            raise Skip("this machine cannot have the wall \"{}\"".format(wall))


def refused(what, result, *errors):
    """The system call must have failed, in one of these ways if they are named."""
    if result >= 0 or (errors and -result not in errors):
        raise Wrong("{}: the system call returned {}".format(what, result))


def files(case):
    with case.gantry() as gantry:
        case.need(gantry, "files")
        with case.start(gantry, "alice") as p, case.start(gantry, "bob") as other:
            for path in ("/etc/shadow", "/etc/passwd", case.secret, gantry.log_path, gantry.socket,
                         "/proc/{}/environ".format(gantry.process.pid), *case.own,
                         "/proc/{}/maps".format(os.getpid()), "/root", "/home", "/var", "/boot"):
                refused(path, p.call(OPEN, '"' + path, O_RDONLY)[0], errno.EACCES, errno.ENOENT)
            for path in ("/usr/intruder", "/etc/intruder", case.work + "/intruder", "/var/tmp/intruder", "/dev/intruder"):
                refused(path, p.call(OPEN, '"' + path, O_WRONLY | O_CREAT, 0o600)[0])
                if os.path.exists(path):
                    raise Wrong("{} was made".format(path))
            # What a driver needs is there, or all of this would show nothing.
            if p.call(OPEN, '"/usr/bin/env', O_RDONLY)[0] < 0 or p.call(OPEN, '"/dev/null', O_RDONLY)[0] < 0:
                raise Wrong("a kernel opens nothing at all")
            p.right()
            other.right()


def includes(case):
    inside = os.path.join(case.work, "inside")
    os.makedirs(os.path.join(inside, "deep"))
    os.makedirs(os.path.join(case.work, "more folders"))
    for name, text in (("here.h", "#define HERE 1\n#include \"deep/there.h\"\n"), ("deep/there.h", "#define THERE 2\n")):
        with open(os.path.join(inside, name), "w", encoding="utf-8") as f:
            f.write(text)
    kernel = "__kernel void k(__global int *a) { a[0] = HERE + THERE; }"
    with case.gantry() as gantry:
        case.need(gantry, "files")
        p = Intruder([case.intruder], dict(gantry.program_env(), PWD=inside), cwd=inside)
        with p:
            if p.hear("ready") != ["0"]:
                raise Wrong("the intruder does not start: {}".format(gantry.log()))
            # Its own files are found, by whatever name.
            p.source('#include "here.h"', kernel)
            for options in ("", "-I " + inside, "-I" + inside, "-I " + inside + "/deep/.."):
                status, log = p.build(options)
                if status:
                    raise Wrong("a file of the program's is not found with \"{}\": {}".format(options, log))
            p.source("#include <deep/there.h>", "#define HERE 1", kernel)
            for options in ("-I .", "-I.", "-I " + inside):
                if p.build(options)[0]:
                    raise Wrong("a folder is not searched with \"{}\"".format(options))
            # The names in the log are the program's.
            p.source('#include "here.h"', "#include <no/such.h>", kernel)
            log = p.build("-I" + inside)[1]
            if "no/such.h" not in log or "/proc/self" in log:
                raise Wrong("the build's log is not what the program expects: {}".format(log))
            # No other file is, by whatever trick.
            name = os.path.basename(case.secret)
            for line in ('#include "{}"'.format(case.secret), "#include <{}>".format(case.secret), '#include "../{}"'.format(name),
                         '#include "deep/../../{}"'.format(name), '#include "{}/../{}"'.format(inside, name),
                         '#include "/etc/shadow"', '#include "/etc/passwd"', *('#include "{}"'.format(own) for own in case.own),
                         '#define X "{}"\\n#include X'.format(case.secret)):
                p.source(line, "#define HERE 1", "#define THERE 2", kernel)
                status, log = p.build("-I " + inside)
                if status == 0 or SECRET in log or "root:" in log:
                    raise Wrong("{} was read: {}".format(line, log))
            p.right()


def layered(gantry):
    """Whether caches are in layers, which gantryd alone sees."""
    return os.path.isdir(os.path.join(gantry.cache, ".run"))


def folder_of(gantry, name):
    """Where the cache of this name lies while it is used, as far as this test can look."""
    if not layered(gantry):
        return os.path.join(gantry.cache, name)
    found = glob.glob("/proc/{}/root{}/.run/{}.*/all".format(gantry.process.pid, gantry.cache, name))
    if len(found) != 1:
        raise Wrong("{} is mounted in {}".format(name, found))
    return found[0]


def kept(gantry, name):
    """{file: when it was written} of a cache that nobody uses any more, waited for."""
    where = os.path.join(gantry.cache, name + ".kept/files") if layered(gantry) else os.path.join(gantry.cache, name)
    if layered(gantry) and not wait_until(
            lambda: not glob.glob("/proc/{}/root{}/.run/{}.*".format(gantry.process.pid, gantry.cache, name)), 60):
        raise Wrong("the cache {} is not closed: {}".format(name, gantry.log()))
    return {os.path.relpath(os.path.join(d, f), where): os.stat(os.path.join(d, f)).st_mtime_ns
            for d, _, names in os.walk(where) for f in names}


def binaries(files):
    return {f: when for f, when in files.items() if f.endswith(".so")}


def with_token(case):
    """(tenants of which bob is one by a token, what bob's programs need)"""
    path = os.path.join(case.work, "token")
    with open(path, "w", encoding="utf-8") as f:
        f.write("a-token-that-nobody-guesses\n")
    os.chmod(path, 0o600)
    return ours("alice") + "[tenant bob]\ntoken-file = {}\n".format(path), {"GANTRY_TOKEN": "a-token-that-nobody-guesses"}


def worker_user():
    """The user of workers of root's programs, as gantryd chooses it."""
    if os.geteuid():
        return os.geteuid()
    try:
        return pwd.getpwnam("gantry").pw_uid or 65534
    except KeyError:
        return 65534


def cache(case):
    tenants, token = with_token(case)
    with case.gantry(tenants) as gantry:
        case.need(gantry, "files")
        with case.start(gantry, "alice") as p, case.start(gantry, "bob", **token) as other:
            other.right()
            alices, bobs = (folder_of(gantry, name) for name in ("@{}".format(os.geteuid()), "bob@{}".format(worker_user())))
            for folder in (alices, bobs):
                if os.stat(folder).st_mode & 0o777 != 0o700:
                    raise Wrong("{} is open to others".format(folder))
            before = sorted(os.walk(bobs))
            binary = next(os.path.join(d, f) for d, _, names in os.walk(bobs) for f in names if f.endswith(".so"))
            seen = [gantry.cache, os.path.join(gantry.cache, ".run")] if layered(gantry) else []
            for where in seen:
                refused(where, p.call(OPEN, '"' + where, O_RDONLY | O_DIRECTORY)[0], errno.EACCES, errno.ENOENT)
            bobs_there = bobs.split("/root", 1)[1] if layered(gantry) else bobs
            binary_there = bobs_there + binary[len(bobs):]
            refused("bob's folder", p.call(OPEN, '"' + bobs_there, O_RDONLY | O_DIRECTORY)[0])
            refused("bob's binary", p.call(OPEN, '"' + binary_there, O_RDONLY)[0])
            refused("bob's binary, to write", p.call(OPEN, '"' + binary_there, O_WRONLY)[0])
            refused("a new file of bob's", p.call(OPEN, '"' + bobs_there + "/new.so", O_WRONLY | O_CREAT, 0o700)[0])
            refused("a new folder of bob's", p.call(MKDIR, '"' + bobs_there + "/new", 0o700)[0])
            for up in ("/tmp/cache/..", "/tmp/cache/../bob"):
                refused(up, p.call(OPEN, '"' + up + "/x", O_WRONLY | O_CREAT, 0o600)[0] if up != "/tmp/cache/.." else
                        p.call(RENAME, '"' + bobs_there, '"/tmp/cache/mine')[0])
            if sorted(os.walk(bobs)) != before:
                raise Wrong("bob's cache has changed")
            other.right()


def sharing(case):
    """A user's kernels are compiled once, in whatever tenant. Those of a tenant with a token or a
    socket, and another user's, are compiled anew."""
    tenants, token = with_token(case)
    mine = "@{}".format(os.geteuid())
    others = [("bob@{}".format(worker_user()), "bob", (), token)]
    command = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"]
    if os.geteuid() == 0 and subprocess.run([*command, "test", "-x", case.intruder], check=False).returncode == 0:
        tenants += "[tenant carol]\nuid = any\n"
        others.append(("@{}".format(STRANGER), "carol", command, {}))
    # A container's users are nobody's: by a tenant's socket they come as that tenant.
    with case.gantry(tenants + ours("job1", "job2") + "[tenant dave]\nsocket = yes\n") as gantry:
        os.chmod(gantry.socket_dir, 0o711)
        own = os.path.join(gantry.socket_dir, "tenants", "dave", "gantry.sock")
        others.append(("dave@{}".format(worker_user()), "dave", (), {"GANTRY_CONNECT": "unix:" + own}))
        for tenant in ("job1", "job2"):
            with case.start(gantry, tenant) as p:
                p.right()
            now = kept(gantry, mine)
            if not binaries(now):
                raise Wrong("nothing is kept of {}: {}".format(tenant, now))
            if tenant == "job1":
                first = binaries(now)
        if binaries(now) != first:
            raise Wrong("job2 has compiled anew: {} after {}".format(now, first))
        for name, tenant, how, env in others:
            with case.start(gantry, tenant, how, **env) as p:
                p.right()
            if not binaries(kept(gantry, name)):
                raise Wrong("{} has compiled nothing: {}".format(name, os.listdir(gantry.cache)))
        if binaries(kept(gantry, mine)) != first:
            raise Wrong("others' kernels came to {}".format(mine))
        # Its folder would be left.
        if not wait_until(lambda: "error" not in gantry.control("tenant-rm", name="dave"), 60):
            raise Wrong("dave cannot be removed: {}".format(gantry.control("tenant-rm", name="dave")))
    # The next gantryd finds what this one has kept.
    with case.gantry(tenants + ours("job3")) as gantry:
        with case.start(gantry, "job3") as p:
            p.right()
        if binaries(kept(gantry, mine)) != first:
            raise Wrong("the next gantryd's programs compile anew")


def full(case):
    """A user that fills its cache has filled nobody else's, nor the disk; and a full disk keeps nobody from building."""
    tenants, token = with_token(case)
    small = os.path.join(case.work, "small")
    os.mkdir(small)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "small", small], check=False).returncode:
        raise Skip("no file system can be mounted here")
    try:
        with case.gantry(tenants, cache=small) as gantry:
            case.need(gantry, "temporary files")
            if gantry.control("status")["gantryd"]["walls"]["have"] and not fills(case, gantry, token):
                raise Skip("caches cannot be in layers here")
            with open(os.path.join(small, "ballast"), "wb") as f:
                try:
                    while True:
                        f.write(bytes(1 << 16))
                        f.flush()
                except OSError:
                    pass
            with case.start(gantry, "alice") as p:
                p.right()
                p.source("__kernel void another(__global int *a) { a[0] = 42; }")
                status, log = p.build()
                if status:
                    raise Wrong("with a full disk nothing is built: {}".format(log))
            os.unlink(os.path.join(small, "ballast"))
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def fills(case, gantry, token):
    with case.start(gantry, "alice") as p, case.start(gantry, "bob", **token) as other:
        p.right()
        if not layered(gantry):
            return False
        free = os.statvfs(gantry.cache).f_bavail
        fd = p.call(OPEN, '"/tmp/cache/big', O_WRONLY | O_CREAT, 0o600)[0]
        if fd < 0:
            raise Wrong("a worker cannot write into its cache: {}".format(fd))
        got = 0
        while p.call(FALLOCATE, fd, 0, got << 26, 1 << 26)[0] == 0:
            got += 1
            if got > 8:
                raise Wrong("a worker fills more than 512 MiB of its cache")
        if os.statvfs(gantry.cache).f_bavail < free:
            raise Wrong("it has filled the disk")
        other.source("__kernel void another(__global int *a) { a[0] = 42; }")
        status, log = other.build()
        if status:
            raise Wrong("another user builds nothing any more: {}".format(log))
        other.right()
    if "big" in kept(gantry, "@{}".format(os.geteuid())):
        raise Wrong("what it has written without measure is kept")
    return True


def age(case):
    """What nobody has used for 30 days is removed, when somebody's cache is closed; and nothing else is."""
    with case.gantry() as gantry:
        names = {"@4242.kept": 31, "carol@4242": 31, "@4243.kept": 29, "AB": 400, "others.4242": 400}
        for name, days in names.items():
            folder = os.path.join(gantry.cache, name)
            os.makedirs(os.path.join(folder, "files/deep"))
            with open(os.path.join(folder, "files/deep/k.so"), "w", encoding="utf-8"):
                pass
            os.utime(folder, (time.time() - days * 86400,) * 2)
        with case.start(gantry) as p:
            p.right()

        def left():
            return {n for n in os.listdir(gantry.cache) if n in names}
        if not wait_until(lambda: left() == {"@4243.kept", "AB", "others.4242"}, 60):
            raise Wrong("left are {}: {}".format(left(), gantry.log()))
        if not binaries(kept(gantry, "@{}".format(os.geteuid()))):
            raise Wrong("the one that was just used is gone")


def processes(case):
    with case.gantry() as gantry:
        case.need(gantry, "system calls")
        with case.start(gantry, "bob") as other:
            victim = gantry.worker_of(other)
            with case.start(gantry, "alice") as p:
                for pid in (victim, gantry.process.pid, os.getpid(), p.pid):
                    refused("a signal", p.call(KILL, pid, 9)[0], errno.EPERM, errno.ESRCH)
                    refused("a signal to a thread", p.call(TKILL, pid, 9)[0], errno.EPERM, errno.ESRCH)
                    refused("its memory's file", p.call(OPEN, '"/proc/{}/mem'.format(pid), O_RDONLY)[0], errno.EACCES, errno.ENOENT)
                p.call(KILL, 0, 9)
                p.call(KILL, -1, 9)
                refused("a socket", p.call(SOCKET, 1, 1, 0)[0], errno.EPERM, errno.EACCES)
                refused("a socket to the network", p.call(SOCKET, 2, 1, 0)[0], errno.EPERM, errno.EACCES)
                other.right()
            for what, call in (("tracing", (PTRACE, 16, victim, 0, 0)), ("reading memory", (VM_READV, victim, "@64", 1, "@64", 1, 0))):
                with case.start(gantry, "alice") as p:
                    if p.ask("call " + " ".join(map(str, call)))[0] != "lost":
                        raise Wrong("{} does not end the worker".format(what))
                    p.process.stdin.close()
                    if p.process.wait(60) != 0:
                        raise Wrong("a program without its worker does not end")
                other.right()
            if gantry.worker_of(other) != victim:
                raise Wrong("the other's worker was lost")
        if not wait_until(lambda: gantry.log().count("ended by signal 31, for a system call that no driver makes") == 2, 20):
            raise Wrong("the end of an intruder is not in the log: {}".format(gantry.log()))


def forks(case):
    with case.gantry() as gantry:
        case.need(gantry, "number of processes")
        with case.start(gantry, "bob") as other:
            family = len(descendants(gantry.process.pid))
            with case.start(gantry, "alice") as p:
                made, error = map(int, p.ask("forks 100000", "made"))
                bound = 96 + 4 * (os.cpu_count() or 1)
                if not 0 < made <= bound or error != errno.EAGAIN:
                    raise Wrong("{} processes could be made, then error {}".format(made, error))
                other.right()
            if not gantry.vgpus():
                raise Wrong("the other's vGPU is gone")
            other.right()
            if not wait_until(lambda: len(descendants(gantry.process.pid)) == family, 20):
                raise Wrong("processes are left: {} instead of {}".format(len(descendants(gantry.process.pid)), family))


def data_limit(pid):
    for line in read_file("/proc/{}/limits".format(pid)).splitlines():
        if line.startswith("Max data size"):
            return int(line.split()[3])
    raise Wrong("the worker is gone")


def moves_limits():
    if os.geteuid():
        return True
    status = read_file("/proc/self/status")
    return bool(int(status.split("CapEff:\t")[1].split()[0], 16) >> 24 & 1)


def memory(case):
    with case.gantry() as gantry:
        case.need(gantry, "system calls")
        with case.start(gantry, "bob") as other, case.start(gantry, "alice") as p:
            worker = gantry.worker_of(p)
            before, big = data_limit(worker), 1 << 30
            if p.ask("buffer {}".format(big), "buffer") != ["0"]:
                raise Wrong("a buffer of 1 GiB cannot be had")
            # Root without CAP_SYS_RESOURCE, as in many containers, moves no limits of other users' processes.
            if moves_limits() and data_limit(worker) < before + big // 2:
                raise Wrong("the bound on memory does not follow the lease: {} was {}".format(data_limit(worker), before))
            made, error = map(int, p.ask("fill 100000", "made"))
            if made > data_limit(worker) >> 26 or error != errno.ENOMEM:
                raise Wrong("{} blocks of 64 MiB could be had, then error {}".format(made, error))
            # Memory that is nobody's private memory would not be counted.
            refused("shared memory", p.call(MMAP, 0, 1 << 20, 3, 0x21, -1, 0)[0], errno.EPERM)
            # Stacks count for no limit, and neither do page tables of what is only read.
            refused("a stack", p.call(MMAP, 0, 1 << 26, 3, 0x122, -1, 0)[0], errno.EPERM)
            refused("more of a mapping", p.call(MREMAP, "@4096", 4096, 1 << 26, 1)[0], errno.ENOMEM)
            refused("addresses", p.call(MMAP, 0, 1 << 46, 1, 0x4022, -1, 0)[0], errno.ENOMEM)
            refused("a file of memory", p.call(MEMFD_CREATE, '"x', 0)[0], errno.EPERM)
            if case.own:  # Landlock
                refused("/dev/zero to write", p.call(OPEN, '"/dev/zero', 2)[0])
            for value in ("oom_score_adj", "oom_adj"):
                refused(value, p.call(OPEN, '"/proc/self/' + value, O_WRONLY)[0])
            if int(read_file("/proc/{}/oom_score_adj".format(worker))) <= 0:
                raise Wrong("a worker is not the first to go when memory runs out")
            other.right()


def identity(case):
    with case.gantry() as gantry, case.start(gantry) as p:
        case.need(gantry, "privileges")
        status = dict(line.split(":\t", 1) for line in read_file("/proc/{}/status".format(gantry.worker_of(p))).splitlines()
                      if ":\t" in line)
        users = {int(u) for u in status["Uid"].split()}
        if 0 in users or len(users) != 1 or (os.geteuid() and users != {os.geteuid()}):
            raise Wrong("a worker runs as {}".format(status["Uid"]))
        if status["NoNewPrivs"] != "1" or any(int(status[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")):
            raise Wrong("a worker can come to privileges: {}".format(status))
        if status["Seccomp"] != "2":
            raise Wrong("a worker has no filter of system calls")
        template = [d for d in descendants(gantry.process.pid) if d != gantry.worker_of(p)]
        if len(template) != 1:
            raise Wrong("there is more than a template and a worker: {}".format(template))
        held = links("/proc/{}/fd".format(gantry.worker_of(p)))
        if links("/proc/{}/fd".format(gantry.process.pid))["2"] in held.values():
            raise Wrong("a worker holds gantryd's stderr")
        files_held = [f for f in held.values() if f.startswith(gantry.work) and not f.startswith(gantry.cache)]
        if files_held:
            raise Wrong("a worker holds files of gantryd's: {}".format(files_held))


def links(folder):
    return {name: os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)}


def users(case):
    """gantryd is root and hosts programs of others: their workers are theirs."""
    if os.geteuid() != 0:
        raise Skip("only root's gantryd can run workers as others")
    command = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--groups", str(STRANGER + 1)]
    if subprocess.run([*command, "test", "-x", case.intruder], check=False).returncode:
        raise Skip("an ordinary user cannot run what is built here")
    with case.gantry("[tenant alice]\nuid = {}\n[tenant bob]\nuid = 0\n".format(STRANGER)) as gantry:
        os.chmod(gantry.socket_dir, 0o711)
        with case.start(gantry, "alice", command) as p, case.start(gantry, "bob") as other:
            status = read_file("/proc/{}/status".format(gantry.worker_of(p)))
            for line in ("Uid:" + "\t{}".format(STRANGER) * 4, "Gid:" + "\t{}".format(STRANGER) * 4, "Groups:\t{} ".format(STRANGER + 1)):
                if line not in status:
                    raise Wrong("a worker is not its program's user: {}".format(status))
            if os.stat(folder_of(gantry, "@{}".format(STRANGER))).st_uid != STRANGER:
                raise Wrong("a kernel cache is not its user's")
            # Whom root's workers run as must not be able to do anything to it.
            refused("root's secret", p.call(OPEN, '"/etc/shadow', O_RDONLY)[0])
            refused("a signal", p.call(KILL, gantry.worker_of(other), 9)[0], errno.EPERM, errno.ESRCH)
            p.right()
            other.right()


def race(case):
    """A user that wins every race inside its own folder gets no file of another user's."""
    if os.geteuid() != 0:
        raise Skip("only root's gantryd changes owners of files")
    command = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"]
    if subprocess.run([*command, "test", "-x", case.intruder], check=False).returncode:
        raise Skip("an ordinary user cannot run what is built here")
    victim, seen = os.path.join(case.work, "victim"), os.path.join(case.work, "seen")
    with open(victim, "w", encoding="utf-8"):
        pass
    before = os.stat(victim)
    env = {"LD_PRELOAD": os.path.join(case.options.build, "tests/walls/racer.so"), "RACER_VICTIM": victim, "RACER_SEEN": seen}
    with case.gantry("[tenant alice]\nuid = {}\n".format(STRANGER), env) as gantry:
        os.chmod(gantry.socket_dir, 0o711)
        with case.start(gantry, "alice", command) as p:
            p.right()
        if not os.path.exists(seen):
            raise Wrong("the attacker was not in gantryd: this test shows nothing")
    after = os.stat(victim)
    if (after.st_uid, after.st_gid, after.st_mode) != (before.st_uid, before.st_gid, before.st_mode):
        raise Wrong("a file of root's belongs to user {} now, mode {:o}".format(after.st_uid, after.st_mode))


def installed_below_tmp(case):
    """A prefix with PoCL in it: (the library's folder, a file that lies beside the prefix)."""
    libraries = glob.glob("/usr/lib/*/libpocl.so.2")
    if not libraries or not os.path.isdir("/usr/share/pocl"):
        raise Skip("PoCL is not installed as Debian has it")
    library = libraries[0]
    top = tempfile.mkdtemp(prefix="walls-driver-", dir="/tmp")
    case.folders.append(top)
    os.chmod(top, 0o755)
    folder = os.path.join(top, "prefix/lib/machine")
    os.makedirs(folder)
    shutil.copy(library, os.path.join(folder, "libpocl.so.2"))
    shutil.copytree(os.path.join(os.path.dirname(library), "pocl"), os.path.join(folder, "pocl"))
    data = os.path.join(top, "prefix/share/pocl")
    shutil.copytree("/usr/share/pocl/include", os.path.join(data, "include"))
    for name in os.listdir("/usr/share/pocl"):
        if name.endswith(".bc"):
            os.symlink(os.path.join("/usr/share/pocl", name), os.path.join(data, name))
    secret = os.path.join(top, "secret")
    shutil.copy(case.secret, secret)
    return folder, secret


def prefix(case):
    """A driver that is installed below /tmp builds programs there, by whatever name it is found, and cannot be written."""
    folder, secret = installed_below_tmp(case)
    top = os.path.dirname(secret)
    link = os.path.join(top, "link")
    os.symlink(os.path.join(top, "prefix"), link)
    for line, path in ((os.path.join(folder, "libpocl.so.2"), ""), (os.path.join(link, "lib/machine/libpocl.so.2"), ""),
                       ("libpocl.so.2", folder)):
        vendors = tempfile.mkdtemp(prefix="vendors-", dir=case.work)
        os.chmod(vendors, 0o755)
        with open(os.path.join(vendors, "pocl.icd"), "w", encoding="utf-8") as f:
            f.write(line + "\n")
        env = {"OCL_ICD_VENDORS": vendors, **({"LD_LIBRARY_PATH": path} if path else {})}
        with case.gantry(env=env) as gantry:
            case.need(gantry, "temporary files")
            # Below the prefix the program's own folder would do: its files are found there.
            with case.start(gantry, "alice", ("env", "-C", "/")) as p:
                p.source("__kernel void k(__global int *a) { a[0] = get_global_size(0); }")
                status, log = p.build()
                if status:
                    raise Wrong("the driver that {} names builds nothing: {}".format(line, log))
                library = os.path.join(path, line)
                if p.call(OPEN, '"' + library, O_RDONLY)[0] < 0:
                    raise Wrong("{} cannot be seen".format(library))
                for at in (library, os.path.join(os.path.dirname(library), "../../share/pocl/include/pocl_types.h")):
                    refused(at + ", to write", p.call(OPEN, '"' + at, O_WRONLY)[0], errno.EROFS, errno.EACCES)
                refused("a new file in the prefix", p.call(OPEN, '"' + os.path.dirname(library) + "/new", O_WRONLY | O_CREAT, 0o700)[0])
                refused("a file beside the prefix", p.call(OPEN, '"' + secret, O_RDONLY)[0], errno.ENOENT)
                p.right()


def poor(case):
    """Where there are neither namespaces nor Landlock nor filters: said once, and programs run all the same."""
    wrapped = case.where("all")
    with Gantry(wrapped, os.path.join(case.work, "gantryd")) as gantry:
        lines = [line for line in gantry.log().splitlines() if "walls" in line]
        if len(lines) != 1 or "files" not in lines[0] or "processes" not in lines[0]:
            raise Wrong("what is missing is not told once: {}".format(lines))
        with case.start(gantry) as p:
            p.right()
            made = p.call(KILL, os.getpid(), 0)[0]
            if "system calls" not in lines[0]:
                refused("a signal", made, errno.EPERM)
    try:
        with Gantry(wrapped, os.path.join(case.work, "gantryd2"), args=["--walls", "required"]):
            raise Wrong("gantryd starts without the walls that are required")
    except NotReady as refusal:
        if "walls are required, but these are not available" not in str(refusal):
            raise Wrong("the refusal does not say why: {}".format(refusal)) from None


def view(case):
    """Without Landlock a root of its own hides as much."""
    case.stage, case.own = case.where("landlock"), ()
    for attack in (files, cache, includes, memory, prefix):
        attack(case)


def user(case):
    """The same as an ordinary user."""
    if os.geteuid() != 0:
        raise Skip("this is an ordinary user already, so the other cases show it")
    work = tempfile.mkdtemp(prefix="walls-user-", dir="/tmp")
    os.chown(work, STRANGER, STRANGER)

    def become():
        os.setgroups([])
        os.setresgid(STRANGER, STRANGER, STRANGER)
        os.setresuid(STRANGER, STRANGER, STRANGER)
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "HOME")}
    env.update(HOME=work, TMPDIR=work)
    if subprocess.run(["/usr/bin/test", "-x", case.intruder], preexec_fn=become, check=False).returncode:
        raise Skip("an ordinary user cannot run what is built here")
    try:
        for name in ("identity", "files", "includes", "cache", "sharing", "age", "processes", "forks", "memory", "prefix", "view"):
            p = subprocess.run(["/usr/bin/python3", "-B", os.path.abspath(__file__), "--build", case.options.build, name],
                               preexec_fn=become, env=env, cwd=work, capture_output=True, text=True, timeout=300, check=False)
            print(name, p.returncode, p.stdout.strip(), p.stderr.strip())
            if p.returncode == 1:
                raise Wrong("as an ordinary user, {}: {}".format(name, p.stderr.strip()))
            if p.returncode not in (0, 77):
                raise Wrong("as an ordinary user, {} ended with status {}".format(name, p.returncode))
    finally:
        subprocess.run(["rm", "-rf", work], check=False)


CASES = {f.__name__: f for f in (files, includes, cache, processes, forks, memory, identity, users, prefix,
                                 view, poor, user, race, sharing, full, age)}


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("case", choices=sorted(cases))
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    if platform.machine() != "x86_64":
        print("SKIP: the attacks are written in the instructions of x86-64", file=sys.stderr)
        return 77
    try:
        with tempfile.TemporaryDirectory(prefix="walls-") as work:
            os.chmod(work, 0o755)
            case = Case(options, work)
            try:
                cases[options.case](case)
            finally:
                for folder in case.folders:
                    shutil.rmtree(folder, ignore_errors=True)
    except Skip as why:
        print("SKIP: {}".format(why), file=sys.stderr)
        return 77
    except (Wrong, LeftBehind, NotReady) as wrong:
        print("{}: {}".format(options.case, wrong), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(CASES))
