# SPDX-License-Identifier: Apache-2.0
"""One hard program through Gantry, and what it leaves behind.

    edges.py --build DIR CASE

Status 0: right; 1: a sentence says what is wrong.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile

from gantry import (Gantry, LeftBehind, Wrong, built_tree, descriptors, gone, held_kib, monotonic_ns, resident_kib, stopped, threads_of, wait_until)

LOST_S = 2       # within which a loss must be known everywhere
VICTIMS = int(os.environ.get("EDGES_VICTIMS", "3"))   # where all is much slower: one
NOBODY_S = 1     # within which a program must be told that there is no daemon
# A program that has closed Gantry's descriptors hears this.
CUT_OFF = (b"gantry: the program has closed descriptors that it had not opened, and Gantry's connections with them (closefrom?): "
           b"its vGPU is lost, and calls for it fail\n")
MEMORY = 0.01    # of gantryd's memory may be more than before
# And the stacks of four threads: gantryd starts threads that close descriptors as it needs them, and the C library
# retains the stacks of those that have ended. `crowd` finds smaller leaks, since its first crowd needs as many as its second.
STACKS_KIB = 64


class Footprint:
    """What gantryd is and holds after a first program; settle() is Wrong where it holds more."""

    def __init__(self, gantry):
        self.gantry = gantry
        self.before, self.memory, self.held = gantry.settle_first(), resident_kib(gantry.process.pid), held_kib(gantry.process.pid)

    def settle(self):
        self.gantry.settle(self.before)

    def settle_memory(self):
        more = held_kib(self.gantry.process.pid) - self.held
        if not os.environ.get("SANITIZED") and more > self.memory * MEMORY + STACKS_KIB:   # which keep what threads that have ended held
            raise Wrong("gantryd holds {} KiB more than before, of {}".format(more, self.memory))


class Case:
    def __init__(self, options, work):
        self.edges = os.path.join(options.build, "tests/edges/edges")
        self.unload = os.path.join(options.build, "tests/edges/unload")
        self.work = work
        self.stage = built_tree(os.path.join(work, "tree"), options.build)

    def gantry(self, **how):
        return Gantry(self.stage, os.path.join(self.work, "gantryd"), **how)

    def plain(self, gantry, *case, status=0, times=3, errors=b""):
        """A program that must end so; then all is as it was. Several times: what leaks, leaks again."""
        with gantry.program([self.edges, "life"]) as p:
            p.end()
        footprint = Footprint(gantry)
        for _ in range(times):
            with gantry.program([*case]) as p:
                p.end(status, errors)
            footprint.settle()
        footprint.settle_memory()


def one_of(name, times=1, errors=b"", **how):
    def run(case):
        with case.gantry(**how) as gantry:
            case.plain(gantry, case.edges, name, times=times, errors=errors)
    return run


def leave(how, status):
    def run(case):
        with case.gantry() as gantry:
            with gantry.program([case.edges, "life"]) as p:
                p.end()
            footprint = Footprint(gantry)
            for _ in range(3):
                with gantry.program([case.edges, "leave", how]) as p:
                    p.hear("ready")
                    if how == "wait":
                        p.process.kill()
                    p.end(status)
                footprint.settle()
            footprint.settle_memory()
    return run


def unload(case):
    with case.gantry() as gantry:
        case.plain(gantry, case.unload)


def inherited(case):
    """Of what lies open in a program that is started with nothing but its standard streams, exec hands on nothing."""
    with case.gantry() as gantry:
        case.plain(gantry, case.edges, "fork_exec", times=2)


def stop_and_go(case):
    """Program and worker stop and go on, in turn, between and in the middle of calls."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        rounds = 6
        with gantry.program([case.edges, "steps", str(rounds)]) as p:
            p.hear("ready")
            worker = gantry.worker_of(p)
            for i in range(rounds):
                victim = worker if i % 2 else p.pid
                os.kill(victim, signal.SIGSTOP)
                if not wait_until(lambda: stopped(victim), 10):
                    raise Wrong("process {} does not stop".format(victim))
                p.tell()
                if victim == worker:
                    # The program is in its call: its main thread sleeps in a futex, not in a read of its stdin.
                    if not wait_until(lambda: in_futex(p.pid), 20):
                        raise Wrong("the program does not wait for its stopped worker")
                gantry.vgpus()  # nobody else is held up
                os.kill(victim, signal.SIGCONT)
                p.hear("step")
            p.end()
        gantry.settle(before)


