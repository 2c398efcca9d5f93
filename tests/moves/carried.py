#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs whose vGPUs are carried from host to host while they run: what they give must be what they give natively.

    carried.py --stage STAGE [--by switches|moves|both|stops] [--link shm|tcp] [--times N] [--runs N] [--cold] [--json FILE] [NAME]...

switches: between passthrough and remote (gantry mode). moves: between two gantryds of this machine (gantry migrate), over tcp with TLS and a
token where the link says so. both: out of the program, to the other gantryd, into the program there, and so on. stops: into a file, which ends the
vGPU, and back (gantry checkpoint --stop, gantry restore), over either link.

The program is fed piece by piece (tests/programs/fed.py), so it is carried as often as was asked for, however fast it is. Pauses are
printed, and judge nothing. One verdict a program; exit status 0, 1 when any failed, 77 when none could be run.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
import daemon  # noqa: E402
import fed  # noqa: E402
import runner  # noqa: E402

OTHER = "the other gantryd"
FILE = "a file and back"
# What is done in turn, by the word of --by. Whoever begins with remote is in passthrough before.
TURNS = {"switches": ("remote", "passthrough"), "moves": (OTHER,), "both": ("remote", OTHER, "passthrough"), "stops": (FILE,)}
PATIENT = ("--drain-timeout", "60")
PHASES = ("hold", "stand", "driver", "ends", "tables", "contents", "loaded", "commit")
TENANT = "carried"
TOKEN = "a-token-that-is-long-enough-to-be-one"


class Carrier:
    """Carries the one vGPU that there is, and knows which gantryd has it."""

    def __init__(self, gantryds, turns, token_file, file):
        self.here, self.there = gantryds[0], gantryds[-1]
        self.turns = turns
        self.token_file = token_file
        self.file = file
        self.mode = "passthrough" if "passthrough" in turns else "remote"
        self.pauses = []

    def __call__(self, number):
        if not daemon.wait_until(self.here.vgpus, 120):
            raise runner.Failed("it has no vGPU to be carried")
        (before,) = self.here.vgpus()
        to = self.turns[number % len(self.turns)]
        title = "{}, to {}".format(number, to)
        if to == OTHER:
            address = self.there.tcp_address or self.there.address
            token = ["--token-file", self.token_file, "--link", "tcp"] if self.token_file else []
            move = self.gantry(title, "migrate", *PATIENT, before["id"], address, *token)["move"]
            if self.here.vgpus():
                raise runner.Failed("{}: it is still where it was".format(title))
            self.here, self.there = self.there, self.here
        elif to == FILE:
            began = time.monotonic_ns()
            stop = self.gantry(title, "checkpoint", *PATIENT, before["id"], self.file, "--stop")["checkpoint"]
            self.gantry(title, "restore", self.file)
            move = {"downtime_ns": time.monotonic_ns() - began, "bytes": stop["bytes"]}
        else:
            move = self.gantry(title, "mode", *PATIENT, before["id"], to)["move"]
            self.mode = to
        (now,) = self.here.vgpus()
        if (now["id"], now["mode"], now["link"] == "tcp") != (before["id"], self.mode, bool(self.token_file)):
            raise runner.Failed("{}: it ended as {}".format(title, now))
        self.pauses.append({"turn": to, **move})

    def gantry(self, title, command, *words):
        done = subprocess.run([os.path.join(self.here.stage, "bin", "gantry"), command, "--json", "--connect", self.here.address, *words], env=daemon.clean_env(), capture_output=True, text=True, timeout=200, check=False)
        if done.returncode:
            raise runner.Failed("{}: {}{}".format(title, done.stdout, done.stderr))
        return json.loads(done.stdout)


class Carried(runner.Runner):
    def __init__(self, stage, work, by, tcp, times, cold):
        super().__init__(stage, work, False, tcp=tcp)
        self.turns = TURNS[by]
        self.tcp = tcp
        self.times = times
        self.cold = cold

    def native(self, name, program, which):
        env = {**daemon.clean_env(), **program.daemon_env, "POCL_CACHE_DIR": self.folder(name, "cache-native"),
               "OCL_ICD_VENDORS": self.native_vendors(name)}
        side = runner.Side("native", os.path.join(self.root, name, which), self.folder(name, "shared"), env, gantry=False)
        return fed.run(side, program, self.times, lambda i: None)

    def secret(self, name):
        """A file with the token, as only its owner may read it."""
        path = os.path.join(self.folder(name, "shared"), "token")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as f:
            f.write(TOKEN + "\n")
        return path

    def gantryd(self, name, program, which, token_file):
        """One of those that share a kernel cache, unless each is to be cold."""
        cache = self.folder(name, "cache-" + which if self.cold else "cache-gantry")
        if self.cold:
            shutil.rmtree(cache)
        work = os.path.join(self.root, name, which)
        link = []
        if self.tcp:
            os.makedirs(work, exist_ok=True)
            config = os.path.join(work, "gantryd.conf")
            with open(config, "w", encoding="utf-8") as f:
                f.write("[tenant {}]\ntoken-file = {}\n".format(TENANT, token_file))
            link = ["--config", config, "--listen", "tcp:127.0.0.1:0"]
        return daemon.Daemon(self.stage, work, args=[*program.daemon_args, *link], env=program.daemon_env, cache=cache,
                             passthrough="passthrough" in self.turns)

    def carried(self, name, program):
        """What it gave, and its pauses. Where it begins in passthrough its own driver has compiled before, natively."""
        token_file = self.secret(name) if self.tcp else None
        with contextlib.ExitStack() as stack:
            gantryds = [stack.enter_context(self.gantryd(name, program, which, token_file))
                        for which in (("here", "there") if OTHER in self.turns else ("here",))]
            env = gantryds[0].program_env()
            if self.tcp:
                env.update(GANTRY_TENANT=TENANT, GANTRY_TOKEN=TOKEN)
            else:
                env["POCL_CACHE_DIR"] = self.folder(name, "cache-native")
            side = runner.Side("carried", os.path.join(self.root, name, "carried"), self.folder(name, "shared"), env, gantry=True)
            carrier = Carrier(gantryds, self.turns, token_file, os.path.join(self.folder(name, "shared"), "file"))
            try:
                return fed.run(side, program, self.times, carrier), carrier.pauses
            except runner.Failed as failure:
                raise runner.Failed("{}\n{}".format(failure, "\n".join(
                    "--- {}, the end of its log\n{}".format(g.address, g.log()[-2000:]) for g in gantryds)))


