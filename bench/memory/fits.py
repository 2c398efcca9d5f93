# SPDX-License-Identifier: Apache-2.0
"""What --oversubscribe costs programs whose memory fits: the time of a round of a load, with it
over without it."""

import os
import statistics
import sys

from harness.figures import chart, limit, series
from harness.rows import Findings, Group, barred, figure
from harness.stats import abba, ratios
from harness.targets import run_json

from .emulated import Emulated

TITLE = "What --oversubscribe costs while all memory fits"
LOADS = {"matrixMul@21": 20, "matrixMul": None, "BlackScholes": None, "scan": None}
MOST = 1 / 0.99


def measure_load(context, plain, placed, spec):
    name, _, kernel_us = spec.partition("@")
    first = run_json(plain, [context.load, name, "--json", "--check", "--iterations", "1",
                             "--kernel-us", kernel_us or "table"])
    command = [context.load, name, "--json", "--no-profile", "--size", str(first["size"]),
               "--seconds", str(context.load_s)]

    def once(target):
        done = run_json(target, command)
        return done["wall_ns"] / done["iterations"]

    once(placed)
    return {"placed": ratios(abba(context.pairs, lambda: once(plain), lambda: once(placed))),
            "plain": ratios(abba(context.pairs, lambda: once(plain), lambda: once(plain)))}


def measure(context):
    data = {}
    with Emulated(context, more=()) as plain, Emulated(context) as placed:
        for spec in LOADS:
            data[spec] = measure_load(context, plain, placed, spec)
            print(f"  ... {spec}: {statistics.median(data[spec]['placed']):.3f}, noise "
                  f"{statistics.median(data[spec]['plain']):.3f}", file=sys.stderr, flush=True)
        swaps = placed.ask("devices")["devices"][0]["swaps"]
    rows = [barred(spec, of["placed"], at_most=MOST, text="at most 1/0.99", beside=of["plain"])
            for spec, of in data.items()]
    rows.append(barred("swaps", swaps, at_most=0))
    drawn = chart("points", "fits", "Time of a round with --oversubscribe", "over without", [
        series("with over without", {spec: of["placed"] for spec, of in data.items()}),
        series("without over without", {spec: of["plain"] for spec, of in data.items()})],
        [limit(MOST, "at most 1/0.99")])
    return Findings(TITLE, [Group("", rows, "without over without")], [drawn],
                    [f"{context.device}; {context.pairs} pairs of {context.load_s} s."], data)
