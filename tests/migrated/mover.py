# SPDX-License-Identifier: Apache-2.0
"""Migrates every vGPU of some gantryds again and again, in a thread of its own, until it is told to stop.

A route says where a vGPU goes next: ROUTES maps its name to a class. A refusal is counted by its reason; EXPECTED lists the reasons that a
program which comes, goes and builds gives a migration to be refused for, all others are faults.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from daemon import clean_env  # noqa: E402

COMMAND_S = 240    # ends a wait that would never end
EXPECTED = re.compile(
    r"no vGPU|it has no worker any more|its program has ended|is being moved already|it is just handing over|"
    r"the program is handing over a descriptor|a pipe, whose contents cannot be read|ended before|has ended|"
    r"is not there|it is on its way|no program waits for|the stream ends at byte|its worker has not ended an earlier move yet|"
    # Between a restore that its program's end prevented and that end.
    r"it is stopped, and in a file already|"
    r"forked from one that had loaded a driver|: the program ends;|"
    # What a driver in a program has included is not kept: docs/passthrough.md.
    r"the driver cannot make an object again: Build returns -11 here and returned 0|"
    # Over tcp a program that has ended, or has not come back from the last migration yet, looks like this.
    r"the connection to its program (is broken|broke)|its program has not come back")


class Mover:
    """One route's migrations. `daemons`: one or two gantryds; vGPUs begin at the first."""

    def __init__(self, stage, daemons, period_s=0.0):
        self.gantry = os.path.join(stage, "bin", "gantry")
        self.daemons = daemons
        self.period_s = period_s
        self.done = collections.Counter()
        self.refused = collections.Counter()
        self.faults = []
        self.turns = collections.Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stopping.set()
        self.thread.join()

    def call(self, daemon, *words):
        done = subprocess.run([self.gantry, words[0], "--connect", daemon.address, "--json", *words[1:]], env=clean_env(),
                              capture_output=True, text=True, timeout=COMMAND_S, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {"error": {"what": done.stderr}}

    def count(self, what, status, said):
        if status == 0:
            self.done[what] += 1
            return True
        why = ": ".join(str(said["error"].get(part)) for part in ("what", "why") if said["error"].get(part))
        why = re.sub(r"\b[0-9a-f]{8}\b", "ID", why)
        self.refused[why] += 1
        if not EXPECTED.search(why):
            self.faults.append("{}: {}".format(what, why))
        return False

    def run(self):
        while not self.stopping.is_set():
            began = time.monotonic()
            for daemon in self.daemons:
                status, said = self.call(daemon, "ls")
                for vgpu in said.get("vgpus", []) if status == 0 else []:
                    self.turns[vgpu["id"]] += 1
                    self.migrate(daemon, vgpu)
            self.stopping.wait(max(0.0, self.period_s - (time.monotonic() - began)))

    def other(self, daemon):
        return self.daemons[1 - self.daemons.index(daemon)]

    def migrate(self, daemon, vgpu):
        raise NotImplementedError


class Local(Mover):
    def migrate(self, daemon, vgpu):
        self.count("local", *self.call(daemon, "migrate", vgpu["id"], "local"))


class Mode(Mover):
    def migrate(self, daemon, vgpu):
        mode = "remote" if vgpu["mode"].startswith("passthrough") else "passthrough"
        self.count(mode, *self.call(daemon, "mode", vgpu["id"], mode))


class OtherDaemon(Mover):
    def migrate(self, daemon, vgpu):
        self.count("unix", *self.call(daemon, "migrate", vgpu["id"], self.other(daemon).address))


class Tcp(Mover):
    def migrate(self, daemon, vgpu):
        self.count("tcp", *self.call(daemon, "migrate", vgpu["id"], self.other(daemon).tcp_address, "--link", "tcp"))


class Stopped(Mover):
    """Into a file and out of it again."""

    def migrate(self, daemon, vgpu):
        with tempfile.TemporaryDirectory(prefix="gn-migrated-") as folder:
            file = os.path.join(folder, "stopped.ckpt")
            if self.count("checkpoint", *self.call(daemon, "checkpoint", vgpu["id"], file, "--stop")):
                # A program that is ending needs no vGPU any more, and may wait for none; others do, and the file is all of it.
                while not self.count("restore", *self.call(daemon, "restore", file)) and self.lists(daemon, vgpu) and not self.faults:
                    pass

    def lists(self, daemon, vgpu):
        status, said = self.call(daemon, "ls")
        return status == 0 and any(v["id"] == vgpu["id"] for v in said["vgpus"])


ROUTES = {"local": Local, "mode": Mode, "unix": OtherDaemon, "tcp": Tcp, "stop": Stopped}
