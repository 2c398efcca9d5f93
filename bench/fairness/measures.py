# SPDX-License-Identifier: Apache-2.0
"""The papers' measures, from what programs report. Pure arithmetic: measures_test.py holds it to worked examples."""

import bisect
import statistics


def rounds_until(run, at_ns):
    """How many rounds a program had done at a time: between two of its marks in a straight line.

    run: an answer of `gantry-load --obey`, with marks as [time since the start of the run, rounds done].
    """
    times = [m[0] for m in run["marks"]]
    t = at_ns - run["start_ns"]
    i = bisect.bisect_right(times, t)
    if i == 0 or (i == len(times) and t > times[-1]):
        raise ValueError("outside the run")
    if i == len(times):
        return run["marks"][-1][1]
    (t0, r0), (t1, r1) = run["marks"][i - 1], run["marks"][i]
    return r0 + (r1 - r0) * (t - t0) / (t1 - t0)


def common_window(runs, settle_ns):
    """(from, to): all run, and have done so for settle_ns. Starts and ends are in nobody's rate."""
    begin = max(r["start_ns"] for r in runs) + settle_ns
    end = min(r["start_ns"] + r["marks"][-1][0] for r in runs)
    if end <= begin:
        raise ValueError("the programs did not run at the same time for long enough")
    return begin, end


# So many rounds, and a part of one more or less does not matter.
MANY_ROUNDS = 50


def ends_within(run, begin_ns, end_ns):
    return [run["start_ns"] + t for t, _ in run["marks"] if begin_ns <= run["start_ns"] + t <= end_ns]


def rates(runs, settle_ns):
    """Rounds a second of each, all over the same time.

    Who takes turns works in bursts, and between the first and the last round that he ends lies one burst more than there are pauses: with turns of
    a second, in ten, that makes 0.55 of a half. So where everybody has many rounds the time is all of that in which all run, and parts of rounds count;
    else it lies between the first and the last end of the one that is away for longest, who then has as many pauses as turns.
    A round that went on when others had stopped is faster at its end: one of few is left out.
    """
    begin, stop = common_window(runs, settle_ns)
    ends = [ends_within(r, begin, stop) for r in runs]
    end = stop
    if 2 <= min(len(e) for e in ends) < MANY_ROUNDS:
        longest = max(ends, key=lambda e: max(b - a for a, b in zip(e, e[1:])))
        begin, end = longest[0], longest[-1]
    out = []
    for r, e in zip(runs, ends):
        last = end
        if 2 <= len(e) < MANY_ROUNDS and e[-1] < end and e[-1] > begin:
            last = e[-1]
        out.append((rounds_until(r, last) - rounds_until(r, begin)) * 1e9 / (last - begin))
    return out


def own_alone(pairs, kinds):
    """What each program does alone, in each pair; `pairs`: what was measured, by the program's number; `kinds`: of each program.

    How fast the machine is in a pair shows in all of a kind together; how the programs of a kind compare is where their memory lies, the same in all
    pairs, and the middle of what all pairs say. One that was not measured is as the others of its kind.
    """
    def of_kind(pair, kind):
        return mean([r for i, r in pair.items() if kinds[i] == kind])
    own = {i: statistics.median(pair[i] / of_kind(pair, kinds[i]) for pair in pairs) for i in pairs[0]}
    return [[own.get(i, 1.0) * of_kind(pair, kind) for i, kind in enumerate(kinds)] for pair in pairs]


def ideal(alone, weights):
    """FairGV 5.4.1's ideal fair throughput: what each does alone, by its part of the weights."""
    return [a * w / sum(weights) for a, w in zip(alone, weights)]


def min_max_ratio(measured, ideals):
    """FairGV 5.4.1: least over greatest throughput, each over its ideal one. 1 is fair."""
    x = [m / i for m, i in zip(measured, ideals)]
    return min(x) / max(x)


def shares(measured, alone):
    """The part of the device that each had: its throughput over what it does alone."""
    return [m / a for m, a in zip(measured, alone)]


def aggregated_overhead(measured, alone):
    """FairGV 5.4.1: ideal aggregated throughput over the measured one. With different programs, whose throughputs have no
    common unit, each counts as the part of the device that it had; with the same program it is the same number."""
    return 1 / sum(shares(measured, alone))


def sliding_shares(runs, alone, window_ns, step_ns, settle_ns=0):
    """Each program's part of the device in every window of that length, by steps: a list of lists."""
    begin, end = common_window(runs, settle_ns)
    end -= settle_ns
    out = []
    while begin + window_ns <= end:
        out.append([(rounds_until(r, begin + window_ns) - rounds_until(r, begin)) * 1e9 / window_ns / a for r, a in zip(runs, alone)])
        begin += step_ns
    return out


def worst_lag(windows, weights):
    """The furthest that any program was from its part of what all had, over all windows, as a part of the device."""
    worst = 0.0
    for window in windows:
        total = sum(window)
        for share, weight in zip(window, weights):
            worst = max(worst, abs(share - total * weight / sum(weights)))
    return worst


def mean(values):
    return sum(values) / len(values)


def merge_lengths(runs):
    """What a program's runs say of the lengths of its rounds, as one: the longest is exact, a quantile the middle of the runs' own."""
    n = [r["rounds"] for r in runs]
    lengths = [r["round_ns"] for r in runs]
    merged = {k: statistics.median(x[k] for x in lengths) for k in lengths[0]}
    merged["mean"] = sum(c * x["mean"] for c, x in zip(n, lengths)) / max(1, sum(n))
    merged["max"] = max(x["max"] for x in lengths)
    return merged


def turns_between(before, after):
    """What was charged and done between two looks at the same programs, each a dictionary of counters."""
    return [{k: b[k] - a[k] for k in b} for a, b in zip(before, after)]


def add_turns(pieces):
    return [{k: sum(p[i][k] for p in pieces) for k in pieces[0][i]} for i in range(len(pieces[0]))]


def charge_ratio(turns, weights):
    """Least over greatest charge by weight: 1 when the scheduler gave each its part, whatever came of it."""
    x = [t["used_ns"] / w for t, w in zip(turns, weights)]
    return min(x) / max(x) if max(x) > 0 else 0.0


def use_of(turns):
    """What part of its turns each program's commands kept the device busy, by the driver's clock."""
    return [t["device_ns"] / t["used_ns"] if t["used_ns"] else 0.0 for t in turns]
