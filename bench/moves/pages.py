# SPDX-License-Identifier: Apache-2.0
"""gMig's figures 5 to 7 and 9 to 16: the engine that finds and sends changed pages, by
bench-pages, on made-up pages and on the loads' own. bench-pages runs several times for each
figure: its spread is the error bar."""

import os

from harness.figures import chart, curve, curves, limit, series
from harness.rows import barred, figure, paper
from harness.targets import BenchError, run_json

LOADS = ["hotspot", "srad", "cfd", "nw", "scan", "lavaMD", "pathfinder", "BlackScholes"]
HASHES = {"xor256": "XOR256", "xxh3": "XXH3", "nh": "NH", "md5": "MD5", "sha1": "SHA-1",
          "sha256": "SHA-256",
          "sha512": "SHA-512"}
STOP_HASHES = {"none": "basic", "xor256": "XOR256", "xxh3": "XXH3"}
PLACES = ("head", "tail", "spread")
TYPES = {"skipped": "new or host's: not verified", "unchanged": "unchanged: hashed",
         "sampled": "found by the sample",
         "missed": "missed by the sample: hashed"}
GBITS = (5, 7.5, 10)

# gMig's figure 5, over SHA-1.
PAPER_HASHES = {"XOR256": 141, "XXH3": 28, "MD5": 141 / 80}
# gMig's figure 9, Tropics, in percent of the pages.
PAPER_TYPES = dict(zip(TYPES, (18.9, 38.4, 37.8, 4.8)))
# gMig's figures 11 and 15, ns a page.
PAPER_FILTER = {"hashing all": 468.6, "with samples": 353.5}
PAPER_COURSE = {"sequential": 1218.9, "overlapped": 1054.3, "ideal": 772.8}
FILTER_BAR = 20


def bench_pages(context, *words):
    program = os.path.join(context.build, "bench/migrate/bench-pages")
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    context.progress(" ".join(words))
    return run_json(context.native, [program, *words])


def repeat(context, *words):
    return [bench_pages(context, *words) for _ in range(context.turns)]


def of_loads(context, part):
    """{load: its runs}"""
    return {load: repeat(context, part, load) for load in (LOADS[:1] if context.quick else LOADS)}


def each(data, function):
    """{load: function of each run}; a run of which function makes None is left out."""
    values = {load: [function(run) for run in runs] for load, runs in data.items()}
    return {load: [v for v in found if v is not None] for load, found in values.items()}


class Hashes:
    title = "Hashes of pages of 4 KiB (gMig figure 5)"
    staged = False

    def run(self, context):
        runs = repeat(context, "hash")
        return {HASHES[key]: [run[key] for run in runs] for key in HASHES if key in runs[0]}

    @staticmethod
    def over(d, first, second):
        return [a / b for a, b in zip(d[first], d[second])]

    def rows(self, d):
        for first, second, value in (("XOR256", "SHA-1", 141), ("XXH3", "SHA-1", 28),
                                     ("XOR256", "MD5", 80)):
            yield figure(f"{first} over {second}", self.over(d, first, second),
                         paper=paper("gMig, figure 5", value))
        for name, rates in d.items():
            yield figure(f"{name}: speed", rates, "GB/s")

    def figures(self, d):
        yield chart("bars", "", "Speed of hashes over SHA-1 (gMig figure 5)", "over SHA-1", [
            series("here", {name: self.over(d, name, "SHA-1") for name in d if name != "SHA-1"}),
            series("gMig", PAPER_HASHES, paper=True)], log=True)


