# SPDX-License-Identifier: Apache-2.0
"""The groups of `make bench-memory`, by name: DymGPU's figures 7, 8 and 9, and Gantry's residency
periods. Each has a title, run(context) that simulates, rows(data), and figures(data)."""

from harness.figures import chart, series
from harness.rows import barred, figure, paper

from .workloads import (ALWAYS_BUSY, GVIRT, LIGHT, MEDIUM, SETS, batches, bound_of_round, loads_of_set,
                        simulate)

DYMGPU = ("size", "utilization")
NAMES = {"size": "size (DymGPU)", "utilization": "utilization (DymGPU)", "turn": "turn (Gantry)"}
MACHINES = (3, 6, 9, 12, 15)
SHARED = MACHINES[1:]      # gVirt copies nothing with 3


def ratios(data, place, key="copies", beside=GVIRT):
    """Of each batch: a placement's sum over another one's."""
    return [batch[place][key] / batch[beside][key] for batch in data]


def by_machines(context, load, machines, copies_cost=False):
    return {str(n): batches(context, [load] * n, copies_cost) for n in machines}


def by_set(context, copies_cost=False):
    return {str(n): batches(context, loads_of_set(n), copies_cost) for n in SETS}


def drawn(data, label, key, papers=()):
    return [*(series(NAMES[place], {label.format(n): ratios(runs, place, key)
                                    for n, runs in data.items()}) for place in NAMES), *papers]


class SameCopies:
    """Figure 9(a): all machines run the same load, and always have work."""

    title = "Copies, equal loads that always have work (DymGPU figure 9(a))"
    at_most = {("9", "size"): 0.65, ("9", "utilization"): 0.72}
    papers = {("9", "size"): paper("DymGPU IV.C, at best", 0.65),
              ("9", "utilization"): paper("DymGPU IV.C, at best", 0.70)}

    def run(self, context):
        return by_machines(context, ALWAYS_BUSY, SHARED)

    def rows(self, d):
        for n, runs in d.items():
            yield figure(f"{n} vGPUs: gVirt's slots a switch",
                         [batch[GVIRT]["copies"] / batch[GVIRT]["turns"] for batch in runs],
                         "slots")
            for place in DYMGPU:
                what = f"{n} vGPUs: {place} over gVirt's"
                values, of_paper = ratios(runs, place), self.papers.get((n, place))
                if (n, place) in self.at_most:
                    yield barred(what, values, at_most=self.at_most[n, place], paper=of_paper)
                else:
                    yield figure(what, values, paper=of_paper)
            yield figure(f"{n} vGPUs: turn over gVirt's", ratios(runs, "turn"))
            if n == "6":
                continue
            best = [min(batch[place]["copies"] for place in DYMGPU) for batch in runs]
            yield barred(f"{n} vGPUs: turn over the better one of size and utilization",
                         [batch["turn"]["copies"] / least for batch, least in zip(runs, best)],
                         at_most=1)
            yield barred(f"{n} vGPUs: turn over the bound of all placements",
                         [batch["turn"]["copies"] / batch["turn"]["turns"] * int(n)
                          / bound_of_round(int(n)) for batch in runs], at_most=1.2)

    def figures(self, d):
        bound = {f"{n} vGPUs": bound_of_round(int(n)) * sum(b[GVIRT]["turns"] for b in runs)
                 / int(n) / sum(b[GVIRT]["copies"] for b in runs) for n, runs in d.items()}
        yield chart("bars", "copies", "Copies over gVirt's, equal loads (figure 9(a))",
                    "over gVirt's",
                    drawn(d, "{} vGPUs", "copies", [
                        series("the bound of all placements", bound),
                        series("paper, size, at best", {"9 vGPUs": 0.65}, paper=True),
                        series("paper, utilization, at best", {"9 vGPUs": 0.70}, paper=True)]))


class PauseCopies:
    """Figure 9(b): 2D programs, which use the device less. While it is not busy, turns come in no
    order, and no placement foresees the next one."""

    title = "Copies, equal loads with pauses (DymGPU figure 9(b))"
    loads = {"90 ms pauses": MEDIUM, "300 ms pauses": LIGHT}

    def run(self, context):
        return {name: by_machines(context, load, SHARED) for name, load in self.loads.items()}

    def rows(self, d):
        for name, machines in d.items():
            for n, runs in machines.items():
                for place in NAMES:
                    yield figure(f"{name}, {n} vGPUs: {place} over gVirt's", ratios(runs, place),
                                 paper=paper("DymGPU IV.C", "similar to 9(a)")
                                 if place in DYMGPU else None)

    def figures(self, d):
        yield chart("bars", "pause-copies",
                    "Copies over gVirt's, 90 ms pauses (DymGPU figure 9(b))", "over gVirt's",
                    drawn(d["90 ms pauses"], "{} vGPUs", "copies"))


