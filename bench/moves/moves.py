#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a program stands still while its vGPU moves, live and by stop and copy, or is switched out of it and into it (--switches), in
turns. Prints one line a way and a JSON object.

    bench/moves/moves.py [--switches] [--build BUILD] [--pairs N] [--total MIB] [--writable MIB] [--changed MIB] [--bandwidth SIZE] [--network RATE]

--network 10gbit (or another rate that tc knows; needs root): between two gantryds over a wire of that rate, the program attached over tcp.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/programs"))
from daemon import stage_ready  # noqa: E402
from wire import Here, TIMEOUT_S, Wire  # noqa: E402


def main():
    p = argparse.ArgumentParser(description="How long a program stands still while its vGPU moves.")
    p.add_argument("--build", default="build")
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--total", type=int, default=1024)
    p.add_argument("--writable", type=int, default=256)
    p.add_argument("--changed", type=int, default=54)
    p.add_argument("--bandwidth", help="of what is sent ahead")
    p.add_argument("--switches", action="store_true")
    p.add_argument("--network", metavar="RATE", help="between two gantryds over a wire of this rate")
    o = p.parse_args()
    stage = os.path.join(o.build, "stage")
    why = stage_ready(stage)
    if why:
        print(why, file=sys.stderr)
        return 1
    slow = ["--bandwidth", o.bandwidth] if o.bandwidth else []
    ways = {"live": ["migrate", "local", *slow], "stop and copy": ["migrate", "local", "--stop-and-copy"]}
    if o.switches:
        ways = {"to remote": ["mode", "remote", *slow], "to passthrough": ["mode", "passthrough", *slow]}
    figures = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="gn-bench-moves-") as work, \
            (Wire(stage, work, o.network) if o.network else Here(stage, work, o.switches)) as place:
        program = subprocess.Popen([*place.prefix, os.path.join(o.build, "bench/moves/changing"), str(o.total), str(o.writable), str(o.changed)],
                                   env=place.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if program.stdout.readline().strip() != "ready":
                print("the program did not begin", file=sys.stderr)
                return 1
            for how in ways.values():
                place.moved(*how)  # the first one finds nothing in the caches
            for _ in range(o.pairs):
                # What kernels may write is known of a worker's own kernels: they get their turn before each move.
                for way, how in ways.items():
                    figures[way].append(place.moved(*how))
            out, _ = program.communicate("end\n", timeout=TIMEOUT_S)
            print("kernels and the longest four of them, us:", out.splitlines()[0])
        finally:
            program.kill()
    for way, all_of in figures.items():
        def median(what):
            return statistics.median(what(m) for m in all_of)
        print("{:14} downtime {:7.1f} ms ({:.1f} to {:.1f}); drain {:.1f}, save {:.1f}; ahead {:.0f} ms; pages: {:.0f}, ahead {:.0f}, in the stop "
              "{:.0f}, hashed {:.0f}, told by samples {:.0f}".format(
                  way, median(lambda m: m["downtime_ns"]) / 1e6, min(m["downtime_ns"] for m in all_of) / 1e6,
                  max(m["downtime_ns"] for m in all_of) / 1e6, median(lambda m: m["phases_ns"]["drain"]) / 1e6,
                  median(lambda m: m["phases_ns"]["save"]) / 1e6, median(lambda m: m["precopy_ns"]) / 1e6,
                  *(median(lambda m, k=k: m["pages"][k]) for k in ("total", "precopy", "stop", "hashed", "sampled"))))
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
