# SPDX-License-Identifier: Apache-2.0
"""Counts that noise can't touch: messages, system calls and instructions a call.

    counts.py --build DIR messages|syscalls|instructions|placed
"""

import argparse
import mmap
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../edges"), os.path.join(HERE, "../discrete")]

from device_state import Device  # noqa: E402
from gantry import Gantry, LeftBehind, Program, Wrong, built_tree  # noqa: E402

N = 1000


class Counted(Program):
    def do(self, kind, n):
        """(before, after) in nanoseconds of the real clock."""
        self.process.stdin.write("{} {}\n".format(kind, n).encode())
        return tuple(int(word) for word in self.hear("did"))


# What a call costs: messages, and of them those that the program waits for. Names are counted.c's.
MESSAGES = {
    "null": (1, 1),
    "sampler": (2, 1),       # its making is waited for, its end is not
    "buffer": (3, 1),        # it tells when its memory in the data area is free
    "set_arg": (0, 0),       # arguments travel with the launch
    "set_mem": (0, 0),
    "retain": (0, 0),
    "event_status": (0, 0),  # stands in shared memory
    "wait_over": (0, 0),
    "launch": (1, 0),
    "launch_event": (1, 0),  # no message for the event, none for its release
    "set_launch": (1, 0),
    "user_event": (2, 0),
    "write_small": (0, 0),   # nothing is under way in the queue, and the buffer lies in the data area
    "read_small": (0, 0),
    "read_large": (0, 0),
    "map": (0, 0),
    "map_image": (2, 1),     # the driver is asked whether it may be mapped
    "write_later": (0, 0),   # the same, though it does not block
    "read_later": (0, 0),
    "write_behind": (2, 0),
    "read_event": (1, 0),    # the wait is for the event
    "fill": (1, 0),
}
# How data moves: by two copies through the data area, by one, by none; what is not here moves none.
TRANSFERS = {"write_small": (0, 1, 0), "read_small": (0, 1, 0), "read_large": (0, 1, 0), "map": (0, 0, 1),
             "map_image": (0, 2, 0),
             "write_later": (0, 1, 0), "read_later": (0, 1, 0), "write_behind": (1, 0, 0), "read_event": (1, 0, 0)}


def messages(options, work):
    wrong = []
    with Gantry(options.stage, work) as gantry:
        with Counted([os.path.join(options.programs, "counted")], gantry.program_env()) as p:
            p.hear("ready")

            def counts():
                v = gantry.vgpu_of(p)
                return v["calls"], v["sync_calls"], v["copies"]["two"], v["copies"]["mapped"], v["copies"]["bypass"]

            def cost(kind, n):
                before = counts()
                p.do(kind, n)
                after = counts()
                return [a - b for a, b in zip(after, before)]

            for kind, expected in MESSAGES.items():
                few, many = cost(kind, 1), cost(kind, N + 1)
                got = tuple((b - a) / N for a, b in zip(few, many))
                print("{:14} {:g} messages, {:g} of them waited for; transfers: {:g} of two copies, {:g} mapped, {:g} bypass".format(
                    kind, *got))
                expected += TRANSFERS.get(kind, (0, 0, 0))
                if got != expected:
                    wrong.append("{}: {} a call and not {}".format(kind, got, expected))
            if gantry.vgpu_of(p)["memory_bytes"] != (1 << 20) + 16 * 16 * 4:
                wrong.append("the vGPU holds {} bytes and not those of its buffer and its image".format(
                    gantry.vgpu_of(p)["memory_bytes"]))
            p.process.stdin.close()
            p.end()
    if wrong:
        raise Wrong("; ".join(wrong))


# ---- system calls

class Clock:
    """The page of still_clock.c."""

    def __init__(self, path):
        with open(path, "wb") as f:
            f.write(bytes(4096))
        with open(path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)

    def stand(self, still):
        self.page[0:4] = struct.pack("=I", still)

    def yields(self):
        return struct.unpack("=I", self.page[4:8])[0]


LINE = re.compile(r"^(\d+) +(\d+\.\d+) ([a-z_0-9]+)\(")


def calls_between(path, before_ns, after_ns):
    """[(process, system call)] that began then."""
    found = []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = LINE.match(line)
            if m and before_ns <= float(m.group(2)) * 1e9 <= after_ns:
                found.append((int(m.group(1)), m.group(3)))
    return found


# Nobody makes any: these have nothing to do with the device, and their waits spin as long as the clock stands.
NONE_ANYWHERE = ["null", "sampler", "set_arg", "event_status", "wait_over", "retain", "user_event",
                 "write_small", "read_small", "map"]