FUTEXES = ("202", "449")  # futex, futex_waitv: x86-64


def in_futex(pid, tid=None):
    try:
        with open("/proc/{}/task/{}/syscall".format(pid, tid or pid), encoding="ascii") as f:
            return f.read().split()[0] in FUTEXES
    except OSError:
        return False


def wait_all_in(program, name, n):
    def all_sleep():
        found = [t for t in threads_of(program.pid) if t[1] == name]
        return len(found) == n and all(in_futex(program.pid, tid) for tid, _, _ in found)
    if not wait_until(all_sleep, 30):
        raise Wrong("not all threads of {} wait in their calls: {}".format(program.name, threads_of(program.pid)))


def known_in_time(program, killed_ns):
    out_ns = int(program.hear("out")[0])
    if out_ns - killed_ns > LOST_S * 10**9:
        raise Wrong("the loss was known after {} ms".format((out_ns - killed_ns) // 10**6))


def lost_worker(case):
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        for _ in range(3):
            with gantry.program([case.edges, "lost_waits"]) as p:
                p.hear("ready")
                worker = gantry.worker_of(p)
                os.kill(worker, signal.SIGSTOP)
                if not wait_until(lambda: stopped(worker), 10):
                    raise Wrong("the worker does not stop")
                p.tell()
                p.hear("in")
                wait_all_in(p, "edge-waits", 8)
                killed = monotonic_ns()
                os.kill(worker, signal.SIGKILL)
                known_in_time(p, killed)
                p.hear("done")
                p.end()
            gantry.settle(before)
        with gantry.program([case.edges, "lost_kernel"]) as p:
            p.hear("ready")
            worker = gantry.worker_of(p)
            killed = monotonic_ns()
            os.kill(worker, signal.SIGKILL)
            known_in_time(p, killed)
            p.hear("done")
            p.end()
        gantry.settle(before)
        # The next program gets a vGPU as if nothing had been.
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        gantry.settle(before)


def holds(p):
    """The files that a program has open, without the numbers, and how many threads it has.
    One vGPU has up to three segments of data, as its transfers have come to need them."""
    files = sorted(descriptors(p.pid).values())
    data = [f for f in files if f.startswith("/memfd:gantry-data")]
    return [f for f in files if f not in data], "one vGPU's" if len(data) <= 3 else data, len(threads_of(p.pid))


def shared_kib(p):
    with open("/proc/{}/status".format(p.pid)) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))


def lose_daemon(gantry, p):
    """Another one comes when the program has seen that there is none."""
    gantry.process.kill()
    gantry.process.wait()
    gantry.drain.wait()
    p.tell()
    p.hear("none")
    gantry.__enter__()
    p.tell()


def anew(case):
    """After a loss a program gets another vGPU, as often as it likes, and holds no more than before."""
    for how in ("released", "asked", "later"):
        with case.gantry() as gantry, gantry.program([case.edges, "anew", how]) as p:
            held = None
            for i in range(4):
                p.hear("ready")
                # From the first loss on it has a thread for callbacks. Watchers of lost vGPUs are about to end.
                if i == 1:
                    wait_until(lambda: len([t for t in threads_of(p.pid) if t[1] == "gantry-watch"]) == 1, LOST_S)
                    held, shared = holds(p), shared_kib(p)
                if held and not wait_until(lambda: holds(p) == held, LOST_S):
                    raise Wrong("{}: it holds {}, and not {}".format(how, holds(p), held))
                # Less than the buffer that it has had in each life.
                if held and not wait_until(lambda: shared_kib(p) < shared + 8192, LOST_S):
                    raise Wrong("{}: it has {} KiB of shared memory, and had {}".format(how, shared_kib(p), shared))
                if how == "later":
                    lose_daemon(gantry, p)
                else:
                    os.kill(gantry.worker_of(p), signal.SIGKILL)
                    p.tell()
            p.end(errors=nobody_listens(gantry.address) if how == "later" else b"")


