# SPDX-License-Identifier: Apache-2.0
"""For the tests beside the fault matrix: gantry, a worker or a program that is held at a fault
point, and a network that is cut meanwhile. A HeldCase goes before a RouteCase in a class's bases.
"""

import json
import os
import signal
import subprocess

from moves_harness import TIMEOUT_S, command, held, holds, wait_until

RESUMED = ("running", "idle")


class HeldCase:
    def start_held(self, name="moved", *args, daemon=None, program=None):
        """Gantryds with the environment `daemon` for the source, and a program with the environment
        `program`."""
        self.start_gantryds(*args, **(daemon or {}))
        return self.start_next(name, **(program or {}))

    def start_next(self, name="moved", **env):
        """Another program, at the same gantryds."""
        self.program = self.start_program(name, **env)
        self.is_at_source()
        return self.program

    def network_to(self, daemon):
        """A relay in front of the gantryd, and its address."""
        return self.relay(daemon.tcp_address.rsplit(":", 1)[1])

    # gantry

    def asked(self, *words, hold=None):
        """gantry with a request to the source's gantryd, which is not answered yet."""
        env = dict(os.environ, **({"GANTRY_HOLD": hold} if hold else {}))
        process = subprocess.Popen(command(self.source, words[0], "--json", *words[1:]), env=env,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        if hold:
            self.is_held(process.pid)
        return process

    def answer(self, process):
        """gantry's status and answer."""
        out, _ = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, json.loads(out) if out else None

    def why(self, process):
        """The reason of a request that fails."""
        status, said = self.answer(process)
        self.assertEqual(status, 1, said)
        return said["error"]["why"]

    def succeeds(self, process):
        status, said = self.answer(process)
        self.assertEqual(status, 0, said)

    # The held process

    def is_held(self, pid):
        self.assertTrue(wait_until(lambda: holds(pid), TIMEOUT_S))

    def held_worker(self, process=None):
        """The source's or destination's worker at the point. `process`: gantry; its request
        must not be over before."""
        def over():
            return process is not None and process.poll() is not None
        self.assertTrue(wait_until(lambda: held(self.source) or over(), TIMEOUT_S))
        worker = held(self.source)
        self.assertIsNotNone(worker, "the request is over, and no worker came to the point")
        return worker

    def resume(self, pid):
        os.kill(pid, signal.SIGCONT)

    # The state

    def stays_here(self):
        """The source has resumed, at the same worker."""
        self.reaches(*RESUMED)
        self.has_same_worker()

    def ends_well(self):
        """The program; and its gantryd hears of it while the network is there."""
        self.program.ends_well()
        self.is_empty(self.source)
        self.is_empty(self.destination)

    # Broken connections

    def breaks_meanwhile(self, relay, back, worker):
        """The program's connections break before the held worker resumes. `back`: the program
        reconnects before that."""
        self.cut(self.source, self.before, relay)
        if back:
            relay.send_signal(signal.SIGUSR2)
            self.assertTrue(
                wait_until(lambda: not self.is_broken(self.source, self.before), TIMEOUT_S))
        self.resume(worker)

    def reconnects_and_ends(self, relay, back):
        if not back:
            relay.send_signal(signal.SIGUSR2)
        self.ends_well()
