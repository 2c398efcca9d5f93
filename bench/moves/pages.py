# SPDX-License-Identifier: Apache-2.0
"""gMig's figures 5 to 7 and 9 to 16: the engine that finds and sends changed pages, by bench-pages, on made-up pages and on the loads' own."""

import os

from harness.plot import bars, curves
from harness.targets import BenchError, run_json

from .rows import row

LOADS = ["hotspot", "srad", "cfd", "nw", "scan", "lavaMD", "pathfinder", "BlackScholes"]
HASHES = {"xor256": "XOR256", "xxh3": "XXH3", "nh": "NH", "md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha512": "SHA-512"}
TYPES = ("skipped", "unchanged", "sampled", "missed")
TYPE_NAMES = ("new, or of the host: not verified", "unchanged: hashed", "told by the sample", "missed by it: hashed")


def bench_pages(context, *words):
    program = os.path.join(context.build, "bench/migrate/bench-pages")
    if not os.path.exists(program):
        raise BenchError(f"{program} is not built")
    context.progress(" ".join(words))
    return run_json(context.native, [program, *words])


def loads_of(context):
    return LOADS[:2] if context.quick else LOADS


class Hashes:
    title = "Hashes of pages of 4 KiB"
    figures = ("gMig 5",)
    staged = False

    def run(self, context):
        return {name: gb for name, gb in bench_pages(context, "hash").items() if name in HASHES}

    def rows(self, d):
        yield row("gMig 5", "XOR256 over SHA-1", "141", f"{d['xor256'] / d['sha1']:.1f}")
        yield row("gMig 5", "xxHash over SHA-1", "28", f"{d['xxh3'] / d['sha1']:.1f}")
        yield row("gMig 5", "XOR256 over MD5", "80", f"{d['xor256'] / d['md5']:.1f}")

    def scripts(self, d):
        yield "gmig-05", bars("gMig figure 5: hashes", "GB/s", list(HASHES.values()),
                              [("here", {HASHES[k]: v for k, v in d.items()})])


class Stops:
    """A model of the line: what is sent is copied once, then waits for its time."""

    title = "The round that stops, over a modelled line"
    figures = ("gMig 6", "gMig 7", "gMig 16")
    staged = False

    def run(self, context):
        return {name: bench_pages(context, "stops", name) for name in loads_of(context)}

    @staticmethod
    def of(load, hash_name, gbit):
        return next(s for s in load["stops"] if s["hash"] == hash_name and s["gbit_per_s"] == gbit)

    def fewer(self, load, hash_name):
        return 1 - self.of(load, hash_name, 10)["sent"] / max(1, self.of(load, "none", 10)["sent"])

    def slower(self, load, hash_name):
        return self.of(load, hash_name, 5)["ns"] / self.of(load, hash_name, 10)["ns"] - 1

    def rows(self, d):
        for name in ("xor256", "xxh3"):
            yield row("gMig 6", f"pages in the stop by {HASHES[name]}, fewer than basic, mean of {len(d)} loads", "80 %",
                      f"{100 * sum(self.fewer(x, name) for x in d.values()) / len(d):.0f} %")
        for load, x in d.items():
            yield row("gMig 6", f"{load}, 10 Gbit/s: stands for, basic; XOR256; XXH3 (ms)", "",
                      "; ".join(f"{self.of(x, h, 10)['ns'] / 1e6:.2f}" for h in ("none", "xor256", "xxh3")))
        yield row("gMig 7", "stands longer at 5 than at 10 Gbit/s, basic, least and most", "42 % to over 90 %",
                  "{:.0f} % to {:.0f} %".format(*(100 * f(self.slower(x, "none") for x in d.values()) for f in (min, max))))
        yield row("gMig 7", "the same by XXH3", "", "{:.0f} % to {:.0f} %".format(
            *(100 * f(self.slower(x, "xxh3") for x in d.values()) for f in (min, max))))
        gains = {name: 1 - x["overlap"]["overlapped_ns"] / x["overlap"]["sequential_ns"] for name, x in d.items()}
        yield row("gMig 16", "overlapped, less time a page than sequential, least and most", "11.0 % to 13.5 %",
                  f"{100 * min(gains.values()):.1f} % to {100 * max(gains.values()):.1f} %")

    def scripts(self, d):
        names = {"none": "basic", "xor256": "XOR256", "xxh3": "XXH3"}
        yield "gmig-06-downtime", bars("gMig figure 6: the stop by hash, 10 Gbit/s", "ms", list(d), [
            (text, {load: self.of(x, h, 10)["ns"] / 1e6 for load, x in d.items()}) for h, text in names.items()])
        yield "gmig-06-pages", bars("gMig figure 6: pages sent in the stop", "pages", list(d), [
            (text, {load: self.of(x, h, 10)["sent"] for load, x in d.items()}) for h, text in names.items()])
        yield "gmig-07", bars("gMig figure 7: the stop by the line's speed, basic", "ms", list(d), [
            (f"{g:g} Gbit/s", {load: self.of(x, "none", g)["ns"] / 1e6 for load, x in d.items()}) for g in (5, 7.5, 10)])
        yield "gmig-16", bars("gMig figure 16: hashing and sending at once, 10 Gbit/s", "ns a page", list(d), [
            (how, {load: x["overlap"][how + "_ns"] for load, x in d.items()}) for how in ("sequential", "overlapped", "ideal")])


