# SPDX-License-Identifier: Apache-2.0
"""A gantryd of one's own for a test: private socket, private kernel cache, and a check that nothing is left behind.

    with Daemon(stage, work) as gantry:
        subprocess.run(["clinfo"], env=gantry.program_env())

$GANTRY_TEST_DISCRETE, the path of libdiscrete-icd.so, gives each daemon an emulated discrete GPU of its own;
$GANTRY_TEST_DISCRETE_OPTIONS are its options. So a suite runs on it as it is.
$GANTRY_TEST_EVICT is GANTRY_EVICT of each daemon: with "always", workers evict all buffers after each message.

Leaving the block ends the daemon with SIGTERM and raises LeftBehind when its socket or any of its processes outlives it.
"""

import atexit
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "discrete"))
from device_state import Device     # noqa: E402

READY_S = 120    # a cold start probes every driver
END_S = 60
LEFT_S = 30      # for what gantryd leaves to end by itself
ANSWER_S = 120
TOLD_LINES = 40  # of each gantryd's log, when a test has failed


class LeftBehind(Exception):
    pass


class NotReady(Exception):
    pass


def stage_ready(stage):
    """None when the staged tree can be used, else a sentence."""
    for part in ("bin/gantryd", "bin/gantry", "lib/libgantry-opencl.so", "etc/OpenCL/vendors/gantry.icd"):
        if not os.path.exists(os.path.join(stage, part)):
            return "{} is not there: run 'make stage' first".format(os.path.join(stage, part))
    return None


def clean_env():
    """This process's environment without what would change what a driver or Gantry does."""
    drop = ("MALLOC_PERTURB_", "POCL_", "OCL_ICD_", "OPENCL_", "GANTRY_", "PYOPENCL_", "OPENCV_", "DISCRETE")
    env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    env["LC_ALL"] = "C.UTF-8"
    return env


def discrete_env(work):
    """The environment of a driver, if the tests run on an emulated discrete GPU."""
    icd = os.environ.get("GANTRY_TEST_DISCRETE")
    return Device(icd, work, os.environ.get("GANTRY_TEST_DISCRETE_OPTIONS", "")).env() if icd else {}


def evict_env():
    how = os.environ.get("GANTRY_TEST_EVICT")
    return {"GANTRY_EVICT": how} if how else {}


def processes_with(mark):
    """Pids of processes whose environment at their start held the mark."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/{}/environ".format(entry), "rb") as f:
                    if mark.encode() in f.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


def descendants(pid):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/{}/stat".format(entry), encoding="utf-8", errors="replace") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def identity(pid):
    """Something that a later process with the same pid does not have; None when it is gone or a zombie."""
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return None if fields[0] == "Z" else (pid, fields[19])
    except OSError:
        return None


def gone(pids):
    """Does nothing of them run any more? A zombie has ended; when it is collected is up to its parent, init for an orphan."""
    for pid in pids:
        try:
            if identity(pid) or len(os.listdir("/proc/{}/task".format(pid))) > 1:
                return False
        except OSError:
            pass
    return True


def wait_until(condition, seconds):
    """Polls; the caller's verdict depends on the condition alone, the time only ends a wait that would never end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def shared_kernels(name):
    """A kernel cache for whoever has no use for a cold one: of all suites of a run of tools/run-tests.py, else of this process. What sets how a
    driver compiles, and is not seen in its cache, must be in the name."""
    root = os.environ.get("GANTRY_TEST_KERNELS")
    if not root:
        root = os.environ["GANTRY_TEST_KERNELS"] = tempfile.mkdtemp(prefix="gn-kernels-")
        os.chmod(root, 0o755)
        atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    return folder