def in_ms(pauses, *keys):
    values = []
    for p in pauses:
        for key in keys:
            p = p.get(key, 0)
        values.append(p / 1e6)
    return "median {:.1f}, {:.1f} to {:.1f}".format(statistics.median(values), min(values), max(values))


def show(name, pauses):
    for to in dict.fromkeys(p["turn"] for p in pauses):
        some = [p for p in pauses if p["turn"] == to]
        print("  {} to {}, {} times: stood still for {} ms, the first for {:.1f}".format(
            name, to, len(some), in_ms(some, "downtime_ns"), some[0]["downtime_ns"] / 1e6))
        for phase in PHASES if to != FILE else ():
            print("    {}: {}".format(phase, in_ms(some, "phases_ns", phase)))
        if to != FILE:
            print("    ahead: {} ms; pages in the stop: {}".format(in_ms(some, "precopy_ns"), max(p["pages"]["stop"] for p in some)))


def verdict(carried, name, program, runs):
    """'PASS', 'FAIL' or 'SKIP', and every pause."""
    reason = runner.missing(program)
    if reason:
        print("SKIP {}: {}".format(name, reason), flush=True)
        return "SKIP", []
    wrong, pauses = 0, []
    with carried.alone_with(name):
        try:
            carried.prepare(name, program)
            native = carried.native(name, program, "native")
        except runner.EXPECTED as failure:
            print("FAIL {}: {}".format(name, failure), flush=True)
            return "FAIL", []
        for _ in range(runs):
            try:
                result, some = carried.carried(name, program)
                pauses += some
                runner.same(native, result, "native", "carried")
            except runner.EXPECTED as failure:
                print("FAIL {}: {}".format(name, failure), flush=True)
                wrong += 1
    if not wrong:
        print("PASS {}: {} times {}, over {}, in each of {} runs".format(
            name, carried.times, "; ".join("to " + to for to in carried.turns), "tcp" if carried.tcp else "shm", runs), flush=True)
    elif runs > 1:
        print("FAIL {}: {} of {} runs".format(name, wrong, runs), flush=True)
    show(name, pauses)
    return "FAIL" if wrong else "PASS", pauses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", required=True)
    parser.add_argument("--work", help="where inputs, outputs and kernel caches are kept (default: runner.py's)")
    parser.add_argument("--by", choices=TURNS, default="switches")
    parser.add_argument("--link", choices=("shm", "tcp"), default="shm", help="of a program that is moved (default: shm)")
    parser.add_argument("--times", type=int, default=20, help="how often in a run (default: 20)")
    parser.add_argument("--runs", type=int, default=1, help="how many runs, each against the same native one (default: 1)")
    parser.add_argument("--cold", action="store_true", help="with empty kernel caches of the workers' in each run")
    parser.add_argument("--json", help="a file for every pause with its phases")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(fed.TABLE))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in fed.TABLE]
    if unknown:
        parser.error("unknown program {}: one of {}".format(unknown[0], ", ".join(fed.TABLE)))
    if args.link == "tcp" and args.by not in ("moves", "stops"):
        parser.error("over tcp a program can only be moved, or stopped")
    if args.times < 1 or args.runs < 1:
        parser.error("--times and --runs want positive numbers")
    reason = daemon.stage_ready(args.stage)
    if reason:
        print("SKIP: " + reason)
        return runner.SKIP
    tcp = args.link == "tcp"
    carried = Carried(args.stage, args.work or os.path.join(args.stage, "..", "programs"), args.by, tcp, args.times, args.cold)
    results = {name: verdict(carried, name, fed.TABLE[name], args.runs) for name in args.names or fed.TABLE}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({name: pauses for name, (_, pauses) in results.items()}, f, indent=1)
    verdicts = [word for word, _ in results.values()]
    if "FAIL" in verdicts:
        return 1
    return 0 if "PASS" in verdicts else runner.SKIP


if __name__ == "__main__":
    sys.exit(main())
