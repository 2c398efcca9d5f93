#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of more programs than a device has memory for, on the emulated discrete GPU: `make
bench-oversubscribe`.

Status 0 when all was measured, 1 when not, 2 for a usage error.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.campaign import Campaign, add_options  # noqa: E402
from memory import chatty, exceed, fits  # noqa: E402

SECTIONS = {"exceed": exceed, "fits": fits, "chatty": chatty}
PAIRS = 11


class Context:
    def __init__(self, o):
        self.quick, self.seconds, self.runs, self.bus = o.quick, o.seconds, o.runs, o.bus
        self.pairs, self.load_s = (2, 0.5) if o.quick else (PAIRS, 1)
        self.stage = os.path.join(o.build, "stage")
        self.holds = os.path.abspath(os.path.join(o.build, "tests/memory/holds"))
        self.icd = os.path.join(o.build, "tests/discrete/libdiscrete-icd.so")
        self.load = os.path.abspath(os.path.join(o.build, "bench/loads/gantry-load"))
        self.device = (f"An emulated GPU (PoCL) of 512 MiB behind a bus of {o.bus} bytes a second, "
                       "slots of 16 MiB")

    def missing(self):
        """(path, target of make) of something that is not built, or None."""
        made_by = {self.stage: "stage", self.holds: "build-tests", self.icd: "build-tests",
                   self.load: "benches"}
        return next(((p, m) for p, m in made_by.items() if not os.path.exists(p)), None)


def parse(arguments):
    p = argparse.ArgumentParser(
        description="Measure programs that hold more memory together than their device has.")
    add_options(p, "one run of 20 s of each")
    p.add_argument("--only", type=lambda s: s.split(","), default=list(SECTIONS),
                   help="sections, separated by commas: " + ", ".join(SECTIONS))
    p.add_argument("--seconds", type=int, help="of a run (default: 120)")
    p.add_argument("--runs", type=int, help="of each (default: 3)")
    p.add_argument("--bus", default="12G", help="bytes a second each way (default: 12G)")
    o = p.parse_args(arguments)
    o.seconds = o.seconds or (20 if o.quick else 120)
    o.runs = o.runs or (1 if o.quick else 3)
    for name in o.only:
        if name not in SECTIONS:
            p.error(f"no section {name!r}; there are {', '.join(SECTIONS)}")
    missing = Context(o).missing()
    if missing:
        p.error(f"there is no {missing[0]}: run `make {missing[1]}` first")
    return o


def main():
    o = parse(sys.argv[1:])
    context = Context(o)
    campaign = Campaign("bench-oversubscribe", o, SECTIONS, o.only, o.runs, o.seconds)
    for name in o.only:
        campaign.measure(name, lambda: SECTIONS[name].measure(context))
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