class Daemon:
    made = []   # all of this process; telling.py takes out those that have ended

    def __init__(self, stage, work, args=(), env=None, cache=None, prefix=(), passthrough=False):
        self.stage = os.path.abspath(stage)
        self.work = work
        os.makedirs(work, exist_ok=True)
        # A Unix socket's path may have 107 bytes: shorter than many build folders.
        self.socket_dir = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", "gn-test-" + uuid.uuid4().hex[:12])
        os.makedirs(self.socket_dir, mode=0o700)
        self.socket = os.path.join(self.socket_dir, "g.sock")
        self.address = "unix:" + self.socket
        self.mark = "GANTRY_TEST_MARK=" + uuid.uuid4().hex
        self.log_path = os.path.join(work, "gantryd.log")
        self.args = list(args)
        self.prefix = list(prefix)   # a program that becomes what it is given, as nsenter does
        self.extra_env = {**discrete_env(work), **evict_env(), **(env or {})}
        self.cache = cache or os.path.join(work, "cache")
        os.makedirs(self.cache, exist_ok=True)
        self.passthrough = passthrough   # its programs host their vGPUs themselves
        self.process = None
        self.tcp_address = None
        self.kept = ""          # of its log, when the file is gone
        self.earlier = ""       # of those that it was started again in the place of
        Daemon.made.append(self)

    def daemon_env(self):
        env = clean_env()
        env.update(self.extra_env)
        env["POCL_CACHE_DIR"] = self.cache
        name, value = self.mark.split("=", 1)
        env[name] = value
        return env

    def program_env(self):
        env = clean_env()
        env["OCL_ICD_VENDORS"] = os.path.join(self.stage, "etc/OpenCL/vendors")
        env["GANTRY_CONNECT"] = self.tcp_address or self.address
        if self.passthrough:
            # The driver is in the program: what it is told by the environment, it is told there.
            env.update({k: v for k, v in self.extra_env.items() if k.startswith(("POCL_", "DISCRETE"))})
            env["POCL_CACHE_DIR"] = self.cache
            env["GANTRY_MODE"] = "passthrough"
            # Under ASan the search for leaks reads outside of memory when a driver's threads are in the program, and ends it.
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        return env

    def __enter__(self):
        command = self.prefix + [os.path.join(self.stage, "bin/gantryd"), "--socket", self.socket] + self.args
        self.process = subprocess.Popen(command, env=self.daemon_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, start_new_session=True)
        try:
            self._wait_ready()
            if self.passthrough:
                self.ctl("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
        except BaseException:
            self._kill()
            raise
        return self

    def _wait_ready(self):
        """Reads stderr up to the line that says the socket is there, then leaves the rest to a thread-less copy into a file."""
        wanted = "ready unix:" + self.socket
        seen = b""
        end = time.monotonic() + READY_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stderr, selectors.EVENT_READ)
            while wanted not in seen.decode(errors="replace").splitlines():
                if not selector.select(max(0, end - time.monotonic())):
                    raise NotReady("gantryd did not become ready in {} s:\n{}".format(READY_S, seen.decode(errors="replace")))
                piece = os.read(self.process.stderr.fileno(), 4096)
                if not piece:
                    status = self.process.wait()
                    raise NotReady("gantryd ended with status {}:\n{}".format(status, seen.decode(errors="replace")))
                seen += piece
        for line in seen.decode(errors="replace").splitlines():
            if line.startswith("listening tcp:"):
                self.tcp_address = line.split()[1]
        self.earlier += self.log()
        # From here on `cat` keeps the pipe from filling; it ends when the last holder of the pipe's other end does.
        with open(self.log_path, "wb") as log:
            log.write(seen)
            log.flush()
            self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log)
        self.process.stderr.close()

    def ctl(self, *args):
        """Runs `gantry SUBCOMMAND --json` and returns its object."""
        out = subprocess.run([os.path.join(self.stage, "bin/gantry"), *args, "--connect", self.address, "--json"],
                             env=clean_env(), stdout=subprocess.PIPE, check=True, timeout=ANSWER_S).stdout
        return json.loads(out)

    def vgpus(self):
        return self.ctl("ls")["vgpus"]

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return self.kept

    def last_words(self):
        """The end of its log, and of those before it in its place."""
        lines = (self.earlier + self.log()).splitlines()
        left = ["... {} lines before".format(len(lines) - TOLD_LINES)] if len(lines) > TOLD_LINES else []
        return "\n".join(["--- gantryd {}, the end of its log".format(os.path.basename(self.work))] + left + lines[-TOLD_LINES:])

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """It and all that it has started; what it leaves is looked at by nobody."""
        if self.runs():
            self._kill()

    def _kill(self):
        for pid in [self.process.pid] + descendants(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def __exit__(self, kind, value, trace):
        problems = []
        if self.process.poll() is not None:
            problems.append("gantryd had ended by itself with status {}".format(self.process.returncode))
        elif kind is None and not wait_until(lambda: not self.vgpus(), END_S):
            problems.append("a vGPU outlives its program: {}".format(self.vgpus()))
        family = [identity(pid) for pid in descendants(self.process.pid) + processes_with(self.mark)]
        family = {who for who in family if who and who[0] != self.process.pid}
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                status = self.process.wait(END_S)
                if status != 0:
                    problems.append("gantryd ended with status {} on SIGTERM".format(status))
            except subprocess.TimeoutExpired:
                problems.append("gantryd does not end on SIGTERM")
                self._kill()

        def alive():
            return [who for who in family if identity(who[0]) == who] + [(p, 0) for p in processes_with(self.mark)]

        if not wait_until(lambda: not alive(), LEFT_S):
            problems.append("processes outlive gantryd: {}".format(sorted(pid for pid, _ in alive())))
            for pid, _ in alive():
                os.kill(pid, signal.SIGKILL)
        if hasattr(self, "drain"):
            self.drain.wait()
        self.kept = self.log()
        if os.path.lexists(self.socket):
            problems.append("the socket outlives gantryd")
            os.unlink(self.socket)
        left = os.listdir(self.socket_dir)
        if left:
            problems.append("files outlive gantryd: {}".format(left))
        else:
            os.rmdir(self.socket_dir)
        if problems and kind is None:
            raise LeftBehind("; ".join(problems))
