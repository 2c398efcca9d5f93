# SPDX-License-Identifier: Apache-2.0
"""Shares by weight: one program in several vGPUs, many processes of one tenant, lag between tenants, caps."""

import time

from harness.figures import chart, limit, series
from harness.rows import figure, paper

from . import measures as m
from .accounts import percent
from .machine import SETTLE_NS, Scene
from .mix import PIECE_S, Mix
from .mixed import of_both, shares_chart
from .native_turns import NativeTurns
from .programs import IN_TURNS, LOADS
from .rows import bar, noise


OVERHEAD = 1.02


class Weights:
    """The same program in several vGPUs: FairGV's figures 8 and 9."""

    by_load = True
    # Of kernels of 34 ms a weight of one in six ends five in a second.
    longer = {"lavaMD": 3}

    def __init__(self, title, weights, mmr, loads, paper, factor=1):
        self.title = title
        self.weights = weights
        self.mmr = mmr
        self.loads = loads
        self.paper = paper
        self.factor = factor

    def run(self, context, policy):
        result = {}
        for name in context.loads or self.loads:
            context.progress(name)
            programs = [(LOADS[name], f"t{i}", w) for i, w in enumerate(self.weights)]
            result[name] = Mix(programs, factor=self.factor * self.longer.get(name, 1), alone_factor=1, each_alone=True).run(context, policy)
            result[name]["native_turns"] = NativeTurns(IN_TURNS[name], self.weights).run(context) if context.native else []
        return result

    def rows(self, result):
        for name, r in result.items():
            of_paper = name in self.paper["loads"]
            yield bar(f"{name}: MMR", r["mmr"], at_least=self.mmr,
                      paper=paper(self.paper["source"], f"at least {self.paper['mmr']}") if of_paper else None)
            yield bar(f"{name}: overhead", r["overhead"], at_most=OVERHEAD,
                      paper=paper(self.paper["source"], f"at most {self.paper['overhead']}") if of_paper else None)
            # What the device itself loses by turns, without Gantry.
            turns = r["native_turns"]
            if turns:
                yield figure(f"{name}: turns natively: MMR", [t["mmr"] for t in turns])
                yield figure(f"{name}: turns natively: overhead", [t["overhead"] for t in turns])
            yield figure(f"{name}: what was charged, by weight, least over greatest", [m.charge_ratio(e["turns"], self.weights) for e in r["each"]])
            for i, weight in enumerate(self.weights):
                yield figure(f"{name}: vGPU {i + 1}, weight {weight}: device busy in its turns", [m.use_of(e["turns"])[i] for e in r["each"]])
            if r["alone_over_native"]:
                yield bar(f"{name}: alone over native", r["alone_over_native"][0], at_least=0.98)
            for row in noise(r):
                yield row | {"what": f"{name}: {row['what']}"}

    def figures(self, by_policy):
        loads = list(dict.fromkeys(load for _, r in by_policy for load in r))
        compared = {load: self.paper for load in loads if load in self.paper["loads"]}
        for key, name, at in (("mmr", "min-max ratio", limit(self.mmr, f"at least {self.mmr}")),
                              ("overhead", "aggregated overhead", limit(OVERHEAD, f"at most {OVERHEAD}"))):
            natively = {load: [t[key] for t in r["native_turns"]] for _, result in by_policy for load, r in result.items()}
            yield chart("points", key, f"{self.title}: {name}", name, [
                *(series(policy, {load: r[key] for load, r in result.items()}) for policy, result in by_policy),
                *([series("turns natively, without Gantry", natively)] if any(natively.values()) else []),
                *([series(f"FairGV, {'at least' if key == 'mmr' else 'at most'}",
                          {load: values[key] for load, values in compared.items()}, paper=True)] if compared else [])], [at])


class Crowd:
    """More processes gain a tenant nothing."""

    title = "A tenant with 8 processes against one with 1, equal weights"

    def run(self, context, policy):
        programs = [(LOADS["matrixMul"], "many", 1 / 8)] * 8 + [(LOADS["matrixMul"], "one", 1)]
        return Mix(programs, tenants={"many": {"weight": 1}, "one": {"weight": 1}}, native=False).run(context, policy)

    def rows(self, r):
        # Of what both had: what is lost is the overhead's, not a tenant's.
        many = [sum(s[:8]) / sum(s) for s in r["shares"]]
        yield bar("8 processes: part of what both had", many, 0.5 * 0.97, 0.5 * 1.03)
        yield bar("1 process: part of what both had", [1 - x for x in many], 0.5 * 0.97, 0.5 * 1.03)
        yield figure("the 8 among themselves: least over greatest", [min(s[:8]) / max(s[:8]) for s in r["shares"]])
        yield figure("aggregated overhead", r["overhead"])

    def figures(self, by_policy):
        yield shares_chart(self.title, by_policy, ("8 processes", "1 process"), lambda s: of_both([sum(s[:8]), s[8]]), "part of what both had")


