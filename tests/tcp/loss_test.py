#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections that break: what comes back in time goes on as if nothing had been, what does not is told and let go of; and the command line."""

import os
import signal
import subprocess

from tcp_harness import STAGE, TcpCase, daemon, main

LOST = -5
TOKEN = "a-token-that-is-long-enough-for-it"


class Loss(TcpCase):
    def test_what_comes_back_goes_on(self):
        with self.gantry() as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay)
            self.assertEqual(p.ready, "ready 0")
            before = gantry.vgpus()
            self.assertEqual([v["link"] for v in before], ["tcp"])
            self.assertEqual(self.cut_while(p, relay, "rounds 1500", 3), 0)
            self.assertEqual(self.cut_while(p, relay, "bulk 12", 2), 0)
            self.assertEqual([v["id"] for v in gantry.vgpus()], [v["id"] for v in before])
            self.assertEqual(p.end(), 0)

    def test_a_user_event_wakes_who_waits_for_it_alone(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("user 20"), 0)
            p.end()

    def test_lists_that_are_longer_than_a_record(self):
        with self.gantry() as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay)
            for n in (5000, 70000, 150000):
                self.assertEqual(p.do("list {}".format(n)), 0)
            self.assertEqual(self.cut_while(p, relay, "list 150000", 1), 0)
            self.assertEqual(p.do("rounds 3"), 0)
            p.end()

    def test_what_comes_while_the_worker_looks_again_makes_room(self):
        """All that it takes it finds at its second look, while it still spins: the program may wait for the room."""
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        with self.gantry(env={"LD_PRELOAD": os.environ["SHY"], "ASAN_OPTIONS": asan}) as gantry:
            p = self.program(gantry)
            for _ in range(3):
                self.assertEqual(p.do("list 70000"), 0)
            self.assertEqual(p.end(), 0)

    def test_an_idle_program_comes_back(self):
        with self.gantry() as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay)
            for _ in range(3):
                relay.cut()
                self.assertEqual(p.do("query"), 0)
            p.end()

    def test_the_lost_one_is_told_and_freed(self):
        with self.gantry(grace=1) as gantry:
            relay = self.relay(gantry)
            p = self.program(gantry, relay)
            self.assertEqual(p.do("rounds 3"), 0)
            relay.end()
            self.assertEqual(p.do("query"), LOST)
            self.assertEqual(p.do("rounds 1"), LOST)
            self.until(lambda: not gantry.vgpus(), "the vGPU outlives the grace")
            self.assertIn("has not come back", gantry.log())
            p.end()

    def test_a_killed_program_is_waited_for_no_longer_than_the_grace(self):
        with self.gantry(grace=1) as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("query"), 0)
            p.kill()
            self.until(lambda: not gantry.vgpus(), "the vGPU outlives the grace")

    def test_a_program_that_ends_is_not_waited_for(self):
        with self.gantry(grace=3600) as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("rounds 2"), 0)
            self.assertEqual(p.end(), 0)
            self.until(lambda: not gantry.vgpus(), "a program that has ended is waited for")

    def test_a_dead_worker_is_known_at_once(self):
        with self.gantry(grace=3600) as gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("query"), 0)
            os.kill(gantry.vgpus()[0]["worker_pid"], signal.SIGKILL)
            # Listed as lost until the program notices.
            self.until(lambda: all(v["state"] == "lost" for v in gantry.vgpus()), "the worker's death goes unseen")
            self.assertEqual(p.do("query"), LOST)
            p.end()

    def test_what_kernels_print_comes_in_order(self):
        with self.gantry() as gantry:
            p = self.program(gantry)
            for n in range(20):
                p.say("print {}".format(n))
                self.assertEqual(p.line(), "kernel {}".format(n))
                self.assertEqual(p.heard(), 0)
            p.end()

    def test_gantryds_end_is_an_error(self):
        gantry = self.gantry(grace=1)
        with gantry:
            p = self.program(gantry)
            self.assertEqual(p.do("query"), 0)
            gantry.process.send_signal(signal.SIGTERM)
            gantry.process.wait(20)
            self.assertEqual(p.do("query"), LOST)
            p.end()
            gantry.drain.wait()
            # So that leaving the block finds what it expects.
            gantry.__enter__()


class ThroughTls(TcpCase):
    ARGS = []

    def test_what_comes_along_with_an_answer_is_heard(self):
        token, config = (os.path.join(self.work.name, name) for name in ("token", "conf"))
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[tenant default]\ntoken-file = {}\n".format(token))
        with self.gantry("--config", config) as gantry:
            p = self.program(gantry, GANTRY_TOKEN=TOKEN)
            self.assertEqual(p.do("callbacks 100"), 0)
            self.assertEqual(p.do("list 70000"), 0)
            self.assertEqual(p.end(), 0)


class Commands(TcpCase):
    """The command line speaks tcp as programs do."""

    def test_run_and_look(self):
        with self.gantry() as gantry:
            command = [os.path.join(STAGE, "bin/gantry")]
            there = ["--connect", gantry.tcp_address]
            run = subprocess.run(command + ["run"] + there + ["--", os.environ["WANDERER"]], input="rounds 1\n", text=True,
                                 stdout=subprocess.PIPE, timeout=60)
            self.assertIn("ready 0", run.stdout)
            doctor = subprocess.run(command + ["doctor"] + there, env=daemon.clean_env(), text=True, stdout=subprocess.PIPE, timeout=60)
            self.assertRegex(doctor.stdout, "ok +daemon")
            self.assertRegex(doctor.stdout, "ok +gantry run")


if __name__ == "__main__":
    main()
