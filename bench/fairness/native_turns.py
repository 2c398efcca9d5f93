# SPDX-License-Identifier: Apache-2.0
"""What taking turns costs the device itself: the same program natively in several processes, of which one runs at a time, as long as a slice and as
often as its weight says. There is no Gantry in it and no scheduler: what is slower than alone is what others leave in the caches.
"""

from . import measures as m
from .machine import Natives

SLICE_S = 0.006
LONE_S = 0.25
PIECES = 4


def order(weights):
    """Whose turns follow each other until each had its weight's number of them, as evenly as it can be: by start-time fair queuing."""
    had = [0] * len(weights)
    out = []
    for _ in range(sum(weights)):
        out.append(min(range(len(weights)), key=lambda i: ((had[i] + 0.5) / weights[i], i)))
        had[out[-1]] += 1
    return out


def figures(alone, turns, weights):
    """alone, turns: for each program the rounds a second of its own time, by itself and in turns."""
    speeds = [t / a for t, a in zip(turns, alone)]
    return {"mmr": min(speeds) / max(speeds), "overhead": sum(weights) / sum(w * s for w, s in zip(weights, speeds))}


class NativeTurns:
    def __init__(self, options, weights):
        self.options = options
        self.weights = weights

    def run(self, context):
        sequence = order(self.weights)
        everybody = range(len(self.weights))
        alone, turns = [], []
        with Natives(context, [self.options] * len(self.weights)) as natives:
            # (time, rounds) of one order; the first are in no sample.
            def rounds(i, seconds):
                answer = natives.run(i, seconds)
                return answer["end_ns"] - answer["start_ns"], answer["rounds"]

            def rate(samples):
                return sum(s[1] for s in samples) * 1e9 / sum(s[0] for s in samples)

            round_s = 1 / m.mean([rate([rounds(i, LONE_S)]) for i in everybody])
            # An order goes on to the end of the round in which its time is over.
            turn_s = (max(1, round(SLICE_S / round_s)) - 0.5) * round_s
            cycles = max(1, round(context.seconds / PIECES / (max(SLICE_S, round_s) * len(sequence))))
            for n in range(context.quick_pairs if context.quick else context.pairs):
                lone, taken = [[] for _ in everybody], [[] for _ in everybody]
                for piece in range(PIECES):
                    steps = [("alone", i) for i in everybody] + [("turns", i) for _ in range(cycles) for i in sequence]
                    for kind, i in reversed(steps) if (n + piece) % 2 else steps:
                        (lone if kind == "alone" else taken)[i].append(rounds(i, LONE_S if kind == "alone" else turn_s))
                alone.append({i: rate(s) for i, s in enumerate(lone)})
                turns.append([rate(s) for s in taken])
        return [figures(a, t, self.weights) for a, t in zip(m.own_alone(alone, [0] * len(self.weights)), turns)]
