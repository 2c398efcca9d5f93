# SPDX-License-Identifier: Apache-2.0
"""A run of a benchmark: measures one section after the other, and writes each one's result as
soon as it is there, so that a run that is ended loses nothing. `make bench`, `make
bench-fairness`, `make bench-move` and `make bench-memory` are one each."""

import datetime
import json
import os
import sys
import time
from dataclasses import asdict

from . import results
from .machine import LoadWatch, describe_commit, describe_machine
from .rows import MET, MISSED
from .targets import BenchError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "results")
PAGE = os.path.join(ROOT, "docs", "benchmarks.md")


def add_options(parser, quick):
    """quick: what a quick run does less of."""
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--out", metavar="DIR",
                        help="where results go (default: docs/results; --quick: BUILD/bench/results)")
    parser.add_argument("--quick", action="store_true",
                        help=quick + ": to see that it works, not a result")


class Campaign:
    """suite: the first part of each result's name. sections: all that the suite has; chosen:
    those to measure. settings: what the machine was set to. differs: how this run departs from
    what a section measures by itself."""

    def __init__(self, suite, options, sections, chosen, pairs, seconds, settings=(), differs=()):
        self.suite = suite
        self.quick = options.quick
        self.build = os.path.abspath(options.build)
        default = os.path.join(self.build, "bench/results") if self.quick else FOLDER
        self.folder = os.path.abspath(options.out or default)
        self.part = ""
        if list(chosen) != list(sections):
            self.part = f"{', '.join(chosen)} of {len(sections)} sections"
        self.common = {"commit": describe_commit(ROOT),
                       "command": " ".join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
                       "quick": self.quick, "part": self.part, "machine": describe_machine(),
                       "settings": list(settings),
                       "pairs": pairs, "seconds": seconds}
        self.differs = list(differs)
        self.verdicts = []
        self.failures = []
        self.written = []

    def measure(self, section, function, differs=()):
        """function gives a rows.Findings. A failure is told, and the next section is measured."""
        print(f"{section}:", file=sys.stderr, flush=True)
        date, start = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
        with LoadWatch() as load:
            try:
                findings = function()
            except BenchError as e:
                self.fail(f"{section}: {e}")
                return
        for group in findings.groups:
            if group.error:
                self.fail(f"{section}, {group.title}: {group.error}")
        if all(group.error for group in findings.groups):
            return
        document = {"version": results.VERSION, "name": f"{self.suite}-{section}",
                    "title": findings.title,
                    "date": date.strftime("%Y-%m-%dT%H:%M:%SZ")} | self.common | {
                    "differs": [*self.differs, *differs], "load": load.described(),
                    "took_s": time.monotonic() - start,
                    "notes": list(findings.notes), "groups": [asdict(g) for g in findings.groups],
                    "figures": list(findings.figures)}
        stem, text = results.write(self.folder, document)
        self.verdicts += results.verdicts(document)
        self.written.append(os.path.relpath(os.path.join(self.folder, stem + ".md")))
        self.write_raw(stem, findings.raw)
        print(text, flush=True)

    def write_raw(self, stem, raw):
        """Each single run, for a closer look; no part of the result."""
        folder = os.path.join(self.build, "bench/raw")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, stem + ".json"), "w", encoding="utf-8") as f:
            json.dump(raw, f)

    def fail(self, text):
        self.failures.append(text)
        print(f"NOT MEASURED: {text}\n", flush=True)

    def end(self, strict=False):
        """The exit status: 0 when everything asked for was measured, else 1; strict: 1 also when
        a bar was missed."""
        if self.folder == FOLDER and self.written:
            results.update_page(PAGE, FOLDER)
        print(f"Bars: {self.verdicts.count(MET)} met, {self.verdicts.count(MISSED)} missed; "
              f"sections not measured: {len(self.failures)}.")
        if self.written:
            print("Results: " + ", ".join(self.written))
        return 1 if self.failures or (strict and MISSED in self.verdicts) else 0
