# SPDX-License-Identifier: Apache-2.0
"""A load beside attackers, over the same load alone; alone against alone is the noise. And how long a
program of another tenant waits for gantryd's answer to its greeting beside them. The attackers, another
tenant's programs, try ten times a second."""

import os
import select
import statistics
import subprocess
import sys
import time

from .figures import chart, limit, series
from .rows import Findings, Group, barred, figure
from .stats import abba, ratios
from .targets import BenchError, clean_environment, run_json

LOADS = ["matrixMul", "BlackScholes", "hotspot"]
BAR = 1.05
GREETING_MS = 50
GREETINGS = 100     # of which the slowest counts
GREETING_PAUSE_S = 0.01
TENANT = "stranger"
FIRST_ATTACK_S = 30


class Storm:
    """The attackers, while the block lasts."""

    def __init__(self, context):
        storm = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/attacks/storm.py")
        self.command = [sys.executable, "-B", storm, "--build", context.build, "--socket", context.gantry.address[len("unix:"):],
                        "--tenant", TENANT]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], FIRST_ATTACK_S)
        if not ready or not self.process.stdout.readline():
            self.process.kill()
            raise BenchError("the attackers do not start: " + self.process.communicate()[1][-200:])
        return self

    def __exit__(self, kind, *_):
        ended = self.process.poll()
        self.process.kill()
        said = self.process.communicate()[1]
        if ended is not None and kind is None:
            raise BenchError("the attackers gave up: " + said[-200:])


def slowest_greeting(path):
    """Milliseconds from connect() until the answer to the greeting is there."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/daemon"))
    from gantryd_harness import Client

    took = []
    for _ in range(GREETINGS):
        began = time.monotonic()
        client = Client(path)
        took.append((time.monotonic() - began) * 1e3)
        client.socket.close()
        time.sleep(GREETING_PAUSE_S)
    return max(took)


def greetings(context):
    path = context.gantry.address[len("unix:"):]
    alone, attacked = [], []
    for _ in range(context.pairs):
        alone.append(slowest_greeting(path))
        with Storm(context):
            attacked.append(slowest_greeting(path))
    context.progress(f"greetings: {max(attacked):.1f} ms")
    return barred(f"the slowest of {GREETINGS} greetings", attacked, at_most=GREETING_MS, unit="ms",
                  beside=alone)


def run(context):
    if context.gantry is None:
        raise BenchError("needs a staged tree")
    subprocess.run([os.path.join(context.gantry.stage, "bin/gantry"), "tenant", "add", TENANT, "--uid", str(os.getuid()), "--connect", context.gantry.address],
                   env=clean_environment(), check=True)
    program = os.path.join(context.build, "bench/loads/gantry-load")
    attacked_over, alone_over, times = {}, {}, []
    for load in LOADS:
        size = run_json(context.gantry, [program, load, "--json", "--check", "--iterations", "1"])["size"]
        command = [program, load, "--json", "--no-profile", "--size", str(size), "--seconds", str(context.seconds)]

        def alone():
            done = run_json(context.gantry, command)
            return done["wall_ns"] / done["iterations"]

        def attacked():
            with Storm(context):
                return alone()

        pairs = abba(context.pairs, alone, attacked)
        attacked_over[load], alone_over[load] = ratios(pairs), ratios(abba(context.pairs, alone, alone))
        times.append(figure(f"{load}: a round alone", [a for a, _ in pairs], "ns"))
        context.progress(f"{load}: {statistics.median(attacked_over[load]):.3f}")
    rows = [barred(load, attacked_over[load], at_most=BAR, beside=alone_over[load]) for load in LOADS]
    drawn = chart("points", "", "A round beside attackers over alone", "over alone", [
        series("beside attackers", attacked_over), series("alone over alone", alone_over)], [limit(BAR, f"at most {BAR}")])
    return Findings("Attacks: time of a round beside attackers over alone",
                    [Group(rows=rows, beside="alone over alone"),
                     Group("Greetings of another tenant", [greetings(context)], beside="alone"),
                     Group("Times", times)], [drawn])
