# SPDX-License-Identifier: Apache-2.0
"""Kills programs, workers, templates and gantryd at random points under load, and looks at what is left.

    campaign.py --build DIR [--kills N] [--seed S]

Programs that check their own results run all the time. A kill ends a random process of a random kind after a random while; the seed
decides which and when, the machine's load what it hits. Then:

  who was not hit          ends well, with right results
  who lost worker or host  is told within two seconds, by an error of the next call, and ends by itself
  what was hit             leaves no process, no shared memory, no descriptor and no vGPU, and gantryd holds no more memory than before

Ends with one line that says how many kills of what there were, and when the slowest program that had lost its vGPU ended. Status 0: all of this
holds; 1: a sentence, and the seed.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../edges"))

from gantry import Gantry, LeftBehind, Wrong, built_tree, descendants, gone, held_kib, threads_of, wait_until  # noqa: E402
from gantryd_harness import cmdline  # noqa: E402

LOST_S = 2            # within which a loss must be known: nobody waits for the lost any longer
PATIENCE_S = 60       # for what a program computes before its next call
AT_ONCE = 4           # programs
LOADS = (("churn",), ("dag",), ("one_queue",), ("own_contexts",), ("live_events",), ("pieces",), ("deferred",))
# What a program may hear of a loss: the worker is gone, or cannot ask for memory any more; an event ended badly; nobody is there.
TOLD = (" returned -5", " returned -4", " returned -14", " returned -1001", " returned -6", " returned -36", " returned -33", " returned -34")
# A program that ends in the middle of everything, on any thread, is nobody in whom to look for leaks.
NO_LEAKS = {"ASAN_OPTIONS": ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))}
SETTLE_EVERY = 25
MEMORY_KIB = 512      # malloc's slack; a leak would show over hundreds of kills


def counted(traces):
    """A template that was killed has been started again: another process, but one."""
    return dict(traces, processes=len(traces["processes"]))


def where(pid):
    """Each thread's name and the system call that it is in."""
    found = []
    for tid, name, state in threads_of(pid):
        try:
            with open("/proc/{}/task/{}/syscall".format(pid, tid), encoding="ascii") as f:
                found.append("{} {} {}".format(name, state, f.read().split()[0]))
        except OSError:
            pass
    return found


def tells_of_loss(said):
    """Each call that a program names has failed as it does after a loss. Gantry itself may have told why there is no platform."""
    answers = [line for line in said if not line.startswith("gantry: ")]
    return bool(answers) and all(line.endswith(TOLD) for line in answers)


class Load:
    """One program under way; `lost`: something that it needs was killed, and when; `may_lose`: or perhaps it was."""

    def __init__(self, gantry, edges, rng):
        self.case = rng.choice(LOADS)
        self.program = gantry.program([edges, *self.case], env=NO_LEAKS)
        self.lost = None
        self.may_lose = False
        self.killed = False

    def over(self):
        """Reads what it says; True when it has ended. Wrong when it should not have ended so."""
        p = self.program
        if p.process.poll() is None:
            return False
        while p._read():
            pass
        status, said = p.process.returncode, p.errors.decode(errors="replace").splitlines()
        if self.killed:
            return True
        if status == 0 and not said:
            return True
        if self.lost is None and not self.may_lose:
            raise Wrong("{} was hit by nothing and ended with status {}: {}".format(p.name, status, said))
        if status != 1 or not tells_of_loss(said):
            raise Wrong("{} lost its vGPU and ended with status {}: {}".format(p.name, status, said))
        return True

    def waits(self):
        """Do all its threads wait, and go on waiting? Or is there one that computes (data to check) and has made no call since?"""
        for _ in range(5):
            if any(state not in "SD" for _, _, state in threads_of(self.program.pid)):
                return False
            time.sleep(0.02)
        return self.program.process.poll() is None

    def close(self):
        self.program.__exit__()