class Stops:
    """The line is a model: a page that is sent is copied once, then waits for its time on the
    line."""

    title = "The round that stops, over a modelled line (gMig figures 6, 7 and 16)"
    staged = False

    def run(self, context):
        return of_loads(context, "stops")

    @staticmethod
    def of(run, hash_name, gbit):
        return next(s for s in run["stops"] if s["hash"] == hash_name and s["gbit_per_s"] == gbit)

    def ms(self, d, hash_name, gbit):
        return each(d, lambda run: self.of(run, hash_name, gbit)["ns"] / 1e6)

    def fewer(self, d, hash_name):
        """Percent of the pages that the stop does not send."""
        def of_run(run):
            sent, basic = (self.of(run, name, 10)["sent"] for name in (hash_name, "none"))
            return 100 * (1 - sent / max(1, basic))
        return each(d, of_run)

    def longer(self, d, hash_name):
        """By how many percent the stop takes longer on the slower line."""
        def of_run(run):
            slow, fast = (self.of(run, hash_name, gbit)["ns"] for gbit in (5, 10))
            return 100 * (slow / fast - 1)
        return each(d, of_run)

    @staticmethod
    def overlap(d, key):
        return each(d, lambda run: run["overlap"][key + "_ns"])

    @staticmethod
    def gain(d):
        def of_run(run):
            return 100 * (1 - run["overlap"]["overlapped_ns"] / run["overlap"]["sequential_ns"])
        return each(d, of_run)

    def rows(self, d):
        for name in ("xor256", "xxh3"):
            means = [sum(values) / len(values) for values in zip(*self.fewer(d, name).values())]
            yield figure(f"pages in the stop by {HASHES[name]}, fewer than basic, "
                         f"mean of {len(d)} loads", means, "%", paper=paper("gMig, figure 6", 80))
        for load in d:
            for name, text in STOP_HASHES.items():
                yield figure(f"{load}: stop at 10 Gbit/s, {text}", self.ms(d, name, 10)[load], "ms")
        for load in d:
            yield figure(f"{load}: longer at 5 than at 10 Gbit/s, basic",
                         self.longer(d, "none")[load], "%",
                         paper=paper("gMig, figure 7", "42 % to over 90 %"))
            yield figure(f"{load}: longer at 5 than at 10 Gbit/s, XXH3",
                         self.longer(d, "xxh3")[load], "%")
        for load, values in self.gain(d).items():
            yield figure(f"{load}: overlapped, less time a page than sequential", values, "%",
                         paper=paper("gMig, figure 16", "11.0 % to 13.5 %"))

    def figures(self, d):
        yield chart("bars", "", "The stop by hash, 10 Gbit/s (gMig figure 6)", "ms", [
            series(text, self.ms(d, name, 10)) for name, text in STOP_HASHES.items()])
        yield chart("bars", "pages", "Pages in the stop, fewer than basic (gMig figure 6)", "%", [
            *(series(HASHES[name], self.fewer(d, name)) for name in ("xor256", "xxh3")),
            series("gMig, mean of its loads", {"gMig": 80}, paper=True)])
        yield chart("bars", "line", "The stop by speed of the line, basic (gMig figure 7)", "ms", [
            series(f"{gbit:g} Gbit/s", self.ms(d, "none", gbit)) for gbit in GBITS])
        yield chart("bars", "overlap", "Hashing and sending at once, 10 Gbit/s (gMig figure 16)",
                    "ns a page", [
            series(how, self.overlap(d, how)) for how in ("sequential", "overlapped", "ideal")])
        yield chart("points", "gain",
                    "Hashing and sending at once: less time a page (gMig figure 16)", "%", [
            series("here", self.gain(d)),
            series("gMig, its least and its most", {"gMig, least": 11.0, "gMig, most": 13.5},
                   paper=True)])


class Samples:
    title = "The filter before the hash, on the loads' own pages (gMig figures 9, 10 and 12 to 14)"
    staged = False

    def run(self, context):
        return of_loads(context, "load")

    @staticmethod
    def of(run, place, length):
        return next(s for s in run["samples"] if s["place"] == place and s["bytes"] == length)

    def part(self, d, kind, place="head", length=1):
        """Percent of the pages."""
        def of_run(run):
            sample = self.of(run, place, length)
            return 100 * sample[kind] / max(1, sample["pages"])
        return each(d, of_run)

    def missed(self, d):
        """Percent of the changed pages that the first byte does not find; nothing where no page
        has changed."""
        def of_run(run):
            sample = self.of(run, "head", 1)
            changed = sample["sampled"] + sample["missed"]
            return 100 * sample["missed"] / changed if changed else None
        return each(d, of_run)

    def ns(self, d, place, length):
        return each(d, lambda run: self.of(run, place, length)["ns"])

    def gain(self, d, length):
        return each(d, lambda run: 100 * (1 - self.of(run, "head", length)["ns"] / run["off_ns"]))

    def rows(self, d):
        for load in d:
            for kind, text in TYPES.items():
                yield figure(f"{load}: {text}", self.part(d, kind)[load], "%",
                             paper=paper("gMig, figure 9, Tropics", PAPER_TYPES[kind]))
            if self.missed(d)[load]:
                yield figure(f"{load}: changed pages that the first byte does not find",
                             self.missed(d)[load], "%",
                             paper=paper("gMig, figure 9, Tropics", 11.4))
        for load in d:
            for length in (1, 2, 4):
                yield figure(f"{load}: {length} B of the head, less time a page",
                             self.gain(d, length)[load], "%",
                             paper=paper("gMig, figure 12", "up to 37.1 %") if length == 1
                             else None)
            yield figure(f"{load}: chosen at run time, less time a page",
                         each(d, lambda run: 100 * (1 - run["auto_ns"] / run["off_ns"]))[load], "%")
        for load in d:
            for place in PLACES[1:]:
                over = [a / b for a,
                        b in zip(self.ns(d, place, 1)[load], self.ns(d, "head", 1)[load])]
                yield figure(f"{load}: a byte at `{place}` over a byte at `head`, time a page",
                             over,
                             paper=paper("gMig, figures 13 and 14", "above 1: the head is fastest"))

    def types(self, chosen):
        """chosen: {label: (load's runs, place, length)}. gMig's figure is a column beside them."""
        return [series(text, {label: self.part({label: runs}, kind, place, length)[label]
                              for label, (runs, place, length) in chosen.items()}
                              | {"gMig, Tropics": PAPER_TYPES[kind]})
                for kind, text in TYPES.items()]

    def figures(self, d):
        some = list(d.items())[:4]
        yield chart("stacked", "", "Pages in the stop by kind, a byte of the head (gMig figure 9)",
                    "% of the pages",
                    self.types({load: (runs, "head", 1) for load, runs in d.items()}))
        yield chart("stacked", "lengths",
                    "Pages in the stop by length of the sample (gMig figure 10)", "% of the pages",
                    self.types({f"{load} {n} B": (runs, "head", n) for load, runs in d.items()
                                for n in (1, 2, 4)}))
        yield chart("stacked", "places",
                    "Pages in the stop by place of the sample (gMig figure 13)", "% of the pages",
                    self.types({f"{load} {p} {n} B": (runs, p, n) for load, runs in some
                                for p in PLACES for n in (1, 4)}))
        all_of = series("hashing all", each(d, lambda run: run["off_ns"]))
        yield chart("bars", "times", "Verifying a page by length of the sample (gMig figure 12)",
                    "ns a page", [
            all_of, *(series(f"{n} B of the head", self.ns(d, "head", n)) for n in (1, 2, 4))])
        yield chart("bars", "place-times", "Verifying a page by place of a byte (gMig figure 14)",
                    "ns a page", [
            all_of, *(series(place, self.ns(d, place, 1)) for place in PLACES)])


