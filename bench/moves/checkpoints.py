#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint takes beside a plain writer of the same bytes to the same file system, and what one of an almost empty vGPU takes. In turns,
ABBA; prints one line a folder and a JSON object.

    bench/moves/checkpoints.py [--build BUILD] [--pairs N] [--total MIB] [--folders DIR,DIR]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/programs"))
sys.path.insert(0, os.path.join(HERE, ".."))
from daemon import Daemon, stage_ready  # noqa: E402
from harness.stats import abba, ratios, spread  # noqa: E402

TIMEOUT_S = 240
PIECE = 1 << 20


def checkpoint(daemon, path):
    """The whole of `gantry checkpoint`, until its file is on the disk under its name."""
    vgpu = daemon.vgpus()[0]["id"]
    began = time.monotonic()
    done = subprocess.run([os.path.join(daemon.stage, "bin/gantry"), "checkpoint", "--json", "--connect", daemon.address, vgpu, path],
                          stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S)
    took = time.monotonic() - began
    os.unlink(path)
    said = json.loads(done.stdout)["checkpoint"]
    return took, said


def plain(path, n_bytes, piece):
    """The same bytes as a plain program writes them, until they are on the disk under their name."""
    began = time.monotonic()
    fd = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    for at in range(0, n_bytes, PIECE):
        os.write(fd, piece[:n_bytes - at])
    os.fsync(fd)
    os.close(fd)
    os.rename(path + ".new", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    took = time.monotonic() - began
    os.unlink(path)
    return took


class Running:
    """A program, from its first line on until it is told to go on to its end."""

    def __init__(self, command, daemon, first, last):
        self.last = last
        self.process = subprocess.Popen(command, env=daemon.program_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != first:
            self.process.kill()
            raise RuntimeError(f"{command[0]} did not begin")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(self.last, timeout=TIMEOUT_S)


def measure_folder(daemon, folder, pairs, piece):
    said = []
    path = os.path.join(folder, "vgpu")

    def ours():
        took, what = checkpoint(daemon, path)
        said.append(what)
        return took

    ours()
    n_bytes = said[0]["bytes"]
    plain(path, n_bytes, piece)
    said.clear()
    times = abba(pairs, ours, lambda: plain(path, n_bytes, piece))
    ours_s, plain_s = (statistics.median(side) for side in zip(*times))
    return {"ratio": spread(ratios(times)), "bytes": n_bytes, "ours_s": ours_s, "plain_s": plain_s,
            "downtime_ms": statistics.median(s["downtime_ns"] for s in said) / 1e6,
            "sync_ms": statistics.median(s["phases_ns"]["sync"] for s in said) / 1e6}


def main():
    p = argparse.ArgumentParser(description="A checkpoint's speed beside a plain writer's.")
    p.add_argument("--build", default="build")
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--total", type=int, default=1024, help="MiB of buffers (default: 1024)")
    p.add_argument("--folders", default="/dev/shm," + tempfile.gettempdir(), help="on a tmpfs, on a disk (default: /dev/shm,/tmp)")
    o = p.parse_args()
    stage = os.path.join(o.build, "stage")
    why = stage_ready(stage)
    if why:
        print(why, file=sys.stderr)
        return 1
    figures = {}
    piece = os.urandom(PIECE)
    with tempfile.TemporaryDirectory(prefix="gn-bench-moves-") as work, Daemon(stage, work) as daemon:
        for where in o.folders.split(","):
            with tempfile.TemporaryDirectory(prefix="gn-bench-moves-", dir=where) as folder:
                with Running([os.path.join(o.build, "bench/moves/changing"), str(o.total), "16", "1"], daemon, "ready", "end\n"):
                    f = measure_folder(daemon, folder, o.pairs, piece)
                with Running([os.path.join(o.build, "tests/moves/moved")], daemon, "buffers", "on\n" * 8):
                    path = os.path.join(folder, "vgpu")
                    checkpoint(daemon, path)
                    small = [checkpoint(daemon, path) for _ in range(o.pairs)]
                    f["small_ms"] = statistics.median(t for t, _ in small) * 1e3
                    f["small_bytes"] = small[0][1]["bytes"]
                    f["small_plain_ms"] = statistics.median(plain(path, f["small_bytes"], piece) for _ in range(o.pairs)) * 1e3
            figures[where] = f
            print("{:9} {:.2f} GB: {:.2f} s, plain {:.2f} s: {:.3f} of its speed ({:.2f}..{:.2f}); stood still for {:.0f} ms, of which nothing for "
                  "the disk's {:.0f} ms; {:.1f} MB: {:.1f} ms, plain {:.1f} ms".format(
                      where, f["bytes"] / 1e9, f["ours_s"], f["plain_s"], f["ratio"]["median"], f["ratio"]["min"], f["ratio"]["max"],
                      f["downtime_ms"], f["sync_ms"], f["small_bytes"] / 1e6, f["small_ms"], f["small_plain_ms"]), flush=True)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