class Campaign:
    def __init__(self, options, work):
        self.build = os.path.abspath(options.build)
        self.work = work
        self.no_memory = options.no_memory
        self.seed = options.seed
        self.rng = random.Random(options.seed)
        self.edges = os.path.join(self.build, "tests/edges/edges")
        self.stage = built_tree(os.path.join(work, "tree"), options.build)
        self.loads = []
        self.kills = {"program": 0, "worker": 0, "template": 0, "gantryd": 0}
        self.slowest = 0.0
        self.ran = 0
        self.n_daemons = 0
        self.gantry = None

    # ---- gantryd

    def start(self, place=None):
        self.n_daemons += 1
        gantry = Gantry(self.stage, os.path.join(self.work, "gantryd-{}".format(self.n_daemons)),
                        cache=os.path.join(self.work, "cache"))
        if place:
            os.rmdir(gantry.socket_dir)
            gantry.socket_dir, gantry.socket, gantry.address = place.socket_dir, place.socket, place.address
        gantry.__enter__()
        self.gantry = gantry
        with gantry.program([self.edges, "life"]) as p:
            p.end()
        self.before = counted(gantry.settle_first())
        self.held = held_kib(gantry.process.pid)

    def settle(self):
        """Lets all programs end; then nothing may be left."""
        while self.loads:
            self.look()
            time.sleep(0.005)
        # Served as if nothing had been; and a template that was killed is there again.
        with self.gantry.program([self.edges, "life"]) as p:
            p.end()
        self.nothing_left()
        more = held_kib(self.gantry.process.pid) - self.held
        if more > MEMORY_KIB and not self.no_memory:
            raise Wrong("gantryd holds {} KiB more than before".format(more))
        log = self.gantry.log()
        for word in ("AddressSanitizer", "runtime error:", "LeakSanitizer", "signal 11", "signal 6", "signal 4", "signal 8"):
            if word in log:
                raise Wrong("somebody crashed: " + log[max(0, log.index(word) - 500):][:4000])

    def nothing_left(self):
        now = {}

        def same():
            nonlocal now
            now = counted(self.gantry.traces())
            return now == self.before

        if not wait_until(same, 60):
            raise Wrong("left behind: " + "; ".join("{}: {} instead of {}".format(k, now[k], self.before[k])
                                                    for k in now if now[k] != self.before[k]))

    # ---- programs

    def look(self):
        """Takes those away that have ended; Wrong when one that lost its vGPU does not."""
        now = time.monotonic()
        for load in list(self.loads):
            if load.over():
                if load.lost and not load.killed:
                    self.slowest = max(self.slowest, now - load.lost)
                self.ran += 1
                load.close()
                self.loads.remove(load)
            elif load.lost and now - load.lost > LOST_S and load.waits():
                raise Wrong("{} still waits {:.1f} s after its loss: {}".format(load.program.name, now - load.lost,
                                                                               where(load.program.pid)))
            elif load.lost and now - load.lost > PATIENCE_S:
                raise Wrong("{} does not end after its loss".format(load.program.name))

    def fill(self):
        while len(self.loads) < AT_ONCE:
            self.loads.append(Load(self.gantry, self.edges, self.rng))

    def lose(self, loads):
        now = time.monotonic()
        for load in loads:
            load.lost = load.lost or now

    # ---- kills

    def kill_program(self):
        load = self.rng.choice(self.loads)
        load.killed = True
        load.program.process.kill()

    def kill_worker(self):
        vgpus = [v for v in self.gantry.vgpus() if v.get("worker_pid")]
        if not vgpus:
            return False
        v = self.rng.choice(vgpus)
        hit = [load for load in self.loads if load.program.pid == v["pid"]]
        try:
            os.kill(v["worker_pid"], signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.lose(hit)
        return True

    def kill_template(self):
        templates = [pid for pid in children(self.gantry.process.pid) if b"--template" in cmdline(pid)]
        if not templates:
            return False
        victim = self.rng.choice(templates)
        there = {v["pid"] for v in self.gantry.vgpus()}
        os.kill(victim, signal.SIGKILL)
        self.lose([load for load in self.loads if load.program.pid in there])
        # Who was about to attach may be refused, or be served by the next template.
        for load in self.loads:
            load.may_lose = load.may_lose or load.program.pid not in there
        # Who comes before gantryd has noticed is refused; who comes then is served.
        if not wait_until(lambda: victim not in children(self.gantry.process.pid), LOST_S):
            raise Wrong("gantryd does not notice that its template is gone")
        return True

    def kill_gantryd(self):
        gantry = self.gantry
        family = descendants(gantry.process.pid)
        hit = list(self.loads)
        gantry.process.kill()
        began = time.monotonic()
        self.lose(hit)
        if not wait_until(lambda: gone(family), LOST_S):
            raise Wrong("gantryd's death has not ended {} within {} s".format(family, LOST_S))
        self.slowest = max(self.slowest, time.monotonic() - began)
        while self.loads:
            self.look()
            time.sleep(0.005)
        gantry.process.wait()
        gantry.drain.wait()
        memory = [name for name in os.listdir("/dev/shm") if "gantry" in name.lower()]
        if memory:
            raise Wrong("shared memory outlives gantryd: {}".format(memory))
        self.start(place=gantry)

    def one(self):
        kind = self.rng.choices(("program", "worker", "template", "gantryd"), (50, 38, 7, 5))[0]
        wait = self.rng.random() ** 3 * 0.4
        until = time.monotonic() + wait
        while True:
            self.look()
            self.fill()
            left = until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, 0.02))
        done = getattr(self, "kill_" + kind)()
        if done is False:
            return False
        self.kills[kind] += 1
        return True

    def run(self, kills):
        self.start()
        try:
            while sum(self.kills.values()) < kills:
                if self.one() and sum(self.kills.values()) % SETTLE_EVERY == 0:
                    self.settle()
            self.settle()
            self.gantry.__exit__(None, None, None)
        except BaseException as e:
            for load in self.loads:
                load.close()
            self.gantry.__exit__(type(e), e, None)
            raise


def children(pid):
    try:
        with open("/proc/{0}/task/{0}/children".format(pid), encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--no-memory", action="store_true", help="a sanitizer keeps what is freed: don't ask how much gantryd holds")
    parser.add_argument("--kills", type=int, default=int(os.environ.get("KILLS", "500")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gn-faults-") as work:
        campaign = Campaign(options, work)
        try:
            campaign.run(options.kills)
        except (Wrong, LeftBehind) as e:
            print("seed {}, after {} kills {}: {}".format(options.seed, sum(campaign.kills.values()), campaign.kills, e))
            return 1
    print("seed {}: {} kills ({}), {} programs, the slowest ended {:.2f} s after its loss".format(
        options.seed, sum(campaign.kills.values()), ", ".join("{} {}".format(n, k) for k, n in campaign.kills.items()), campaign.ran,
        campaign.slowest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
