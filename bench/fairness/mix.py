# SPDX-License-Identifier: Apache-2.0
"""The one experiment behind most of them: some programs together against each of them alone, and each alone against native.

A run of each (native, alone, together) is cut into pieces that take turns, AB BA: native, alone, together, together, alone, native, and so on. So
what the machine's speed does in a second or more is in all of them alike, and each measure comes in adjacent pairs, native against native among
them, which is the noise of the machine.
"""

from . import measures as m
from .machine import SETTLE_NS, Scene

PIECE_S = 0.5
# A turn more or less at the ends of a piece is the less, the longer it is; a small weight has few turns.
PIECE_BY_WEIGHT_S = 1.0
# Of each of several of a kind, alone.
LEAST_ALONE_S = 0.5


class Mix:
    """programs: [(load options, tenant, weight)], the weight being the program's own part, also where a tenant has several programs.
    tenants: {name: settings}; else each tenant has its program's weight. each_alone: those of a kind are not taken to be alike when they are alone,
    since where a program's memory lies may make it faster by some percent, for as long as it runs (measures.own_alone)."""

    def __init__(self, programs, tenants=None, daemon_options=(), factor=1, native=True, alone_factor=None, pieces=None, each_alone=False):
        self.programs = programs
        self.tenants = tenants or {t: {"weight": w} for _, t, w in programs}
        self.daemon_options = daemon_options
        self.factor = factor
        self.alone_factor = factor if alone_factor is None else alone_factor
        self.native = native
        self.pieces = pieces
        self.each_alone = each_alone
        self.kinds = list(dict.fromkeys(p[0] for p in programs))

    def run(self, context, policy):
        """The figures of all phases; see summary() for what they hold."""
        piece_s = PIECE_S if len({p[2] for p in self.programs}) == 1 else PIECE_BY_WEIGHT_S
        pieces = self.pieces or max(1, round(context.seconds / piece_s))
        seconds = self.factor * context.seconds / pieces + SETTLE_NS / 1e9
        lone_seconds = self.alone_factor * context.seconds / pieces
        native_seconds = lone_seconds + SETTLE_NS / 1e9
        alone_seconds = (max(LEAST_ALONE_S, lone_seconds / len(self.programs)) if self.each_alone else lone_seconds) + SETTLE_NS / 1e9
        pairs = context.quick_pairs if context.quick else context.pairs
        self.native = self.native and context.native
        first_of = {k: next(i for i, p in enumerate(self.programs) if p[0] == k) for k in self.kinds}
        lone = range(len(self.programs)) if self.each_alone else first_of.values()
        samples = []
        with Scene(context, [(p[0], p[1]) for p in self.programs], self.tenants, policy, self.native, self.daemon_options) as scene:
            # What a first round has to do (a kernel compiled for a size, memory touched first) is in no sample.
            scene.together(0.3)

            def step(kind):
                if kind == "together":
                    before = scene.turns()
                    runs = scene.together(seconds)
                    return {"runs": runs, "turns": m.turns_between(before, scene.turns())}
                if kind == "native" and not self.native:
                    return {}
                if kind == "alone":
                    return {i: scene.alone(i, alone_seconds) for i in (reversed(lone) if n % 2 else lone)}
                return {k: scene.native(first_of[k], native_seconds) for k in self.kinds}

            for k in self.kinds:
                scene.alone(first_of[k], 0.2)
                if self.native:
                    scene.native(first_of[k], 0.2)
            steps = ["native", "alone", "together"]
            n = 0
            while len(samples) < pairs:
                sample = {kind: [] for kind in steps}
                for _ in range(pieces):
                    for kind in steps[::-1] if n % 2 else steps:
                        sample[kind].append(step(kind))
                    n += 1
                samples.append(sample)
                context.progress(f"{len(samples)} of {pairs} pairs")
        alone = m.own_alone([{i: self.rate(s, "alone", i) for i in lone} for s in samples], [self.kinds.index(p[0]) for p in self.programs])
        return self.summary([self.sample(s, a) for s, a in zip(samples, alone)])

    @staticmethod
    def runs(s, kind, key):
        return [piece[key] for piece in s[kind] if key in piece]

    def rate(self, s, kind, key):
        return m.mean([m.rates([r], SETTLE_NS)[0] for r in self.runs(s, kind, key)])

    def sample(self, s, alone):
        alone_of = {k: m.mean([a for a, p in zip(alone, self.programs) if p[0] == k]) for k in self.kinds}
        native_of = {k: self.rate(s, "native", k) for k in self.kinds if self.runs(s, "native", k)}
        runs_alone = {k: [r for i, p in enumerate(self.programs) if p[0] == k for r in self.runs(s, "alone", i)] for k in self.kinds}
        rates = [m.rates(piece["runs"], SETTLE_NS) for piece in s["together"]]
        measured = [m.mean(x) for x in zip(*rates)]
        weights = [p[2] for p in self.programs]
        return {
            "shares": m.shares(measured, alone),
            "mmr": m.min_max_ratio(measured, m.ideal(alone, weights)) if max(measured) > 0 else 0.0,
            "overhead": m.aggregated_overhead(measured, alone) if sum(measured) > 0 else float("inf"),
            "native": [native_of[k] for k in self.kinds if k in native_of],
            "alone_over_native": [alone_of[k] / native_of[k] for k in self.kinds if k in native_of],
            "rounds": [m.merge_lengths([piece["runs"][i] for piece in s["together"]]) for i in range(len(self.programs))],
            "rounds_alone": [m.merge_lengths(runs_alone[p[0]]) for p in self.programs],
            "sync_per_ms_alone": [m.mean([r["sync_calls"] * 1e6 / (r["end_ns"] - r["start_ns"]) for r in runs_alone[p[0]]])
                                  for p in self.programs],
            # What gantryd charged, and what the driver's clock says that the device did: why shares are what they are.
            "turns": m.add_turns([piece["turns"] for piece in s["together"]]),
        }

    def summary(self, each):
        return {
            "programs": [{"load": " ".join(p[0]), "tenant": p[1], "weight": p[2]} for p in self.programs],
            "kinds": [" ".join(k) for k in self.kinds],
            "mmr": [e["mmr"] for e in each],
            "overhead": [e["overhead"] for e in each],
            "shares": [e["shares"] for e in each],
            # by kind of program
            "alone_over_native": [[e["alone_over_native"][i] for e in each] for i in range(len(self.kinds) if self.native else 0)],
            "native_over_native": [b["native"][i] / a["native"][i] for a, b in zip(each, each[1:]) for i in range(len(a["native"]))],
            "each": each,
        }
