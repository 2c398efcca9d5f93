# SPDX-License-Identifier: Apache-2.0
"""A gantryd on an emulated discrete GPU, and programs that hold memory there."""

import os
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/discrete"))

from device_state import Device  # noqa: E402
from harness.targets import BenchError, Gantry  # noqa: E402

ANSWER_S = 300
OVERSUBSCRIBED = ("--oversubscribe", "--swap-memory", "2G")


class Emulated(Gantry):
    """memory: of the device, as gantryd is told; more: options of gantryd; tenants: sections of
    its configuration."""

    def __init__(self, context, memory="512M", more=OVERSUBSCRIBED, tenants=""):
        super().__init__(context.stage, {}, ready_s=120)
        self.icd, self.bus = context.icd, context.bus
        self.memory, self.more, self.tenants = memory, more, tenants

    def options(self, folder):
        os.chmod(folder, 0o755)     # workers may be of another user
        device = Device(self.icd, folder, f"capacity=512M,bus={self.bus}")
        self.driver = device.env() | {"POCL_CACHE_DIR": os.path.join(folder, "cache")}
        path = os.path.join(folder, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"[device pthread]\nmemory = {self.memory}\nslot = 16M\n{self.tenants}")
        return ["--config", path, *self.more]

    def state(self):
        """Device time of each program by its pid, and the time in swaps, in ns."""
        used = {v["pid"]: v["devices"][0] for v in self.ask("ls")["vgpus"]}
        return time.monotonic_ns(), used, self.ask("devices")["devices"][0]


class Holder:
    """holds: filled; it works from the first go() on until the next one."""

    def __init__(self, gantry, path, *words, **env):
        self.process = subprocess.Popen(
            [path, "--pause", "--told", "--often", "0", *words], env=gantry.environment() | env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def hear(self, word):
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
        line = self.process.stdout.readline().split() if ready else ["nothing"]
        if line[:1] != [word]:
            raise BenchError(f"a program said {' '.join(line)!r}, not {word!r}")
        return line[1:]

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.communicate()


class Holders:
    """They work while this is entered, all from the same time on."""

    def __init__(self, holders):
        self.holders = holders

    def __enter__(self):
        for holder in self.holders:
            holder.hear("holds")
        for holder in self.holders:
            holder.go()
        return self

    def tell(self):
        for holder in self.holders:
            holder.go()

    def __exit__(self, *exc):
        for holder in self.holders:
            holder.end()