def anew_devices(case):
    """Another gantryd has other devices: a handle stands for the device that it stood for, or for none."""
    steps = (("basic pthread", "basic:0,pthread:1"), ("pthread", "pthread:1"), ("basic pthread", "basic:0,pthread:1"),
             ("basic basic pthread", "basic:0,basic:2,pthread:1"), ("pthread", None))
    with case.gantry(env={"POCL_DEVICES": steps[0][0]}) as gantry, gantry.program([case.edges, "anew_devices"]) as p:
        for i, (_, line) in enumerate(steps[:-1]):
            said = p.hear("devices")
            if said != [line]:
                raise Wrong("it has {} instead of {}".format(said, line))
            gantry.extra_env["POCL_DEVICES"] = steps[i + 1][0]
            lose_daemon(gantry, p)
        p.end()


def crowd(case):
    """Many programs at once, and again."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        memory = None
        for _ in range(2):
            programs = [gantry.program([case.edges, "life"]) for _ in range(60)]
            try:
                for p in programs:
                    p.end()
            finally:
                for p in programs:
                    p.__exit__()
            gantry.settle(before)
            now = resident_kib(gantry.process.pid)
            # The first crowd makes gantryd's tables as large as they need to be; the second finds them so.
            if memory and now > memory * (1 + MEMORY):
                raise Wrong("gantryd holds {} KiB after the second crowd, {} after the first".format(now, memory))
            memory = now


def after_calls(gantry, program, n):
    """Waits until its worker has taken n messages."""
    def there():
        return program.process.poll() is not None or any(v["pid"] == program.pid and v["calls"] >= n for v in gantry.vgpus())
    if not wait_until(there, 60):
        raise Wrong("{} does not get to {} calls".format(program.name, n))


def killed_anywhere(case):
    """kill -9 of the program at points spread over its life leaves nothing."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        for name in ("churn", "dag", "own_contexts"):
            for n in (0, 1, 2, 3, 5, 8, 13, 40, 150, 600, 2500):
                with gantry.program([case.edges, name]) as p:
                    after_calls(gantry, p, n)
                    p.process.kill()
                    p.process.wait()
                gantry.settle(before)


