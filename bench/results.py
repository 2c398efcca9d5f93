#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages and figures of docs/results, and the list in docs/benchmarks.md, again from
the JSON files that benchmarks wrote: `make results`. --check writes nothing, and ends with
status 1 where something differs."""

import argparse
import os
import sys

sys.dont_write_bytecode = True

from harness.campaign import FOLDER, PAGE  # noqa: E402
from harness.results import find_faults, rewrite_all  # noqa: E402


def main():
    p = argparse.ArgumentParser(description="Write docs/results again from its JSON files.")
    p.add_argument("--check", action="store_true",
                   help="write nothing; status 1 where something differs")
    o = p.parse_args()
    if not o.check:
        rewrite_all(FOLDER, PAGE)
    faults = list(find_faults(FOLDER, PAGE))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
