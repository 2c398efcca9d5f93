# SPDX-License-Identifier: Apache-2.0
"""FairGV's table 4: what it costs to launch a kernel in pieces, by the work-groups of a piece.

The program cuts its own launches (`spin --pieces`), alone on Gantry, so that every size can be had and nothing else changes; how gantryd's turns
cut kernels, and what others gain by it, is `long`'s. Two kernels stand for the paper's two matrices: the same groups, shorter and longer.
"""

from . import measures as m
from .machine import SETTLE_NS, Scene
from .rows import bar, figure

GROUPS = 96_000
PIECES = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
KERNELS = {"short": 250, "long": 1000}
LEAST = 1500
# Groups of a piece: slower by so many percent, for 600 and 900 rows; the piece nearest in size.
PAPER = {6000: "0.0 / 0.0", 3000: "1.0 / 0.0", 1500: "4.3 / 0.2", 750: "11.8 / 6.2", 375: "23.9 / 17.5", 187: "47.8 / 44.5", 93: "71 / -"}


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
                what = f"{name} kernel, {groups} groups a launch: time over whole"
                paper = PAPER.get(int(groups), "")
                yield bar(what, slower, at_most=1.05, paper=paper) if int(groups) >= LEAST else figure(what, slower, paper)