def worker_killed_anywhere(case):
    """So does the worker's, and its busy program is told: each of these ends itself at the first error, with status 1."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        for name in ("churn", "dag", "one_queue", "live_events"):
            for n in (12, 40, 150, 600, 2500):
                with gantry.program([case.edges, name]) as p:
                    after_calls(gantry, p, n)
                    if p.process.poll() is None:
                        try:
                            os.kill(gantry.worker_of(p), signal.SIGKILL)
                        except (Wrong, ProcessLookupError):
                            pass  # it was quicker
                    while p._read():
                        pass
                    status, said = p.process.wait(), p.errors.decode(errors="replace").splitlines()
                    # Wrong data would be another sentence; clWaitForEvents tells of the events' end, not of the worker's.
                    told = all(line.endswith((" returned -5", " returned -14")) for line in said)
                    if status not in (0, 1) or not told or bool(status) != bool(said):
                        raise Wrong("{} ended with status {} when its worker was killed after {} calls: {}".format(
                            name, status, n, said))
                gantry.settle(before)


def turns(case):
    """Under a policy, with slices of a millisecond: all get through, whoever else dies while he has the device or waits for it."""
    with case.gantry(args=["--policy", "fair", "--slice", "1"]) as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        for victim, n in (("churn", 40), ("one_queue", 600), ("dag", 150))[:VICTIMS]:
            names = ["churn", "dag", "one_queue", "live_events", "deferred"]
            programs = [gantry.program([case.edges, name]) for name in names]
            with contextlib.ExitStack() as stack:
                for p in programs:
                    stack.enter_context(p)
                dies = programs[names.index(victim)]
                after_calls(gantry, dies, n)
                dies.process.kill()
                dies.process.wait()
                for p in programs:
                    if p is not dies:
                        p.end()
            gantry.settle(before)


def nobody_listens(address):
    return "gantry: no gantryd listens at {}; start gantryd, or say where it is with --connect or GANTRY_CONNECT\n".format(address).encode()


def does_not_accept(address):
    return "gantry: gantryd does not answer; see whether gantryd is stuck or stopped\n".encode()


def lost_daemon(case):
    for program in ("lost_waits", "lost_kernel"):
        gantry = case.gantry()
        gantry.__enter__()
        try:
            with gantry.program([case.edges, "life"]) as p:
                p.end()
            gantry.settle_first()
            with gantry.program([case.edges, program]) as p:
                p.hear("ready")
                worker = gantry.worker_of(p)
                family = gantry.traces()["processes"]
                if worker not in family:
                    raise Wrong("the worker is none of gantryd's")
                if program == "lost_waits":
                    os.kill(worker, signal.SIGSTOP)
                    p.tell()
                    p.hear("in")
                    wait_all_in(p, "edge-waits", 8)
                killed = monotonic_ns()
                os.kill(gantry.process.pid, signal.SIGKILL)
                if not wait_until(lambda: gone(family), LOST_S):
                    raise Wrong("gantryd's death has not ended {} within {} s".format(family, LOST_S))
                known_in_time(p, killed)
                p.hear("done")
                p.end()
            began = monotonic_ns()
            with gantry.program([case.edges, "no_daemon"]) as p:
                p.end(errors=nobody_listens(gantry.address))
            if monotonic_ns() - began > NOBODY_S * 10**9:
                raise Wrong("it took {} ms to say that there is no daemon".format((monotonic_ns() - began) // 10**6))
            # A new gantryd takes the dead one's place.
            again = case.gantry()
            os.rmdir(again.socket_dir)
            again.socket_dir, again.socket, again.address = gantry.socket_dir, gantry.socket, gantry.address
            with again:
                with again.program([case.edges, "life"]) as p:
                    p.end()
        finally:
            gantry.process.kill()
            gantry.process.wait()
            gantry.drain.wait()


def no_daemon(case):
    """No socket, one of a dead gantryd, one that accepts nothing: no platform, one line that says why, no delay."""
    folder = os.path.join(case.work, "no")
    os.makedirs(folder)
    import socket
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.bind(os.path.join(folder, "deaf"))
    deaf.listen(1)
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(os.path.join(folder, "dead"))
    dead.close()
    gantry = case.gantry()
    for name in ("none", "dead", "deaf"):
        gantry.address = "unix:" + os.path.join(folder, name)
        began = monotonic_ns()
        with gantry.program([case.edges, "no_daemon"]) as p:
            p.end(errors=does_not_accept(gantry.address) if name == "deaf" else nobody_listens(gantry.address))
        if name != "deaf" and monotonic_ns() - began > NOBODY_S * 10**9:
            raise Wrong("{}: it took {} ms".format(name, (monotonic_ns() - began) // 10**6))
    deaf.close()
    os.rmdir(gantry.socket_dir)


def ticks(pid):
    """(user and system time in clock ticks, switches of all threads) of a process."""
    total = {}
    for tid, _, _ in threads_of(pid):
        base = "/proc/{}/task/{}/".format(pid, tid)
        with open(base + "stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        with open(base + "status", encoding="utf-8", errors="replace") as f:
            switches = [int(line.split()[1]) for line in f if "ctxt_switches" in line]
        with open(base + "schedstat", encoding="ascii") as f:
            ran_ns = int(f.read().split()[0])
        total[tid] = (int(fields[11]), int(fields[12]), ran_ns, tuple(switches))
    return total


def idle(case):
    """Nobody runs, not once: no thread of program, worker, template or gantryd is put on a processor in a second."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "idle"]) as p:
            p.hear("ready")
            worker = gantry.worker_of(p)
            family = {"the program": p.pid, "gantryd": gantry.process.pid}
            for pid in gantry.traces()["processes"]:
                family["the worker" if pid == worker else "the template"] = pid
            if len(family) != 4:
                raise Wrong("not the processes that were expected: {}".format(family))
            # Spinning ends, and threads go to sleep, some time after the last call: wait for a quiet moment of each first.
            # A thread that has closed descriptors waits a second for more, and ends.
            def sleeps():
                return all(state == "S" and name != "gantry-close"
                           for pid in family.values() for _, name, state in threads_of(pid))
            if not wait_until(sleeps, 20):
                raise Wrong("somebody never sleeps: {}".format({n: threads_of(pid) for n, pid in family.items()}))
            subprocess.run(["sleep", "0.3"], check=True)
            before = {name: ticks(pid) for name, pid in family.items()}
            subprocess.run(["sleep", "1"], check=True)  # the second that is looked at
            after = {name: ticks(pid) for name, pid in family.items()}
            for name in family:
                if before[name] != after[name]:
                    raise Wrong("{} did not stay idle: {}".format(name, {
                        tid: (before[name].get(tid), after[name].get(tid)) for tid in after[name]
                        if before[name].get(tid) != after[name].get(tid)}))
            p.tell()
            p.end()


