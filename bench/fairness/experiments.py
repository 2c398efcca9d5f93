# SPDX-License-Identifier: Apache-2.0
"""Every experiment by name: what it runs, what the paper saw, and its bars. run.py runs, keeps, draws and tabulates them."""

from .mix import Mix
from . import measures as m

# A round of about 50 ms where a load leaves its length open, so that a window holds many; the rest as FairGV's table 3 has it.
LOADS = {
    "matrixMul": ("matrixMul", "--batch", "250"),
    "matrixMul@21": ("matrixMul", "--size", "32", "--batch", "1500"),
    "hotspot": ("hotspot", "--batch", "300"),
    "BlackScholes": ("BlackScholes",),
    "scan": ("scan",),
    "histogram": ("histogram",),
    "convolutionSeparable": ("convolutionSeparable",),
    "srad": ("srad", "--batch", "8"),
    "pathfinder": ("pathfinder",),
    "nw": ("nw",),
    "fastWalshTransform": ("fastWalshTransform",),
    "cfd": ("cfd",),
    "lavaMD": ("lavaMD", "--size", "4"),
}
CHATTY = ("spin", "--size", "2000", "--batch", "1", "--reads", "3")


def bar(what, values, at_least=None, at_most=None, paper=""):
    text = " and ".join(f"{word} {limit:g}" for word, limit in (("at least", at_least), ("at most", at_most)) if limit is not None)
    return {"what": what, "values": values, **m.spread(values), "bar": text, "met": m.meets(values, at_least, at_most), "paper": paper}


def figure(what, values, paper=""):
    """A number without a bar."""
    return {"what": what, "values": values, **m.spread(values), "bar": "", "met": None, "paper": paper}


class Weights:
    """The same program in several vGPUs: FairGV's figures 8 and 9."""

    by_load = True

    def __init__(self, title, weights, mmr, loads, paper):
        self.title = title
        self.weights = weights
        self.mmr = mmr
        self.loads = loads
        self.paper = paper

    def run(self, context, policy):
        result = {}
        for name in context.loads or self.loads:
            context.progress(name)
            programs = [(LOADS[name], f"t{i}", w) for i, w in enumerate(self.weights)]
            result[name] = Mix(programs, seconds=None if len(self.weights) < 4 else 2 * context.seconds).run(context, policy)
        return result

    def rows(self, result):
        for name, r in result.items():
            yield bar(f"{name}: MMR", r["mmr"], at_least=self.mmr, paper=self.paper[0])
            yield bar(f"{name}: overhead", r["overhead"], at_most=1.02, paper=self.paper[1])
            yield figure(f"{name}: alone over native", r["lone_over_native"])
            yield figure(f"{name}: native over native", r["native_over_native"])


class Chatty:
    """A program of 64 synchronous calls a millisecond against a bulk one."""

    title = "A chatty program against a bulk one, equal weights"

    def run(self, context, policy):
        return Mix([(CHATTY, "chatty", 1), (LOADS["matrixMul"], "bulk", 1)]).run(context, policy)

    def rows(self, r):
        # A call's time over what it takes alone, over what the share that it had predicts.
        late = [e["rounds"][0]["mean"] / e["rounds_alone"][0]["mean"] * 0.5 for e in r["each"]]
        yield figure("chatty: synchronous calls a millisecond, alone", [e["calls_per_ms_alone"][0] for e in r["each"]], "64")
        yield bar("chatty: share", [s[0] for s in r["shares"]], 0.5 * 0.97, 0.5 * 1.03)
        yield bar("bulk: share", [s[1] for s in r["shares"]], 0.5 * 0.97, 0.5 * 1.03)
        yield bar("chatty: latency a call over what its share predicts", late, at_most=1.3)
        yield figure("aggregated overhead", r["overhead"])
        yield figure("alone over native", r["lone_over_native"])
        yield figure("native over native", r["native_over_native"])


class Pair:
    """Two different programs, kernels of different lengths: FairGV's figure 11."""

    def __init__(self, title, first, others):
        self.title = title
        self.first = first
        self.others = others

    def run(self, context, policy):
        result = {}
        for label, options in self.others.items():
            context.progress(label)
            result[label] = Mix([(LOADS[self.first], "foreground", 1), (options, "background", 1)], native=False).run(context, policy)
        return result

    def rows(self, result):
        for label, r in result.items():
            yield bar(f"{self.first}, slowed beside {label}", [1 / s[0] for s in r["shares"]], 1.9, 2.1, "2.0")
            yield bar(f"{label}, slowed beside {self.first}", [1 / s[1] for s in r["shares"]], 1.9, 2.1, "2.0")


BACKGROUND = {f"matrixMul {us} us": ("matrixMul", "--size", str(size), "--batch", str(max(1, 50_000 // us)))
              for us, size in ((21, 32), (95, 48), (207, 64), (650, 96), (1600, 128))}

EXPERIMENTS = {
    "fig8": Weights("Three vGPUs of one program, weights 1:2:3 (FairGV figure 8)", [1, 2, 3], 0.98,
                    ["matrixMul", "hotspot", "BlackScholes", "srad", "scan", "histogram", "convolutionSeparable", "pathfinder", "nw",
                     "fastWalshTransform", "cfd", "lavaMD"], ("0.99", "1.02")),
    "fig9": Weights("Six vGPUs of one program, weights 1:2:2:3:3:4 (FairGV figure 9)", [1, 2, 2, 3, 3, 4], 0.97,
                    ["BlackScholes", "srad", "matrixMul"], ("0.97", "1.02")),
    "fig11-mm": Pair("matrixMul (207 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "matrixMul", BACKGROUND),
    "fig11-hs": Pair("hotspot (133 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "hotspot", BACKGROUND),
    "chatty": Chatty(),
}
