# SPDX-License-Identifier: Apache-2.0
"""The one experiment behind most of them: some programs together against each of them alone, and each alone against native.

Phases go as AB BA: native, alone, together, together, alone, native; so each measure comes in adjacent pairs, native against native among
them, which is the noise of the machine.
"""

from . import measures as m
from .machine import SETTLE_NS, Scene


class Mix:
    """programs: [(load options, tenant, weight)], the weight being the program's own part, also where a tenant has several programs.
    tenants: {name: settings}; else each tenant has its program's weight."""

    def __init__(self, programs, tenants=None, daemon_options=(), factor=1, pairs=None, native=True, alone_factor=None):
        self.programs = programs
        self.tenants = tenants or {t: {"weight": w} for _, t, w in programs}
        self.daemon_options = daemon_options
        self.factor = factor
        self.alone_factor = factor if alone_factor is None else alone_factor
        self.pairs = pairs
        self.native = native
        self.kinds = list(dict.fromkeys(p[0] for p in programs))

    def run(self, context, policy):
        """The figures of all phases; see summary() for what they hold."""
        seconds = self.factor * context.seconds + SETTLE_NS / 1e9
        alone_seconds = self.alone_factor * context.seconds + SETTLE_NS / 1e9
        pairs = context.quick_pairs if context.quick else min(self.pairs or context.pairs, context.pairs)
        self.native = self.native and context.native
        first_of = {k: next(i for i, p in enumerate(self.programs) if p[0] == k) for k in self.kinds}
        samples = []
        with Scene(context, [(p[0], p[1]) for p in self.programs], self.tenants, policy, self.native, self.daemon_options) as scene:
            # What a first round has to do (a kernel compiled for a size, memory touched first) is in no sample.
            scene.together(0.3)

            def step(kind):
                if kind == "together":
                    return scene.together(seconds)
                if kind == "native" and not self.native:
                    return {}
                take = scene.alone if kind == "alone" else scene.native
                return {k: take(first_of[k], alone_seconds) for k in self.kinds}

            for k in self.kinds:
                scene.alone(first_of[k], 0.2)
                if self.native:
                    scene.native(first_of[k], 0.2)
            while len(samples) < pairs:
                steps = ["native", "alone", "together"]
                for order in (steps, steps[::-1]):
                    samples.append({kind: step(kind) for kind in order})
                context.progress(f"{min(len(samples), pairs)} of {pairs} pairs")
        return self.summary(samples[:pairs])

    def sample(self, s):
        alone_of = {k: m.rates([a], SETTLE_NS)[0] for k, a in s["alone"].items()}
        native_of = {k: m.rates([a], SETTLE_NS)[0] for k, a in s["native"].items()}
        alone = [alone_of[p[0]] for p in self.programs]
        measured = m.rates(s["together"], SETTLE_NS)
        weights = [p[2] for p in self.programs]
        lone = [s["alone"][p[0]] for p in self.programs]
        return {
            "shares": m.shares(measured, alone),
            "mmr": m.min_max_ratio(measured, m.ideal(alone, weights)) if max(measured) > 0 else 0.0,
            "overhead": m.aggregated_overhead(measured, alone) if sum(measured) > 0 else float("inf"),
            "native": [native_of[k] for k in self.kinds if k in native_of],
            "alone_over_native": [alone_of[k] / native_of[k] for k in self.kinds if k in native_of],
            "rounds": [t["round_ns"] for t in s["together"]],
            "rounds_alone": [r["round_ns"] for r in lone],
            "sync_per_ms_alone": [r["sync_calls"] * 1e6 / (r["end_ns"] - r["start_ns"]) for r in lone],
        }

    def summary(self, samples):
        each = [self.sample(s) for s in samples]
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