class MixedCopies:
    """Figure 9(c): the five sets of table II, 15 machines."""

    title = "Copies, the sets of table II, 15 vGPUs (DymGPU figure 9(c))"
    papers = {"4": paper("DymGPU IV.C, about", 0.60)}

    def run(self, context):
        return by_set(context)

    def rows(self, d):
        for n, runs in d.items():
            for place in NAMES:
                yield figure(f"set {n}: {place} over gVirt's", ratios(runs, place))
            yield barred(f"set {n}: utilization over size",
                         ratios(runs, "utilization", beside="size"), at_most=1,
                         paper=self.papers.get(n, paper("DymGPU IV.C", "below 1")))
            yield barred(f"set {n}: turn over size", ratios(runs, "turn", beside="size"),
                         at_most=1)
            yield barred(f"set {n}: turn over utilization",
                         ratios(runs, "turn", beside="utilization"), at_most=1.2)

    def figures(self, d):
        yield chart("bars", "set-copies",
                    "Copies over gVirt's, table II's sets (DymGPU figure 9(c))", "over gVirt's",
                    drawn(d, "set {}", "copies"))


class SameSpeed:
    """Figure 7: frames, where a slot's copy takes time."""

    title = "Speed, equal loads (DymGPU figure 7)"
    loads = {"always busy": ALWAYS_BUSY, "300 ms pauses": LIGHT}

    def run(self, context):
        return {name: by_machines(context, load, MACHINES, copies_cost=True)
                for name, load in self.loads.items()}

    def rows(self, d):
        for name, machines in d.items():
            for n, runs in machines.items():
                for place in NAMES:
                    yield figure(f"{name}, {n} vGPUs: {place} over gVirt's frames",
                                 ratios(runs, place, "kernels"),
                                 paper=paper("DymGPU IV.B", "up to 1.39, size 3 to 16 % above "
                                             "utilization" if name == "always busy"
                                             else "little improvement")
                                 if place in DYMGPU else None)

    def figures(self, d):
        yield chart("bars", "speed", "Frames over gVirt's, equal loads (DymGPU figure 7)",
                    "over gVirt's", drawn(d["always busy"], "{} vGPUs", "kernels", [
                        series("paper, at best", {"15 vGPUs": 1.39}, paper=True)]))


class MixedSpeed:
    """Figure 8: frames of table II's sets."""

    title = "Speed, the sets of table II, 15 vGPUs (DymGPU figure 8)"

    def run(self, context):
        return by_set(context, copies_cost=True)

    def rows(self, d):
        for n, runs in d.items():
            for place in NAMES:
                yield figure(f"set {n}: {place} over gVirt's frames",
                             ratios(runs, place, "kernels"),
                             paper=paper("DymGPU IV.B", "above 1; utilization above size but in "
                                         "sets 2 and 5") if place in DYMGPU else None)

    def figures(self, d):
        yield chart("bars", "set-speed", "Frames over gVirt's, table II's sets (DymGPU figure 8)",
                    "over gVirt's", drawn(d, "set {}", "kernels"))


class Periods:
    """Gantry's own: what residency periods make of the same vGPUs, always busy, all memory
    written."""

    title = "Residency periods, 15 vGPUs, 12 GB/s, all memory written"
    shares = {"swap at each turn": None, "f = 10 %": 0.10, "f = 30 %": 0.30}
    slack = 0.03

    @staticmethod
    def text(share, seconds, seed):
        text = (f"[sim]\nmemory = 3456M\nbus = 11444M\ntime = {seconds}s\nseed = {seed}\n"
                f"swap-share = {'none' if share is None else f'{100 * share:g}%'}\n")
        for name, size in (("small", 384), ("middle", 704), ("large", 1024)):
            text += f"[tenant {name}]\nmemory = {size}M\ncopies = 5\nkernel = exp:1ms\n"
        return text

    def run(self, context):
        found = {}
        for name, share in self.shares.items():
            runs = [simulate(context.gantry, self.text(share, 3 * context.seconds, seed))[0]
                    for seed in range(1, context.batches + 1)]
            found[name] = {"busy": [r["busy"] for r in runs],
                           "copier": [r["devices"][0]["copier_busy"] for r in runs],
                           "fairness": [r["fairness"] for r in runs],
                           "wait_ms": [r["wait_longest_ns"] / 1e6 for r in runs],
                           "of_wait_bound": [r["of_wait_bound"] for r in runs]}
        return found

    def rows(self, d):
        for name, share in self.shares.items():
            one = d[name]
            yield figure(f"{name}: device time in kernels", [100 * v for v in one["busy"]], "%")
            copier = [100 * v for v in one["copier"]]
            what = f"{name}: time in copies"
            if share is None:
                yield figure(what, copier, "%")
            else:
                yield barred(what, copier, at_most=100 * (share + self.slack), unit="%")
                yield barred(f"{name}: min-max ratio of shares", one["fairness"], at_least=0.9)
                yield barred(f"{name}: others' swaps in a wait, over the bound",
                             one["of_wait_bound"], at_most=1)
            yield figure(f"{name}: longest wait", [1e6 * v for v in one["wait_ms"]], "ns")

    def figures(self, d):
        yield chart("bars", "periods", "Device time, 15 vGPUs on 54 slots, 12 GB/s", "%", [
            series("in kernels", {name: [100 * v for v in one["busy"]]
                                  for name, one in d.items()}),
            series("in copies", {name: [100 * v for v in one["copier"]]
                                 for name, one in d.items()})])


EXPERIMENTS = {"9a": SameCopies(), "9b": PauseCopies(), "9c": MixedCopies(), "7": SameSpeed(),
               "8": MixedSpeed(), "periods": Periods()}
