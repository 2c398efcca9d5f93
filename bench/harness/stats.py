# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeated runs. Medians and quartiles throughout: one disturbed run must not move
a figure."""

import math
import statistics


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def abba(n_pairs, measure_a, measure_b):
    """n_pairs of (a, b), run as AB BA AB ...: a drift of the machine's speed affects both alike."""
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
    """b over a of each pair."""
    return [b / a for a, b in pairs]


def quantile(values, q):
    """By linear interpolation between the nearest ranks, as numpy's default."""
    v = sorted(values)
    at = q * (len(v) - 1)
    low = int(at)
    return v[low] + (v[min(low + 1, len(v) - 1)] - v[low]) * (at - low)


def spread(values):
    return {"median": statistics.median(values), "p25": quantile(values, 0.25),
            "p75": quantile(values, 0.75), "min": min(values), "max": max(values), "n": len(values)}


def median_meets(values, at_least=None, at_most=None):
    """A bar is met when the median meets it."""
    median = statistics.median(values)
    return (at_least is None or median >= at_least) and (at_most is None or median <= at_most)


def quartile_meets(values, at_least=None, at_most=None):
    """A bar is missed when three quarters of the runs are past it: noise alone does not miss one,
    and one lucky run does not meet it."""
    if at_least is not None and quantile(values, 0.75) < at_least:
        return False
    return at_most is None or quantile(values, 0.25) <= at_most