def cmdbuf_dies(case):
    """A program whose recording ends its driver is told so. Nobody else is."""
    with case.gantry() as gantry:
        with gantry.program([case.edges, "life"]) as p:
            p.end()
        before = gantry.settle_first()
        with gantry.program([case.edges, "steps", "1000000"]) as neighbour:
            neighbour.hear("ready")
            for _ in range(2):
                with gantry.program([case.edges, "cmdbuf_dies"]) as p:
                    while p._read():
                        pass
                    if p.process.wait() or p.unread not in (b"lost\n", b"recorded\n"):
                        raise Wrong("status {}: {} {}".format(p.process.returncode, p.unread, p.errors))
                neighbour.tell()
                neighbour.hear("step")
            neighbour.kill()
        gantry.settle(before)


CASES = {
    "one-queue": one_of("one_queue"),
    "whole-writes": one_of("whole_writes"),
    "own-contexts": one_of("own_contexts"),
    "churn": one_of("churn"),
    "dag": one_of("dag"),
    "two-devices": one_of("two_devices", env={"POCL_DEVICES": "pthread pthread"}),
    "live-events": one_of("live_events"),
    "long-wait-list": one_of("long_wait_list"),
    "many-buffers": one_of("many_buffers"),
    "deferred": one_of("deferred"),
    "pieces": one_of("pieces"),
    "big-source": one_of("big_source"),
    "fork": one_of("fork"),
    "fork-exec": inherited,
    "close-fds": one_of("close_fds", times=3, errors=CUT_OFF),
    "unload": unload,
    "leave-exit": leave("exit", 0),
    "leave-return": leave("return", 0),
    "leave-_exit": leave("_exit", 0),
    "leave-abort": leave("abort", -signal.SIGABRT),
    "leave-killed": leave("wait", -signal.SIGKILL),
    "stop-and-go": stop_and_go,
    "lost-worker": lost_worker,
    "anew": anew,
    "anew-devices": anew_devices,
    "lost-daemon": lost_daemon,
    "no-daemon": no_daemon,
    "idle": idle,
    "signals": one_of("signals"),
    "small-stacks": one_of("small_stacks"),
    "crowd": crowd,
    "killed-anywhere": killed_anywhere,
    "worker-killed-anywhere": worker_killed_anywhere,
    "turns": turns,
    "cmdbufs": one_of("cmdbufs", times=2),
    "cmdbuf-dies": cmdbuf_dies,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("case", choices=sorted(CASES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gn-edges-") as work:
        try:
            CASES[options.case](Case(options, work))
        except (Wrong, LeftBehind) as e:
            print("{}: {}".format(options.case, e))
            return 1
    print("{}: right".format(options.case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
