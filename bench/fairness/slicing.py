# SPDX-License-Identifier: Apache-2.0
"""FairGV's table 4: what it costs to launch a kernel in pieces, by the work-groups of a piece.

The program cuts its own launches (`spin --pieces`), alone on Gantry, so that every size can be had and nothing else changes; how gantryd's turns
cut kernels, and what others gain by it, is `long`'s. Two kernels stand for the paper's two matrices: the same groups, shorter and longer.
"""

from harness.figures import curve, curves, limit
from harness.rows import figure, paper

from . import measures as m
from .machine import SETTLE_NS, Scene
from .rows import bar

GROUPS = 96_000
PIECES = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
KERNELS = {"short": 250, "long": 1000}
LEAST = 1500
# FairGV's table 4, by its matrices' rows: groups of a piece, slower by so many percent.
PAPER = {600: {5625: 0.0, 2813: 1.0, 1407: 4.3, 704: 11.8, 352: 23.9, 176: 47.8, 118: 71.1, 74: 94.6},
         900: {6329: 0.0, 3165: 0.0, 1583: 0.2, 792: 6.2, 396: 17.5, 264: 30.7, 166: 44.5}}
# How much a piece may differ in size from the paper's to be compared with it.
LIKE = 1.34


def paper_at(groups):
    """FairGV's slowdowns for the piece nearest in size, of both matrices."""
    found = []
    for rows, slower in PAPER.items():
        nearest = min(slower, key=lambda g: abs(g - groups))
        if max(nearest / groups, groups / nearest) < LIKE:
            found.append(f"{slower[nearest]:g} % ({rows} rows)")
    return paper("FairGV, table 4", ", ".join(found)) if found else None


class Slicing:
    title = "A kernel launched in pieces (FairGV table 4)"

    def run(self, context, policy):
        result = {}
        for name, steps in KERNELS.items():
            context.progress(name)
            programs = [(("spin", "--groups", str(GROUPS), "--size", str(steps), "--batch", "2", "--pieces", str(p), "--ahead"), "t") for p in PIECES]
            slower = {p: [] for p in PIECES[1:]}
            with Scene(context, programs, {"t": {}}, policy, native=False) as scene:
                for i in range(len(PIECES)):
                    scene.alone(i, 0.2)

                def rate(i):
                    return m.rates([scene.alone(i, context.seconds / 4 + SETTLE_NS / 1e9)], SETTLE_NS)[0]
                for n in range(context.quick_pairs if context.quick else context.pairs):
                    for i, pieces in enumerate(PIECES[1:], 1):
                        # A whole one beside each, before or after it: the machine's speed drifts.
                        if n % 2:
                            cut, whole = rate(i), rate(0)
                        else:
                            whole, cut = rate(0), rate(i)
                        slower[pieces].append(whole / cut)
            result[name] = {str(GROUPS // p): slower[p] for p in PIECES[1:]}
        return result

    def rows(self, result):
        for name, by_groups in result.items():
            for groups, slower in by_groups.items():
                what = f"{name} kernel, {groups} groups a launch: slower than whole"
                percent = [100 * (s - 1) for s in slower]
                of_paper = paper_at(int(groups))
                yield (bar(what, percent, at_most=5, unit="%", paper=of_paper) if int(groups) >= LEAST
                       else figure(what, percent, "%", paper=of_paper))

    def figures(self, by_policy):
        for policy, result in by_policy:
            yield curves("" if len(by_policy) == 1 else policy, f"{self.title}: {policy}", "work-groups a launch", "slower by, %", [
                *(curve(f"{name} kernel", [(int(n), [100 * (s - 1) for s in slower]) for n, slower in by_groups.items()])
                  for name, by_groups in result.items()),
                *(curve(f"FairGV, {rows} rows", sorted(slower.items()), paper=True) for rows, slower in PAPER.items())],
                [limit(5, "at most 5 % from 1,500 groups")], log_x=True)
