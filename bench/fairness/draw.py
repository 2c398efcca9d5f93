# SPDX-License-Identifier: Apache-2.0
"""The papers' figures from the results that are there."""

import statistics

from harness import plot
from harness.plot import bars, curves


def middle(values):
    return statistics.median(values)


def weights(results, paper_title):
    """Figures 8 and 9: MMR and overhead, by load and policy."""
    labels = list(dict.fromkeys(load for _, r in results for load in r))
    for key, y_label in (("mmr", "min-max ratio"), ("overhead", "aggregated overhead")):
        series = [(policy, {load: middle(x[key]) for load, x in r.items()}) for policy, r in results]
        yield key, bars(paper_title, y_label, labels, series, 1)


def sleeper(results, paper_title):
    series = [(policy, [(int(p), 100 * middle(x["busy"])) for p, x in r.items()]) for policy, r in results]
    yield "", curves(paper_title, "part of the time that matrixMul sleeps, %", "device busy, %", series, 100)


def pair(results, paper_title):
    for number, who in ((0, "foreground"), (1, "background")):
        series = [(policy, {label: middle([1 / max(s[number], 1e-9) for s in x["shares"]]) for label, x in r.items()}) for policy, r in results]
        yield who, bars(f"{paper_title}: the {who}", "time over alone", list(results[0][1]), series, 2)


def devices(results, paper_title):
    series = [(policy, {f"VM{i + 1}": middle([p[i] for p in r["parts"]]) for i in range(4)}) for policy, r in results]
    yield "", bars(paper_title, "part of its device", [f"VM{i + 1}" for i in range(4)], series, 0.5)


def slicing(results, paper_title):
    for policy, r in results:
        series = [(size, [(int(n), 100 * (middle(x) - 1)) for n, x in by_groups.items()]) for size, by_groups in r.items()]
        yield policy, "set logscale x\n" + curves(paper_title, "work-groups a launch", "slower by, %", series, 5)


DRAWN = {"fig8": weights, "fig9": weights, "fig10": sleeper, "fig11-mm": pair, "fig11-hs": pair, "gvim": devices, "table4": slicing}


def scripts(results):
    for name, (title, by_policy) in results.items():
        if name in DRAWN and by_policy:
            for part, script in DRAWN[name](by_policy, title):
                yield name + ("-" + part if part else ""), script


def draw(out, results):
    """results: {experiment: (title, [(policy, result)])}. The files' names, and what went wrong."""
    return plot.draw(out, scripts(results))