class Samples:
    title = "The filter before the hash, on the loads' own pages"
    figures = ("gMig 9", "gMig 10", "gMig 12", "gMig 13", "gMig 14")
    staged = False

    def run(self, context):
        return {name: bench_pages(context, "load", name) for name in loads_of(context)}

    @staticmethod
    def of(load, place, length):
        return next(s for s in load["samples"] if s["place"] == place and s["bytes"] == length)

    @staticmethod
    def parts(sample):
        return [sample[t] / max(1, sample["pages"]) for t in TYPES]

    @staticmethod
    def missed(sample):
        changed = sample["sampled"] + sample["missed"]
        return sample["missed"] / changed if changed else None

    def rows(self, d):
        for load, x in d.items():
            first = self.of(x, "head", 1)
            yield row("gMig 9, 10", f"{load}: " + "; ".join(TYPE_NAMES), "18.9; 38.4; 37.8; 4.8 % (Tropics)",
                      "; ".join(f"{100 * p:.1f}" for p in self.parts(first)) + " %")
            missed = self.missed(first)
            if missed is not None:
                yield row("gMig 9", f"{load}: changed pages that the first byte does not tell", "11.4 % (Tropics)", f"{100 * missed:.1f} %")
        for length in (1, 2, 4):
            gains = [1 - self.of(x, "head", length)["ns"] / x["off_ns"] for x in d.values()]
            yield row("gMig 12", f"{length} bytes of the head: less time a page, least and most", "up to 37.1 %" if length == 1 else "",
                      f"{100 * min(gains):.1f} % to {100 * max(gains):.1f} %")
        gains = [1 - x["auto_ns"] / x["off_ns"] for x in d.values()]
        yield row("gMig 12", "chosen at run time: less time a page, least and most", "", f"{100 * min(gains):.1f} % to {100 * max(gains):.1f} %")
        best = [min(("head", "tail", "spread"), key=lambda p, x=x: self.of(x, p, 1)["ns"]) for x in d.values()]
        yield row("gMig 13, 14", "the place that takes least time, a byte", "head, always",
                  ", ".join(f"{place} {best.count(place)}" for place in dict.fromkeys(best)))

    def scripts(self, d):
        def types(chosen):
            return [(text, {label: self.parts(s)[i] for label, s in chosen.items()}) for i, text in enumerate(TYPE_NAMES)]

        first = {load: self.of(x, "head", 1) for load, x in d.items()}
        yield "gmig-09", bars("gMig figure 9: pages in the stop, by what is done to them", "part", list(first), types(first), stacked=True)
        by_length = {f"{load} {n} B": self.of(x, "head", n) for load, x in d.items() for n in (1, 2, 4)}
        yield "gmig-10", bars("gMig figure 10: the same by length of the sample", "part", list(by_length), types(by_length), stacked=True)
        by_place = {f"{load} {p} {n} B": self.of(x, p, n) for load, x in list(d.items())[:4] for p in ("head", "tail", "spread") for n in (1, 4)}
        yield "gmig-13", bars("gMig figure 13: the same by place and length", "part", list(by_place), types(by_place), stacked=True)
        yield "gmig-12", bars("gMig figure 12: verifying a page, samples of the head", "ns a page", list(d), [
            ("hashing all", {load: x["off_ns"] for load, x in d.items()})] + [
            (f"{n} B", {load: self.of(x, "head", n)["ns"] for load, x in d.items()}) for n in (1, 2, 4)])
        yield "gmig-14", bars("gMig figure 14: verifying a page, by place of a byte", "ns a page", list(d), [
            ("hashing all", {load: x["off_ns"] for load, x in d.items()})] + [
            (p, {load: self.of(x, p, 1)["ns"] for load, x in d.items()}) for p in ("head", "tail", "spread")])


class Filter:
    title = "The filter at gMig's mix of pages"
    figures = ("gMig 11",)
    staged = False

    def run(self, context):
        rows = bench_pages(context, "filter", "--pairs", str(context.pairs), "--mib", "8" if context.quick else "256")["rows"]
        return next(r for r in rows if r["name"] == "paper")

    def rows(self, d):
        yield row("gMig 11", "verifying a page: hashing all; with samples (ns)", "468.6; 353.5", f"{d['off_ns']:.0f}; {d['on_ns']:.0f}")
        yield row("gMig 11", "less time", "24.5 %", f"{100 * (1 - d['ratio']['median']):.1f} %", bar="at least 20 %",
                  met=d["ratio"]["median"] <= 0.8)

    def scripts(self, d):
        yield "gmig-11", bars("gMig figure 11: verifying a page at gMig's mix", "ns a page", ["gMig", "here"], [
            ("hashing all", {"gMig": 468.6, "here": d["off_ns"]}), ("with samples", {"gMig": 353.5, "here": d["on_ns"]})])


class Course:
    title = "One round that stops in its course, 10 Gbit/s, gMig's mix of pages"
    figures = ("gMig 15",)
    staged = False
    names = ("sequential", "overlapped", "ideal")

    def run(self, context):
        return {k: v for k, v in bench_pages(context, "course", "--mib", "16" if context.quick else "256").items() if k in self.names}

    def rows(self, d):
        mean = {name: sum(ns for _, ns in d[name]) / max(1, len(d[name])) for name in self.names}
        for name, paper in zip(self.names, ("1218.9", "1054.3", "772.8")):
            yield row("gMig 15", f"{name}, ns a page", paper, f"{mean[name]:.0f}")
        yield row("gMig 15", "overlapped over ideal", "1.36", f"{mean['overlapped'] / mean['ideal']:.2f}")

    def scripts(self, d):
        yield "gmig-15", curves("gMig figure 15: a page in the course of the stop", "page", "ns a page", [(n, d[n]) for n in self.names])
