#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory together exceeds the device's, on the emulated discrete GPU: all results
are right, the driver refuses nothing, and refusals, kills and policies have their effect.

    oversubscribe_test.py STAGE HOLDS ICD [--long] [TEST]...

HOLDS: the program of holds.c; ICD: libdiscrete-icd.so; TEST: as unittest names it. --long: 20
migrations and checkpoints instead of 3, and longer runs.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from memory_harness import (  # noqa: E402
    DEADLINE_S, DEVICE, MIB, OF_200, OF_256, OF_300, SHORT_PERIODS, SLOT, MemoryCase, gantry, seen,
    telling)
from moves_harness import command   # noqa: E402

MemoryCase.stage, MemoryCase.path, MemoryCase.icd = (os.path.abspath(p) for p in sys.argv[1:4])
LONG = "--long" in sys.argv[4:]
TIMES = 20 if LONG else 3
PERIODS = 10 if LONG else 1
PLACES = ("turn", "first-fit", "size", "utilization")


class Together(MemoryCase):
    """More memory than the device has."""

    def check_all_are_right(self, daemon, programs):
        self.until_each_was_in(daemon, programs, PERIODS)
        for program in programs:
            memory = self.memory(daemon, program)
            self.assertGreater(memory["swap_in_bytes"], 0, memory)
            self.assertGreater(memory["swap_out_bytes"], 0, memory)
        self.assertGreater(self.device(daemon)["swaps"], 0)
        for program in programs:
            program.tell()
        for program in programs:
            program.right()
        self.until_all_is_free(daemon)
        self.check_device()

    def test_three_of_300_mib(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        self.assertEqual((self.device(daemon)["slots"], self.device(daemon)["slot_bytes"]),
                         (DEVICE // SLOT, SLOT))
        self.check_all_are_right(daemon, self.holders(daemon, 3, "--told", *OF_300))

    def test_six_of_256_mib(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        self.check_all_are_right(daemon, self.holders(daemon, 6, "--told", *OF_256))

    def check_driver(self, options):
        daemon = self.start(*SHORT_PERIODS, "2G", options=self.capacity + "," + options)
        self.check_all_are_right(daemon, self.holders(daemon, 3, "--told", *OF_300))

    def test_a_driver_that_frees_late(self):
        self.check_driver("late=20ms")

    def test_a_driver_that_starts_commands_late(self):
        self.check_driver("async")

    def test_a_driver_that_allocates_at_the_first_use(self):
        self.check_driver("lazy")

    def test_a_driver_whose_kernels_keep_their_arguments(self):
        self.check_driver("retain")

    def check_closed(self, options):
        # One program fills the device but for less than a mebibyte, by which its memory, closed to
        # the host, is copied.
        daemon = self.start(*SHORT_PERIODS, "2G", options=self.capacity + options)
        programs = self.holders(daemon, 2, "--told", "--closed", "--often", "3", "256", "254")
        self.until_each_was_in(daemon, programs)
        for program in programs:
            self.assertEqual(self.memory(daemon, program)["pinned_bytes"], 0)
        for program in programs:
            program.tell_right()
        self.until_all_is_free(daemon)
        self.assertLessEqual(self.emulated.counts()["peak_bytes"], DEVICE)

    def test_memory_closed_to_the_host_fills_the_device(self):
        self.check_closed("")

    def test_memory_closed_to_the_host_with_a_lazy_driver(self):
        self.check_closed(",lazy,late=20ms")

    def test_memory_in_a_program_stays(self):
        daemon = self.start(*SHORT_PERIODS, "2G", passthrough=True)
        inside, = self.holders(daemon, 1, "--told", "100", "50")
        others = [self.holder(daemon, "--told", *OF_200, GANTRY_MODE="remote") for _ in range(2)]
        for other in others:
            other.holds()
        self.until_each_was_in(daemon, others, PERIODS)
        memory = self.memory(daemon, inside)
        self.assertGreaterEqual(memory["pinned_bytes"], 150 * MIB, memory)
        self.assertEqual((memory["resident_bytes"], memory["residencies"]),
                         (memory["memory_bytes"], 0), memory)
        for program in (inside, *others):
            program.tell_right()
        self.check_device()

    def test_one_that_reads_one_that_is_chatty_and_one_that_pauses(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        programs = [self.holder(daemon, "--told", *words) for words in (
            ("--const", *OF_256), ("--chatty", "20", *OF_200), ("--idle", "50", "--one", *OF_200))]
        for program in programs:
            program.holds()
        self.until_each_was_in(daemon, programs[:2], PERIODS)
        for program in programs:
            program.tell_right()
        self.check_device()

    def test_the_default_share_of_copies(self):
        # No program is told to end by a period: each has its own rounds, and waits where it must.
        daemon = self.start("--swap-memory", "2G")
        programs = self.holders(daemon, 3, "--pause", "--rounds", "40" if LONG else "10", *OF_300)
        for program in programs:
            program.tell()
        for program in programs:
            self.assertEqual(program.right()[0], 40 if LONG else 10)
        self.check_device()

    def test_an_idle_program_loses_its_memory_and_gets_it_back(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        idle, = self.holders(daemon, 1, "--pause", *OF_300)
        others = self.holders(daemon, 2, "--told", *OF_256)
        self.until(daemon, "the idle program's memory is on the host",
                   lambda: self.memory(daemon, idle)["resident_bytes"] == 0)
        self.assertGreater(self.memory(daemon, idle)["swap_out_bytes"], 0)
        idle.tell_right()
        for other in others:
            other.tell_right()
        self.check_device()

    def test_programs_that_fit_together_are_never_swapped(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        programs = self.holders(daemon, 3, "--pause", "--rounds", "30", "96", "31")
        for program in programs:
            program.tell()
        for program in programs:
            program.right()
        self.assertEqual(self.device(daemon)["swaps"], 0)
        self.check_device()

    def test_a_program_that_leaves_makes_room(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        for _ in range(3):
            first, second = self.holders(daemon, 2, "--told", *OF_300)
            first.tell_right()
            second.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()


class Copies(MemoryCase):
    """What has not changed since it came in is not copied out again: bytes, counted."""

    WHOLE = 300 * MIB

    def copied_out(self, *words, swap="2G", periods=3):
        """The bytes that a program of these words has copied out, and its residency periods,
        beside one that changes all of its memory."""
        daemon = self.start(*SHORT_PERIODS, swap)
        programs = [self.holder(daemon, "--told", "--often", "0", *more, *OF_300)
                    for more in (words, ())]
        for program in programs:
            program.holds()
        self.until_each_was_in(daemon, programs, periods)
        memory = [self.memory(daemon, program) for program in programs]
        for program in programs:
            program.tell_right()
        self.check_device()
        # The other one copies its memory each time.
        self.assertGreater(memory[1]["swap_out_bytes"], self.WHOLE, memory)
        self.assertGreater(memory[0]["swap_in_bytes"], self.WHOLE, memory)
        return memory[0]["swap_out_bytes"], memory[0]["residencies"]

    def test_a_program_that_reads_copies_once(self):
        out, periods = self.copied_out("--read")
        self.assertLessEqual(out, self.WHOLE, periods)

    def test_const_arguments_are_not_copied(self):
        out, periods = self.copied_out("--const")
        # Its kernels write a mebibyte of results; at most two evictions a period.
        self.assertLessEqual(out, self.WHOLE + 2 * (periods + 1) * MIB, periods)

    def test_one_changed_page(self):
        out, periods = self.copied_out("--page")
        # The digests are a 128th; the buffer of a mebibyte may make room for them.
        digests = self.WHOLE // 128
        self.assertLessEqual(out, self.WHOLE + 2 * (periods + 1) * (digests + MIB + MIB // 16),
                             periods)

    def test_without_swap_memory_for_copies(self):
        # 600 MiB on 512, and 96 for what is evicted: no room for copies.
        out, periods = self.copied_out("--read", swap="96M")
        self.assertGreater(out, self.WHOLE, periods)


    def test_copies_make_way_for_evicted_contents(self):
        # Two programs have copies of all; with the third one's memory these are too much.
        daemon = self.start(*SHORT_PERIODS, "700M", env={"GANTRY_LOG": "debug"})
        programs = self.holders(daemon, 2, "--told", "--often", "0", "--read", *OF_300)
        self.until_each_was_in(daemon, programs)
        self.assertIn("on its device, with copies", daemon.log())
        self.assertNotIn("told to discard", daemon.log())
        programs += self.holders(daemon, 1, "--told", *OF_300)
        self.until_each_was_in(daemon, programs)
        self.assertIn("told to discard", daemon.log())
        for program in programs:
            program.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()


class Refusals(MemoryCase):
    """Allocations beyond a bound fail at once, and nothing else does."""

    def test_beyond_the_swap_memory(self):
        # 912 MiB in all; the third program would make it 951.
        daemon = self.start(*SHORT_PERIODS, "400M")
        others = self.holders(daemon, 2, "--told", *OF_300)
        program = self.holder(daemon, "--told", "--give-up", "100", "250")
        self.assertEqual(program.refused(), 1)
        self.assertEqual(program.holds(), 100)
        self.until_each_was_in(daemon, [*others, program], 1)
        for each in (program, *others):
            each.tell_right()
        # Their memory is free again.
        self.holders(daemon, 1, "--rounds", "1", "100", "250")[0].right()
        self.check_device()

    def test_one_program_beyond_the_device(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        other, = self.holders(daemon, 1, "--told", *OF_300)
        program = self.holder(daemon, "--rounds", "1", "--give-up", "300", "300")
        self.assertEqual(program.refused(), 1)
        self.assertEqual(program.holds(), 300)
        program.right()
        other.tell_right()
        self.check_device()

    def test_beyond_a_tenants_limit(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        status, said = gantry(daemon, "tenant", "add", "small", "--uid", str(os.getuid()),
                              "--memory", "128M")
        self.assertEqual(status, 0, said)
        others = self.holders(daemon, 2, "--told", *OF_300)
        program = self.holder(daemon, "--told", "--give-up", "96", "40", GANTRY_TENANT="small")
        self.assertEqual(program.refused(), 1)
        self.assertEqual(program.holds(), 96)
        self.until_each_was_in(daemon, [*others, program], 1)
        for each in (program, *others):
            each.tell_right()
        self.check_device()


    def test_pins_beyond_a_tenants_part(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        status, said = gantry(daemon, "tenant", "add", "small", "--uid", str(os.getuid()))
        self.assertEqual(status, 0, said)
        other, = self.holders(daemon, 1, "--told", *OF_300)
        # Of 512 MiB a half is for each tenant: 192 of its 299 MiB.
        program, = self.holders(daemon, 1, "--told", "--pin", *OF_300, GANTRY_TENANT="small")
        self.assertEqual(program.hear("pinned"), ["1"])
        self.until_each_was_in(daemon, [other, program], 1)
        self.assertLess(self.memory(daemon, program)["pinned_bytes"], DEVICE // 2)
        for each in (program, other):
            each.tell_right()
        self.check_device()


class Kills(MemoryCase):
    def test_a_killed_program_frees_its_slots(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        program, = self.holders(daemon, 1, "--pause", *OF_300)
        device = self.device(daemon)
        self.assertLessEqual(device["free_slots"], device["slots"] - 300 * MIB // SLOT)
        program.kill()
        self.until_all_is_free(daemon)
        self.check_device()

    def check_others(self, daemon, others):
        self.until_each_was_in(daemon, others, 1)
        for other in others:
            other.tell_right()
        self.until_all_is_free(daemon)
        # All of the device can be had.
        self.holders(daemon, 1, "--rounds", "1", "300", "200")[0].right()
        self.check_device()

    def test_a_killed_program_among_others(self):
        for words in (("--told",), ("--pause",)):
            with self.subTest(words=words):
                daemon = self.start(*SHORT_PERIODS, "2G")
                killed, *others = [self.holder(daemon, *more, *OF_300)
                                   for more in (words, ("--told",), ("--told",))]
                for program in (killed, *others):
                    program.holds()
                killed.kill()
                self.until(daemon, "its vGPU ends", lambda: len(daemon.vgpus()) == 2)
                self.check_others(daemon, others)
            self.doCleanups()
            self.setUp()

    def test_a_killed_worker(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        killed, *others = self.holders(daemon, 3, "--told", *OF_300)
        os.kill(self.vgpu(daemon, killed)["worker_pid"], signal.SIGKILL)
        killed.hear("wrong:")
        killed.last_words()
        self.assertEqual(killed.process.wait(), 1)
        self.check_others(daemon, others)


class Strangers(MemoryCase):
    """A program without Gantry has memory of the device, too, so the driver refuses."""

    def evicted(self, daemon):
        """A program of 300 MiB without work, which is evicted."""
        program, = self.holders(daemon, 1, "--pause", "--rounds", "1", *OF_300)
        others = self.holders(daemon, 2, "--told", *OF_300)
        self.until(daemon, "its memory is on the host",
                   lambda: self.memory(daemon, program)["resident_bytes"] == 0)
        for other in others:
            other.tell_right()
        return program

    def until_refused(self, daemon):
        self.until(daemon, "the driver refuses", lambda: self.emulated.counts()["refusals"])

    def check_peak(self):
        self.assertLessEqual(self.emulated.counts()["peak_bytes"], DEVICE)

    def test_one_that_leaves(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        program = self.evicted(daemon)
        stranger = self.stranger("--pause", "--rounds", "1", "300")
        program.tell()
        self.until_refused(daemon)
        stranger.tell_right()
        program.right()
        self.check_peak()

    def test_one_that_stays(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        program = self.evicted(daemon)
        stranger = self.stranger("--pause", "--rounds", "1", "300")
        program.tell()
        self.assertIn("-4", program.hear("wrong:"))     # CL_MEM_OBJECT_ALLOCATION_FAILURE
        # Others have the rest of the device.
        self.holders(daemon, 1, "--rounds", "1", "150")[0].right()
        stranger.tell_right()
        self.check_peak()

    def test_other_programs_make_room(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        program = self.evicted(daemon)
        idle, = self.holders(daemon, 1, "--pause", "--rounds", "1", "100")
        stranger = self.stranger("--pause", "--rounds", "1", "150")
        program.tell_right()
        self.assertGreater(self.emulated.counts()["refusals"], 0)
        idle.tell_right()
        stranger.tell_right()
        self.check_peak()


class Policies(MemoryCase):
    def test_each_from_the_start(self):
        for place in PLACES:
            with self.subTest(place=place):
                daemon = self.start(*SHORT_PERIODS, "2G", "--place", place)
                self.assertEqual(self.device(daemon)["place"], place)
                programs = self.holders(daemon, 3, "--told", *OF_200)
                self.until_each_was_in(daemon, programs, 1)
                for program in programs:
                    program.tell_right()
                self.check_device()
            self.doCleanups()
            self.setUp()

    def test_a_live_change(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        self.assertEqual(self.device(daemon)["place"], PLACES[0])
        programs = self.holders(daemon, 3, "--told", *OF_200)
        for place in (*PLACES[1:], PLACES[0]):
            status, said = gantry(daemon, "place", place)
            self.assertEqual(status, 0, said)
            self.assertEqual(self.device(daemon)["place"], place)
            self.until_each_was_in(daemon, programs, 1)
        status, said = gantry(daemon, "place", "none-of-them")
        self.assertNotEqual(status, 0, said)
        for program in programs:
            program.tell_right()
        self.check_device()


class Moves(MemoryCase):
    """A vGPU changes its worker while others want its memory."""

    def check(self, move):
        daemon = self.start(*SHORT_PERIODS, "2G")
        programs = self.holders(daemon, 3, "--told", *OF_200)
        for n in range(TIMES):
            # Another one each time; some are evicted then, some are not.
            move(daemon, programs[n % len(programs)])
        self.until_each_was_in(daemon, programs, 1)
        for program in programs:
            program.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()

    def done(self, daemon, *words):
        status, said = gantry(daemon, *words)
        self.assertEqual(status, 0, "{}: {}\n{}".format(words, said, seen(daemon)))
        return said

    def test_migrations(self):
        def migrate(daemon, program):
            before = self.vgpu(daemon, program)
            self.done(daemon, "migrate", before["id"], "local")
            self.assertNotEqual(self.vgpu(daemon, program)["worker_pid"], before["worker_pid"])
        self.check(migrate)

    def test_a_migration_that_needs_nearly_all_of_the_device(self):
        # Two copies of 232 MiB fit; with what a worker leases beyond its need they would not.
        daemon = self.start(*SHORT_PERIODS, "2G")
        program, = self.holders(daemon, 1, "--told", "128", "103")
        self.done(daemon, "migrate", self.vgpu(daemon, program)["id"], "local")
        program.tell_right()
        self.check_device()

    def test_migrations_at_once_do_not_wait_for_each_other(self):
        # Two copies of 200 MiB fit, four do not: the second migration is refused before it starts.
        daemon = self.start(*SHORT_PERIODS, "2G")
        programs = self.holders(daemon, 3, "--told", *OF_200)
        moves = [subprocess.Popen(command(daemon, "migrate", self.vgpu(daemon, program)["id"],
                                          "local"), stderr=subprocess.PIPE, text=True)
                 for program in programs]
        said = [move.communicate()[1] for move in moves]
        self.assertIn(0, [move.returncode for move in moves], said)
        for move, words in zip(moves, said):
            if move.returncode:
                self.assertIn("for a second copy of its contents", words)
        for program in programs:
            program.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()

    def test_restores_at_once_do_not_wait_for_each_other(self):
        daemon = self.start(*SHORT_PERIODS, "2G")
        programs = self.holders(daemon, 3, "--told", *OF_300)
        files = [os.path.join(self.work, "{}.ckpt".format(n)) for n in range(3)]
        for program, path in zip(programs, files):
            self.done(daemon, "checkpoint", self.vgpu(daemon, program)["id"], path, "--stop")
        restores = [subprocess.Popen(command(daemon, "restore", path), stderr=subprocess.PIPE,
                                     text=True) for path in files]
        said = [restore.communicate(timeout=DEADLINE_S)[1] for restore in restores]
        self.assertIn(0, [restore.returncode for restore in restores], said)
        for restore, path, words in zip(restores, files, said):
            if restore.returncode:
                self.assertRegex(words, "no room on the device for [0-9]+ MiB|others need less")
                self.done(daemon, "restore", path)
        for program in programs:
            program.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()

    def test_checkpoints_at_once_do_not_wait_for_each_other(self):
        # When the third one has come in, nothing of the first is on the device, and the second
        # lacks a part. The first finds room only when the second one's save is over.
        daemon = self.start("--swap-share", "80%", "--residency-max", "20s", "--swap-memory", "2G")
        first, = self.holders(daemon, 1, "--pause", "192", "127")
        second, = self.holders(daemon, 1, "--pause", "192", "127")
        third, = self.holders(daemon, 1, "--pause", "192", "95")
        mib = [self.memory(daemon, program)["resident_bytes"] // MIB
               for program in (first, second, third)]
        self.assertEqual(mib, [0, 512 - 288, 288])
        saves = [subprocess.Popen(
            command(daemon, "checkpoint", self.vgpu(daemon, program)["id"],
                    os.path.join(self.work, "{}.ckpt".format(n))), stderr=subprocess.PIPE,
            text=True) for n, program in enumerate((first, second))]
        for save in saves:
            said = save.communicate(timeout=DEADLINE_S)[1]
            self.assertEqual(save.returncode, 0, said)
        for program in (first, second, third):
            program.tell_right()
        self.until_all_is_free(daemon)
        self.check_device()

    def test_checkpoints(self):
        files = os.path.join(self.work, "files")
        os.mkdir(files)
        path = os.path.join(files, "a.ckpt")

        def stop_and_restore(daemon, program):
            vgpu = self.vgpu(daemon, program)
            self.done(daemon, "checkpoint", vgpu["id"], path, "--stop")
            self.assertEqual(self.vgpu(daemon, program)["state"], "stopped")
            self.done(daemon, "restore", path)
            os.unlink(path)
        self.check(stop_and_restore)


if __name__ == "__main__":
    telling.main(MemoryCase.stage, [word for word in sys.argv[4:] if word != "--long"])