# A worker whose device is this machine's processors soon sleeps while they are busy, and is woken; so do those who wait for it. The
# program makes no other calls, however many of these; what a driver calls to run a command is its own affair.
WAKES, SLEEPS = {"futex"}, {"futex", "futex_waitv"}
NO_OTHERS = {"launch": WAKES, "launch_event": WAKES, "set_launch": WAKES, "read_event": SLEEPS,
             "launch_finish": SLEEPS}


class TracedGantry(Gantry):
    """All processes of gantryd's under strace, which stands aside: their parents stay what they are."""

    def __init__(self, stage, work, trace, **how):
        wrapper = os.path.join(work, "traced")
        os.makedirs(os.path.join(wrapper, "bin"))
        script = os.path.join(wrapper, "bin/gantryd")
        with open(script, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec strace -f -D -ttt -o {} {} \"$@\"\n".format(
                trace, os.path.join(os.path.abspath(stage), "bin/gantryd")))
        os.chmod(script, 0o755)
        super().__init__(wrapper, work, **how)
        self.real_stage = os.path.abspath(stage)

    def program_env(self):
        env = super().program_env()
        env["OCL_ICD_VENDORS"] = os.path.join(self.real_stage, "etc/OpenCL/vendors")
        return env


def syscalls(options, work):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("program and worker need a processor each, and there is one")
        return 77
    if shutil.which("strace") is None or subprocess.run(["strace", "-f", "-D", "-o", "/dev/null", "true"]).returncode:
        print("strace is not installed, or may not trace here")
        return 77
    clock = Clock(os.path.join(work, "clock"))
    preload = {"LD_PRELOAD": os.path.join(options.programs, "libstill-clock.so"), "STILL_CLOCK": os.path.join(work, "clock")}
    host_trace, program_trace = os.path.join(work, "host.trace"), os.path.join(work, "program.trace")
    wrong = []
    with TracedGantry(options.stage, work, host_trace, env=preload) as gantry:
        env = dict(gantry.program_env(), **preload)
        command = ["strace", "-f", "-D", "-ttt", "-o", program_trace, os.path.join(options.programs, "counted")]
        with Counted(command, env) as p:
            p.hear("ready")
            worker = gantry.worker_of(p)
            # Different processors: nobody may have to wait for the other to leave.
            for tid in os.listdir("/proc/{}/task".format(p.pid)):
                os.sched_setaffinity(int(tid), {cpus[0]})
            for tid in os.listdir("/proc/{}/task".format(worker)):
                os.sched_setaffinity(int(tid), {cpus[1]})
            # Does the trace see anything? Reading the line and writing the answer are system calls.
            first = p.do("nothing", 1)
            p.do("nothing", 1)
            windows = []
            for kind in NONE_ANYWHERE + list(NO_OTHERS):
                n = 100000 if kind in NONE_ANYWHERE else 1000
                yields = clock.yields()
                clock.stand(True)
                try:
                    window = p.do(kind, n)
                finally:
                    clock.stand(False)
                windows.append((kind, n, window, clock.yields() - yields))
            last = p.do("nothing", 1)
            p.process.stdin.close()
            p.end()
    if not calls_between(program_trace, first[0], last[1]) or not calls_between(host_trace, 0, last[1]):
        raise Wrong("the traces are empty")
    for kind, n, window, yields in windows:
        program, host = calls_between(program_trace, *window), calls_between(host_trace, *window)
        print("{:14} {} calls in {} ms: {} system calls in the program, {} in gantryd and its workers; {} yields".format(
            kind, n, (window[1] - window[0]) // 10**6, len(program), len(host), yields))
        program = [c for c in program if c[1] not in NO_OTHERS.get(kind, ())]
        if program or (host and kind in NONE_ANYWHERE):
            wrong.append("{}: program {}, host {}".format(kind, sorted({c for _, c in program}), sorted(set(host))))
    if wrong:
        raise Wrong("system calls on the path of a call: " + "; ".join(wrong))
    return 0


# ---- instructions

# In the program, the loader and the loop included: {kind: at most}. About a fifth above what they are, for other compilers.
INSTRUCTIONS = {
    "set_arg": 170,
    "set_mem": 240,
    "retain": 95,
    "event_status": 220,
    "wait_over": 160,
    "launch": 1400,
    "launch_event": 2600,  # most while events end later than their release
}
FEW, MANY = 100, 200  # the difference: what the first call does is in neither


def collected(options, gantry, kind, n, work):
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=counted_calls",
               "--callgrind-out-file=" + os.path.join(work, "callgrind.out"), os.path.join(options.programs, "counted"), "once",
               kind, str(n)]
    done = subprocess.run(command, env=gantry.program_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=240)
    text = done.stdout.decode(errors="replace")
    found = re.search(r"Collected : (\d+)", text)
    if done.returncode or not found:
        raise Wrong("valgrind ended with status {}: {}".format(done.returncode, text))
    return int(found.group(1))


def instructions(options, work):
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return 77
    wrong = []
    with Gantry(options.stage, work) as gantry:
        for kind, limit in INSTRUCTIONS.items():
            few = collected(options, gantry, kind, FEW, work)
            many = collected(options, gantry, kind, MANY, work)
            each = (many - few) / (MANY - FEW)
            print("{:14} {:.1f} instructions a call, at most {}".format(kind, each, limit))
            if each < 10:
                wrong.append("{} was not seen".format(kind))
            elif each > limit:
                wrong.append("{}: {:.1f} instructions, more than {}".format(kind, each, limit))
    if wrong:
        raise Wrong("; ".join(wrong))
    return 0


# ---- what --oversubscribe costs while all memory fits

MORE_INSTRUCTIONS = 30      # of a launch, in the worker
SETTLED, STEPPED = 8, 16    # the first calls of a kind do more; so many in all
SERVES = "gn_vgpu_handle"   # what the worker's first thread does for each message


def steps_command(options, worker):
    """tests/counts/steps for the worker's own code, by its file's symbols and its process's
    maps."""
    path = os.readlink("/proc/{}/exe".format(worker))
    with open("/proc/{}/maps".format(worker), encoding="ascii") as f:
        maps = [line.split() for line in f if line.rstrip().endswith(path)]
    base = int(maps[0][0].split("-")[0], 16)
    first, end = next(m[0] for m in maps if "x" in m[1]).split("-")
    symbols = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search("^([0-9a-f]+) . {}$".format(SERVES), symbols, re.MULTILINE)
    if not found:
        raise Wrong("{} has no function {}".format(path, SERVES))
    return [os.path.join(options.programs, "steps"), str(worker),
            hex(base + int(found.group(1), 16)), first, end, str(STEPPED)]


def steps_of(options, work, kind, *args):
    """Instructions of the worker for a message of that kind, of several, and the messages that the
    vGPU has served."""
    os.makedirs(work)
    os.chmod(work, 0o755)
    device = Device(os.path.join(options.build, "tests/discrete/libdiscrete-icd.so"), work,
                    "capacity=512M")
    config = os.path.join(work, "gantry.conf")
    with open(config, "w", encoding="ascii") as f:
        f.write("[device pthread]\nmemory = 512M\n")
    with Gantry(options.stage, work, args=["--config", config, *args], env=device.env()) as gantry:
        with Counted([os.path.join(options.programs, "counted")], gantry.program_env()) as p:
            p.hear("ready")
            command = steps_command(options, gantry.worker_of(p))
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stepper:
                if stepper.stdout.readline() != "ready\n":
                    print("a worker's steps cannot be counted here")
                    return None
                p.do(kind, 1)
                said = stepper.communicate()[0].split()
            if stepper.returncode:
                raise Wrong("steps: " + " ".join(said))
            calls = gantry.vgpu_of(p)["calls"]
            p.process.stdin.close()
            p.end()
    return [int(n) for n in said[SETTLED:]], calls


def placed(options, work):
    found = [steps_of(options, os.path.join(work, how), "set_launch", *args)
             for how, args in (("plain", ()), ("placed", ("--oversubscribe",)))]
    if None in found:
        return 77
    (plain, plain_calls), (more, more_calls) = found
    print("a launch: {} instructions in the worker, {} with --oversubscribe".format(
        statistics.median(plain), statistics.median(more)))
    if statistics.median(plain) < 100:
        raise Wrong("no launch was seen")
    if statistics.median(more) - statistics.median(plain) > MORE_INSTRUCTIONS:
        raise Wrong("{} instructions a launch instead of {}".format(more, plain))
    if more_calls != plain_calls:
        raise Wrong("{} messages instead of {}".format(more_calls, plain_calls))
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("what", choices=["messages", "syscalls", "instructions", "placed"])
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.programs = os.path.join(options.build, "tests/counts")
    with tempfile.TemporaryDirectory(prefix="gn-counts-") as work:
        try:
            options.stage = built_tree(os.path.join(work, "tree"), options.build)
            return globals()[options.what](options, work) or 0
        except (Wrong, LeftBehind) as e:
            print(e)
            return 1


if __name__ == "__main__":
    sys.exit(main())