class Filter:
    title = "The filter before the hash at gMig's mix of pages (gMig figure 11)"
    staged = False
    keys = {"hashing all": "off_ns", "with samples": "on_ns"}

    def run(self, context):
        size = "8" if context.quick else "256"
        rows = bench_pages(context, "filter", "--pairs", str(context.pairs), "--mib", size)["rows"]
        return next(r for r in rows if r["name"] == "paper")

    def rows(self, d):
        yield barred("less time a page", [100 * (1 - r) for r in d["ratio"]], at_least=FILTER_BAR,
                     unit="%",
                     paper=paper("gMig, figure 11", 100 * (1 - 353.5 / 468.6)))
        for text, key in self.keys.items():
            yield figure(f"a page, {text}", d[key], "ns",
                         paper=paper("gMig, figure 11", PAPER_FILTER[text]))

    def figures(self, d):
        yield chart("bars", "", "Verifying a page at gMig's mix (gMig figure 11)",
                    "over hashing all", [
            series("here", {"with samples": d["ratio"]}),
            series("gMig", {"with samples": 353.5 / 468.6}, paper=True)],
            [limit(1 - FILTER_BAR / 100, f"at least {FILTER_BAR} % less")])
        yield chart("bars", "times", "Verifying a page at gMig's mix (gMig figure 11)", "ns a page",
                    [
            series("here", {text: d[key] for text, key in self.keys.items()}),
            series("gMig", PAPER_FILTER, paper=True)])


class Course:
    title = "A round that stops in its course, 10 Gbit/s, gMig's mix of pages (gMig figure 15)"
    staged = False

    def run(self, context):
        runs = repeat(context, "course", "--mib", "16" if context.quick else "256")
        return {name: [run[name] for run in runs] for name in PAPER_COURSE}

    @staticmethod
    def means(runs):
        return [sum(ns for _, ns in points) / max(1, len(points)) for points in runs]

    def rows(self, d):
        for name, value in PAPER_COURSE.items():
            yield figure(f"{name}, a page", self.means(d[name]), "ns",
                         paper=paper("gMig, figure 15", value))
        yield figure("overlapped over ideal",
                     [a / b for a, b in zip(self.means(d["overlapped"]), self.means(d["ideal"]))],
                     paper=paper("gMig, figure 15", 1054.3 / 772.8))

    def figures(self, d):
        by_page = {name: [(points[0][0], [ns for _, ns in points]) for points in zip(*runs)]
                   for name, runs in d.items()}
        yield curves("", "A page in the course of the stop (gMig figure 15)", "page", "ns a page",
                     [curve(name, points) for name, points in by_page.items()])
        yield chart("bars", "means", "A page of the stop, mean (gMig figure 15)", "ns a page", [
            series("here", {name: self.means(runs) for name, runs in d.items()}),
            series("gMig", PAPER_COURSE, paper=True)])
