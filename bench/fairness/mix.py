# SPDX-License-Identifier: Apache-2.0
"""The one experiment behind most of them: some programs together against each of them alone, and each alone against native.

Phases go as AB BA: native, alone, together, together, alone, native; so each measure comes in adjacent pairs, native against native among
them, which is the noise of the machine.
"""

from . import measures as m
from .machine import SETTLE_NS, Scene


class Mix:
    """programs: [(load options, tenant, weight)]: a weight is the program's own part, for tenants with several programs too."""

    def __init__(self, programs, tenants=None, daemon_options=(), seconds=None, pairs=None, native=True):
        self.programs = programs
        self.tenants = tenants or {t: {"weight": w} for _, t, w in programs}
        self.daemon_options = daemon_options
        self.seconds = seconds
        self.pairs = pairs
        self.native = native

    def run(self, context, policy):
        """The figures of all phases; see summary() for what they hold."""
        seconds = self.seconds or context.seconds
        pairs = context.quick_pairs if context.quick else self.pairs or context.pairs
        weights = [w for _, _, w in self.programs]
        kinds = list(dict.fromkeys(p[0] for p in self.programs))
        first_of = {k: next(i for i, p in enumerate(self.programs) if p[0] == k) for k in kinds}
        samples = []
        with Scene(context, [(p[0], p[1]) for p in self.programs], self.tenants, policy, self.native, self.daemon_options) as scene:
            # What a first round has to do (a kernel's compilation for a size, memory touched first) is in no sample.
            scene.together(0.3)
            for k in kinds:
                scene.alone(first_of[k], 0.2)
                if self.native:
                    scene.native(first_of[k], 0.2)
            for block in range((pairs + 1) // 2):
                steps = ["native", "alone", "together", "together", "alone", "native"]
                halves = [{}, {}]
                for n, step in enumerate(steps):
                    half = halves[n // 3]
                    if step == "together":
                        half[step] = scene.together(seconds + SETTLE_NS / 1e9)
                    elif step == "alone" or self.native:
                        take = scene.alone if step == "alone" else scene.native
                        half[step] = {k: take(first_of[k], seconds + SETTLE_NS / 1e9) for k in kinds}
                samples += halves
                context.progress(f"{block * 2 + 2} of {pairs} pairs")
        return self.summary(samples[:pairs], weights)

    def summary(self, samples, weights):
        each = []
        for s in samples:
            alone_of = {k: m.rates([a], SETTLE_NS)[0] for k, a in s["alone"].items()}
            alone = [alone_of[p[0]] for p in self.programs]
            measured = m.rates(s["together"], SETTLE_NS)
            shares = m.shares(measured, alone)
            native = {k: m.rates([a], SETTLE_NS)[0] for k, a in s.get("native", {}).items()}
            each.append({
                "shares": shares,
                "mmr": m.min_max_ratio(measured, m.ideal(alone, weights)) if max(measured) > 0 else 0.0,
                "overhead": m.aggregated_overhead(measured, alone) if sum(measured) > 0 else float("inf"),
                "alone_over_native": [alone_of[k] / native[k] for k in native],
                "native": list(native.values()),
                "alone": list(alone_of.values()),
                "rounds": [t["round_ns"] for t in s["together"]],
                "rounds_alone": [s["alone"][p[0]]["round_ns"] for p in self.programs],
                "calls_per_ms_alone": [s["alone"][p[0]]["sync_calls"] * 1e6 / (s["alone"][p[0]]["end_ns"] - s["alone"][p[0]]["start_ns"])
                                       for p in self.programs],
            })
        noise = [b["native"][i] / a["native"][i] for a, b in zip(each, each[1:]) for i in range(len(a["native"]))]
        pooled = [sum(e["shares"][i] for e in each) / len(each) for i in range(len(weights))]
        norm = [p / w for p, w in zip(pooled, weights)]
        return {
            "programs": [{"load": " ".join(p[0]), "tenant": p[1], "weight": p[2]} for p in self.programs],
            "mmr": [e["mmr"] for e in each],
            "overhead": [e["overhead"] for e in each],
            "shares": [e["shares"] for e in each],
            "pooled_shares": pooled,
            "pooled_mmr": min(norm) / max(norm) if max(norm) > 0 else 0.0,
            "lone_over_native": [r for e in each for r in e["alone_over_native"]],
            "native_over_native": noise,
            "each": each,
        }
