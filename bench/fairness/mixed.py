# SPDX-License-Identifier: Apache-2.0
"""Programs that differ: in the length of their kernels, in how often they wait, in how much of the time they sleep."""

from harness.figures import chart, limit, series
from harness.rows import figure, paper

from . import measures as m
from .machine import SETTLE_NS, Scene
from .mix import Mix
from .programs import BACKGROUND, CHATTY, LOADS, LONG_FEW_GROUPS, LONG_MANY_GROUPS, SHORT
from .rows import bar, noise

SLICE_NS = 6_000_000


class Pair:
    """Two different programs, kernels of different lengths: FairGV's figure 11."""

    def __init__(self, title, first):
        self.title = title
        self.first = first

    def run(self, context, policy):
        result = {}
        for label, options in BACKGROUND.items():
            context.progress(label)
            result[label] = Mix([(LOADS[self.first], "foreground", 1), (options, "background", 1)], native=False).run(context, policy)
        return result

    def rows(self, result):
        for label, r in result.items():
            yield bar(f"{self.first}, slowed beside {label}", [1 / max(s[0], 1e-9) for s in r["shares"]], 1.9, 2.1, paper=paper("FairGV, figure 11", 2.0))
            yield bar(f"{label}, slowed beside {self.first}", [1 / max(s[1], 1e-9) for s in r["shares"]], 1.9, 2.1)
            # Both ran at once: what the machine's speed did between phases is not in this.
            yield figure(f"{self.first} beside {label}: part of what both had", [s[0] / sum(s) if sum(s) > 0 else 0.0 for s in r["shares"]])

    def figures(self, by_policy):
        for number, name in ((0, "foreground"), (1, "background")):
            slowed = [(policy, {label: [1 / max(s[number], 1e-9) for s in r["shares"]] for label, r in result.items()})
                      for policy, result in by_policy]
            yield chart("points", name, f"{self.title}: the {name}", "time over alone", [
                *(series(policy, values) for policy, values in slowed),
                *([series("FairGV", dict.fromkeys(slowed[0][1], 2.0), paper=True)] if number == 0 else [])],
                [limit(1.9, "at least 1.9"), limit(2.1, "at most 2.1")])


def shares_chart(title, by_policy, names, parts, y):
    """parts: of a run's shares, what each program had."""
    return chart("points", "", title, y, [
        series(policy, {name: [parts(s)[i] for s in r["shares"]] for i, name in enumerate(names)}) for policy, r in by_policy],
        [limit(0.5 * 0.97, "at least 0.485"), limit(0.5 * 1.03, "at most 0.515")])


def of_both(shares):
    return [s / sum(shares) for s in shares]


class Chatty:
    """A program of 64 synchronous calls a millisecond against a bulk one."""

    title = "A chatty program against a bulk one, equal weights"

    def run(self, context, policy):
        return Mix([(CHATTY, "chatty", 1), (LOADS["matrixMul"], "bulk", 1)]).run(context, policy)

    def rows(self, r):
        # With its half of the device a call takes twice what it takes alone.
        late = [e["rounds"][0]["mean"] / e["rounds_alone"][0]["mean"] * 0.5 for e in r["each"]]
        yield figure("chatty: synchronous calls a millisecond, alone", [e["sync_per_ms_alone"][0] for e in r["each"]],
                     paper=paper("FairGV, table 3, srad", 64.0))
        yield bar("chatty: part of the device", [s[0] for s in r["shares"]], 0.5 * 0.97, 0.5 * 1.03)
        yield bar("bulk: part of the device", [s[1] for s in r["shares"]], 0.5 * 0.97, 0.5 * 1.03)
        yield bar("chatty: latency of a call over what its share predicts", late, at_most=1.3)
        yield figure("aggregated overhead", r["overhead"])
        for who, over in zip(("chatty", "bulk"), r["alone_over_native"]):
            yield figure(f"{who}: alone over native", over)
        yield from noise(r)

    def figures(self, by_policy):
        yield shares_chart(self.title, by_policy, ("chatty", "bulk"), lambda s: s, "part of the device")


class Long:
    """Kernels of a second against kernels of 200 us, each waited for."""

    def __init__(self, title, long, sliced):
        self.title = title
        self.long = long
        self.sliced = sliced

    def run(self, context, policy):
        return Mix([(SHORT, "short", 1), (self.long, "long", 1)], factor=5, alone_factor=1.5, native=False, pieces=1).run(context, policy)

    def rows(self, r):
        yield bar("short: part of what both had", [s[0] / sum(s) for s in r["shares"]], 0.5 * 0.97, 0.5 * 1.03)
        longest = [e["rounds"][0]["max"] / SLICE_NS for e in r["each"]]
        what = "short: longest wait, in slices of 6 ms"
        yield bar(what, longest, at_most=3) if self.sliced else figure(what, longest)
        yield figure("short: median time of a launch and its wait", [e["rounds"][0]["p50"] / 1e6 for e in r["each"]], "ms")
        yield figure("aggregated overhead", r["overhead"])

    def figures(self, by_policy):
        yield shares_chart(self.title, by_policy, ("short", "long"), of_both, "part of what both had")


class Sleeper:
    """FairGV's figure 10: BlackScholes beside a matrixMul that sleeps most of its time. How busy is the device?"""

    title = "BlackScholes beside a matrixMul that sleeps (FairGV figure 10)"
    sleeps = (50, 60, 70, 80)
    rows_of_kernels = 25

    def run(self, context, policy):
        result = {}
        plain = ("matrixMul", "--batch", str(self.rows_of_kernels))
        for percent in self.sleeps:
            context.progress(f"{percent} % asleep")
            busy, parts = [], []
            with Scene(context, [(LOADS["BlackScholes"], "busy"), (plain, "sleeper")], {"busy": {}, "sleeper": {}}, policy, native=False) as probe:
                round_us = probe.alone(1, 0.5)["round_ns"]["mean"] / 1e3
            sleeper = (*plain, "--sleep-us", str(max(1, round(round_us * percent / (100 - percent)))))
            programs = [(LOADS["BlackScholes"], "busy"), (sleeper, "sleeper"), (plain, "sleeper")]
            with Scene(context, programs, {"busy": {}, "sleeper": {}}, policy, native=False) as scene:
                scene.together(0.3)
                for n in range(context.quick_pairs if context.quick else context.pairs):
                    def alone():
                        return [m.rates([scene.alone(i, context.seconds)], SETTLE_NS)[0] for i in (0, 2)]

                    def both():
                        return m.rates(scene.together(context.seconds, (0, 1)), SETTLE_NS)
                    if n % 2:
                        measured, lone = both(), alone()
                    else:
                        lone, measured = alone(), both()
                    parts.append(m.shares(measured, lone))
                    busy.append(sum(parts[-1]))
            result[str(percent)] = {"busy": busy, "shares": parts}
        return result

    def rows(self, result):
        for percent, r in result.items():
            yield bar(f"{percent} % asleep: device busy, of what BlackScholes alone makes of it", r["busy"], at_least=0.95)
            yield figure(f"{percent} % asleep: the sleeper's part", [s[1] for s in r["shares"]])

    def figures(self, by_policy):
        yield chart("points", "", self.title, "device busy", [
            series(policy, {f"{percent} % asleep": r["busy"] for percent, r in result.items()}) for policy, result in by_policy],
            [limit(0.95, "at least 0.95")])
