# SPDX-License-Identifier: Apache-2.0
"""Many programs start together, again and again: how long until all are attached, and what gantryd holds afterwards.

    crowd.py --build DIR [--programs N] [--rounds N] [--within S] [--no-memory]

Each round N programs, all there already, are let go at once. Status 1 when one is not served, not all within --within seconds, something
is left, or gantryd's own memory has grown, since the second round, by more than 1 % of all that it has. Prints the rounds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../edges"))

from gantry import Gantry, LeftBehind, Wrong, built_tree, held_kib, resident_kib  # noqa: E402

PATIENCE_S = 120
MEMORY = 0.01


def one_round(gantry, program, n):
    """Seconds from the start until the last one has its devices."""
    gate_read, gate = os.pipe()
    hold_read, hold = os.pipe()
    out, out_write = os.pipe()
    programs = []
    try:
        for _ in range(n):
            programs.append(subprocess.Popen([program, str(gate_read)], env=gantry.program_env(), stdin=hold_read, stdout=out_write,
                                             pass_fds=(gate_read,)))
        os.close(out_write)
        began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.close(gate)
        gate = -1
        said, lines = b"", []
        deadline = time.monotonic() + PATIENCE_S
        while len(lines) < n:
            if time.monotonic() > deadline:
                raise Wrong("{} of {} programs are attached after {} s".format(len(lines), n, PATIENCE_S))
            piece = os.read(out, 65536)
            if not piece:
                raise Wrong("programs ended before they were attached")
            said += piece
            lines = said.split(b"\n")[:-1]
        refused = [line for line in lines if not line.startswith(b"0 ")]
        if refused:
            raise Wrong("{} programs were refused: {}".format(len(refused), refused[0].decode()))
        if len(gantry.vgpus()) != n:
            raise Wrong("{} vGPUs for {} programs".format(len(gantry.vgpus()), n))
        return (max(int(line.split()[1]) for line in lines) - began) / 1e9
    finally:
        for fd in (gate, hold, gate_read, hold_read):
            if fd >= 0:
                os.close(fd)
        for p in programs:
            p.wait(PATIENCE_S)
        os.close(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--within", type=float, default=5)
    parser.add_argument("--no-memory", action="store_true", help="a sanitizer keeps what is freed: don't ask how much gantryd holds")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    times, memory, whole = [], [], 0
    with tempfile.TemporaryDirectory(prefix="gn-crowd-") as work:
        try:
            with Gantry(built_tree(os.path.join(work, "tree"), build), os.path.join(work, "gantryd")) as gantry:
                with gantry.program([os.path.join(build, "tests/edges/edges"), "life"]) as p:
                    p.end()
                before = gantry.settle_first()
                for _ in range(options.rounds):
                    times.append(one_round(gantry, os.path.join(build, "tests/faults/crowd"), options.programs))
                    gantry.settle(before, 60)
                    memory.append(held_kib(gantry.process.pid))
                whole = resident_kib(gantry.process.pid)
        except (Wrong, LeftBehind) as e:
            print("round {}: {}".format(len(times) + 1, e))
            return 1
    print("{} programs, {} rounds: attached within {} s; gantryd holds {} KiB".format(
        options.programs, options.rounds, ", ".join("{:.2f}".format(t) for t in times), ", ".join(map(str, memory))))
    if max(times) > options.within:
        print("not all were attached within {} s".format(options.within))
        return 1
    if not options.no_memory and len(memory) > 2 and max(memory[2:]) - max(memory[:2]) > whole * MEMORY:
        print("gantryd's memory grows")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
