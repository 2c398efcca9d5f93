# SPDX-License-Identifier: Apache-2.0
"""Pairs and what is made of them. Medians throughout: one disturbed run must not move a figure."""

import math
import statistics


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def abba(n_pairs, measure_a, measure_b):
    """n_pairs of (a, b), run as AB BA AB ...: a drift of the machine over time hits both alike."""
    pairs = []
    for i in range(n_pairs):
        if i % 2 == 0:
            a = measure_a()
            b = measure_b()
        else:
            b = measure_b()
            a = measure_a()
        pairs.append((a, b))
    return pairs


def ratios(pairs):
    """b over a of each pair, summed up."""
    each = sorted(b / a for a, b in pairs)
    return {"median": statistics.median(each), "min": each[0], "max": each[-1], "pairs": [list(p) for p in pairs]}