class Lag:
    """How far a busy tenant gets from its part, over any second and any ten."""

    title = "Lag between busy tenants, weights 1:2:3, different programs"
    weights = (1, 2, 3)
    # Short rounds: their ends are what is known.
    programs = (("matrixMul", "--size", "32", "--batch", "100", "--ahead"), ("matrixMul", "--batch", "10", "--ahead"), ("hotspot", "--batch", "15", "--ahead"))

    def run(self, context, policy):
        runs = 2 if context.quick else context.pairs
        seconds = 3 if context.quick else 20
        second, ten, charged = [], [], []
        with Scene(context, [(p, f"t{i}") for i, p in enumerate(self.programs)], {f"t{i}": {"weight": w} for i, w in enumerate(self.weights)},
                   policy, native=False) as scene:
            scene.together(0.3)
            for n in range(runs):
                def lone():
                    # In turns, there and back: what counts is how fast they are beside each other, at the same speed of the machine.
                    pieces = max(1, round(context.seconds / PIECE_S))
                    rates = [[], [], []]
                    for piece in range(pieces):
                        for i in (2, 1, 0) if piece % 2 else (0, 1, 2):
                            rates[i].append(m.rates([scene.alone(i, context.seconds / pieces + SETTLE_NS / 1e9)], SETTLE_NS)[0])
                    return [m.mean(r) for r in rates]
                # Before and after: the machine's speed drifts in so many seconds.
                before, counters = lone(), scene.turns()
                together = scene.together(seconds)
                charged.append(m.charge_ratio(m.turns_between(counters, scene.turns()), self.weights))
                after = lone()
                alone = [(a + b) / 2 for a, b in zip(before, after)]
                second.append(m.worst_lag(m.sliding_shares(together, alone, 10**9, 10**8, SETTLE_NS), self.weights))
                windows = m.sliding_shares(together, alone, min(10, seconds - 1) * 10**9, 10**9, SETTLE_NS)
                ten.append(max(abs(s * sum(self.weights) / (w * sum(window)) - 1) for window in windows for s, w in zip(window, self.weights)))
                context.progress(f"{n + 1} of {runs} runs")
        return {"second": second, "ten": ten, "charged": charged}

    def rows(self, r):
        yield bar("over any 1 s: worst distance, of the device", percent(r["second"]), at_most=3, unit="%")
        yield bar("over any 10 s: worst distance, of the tenant's part", percent(r["ten"]), at_most=3, unit="%")
        yield figure("what was charged, by weight, least over greatest", r["charged"])

    def figures(self, by_policy):
        yield chart("bars", "", self.title, "worst distance, %", [
            series(policy, {"any 1 s, of the device": percent(r["second"]), "any 10 s, of its part": percent(r["ten"])})
            for policy, r in by_policy], [limit(3, "at most 3 %")])


class Cap:
    """A cap holds for a tenant that is alone, and beside others. It is of the device's time, so it is measured by the device's clock: how much a
    program gets done in its part changes with the machine's speed from phase to phase. No turn is kernels from end to end; what one of the other
    program, which has no cap, holds of them is the unit."""

    title = "A cap of 25 %"

    @staticmethod
    def turns(scene, numbers, seconds):
        """What each was charged and what the device did for it, as parts of the time between two looks while all run. What a cap has saved up is
        used up before."""
        def look():
            before = time.monotonic_ns()
            turns = scene.turns()
            return (before + time.monotonic_ns()) / 2, turns
        for i in numbers:
            scene.programs[i].order(seconds + 4 * SETTLE_NS / 1e9)
        time.sleep(2 * SETTLE_NS / 1e9)
        first, before = look()
        time.sleep(seconds)
        last, after = look()
        for i in numbers:
            scene.programs[i].answer(seconds * 4 + 60)
        return [{k: t[k] / (last - first) for k in ("used_ns", "device_ns")} for t in m.turns_between(before, after)]

    def run(self, context, policy):
        alone, beside = [], []
        with Scene(context, [(LOADS["matrixMul"], "capped"), (LOADS["matrixMul"], "free")], {"capped": {"cap": "0.25"}, "free": {}}, policy,
                   native=False) as scene:
            scene.together(0.3)
            for n in range(context.quick_pairs if context.quick else context.pairs):
                steps = [lambda: self.turns(scene, [0], context.seconds)[0], lambda: self.turns(scene, [0, 1], context.seconds)]
                if n % 2:
                    both, lone = [s() for s in steps[::-1]]
                else:
                    lone, both = [s() for s in steps]
                capped, free = both
                unit = free["device_ns"] / free["used_ns"]
                alone.append(lone["device_ns"] / unit)
                beside.append(capped["device_ns"] / unit)
                context.progress(f"{n + 1} pairs")
        return {"alone": alone, "beside": beside}

    def rows(self, r):
        yield bar("alone: part of the device", r["alone"], 0.25 * 0.98, 0.25 * 1.02)
        yield bar("beside one of equal weight: part of the device", r["beside"], at_most=0.25 * 1.02)

    def figures(self, by_policy):
        yield chart("points", "", self.title, "part of the device", [
            series(policy, {"alone": r["alone"], "beside one of equal weight": r["beside"]}) for policy, r in by_policy],
            [limit(0.25 * 1.02, "at most 0.255"), limit(0.25 * 0.98, "at least 0.245 (alone)")])
