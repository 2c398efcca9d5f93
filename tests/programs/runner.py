#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real programs on the vendor's driver and on Gantry and compares what they print, bit for bit.

    runner.py --stage build/stage [NAME]...    natively and through Gantry (all programs when none is named)
    runner.py --native-only [NAME]...          natively twice: does the program give the same result at all?
    runner.py --stage DIR --together NAME...   natively one by one, then all at once through one gantryd
    runner.py --stage DIR --tcp NAME...        natively, then through Gantry over tcp
    runner.py --stage DIR --passthrough NAME...    natively, then with the vGPU in the program itself
    runner.py --stage DIR --discrete ICD [--options WORDS] NAME...    on the emulated discrete GPU (libdiscrete-icd.so), both sides
    runner.py --stage DIR --discrete ICD --oversubscribe NAME...      on that device natively, then
                                               twice at once on half of the memory that both need
    runner.py --list                           the names

One verdict a program, then `N passed, N failed`. Exit status 0, 1 when any failed, 77 when nothing could be run. Each program gets
a home, a working directory and (natively) a kernel cache of its own; through Gantry it gets a gantryd of its own, of which nothing may be
left afterwards. Kernel caches are kept in the work folder between calls: the first call is the slow one. Runners of one program in one work
folder wait for each other; those of different programs do not.
"""

import argparse
import contextlib
import difflib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import daemon
import programs as table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "discrete"))
from device_state import Device     # noqa: E402

SKIP = 77
MIB = 1 << 20


class Failed(Exception):
    pass


# What can go wrong with what is tested; anything else is a fault of the runner and ends it.
EXPECTED = (Failed, table.Wrong, daemon.NotReady, daemon.LeftBehind, subprocess.SubprocessError, OSError)


class Side:
    """One run of one program: where it works and what it wrote."""

    def __init__(self, name, work, shared, env, gantry):
        self.name = name
        self.gantry = gantry
        self.shared = shared
        self.work = work
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        self.home = tempfile.mkdtemp(prefix="home-", dir=work)
        self.env = dict(env)
        self.env["HOME"] = self.home
        for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            self.env.pop(variable, None)
        self.env["TMPDIR"] = self.home

    def run_plain(self, command):
        """For inputs: no OpenCL, any failure is the test's own."""
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=120, env=daemon.clean_env())

    def read_bytes(self, name):
        with open(os.path.join(self.work, name), "rb") as f:
            return f.read()

    def read(self, name):
        return self.read_bytes(name).decode(errors="replace")

    def run(self, program, env):
        """All commands in order; the outputs."""
        outputs = []
        end = time.monotonic() + program.timeout
        for command in program.commands(self):
            # A session of its own: hashcat reads the terminal, and a timeout must reach the program's children too.
            process = subprocess.Popen(command, cwd=self.work, env={**self.env, **env}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
            try:
                out, err = process.communicate(timeout=max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                raise Failed("{}: {} did not end within {} s\n{}".format(self.name, command[0], program.timeout, tail(out, err)))
            out, err = out.decode(errors="replace"), err.decode(errors="replace")
            if process.returncode != 0:
                raise Failed("{}: {} exited with {}\n{}".format(self.name, command[0], process.returncode, tail(out, err)))
            outputs.append((out, err))
        return outputs


def tail(out, err):
    def text(data):
        return data.decode(errors="replace") if isinstance(data, bytes) else data
    return "--- stdout, its end\n{}\n--- stderr, its end\n{}".format(text(out)[-2000:], text(err)[-2000:])


def missing(program):
    """A sentence when the program is not installed, else None."""
    for command in program.needs:
        if not shutil.which(command):
            return "{} is not installed (apt install {})".format(command, program.packages)
    for path in program.files:
        if not os.path.exists(path):
            return "{} is not there (apt install {})".format(path, program.packages)
    if program.modules:
        if not os.path.exists(table.PYTHON) or subprocess.run(
                [table.PYTHON, "-c", "import " + ", ".join(program.modules)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/").returncode != 0:
            return "the Python modules {} are not installed (apt install {})".format(", ".join(program.modules), program.packages)
    return None


def same(one, other, one_title, other_title):
    if one != other:
        lines = difflib.unified_diff(one.splitlines(), other.splitlines(), one_title, other_title, lineterm="", n=1)
        raise Failed("the results differ\n" + "\n".join(list(lines)[:60]))


class Runner:
    def __init__(self, stage, work, native_only, tcp=False, passthrough=False, device=None):
        self.stage = stage
        self.device = device    # None: the machine's
        self.works = False      # the program's native run has done something on it
        self.twice = False      # each program runs twice at once, on memory for one
        self.link_args = ["--listen", "tcp:127.0.0.1:0", "--insecure"] if tcp else []
        self.passthrough = passthrough
        self.root = os.path.abspath(work)
        self.native_only = native_only

    def folder(self, name, part):
        path = os.path.join(self.root, name, part)
        os.makedirs(path, exist_ok=True)
        return path

    def native(self, name, program, which):
        env = {**daemon.clean_env(), **program.daemon_env, "POCL_CACHE_DIR": self.folder(name, "cache-native")}
        # Only the vendors' drivers: Gantry may be installed on this machine.
        env["OCL_ICD_VENDORS"] = self.native_vendors(name)
        env.update(self.device_env())
        side = Side("native", os.path.join(self.root, name, which), self.folder(name, "shared"), env, gantry=False)
        before = self.device and self.device.counts()
        observed = program.observe(side, side.run(program, program.env))
        self.works = self.device and self.device.counts() != before
        return observed

    def device_env(self):
        return self.device.env() if self.device else {}

    def native_vendors(self, name):
        vendors = self.folder(name, "vendors")
        for old in os.listdir(vendors):
            os.unlink(os.path.join(vendors, old))
        for file in os.listdir("/etc/OpenCL/vendors"):
            if file.endswith(".icd") and "gantry" not in file:
                os.symlink(os.path.join("/etc/OpenCL/vendors", file), os.path.join(vendors, file))
        return vendors

    def through_gantry(self, name, program, which):
        work = os.path.join(self.root, name, which)
        env = {**program.daemon_env, **self.device_env()}
        before = self.device and self.device.counts()
        with daemon.Daemon(self.stage, work + "-daemon", args=[*program.daemon_args, *self.link_args], env=env,
                           cache=self.folder(name, "cache-gantry"), passthrough=self.passthrough) as gantry:
            side = Side("gantry", work, self.folder(name, "shared"), gantry.program_env(), gantry=True)
            try:
                observed = program.observe(side, side.run(program, program.env))
                if self.works and self.device.counts() == before:
                    raise Failed("nothing has been done on the emulated device")
                return observed
            except Failed as failure:
                raise Failed("{}\n--- gantryd's log, its end\n{}".format(failure, gantry.log()[-2000:]))

    @contextlib.contextmanager
    def alone_with(self, name):
        """No other runner has the program's folder meanwhile."""
        with open(os.path.join(self.folder(name, ""), "lock"), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def prepare(self, name, program):
        program.prepare(Side("preparation", os.path.join(self.root, name, "prepare"), self.folder(name, "shared"), {}, gantry=False))

    def together(self, chosen):
        """All programs at once, each against its own native run; the verdicts."""
        with contextlib.ExitStack() as folders:
            for name in sorted(chosen):
                folders.enter_context(self.alone_with(name))
            return self.together_alone(chosen)

    def together_alone(self, chosen):
        for name, program in chosen.items():
            if program.daemon_args or program.daemon_env:
                raise Failed("{} wants a gantryd of its own".format(name))
            self.prepare(name, program)
        native = {name: self.native(name, program, "native") for name, program in chosen.items()}
        problems = {}

        def run(name, program, env):
            try:
                side = Side("gantry", os.path.join(self.root, name, "together"), self.folder(name, "shared"), env, gantry=True)
                same(native[name], program.observe(side, side.run(program, program.env)), "native", "together")
            except (Failed, table.Wrong, OSError) as failure:
                problems[name] = failure

        with daemon.Daemon(self.stage, os.path.join(self.root, "together-daemon"), cache=self.folder("together", "cache")) as gantry:
            threads = [threading.Thread(target=run, args=(name, program, gantry.program_env())) for name, program in chosen.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for name in chosen:
            print("{} {}{}".format("FAIL" if name in problems else "PASS", name, ": {}".format(problems.get(name, "at once with the others"))))
        return ["FAIL" if name in problems else "PASS" for name in chosen]

    def oversubscribed(self, name, program):
        """Runs it twice at once where one fits, against its native run. Says how that went."""
        with self.alone_with(name):
            self.prepare(name, program)
            given, folder = self.device.options, self.folder(name, "device")
            self.device = Device(self.device.icd, folder, given)
            native = self.native(name, program, "native")
            # Whole slots for one of them, a tenth for gaps between objects, and the pins of both.
            memory = "{}M".format(-(-self.device.counts()["peak_bytes"] * 11 // (10 * MIB))
                                  + 2 * program.pinned_mib)
            self.device = Device(self.device.icd, folder,
                                 ",".join(filter(None, (given, "capacity=" + memory))))
            swaps = self.twice_at_once(name, program, memory, native)
            counts, self.device.options = self.device.counts(), given
            if counts["refusals"]:
                raise Failed("the driver has refused memory: {}".format(counts))
            return "twice on {}, {} swaps".format(memory, swaps)

    def twice_at_once(self, name, program, memory, native):
        """The number of swaps."""
        work = self.folder(name, "oversubscribed")
        config = os.path.join(work, "gantry.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write("[device pthread]\nmemory = {}\nslot = 1M\n".format(memory))
        problems = {}

        def run(which, env):
            try:
                side = Side("gantry", os.path.join(self.root, name, which),
                            self.folder(name, "shared"), env, gantry=True)
                same(native, program.observe(side, side.run(program, program.env)), "native", which)
            except EXPECTED as failure:
                problems[which] = failure

        with daemon.Daemon(self.stage, work, cache=self.folder(name, "cache-gantry"),
                           args=["--oversubscribe", "--swap-share", "50%", "--config", config,
                                 *program.daemon_args],
                           env={**program.daemon_env, **self.device_env()}) as gantry:
            threads = [threading.Thread(target=run, args=(which, gantry.program_env()))
                       for which in ("first", "second")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if problems:
                said = ["{}: {}".format(*one) for one in problems.items()]
                raise Failed("\n".join([*said, gantry.last_words()]))
            return gantry.ctl("devices")["devices"][0]["swaps"]

    def compare(self, name, program):
        """Seconds of both sides; raises Failed, Wrong or what the daemon raises."""
        with self.alone_with(name):
            return self.compare_alone(name, program)

    def compare_alone(self, name, program):
        self.prepare(name, program)
        times = []
        observed = []
        if self.native_only:
            runs = [("native", self.native), ("native again", self.native)]
        else:
            runs = [("native", self.native), ("gantry", self.through_gantry)]
        for title, run in runs:
            if program.warm:
                run(name, program, title.replace(" ", "-"))
            begin = time.monotonic()
            observed.append(run(name, program, title.replace(" ", "-")))
            times.append("{:.1f} s {}".format(time.monotonic() - begin, title))
        same(observed[0], observed[1], runs[0][0], runs[1][0])
        return ", ".join(times)

    def verdict(self, name, program):
        """'PASS', 'FAIL' or 'SKIP', printed with its reason."""
        reason = missing(program)
        if reason:
            print("SKIP {}: {}".format(name, reason), flush=True)
            return "SKIP"
        try:
            how = self.oversubscribed if self.twice else self.compare
            print("PASS {}: {}".format(name, how(name, program)), flush=True)
            return "PASS"
        except EXPECTED as failure:
            print("FAIL {}: {}".format(name, failure), flush=True)
            return "FAIL"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage")
    parser.add_argument("--native-only", action="store_true")
    parser.add_argument("--work", help="where inputs, outputs and kernel caches are kept (default: beside the stage, or a new folder in /tmp)")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--tcp", action="store_true", help="reach gantryd over tcp, on loopback")
    parser.add_argument("--passthrough", action="store_true", help="the programs host their vGPUs themselves")
    parser.add_argument("--discrete", metavar="ICD", help="the driver of the emulated discrete GPU, in place of the machine's")
    parser.add_argument("--oversubscribe", action="store_true",
                        help="each twice at once on that device, with memory for one")
    parser.add_argument("--options", default="", help="of that device, as in $DISCRETE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    programs = table.table()
    if args.list:
        print("\n".join(programs))
        return 0
    unknown = [name for name in args.names if name not in programs]
    if unknown:
        print("runner: unknown program {}: one of {}".format(unknown[0], ", ".join(programs)), file=sys.stderr)
        return 2
    if not args.native_only:
        if not args.stage:
            print("runner: --stage DIR or --native-only is needed", file=sys.stderr)
            return 2
        reason = daemon.stage_ready(args.stage)
        if reason:
            print("SKIP: " + reason)
            return SKIP
    work = args.work
    if not work:
        work = os.path.join(args.stage, "..", "programs") if args.stage else tempfile.mkdtemp(prefix="gantry-programs-")
    device = None
    if args.discrete:
        # Its native results are others: programs choose by a device's kind.
        work += "-discrete"
        os.makedirs(work, exist_ok=True)
        device = Device(args.discrete, work, args.options)
    if args.oversubscribe and not device:
        print("runner: --oversubscribe needs --discrete ICD", file=sys.stderr)
        return 2
    runner = Runner(args.stage, work, args.native_only, args.tcp, args.passthrough, device)
    runner.twice = args.oversubscribe
    chosen = {name: programs[name] for name in args.names or programs}
    if args.together:
        reasons = [missing(program) for program in chosen.values()]
        if any(reasons):
            print("SKIP: " + next(reason for reason in reasons if reason))
            return SKIP
        try:
            verdicts = runner.together(chosen)
        except EXPECTED as failure:
            print("FAIL: {}".format(failure))
            verdicts = ["FAIL"]
    else:
        verdicts = [runner.verdict(name, program) for name, program in chosen.items()]
    passed, failed = verdicts.count("PASS"), verdicts.count("FAIL")
    print("{} passed, {} failed".format(passed, failed))
    if failed:
        return 1
    return 0 if passed else SKIP


if __name__ == "__main__":
    sys.exit(main())
