# SPDX-License-Identifier: Apache-2.0
"""What a timeline of gantry trace must be, whatever is in it."""

import collections


def check(trace):
    """Returns {(pid, tid): [(begin, end, name)]} of a trace in the trace-event format; AssertionError when begin and end do not pair
    up, or turns overlap."""
    spans, opened = collections.defaultdict(list), collections.defaultdict(list)
    events = trace["traceEvents"]
    for e in events:
        assert e["ph"] in "BEMCi", e
        assert e["ph"] == "M" or e["ts"] >= 0, e
    # As a reader does: in order of time, and as they stand where that is the same.
    for e in sorted((e for e in events if e["ph"] in "BE"), key=lambda e: e["ts"]):
        track = (e["pid"], e["tid"])
        if e["ph"] == "B":
            opened[track].append(e)
        else:
            assert opened[track], "an end without a begin: %r" % e
            begun = opened[track].pop()
            assert begun["name"] == e["name"], (begun, e)
            spans[track].append((begun["ts"], e["ts"], e["name"]))
    assert not any(opened.values()), "a begin without an end"
    for track, of in spans.items():
        of.sort()
        for (_, end, name), (begin, _, other) in zip(of, of[1:]):
            assert begin >= end, "%s and %s overlap on %r" % (name, other, track)
    return spans
