# SPDX-License-Identifier: Apache-2.0
"""Tests of memory for more vGPUs than fit: gantryd on an emulated discrete GPU of 512 MiB, and
programs that hold memory with a model of each byte (holds.c)."""

import json
import os
import select
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("edges", "moves", "discrete"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
from device_state import Device     # noqa: E402
from gantry import Program, Wrong   # noqa: E402
from moves_harness import MovesCase, gantry, telling    # noqa: E402,F401

MIB = 1 << 20
DEVICE = 512 * MIB
SLOT = 16 * MIB
# Ends a wait that would never end; no verdict depends on it.
DEADLINE_S = float(os.environ.get("MEMORY_DEADLINE_S", "120"))
POLL_S = 0.05
# Two of these exceed the device, with the mebibyte that each program has for results.
OF_300 = ("192", "107")
OF_256 = ("128", "127")
OF_200 = ("128", "71")
# Two of these exceed a small device.
OF_75 = ("48", "27")
# Periods of about a second in place of ten; an amount of swap memory is to follow.
SHORT_PERIODS = ("--swap-share", "80%", "--residency-max", "1s", "--idle-after", "1s",
                 "--swap-memory")


def seen(daemon):
    """What gantryd says of its vGPUs and its device, for a failure."""
    return "vGPUs: {}\ndevice: {}".format(
        json.dumps(daemon.vgpus(), indent=1),
        json.dumps(daemon.ctl("devices")["devices"][0], indent=1))


class Holder(Program):
    """holds, with these words. daemon: None of a program without Gantry."""

    def __init__(self, path, daemon, *words, **env):
        super().__init__([path, *words], dict(daemon.program_env() if daemon else {}, **env))
        self.daemon = daemon

    def hear(self, word):
        said = [self.process.stdout, self.process.stderr]
        if b"\n" not in self.unread and not select.select(said, [], [], DEADLINE_S)[0]:
            raise Wrong("{} has not said '{}' in {} s\n{}".format(self.name, word, DEADLINE_S,
                                                                  self.daemon and
                                                                  seen(self.daemon)))
        return super().hear(word)

    def all_words(self):
        """The rest of both its outputs. It has ended."""
        errors = self.last_words()
        return self.unread.decode(errors="replace") + errors

    def holds(self):
        """Waits until its memory is filled; in MiB, without the one for results."""
        return int(self.hear("holds")[0])

    def right(self):
        """Waits for a good end. The number of its rounds, and the longest in ms."""
        rounds, longest_ms = self.hear("right")
        self.end()
        return int(rounds), int(longest_ms)

    def tell_right(self):
        self.tell()
        return self.right()

    def refused(self):
        """Its next word must be a refusal of a buffer, which it names."""
        return int(self.hear("refused")[0])


class MemoryCase(MovesCase):
    """Each test has a device of its own. `path` is the program holds, `icd` the device's driver;
    set by the test's file."""

    path = icd = None
    device_bytes = DEVICE
    capacity = "capacity=512M"
    config = "[device pthread]\nmemory = 512M\nslot = 16M\n"
    oversubscribe = ("--oversubscribe",)

    def start(self, *args, options=None, env=None, **more):
        """Starts a gantryd on a new device. env: of it and of its workers."""
        os.chmod(self.work, 0o755)
        self.emulated = Device(self.icd, self.work, options or self.capacity)
        path = os.path.join(self.work, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write(self.config)
        return self.daemon("a", env=dict(self.emulated.env(), **(env or {})),
                           args=["--config", path, *self.oversubscribe, *args], **more)

    def holder(self, daemon, *words, **env):
        program = Holder(self.path, daemon, *words, **env)
        self.addCleanup(program.__exit__)
        return program

    def stranger(self, *words):
        """A program that uses the device without Gantry; filled."""
        program = self.holder(None, *words, **dict(os.environ, **self.emulated.env()))
        program.holds()
        return program

    def holders(self, daemon, n, *words, **env):
        """n programs at once, all filled."""
        programs = [self.holder(daemon, *words, **env) for _ in range(n)]
        for program in programs:
            program.holds()
        return programs

    def device(self, daemon):
        return daemon.ctl("devices")["devices"][0]

    def vgpu(self, daemon, program):
        """Its entry in `gantry ls`."""
        if program.process.poll() is not None:
            self.fail("{} ended with status {}: {}".format(
                program.name, program.process.returncode, program.all_words()))
        found = [v for v in daemon.vgpus() if v["pid"] == program.pid]
        self.assertEqual(len(found), 1, "process {}: {}".format(program.pid, found))
        return found[0]

    def memory(self, daemon, program):
        """The entry of its vGPU's device in `gantry ls`."""
        return self.vgpu(daemon, program)["devices"][0]

    def until(self, daemon, what, condition):
        """Waits for condition(). Until then the vGPUs' resident memory never exceeds the device."""
        end = time.monotonic() + DEADLINE_S
        while not condition():
            resident = [v["devices"][0].get("resident_bytes", 0) for v in daemon.vgpus()
                        if v.get("devices")]
            self.assertLessEqual(sum(resident), self.device_bytes, resident)
            if time.monotonic() > end:
                self.fail("not in {} s: {}\n{}".format(DEADLINE_S, what, seen(daemon)))
            time.sleep(POLL_S)

    def until_each_was_in(self, daemon, programs, times=2):
        """Until each of them has had so many residency periods more."""
        first = [self.memory(daemon, p)["residencies"] for p in programs]

        def were():
            return all(self.memory(daemon, p)["residencies"] >= n + times
                       for p, n in zip(programs, first))
        self.until(daemon, "{} residencies of each".format(times), were)

    def until_all_is_free(self, daemon):
        self.until(daemon, "all slots free",
                   lambda: self.device(daemon)["free_slots"] == self.device(daemon)["slots"])

    def check_device(self, refusals=0):
        """The driver has been asked for no more than there is."""
        counts = self.emulated.counts()
        self.assertEqual(counts["refusals"], refusals, counts)
        self.assertLessEqual(counts["peak_bytes"], self.device_bytes, counts)


class SmallMemoryCase(MemoryCase):
    """Its device has 128 MiB."""

    device_bytes = 128 * MIB
    capacity = "capacity=128M"
    config = "[device pthread]\nmemory = 128M\nslot = 4M\n"
