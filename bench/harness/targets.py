# SPDX-License-Identifier: Apache-2.0
"""What a program is run on: the vendor's driver (native), or a gantryd of our own (Gantry).

Both get the same PoCL settings. On Gantry the driver lives in the worker, so gantryd gets the settings and the program
gets only where to find Gantry.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time


class BenchError(Exception):
    """A measurement that could not be made: said in the table, and the run ends with status 1."""


def clean_environment():
    return {k: v for k, v in os.environ.items()
            if not k.startswith("GANTRY_") or k.startswith("GANTRY_LOAD_")}


class Native:
    name = "native"

    def __init__(self, driver):
        self.driver = driver

    def environment(self):
        return clean_environment() | self.driver

    def start(self):
        return self

    def stop(self):
        pass

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()


class Gantry(Native):
    """One gantryd on a socket of its own, up to stop(). prefix runs it under another program (strace)."""

    name = "gantry"

    def __init__(self, stage, driver, prefix=(), ready_s=30):
        super().__init__(driver)
        self.stage = os.path.abspath(stage)
        self.prefix = list(prefix)
        self.ready_s = ready_s
        self.process = None
        self.folder = None
        self.log = []
        self.address = None
        self.ready = threading.Event()

    def options(self, folder):
        """More of gantryd's; what they name may lie in the folder."""
        return []

    def environment(self):
        return clean_environment() | {
            "OCL_ICD_VENDORS": os.path.join(self.stage, "etc/OpenCL/vendors"),
            "GANTRY_CONNECT": self.address,
        }

    def start(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gantry-bench-")
        path = os.path.join(self.folder.name, "gantry.sock")
        self.address = "unix:" + path
        command = self.prefix + [os.path.join(self.stage, "bin/gantryd"), "--socket", path, *self.options(self.folder.name)]
        try:
            self.process = subprocess.Popen(command, env=clean_environment() | self.driver, text=True,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE)
        except OSError as e:
            raise BenchError(f"gantryd does not start: {e}") from e
        threading.Thread(target=self._read_log, daemon=True).start()
        self.ready.wait(self.ready_s)
        if not any(line.startswith("ready ") for line in self.log):
            said = "; ".join(self.log[-3:]) or "it said nothing"
            self.stop()
            raise BenchError(f"gantryd is not ready after {self.ready_s} s: {said}")
        return self

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip())
            if line.startswith("ready "):
                self.ready.set()
        self.ready.set()  # it ended

    def ask(self, *words):
        """A question to gantryd by the command line; its JSON."""
        done = subprocess.run([os.path.join(self.stage, "bin/gantry"), *words, "--json"], env=self.environment(), capture_output=True, text=True,
                              timeout=120)
        if done.returncode != 0:
            raise BenchError(f"gantry {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(done.stdout)

    def pid(self):
        """gantryd itself, also behind a prefix."""
        if not self.prefix:
            return self.process.pid
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return int(f.read().split()[0])

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            try:
                os.kill(self.pid(), signal.SIGTERM)
            except (OSError, IndexError):
                self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                self.log.append("gantryd did not end on SIGTERM and was killed")
        self.process = None
        self.folder.cleanup()


def run(target, command, timeout_s=300):
    """Runs command on target; returns its stdout and how long it took. A failure is a BenchError."""
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=target.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout_s, errors="replace")
    except subprocess.TimeoutExpired as e:
        raise BenchError(f"{os.path.basename(command[0])} on {target.name} took more than {timeout_s} s") from e
    except OSError as e:
        raise BenchError(f"{command[0]} does not start: {e.strerror}") from e
    elapsed_s = time.monotonic() - start
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise BenchError(f"{' '.join([os.path.basename(command[0])] + command[1:])} on {target.name} ended with "
                         f"status {done.returncode}: {said}")
    return done.stdout, elapsed_s


def run_json(target, command, timeout_s=300):
    out, elapsed_s = run(target, command, timeout_s)
    try:
        return json.loads(out) | {"process_ns": int(elapsed_s * 1e9)}
    except ValueError as e:
        raise BenchError(f"{os.path.basename(command[0])} printed no JSON: {out[:80]!r}") from e
