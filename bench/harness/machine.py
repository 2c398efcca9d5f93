# SPDX-License-Identifier: Apache-2.0
"""What a run is made on: the machine, the commit of the tree, and the load average meanwhile."""

import os
import platform
import statistics
import subprocess
import threading

SAMPLE_S = 5


def lines_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()
    except OSError:
        return []


def value_of(lines, key):
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


def describe_machine():
    cpu = lines_of("/proc/cpuinfo")
    memory_kib = value_of(lines_of("/proc/meminfo"), "MemTotal").split(" ")[0]
    return {"processor": value_of(cpu, "model name") or platform.machine(),
            "cores": os.cpu_count(),
            "memory_gib": round(int(memory_kib) / 2**20, 1) if memory_kib.isdigit() else None,
            "virtual": "hypervisor" in value_of(cpu, "flags").split(),
            "kernel": f"{platform.system()} {platform.release()}"}


def describe_commit(root):
    """The tree's commit; with `-changed` where files differ from it, documents aside."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True,
                              check=True,
                              timeout=60).stdout.strip()
    try:
        commit = git("rev-parse", "--short=7", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit + ("-changed" if changed else "")


class LoadWatch:
    """The machine's load average before and during a block; the benchmark's own work is in it."""

    def __enter__(self):
        self.before = os.getloadavg()[0]
        self.samples = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()
        return self

    def _sample(self):
        while not self.ended.wait(SAMPLE_S):
            self.samples.append(os.getloadavg()[0])

    def __exit__(self, *_):
        self.samples.append(os.getloadavg()[0])
        self.ended.set()
        self.thread.join()

    def described(self):
        return {"before": round(self.before, 2),
                "during": round(statistics.median(self.samples), 2),
                "greatest": round(max(self.samples), 2)}
