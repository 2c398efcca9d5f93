# SPDX-License-Identifier: Apache-2.0
"""Carries out a cell of the fault matrix (matrix.py): starts gantryds and a program, injects the
fault, asks for the migration and checks the outcome. Every outcome of the
table is a method of that name. The tests beside the matrix use the same cases without a fault.
"""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess

from moves_harness import (STEPS, TIMEOUT_S, Daemon, Program, TcpCase, gantry, start_again,
                           wait_until)

RESUMED = ("running", "idle")
KILLED = -signal.SIGKILL


class Moved:
    """The program moved, at its first step."""

    def __init__(self, case, path, daemon, env):
        self.case = case
        self.program = Program(path, daemon, env=env)
        case.addCleanup(self.program.kill)
        self.process = self.program.process
        self.done = 1

    def is_ready(self):
        self.case.assertEqual(self.program.at(), STEPS[0])

    def goes_on(self):
        """To its next step."""
        self.program.on()
        self.case.assertEqual(self.program.at(), STEPS[self.done])
        self.done += 1

    def has_contents(self):
        """With images: their contents travel by every route."""
        self.goes_on()

    def goes_on_or_is_told(self):
        """True if it has come to its next step."""
        self.program.on()
        line = self.program.at()
        if line == STEPS[self.done]:
            self.done += 1
            return True
        out, _ = self.process.communicate("on\n" * len(STEPS), timeout=TIMEOUT_S)
        self.case.assertNotIn("right", line + out)
        self.case.assertIn("wrong", line + out)
        return False

    def ends_well(self):
        for name in STEPS[self.done:]:
            self.program.on()
            self.case.assertEqual(self.program.at(), name)
        self.program.on()
        self.case.assertIsNone(self.program.ends_well())

    def is_told_of_loss(self, said=None):
        """`said` goes with the failure: gantry's answer."""
        out, _ = self.process.communicate("on\n" * len(STEPS), timeout=TIMEOUT_S)
        self.case.assertNotIn("right", out, said)
        self.case.assertIn("wrong", out, said)


class Busy:
    """The program busy, with everything that it can do."""

    def __init__(self, case, path, daemon, env):
        self.case, self.path, self.daemon, self.env = case, path, daemon, env
        self.process = self.started()

    def started(self, *steps):
        process = subprocess.Popen(
            [self.path, "all", *steps], env=dict(self.daemon.program_env(), **self.env),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.case.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(),
                                      process.stdout.close()))
        self.case.assertEqual(process.stdout.readline().strip(), "goes")
        return process

    def is_ready(self):
        pass

    def has_contents(self):
        pass

    def result(self, process):
        out, _ = process.communicate("on\n", timeout=TIMEOUT_S)
        self.case.assertEqual(process.returncode, 0, out)
        return out.split("\n")

    def ends_well(self):
        """With the result of an undisturbed run of as many steps."""
        disturbed = self.result(self.process)
        self.case.assertEqual(self.result(self.started(disturbed[0])), disturbed)

    def is_told_of_loss(self, said=None):
        out, _ = self.process.communicate("on\n", timeout=TIMEOUT_S)
        self.case.assertIn("wrong", out, said)
        self.case.assertEqual(self.process.returncode, 1, said)


PROGRAMS = {"moved": Moved, "busy": Busy}


class RouteCase(TcpCase):
    """A migration by `route`, with the fault of `party` and `point` if there is one. `paths` are
    the programs' by name; `source` and `destination` the gantryds. A subclass has start_gantryds(),
    migrate() and its outcomes; the outcome of a failure has these texts in gantry's answer."""

    route = party = point = None
    paths = {}
    says_of_stay = says_of_loss = ""
    tells_before_recovery = False   # the program is told while no gantryd is there

    def setUp(self):
        super().setUp()
        self.source = self.destination = self.home = None
        self.files = os.path.join(self.work, "files")
        os.mkdir(self.files)
        self.file = os.path.join(self.files, "a.ckpt")

    # The parties

    def not_started(self, name, *args, port=0, env=None, **options):
        listen = ["--listen", "tcp:127.0.0.1:{}".format(port), "--insecure"]
        return Daemon(self.stage, os.path.join(self.work, name),
                      args=[*(listen if self.route.listens else []), *args],
                      env={"GANTRY_LOG": "info", **(env or {})},
                      passthrough=self.route.mode is not None, **options)

    def fault_of(self, *parties):
        """The environment of a process that is one of these parties."""
        if self.party not in parties:
            return {}
        return {"GANTRY_FAULT": self.point + (":2" if self.has_passed_point() else "")}

    def has_passed_point(self):
        """On the way to the source, before the migration that is tested."""
        if self.route.from_shm:
            return self.party == "program" and self.point != "program-stands"
        return self.route.mode == "passthrough" and self.party == "source-gantryd"

    def all_at_once(self, what, daemons):
        with concurrent.futures.ThreadPoolExecutor(len(daemons)) as pool:
            return list(pool.map(what, daemons))

    def start_together(self, *daemons):
        """They end together with the test, and leave nothing behind."""
        def end(daemon):
            if daemon.process:
                daemon.__exit__(None, None, None)
        self.addCleanup(self.all_at_once, end, daemons)
        self.all_at_once(Daemon.__enter__, daemons)

    def address_of(self, there):
        return there.tcp_address if self.route.listens else there.address

    def start(self, name="moved"):
        """The gantryds, and a program with its vGPU at the source."""
        self.start_gantryds()
        self.program = self.start_program(name, **self.fault_of("program"))
        if self.party == "destination" and self.needs_contents():
            self.program.has_contents()
        self.is_at_source()

    def start_program(self, name, **env):
        if not self.route.svm:
            env["MOVED_WITHOUT_SVM"] = "1"
        home = self.home or self.source
        attach_over_tcp = self.route.link == "tcp" and not self.route.from_shm
        env.setdefault("GANTRY_CONNECT", home.tcp_address if attach_over_tcp else home.address)
        program = PROGRAMS[name](self, self.paths[name], home, env)
        if home is not self.source:
            self.assertTrue(wait_until(home.vgpus, TIMEOUT_S))
            status, said = gantry(home, "migrate", self.vgpu(home)["id"], self.source.tcp_address)
            self.assertEqual(status, 0, said)
        if self.route.mode == "passthrough":
            status, said = gantry(home, "mode", self.vgpu(home)["id"], "remote")
            self.assertEqual(status, 0, said)
        program.is_ready()
        return program

    def is_at_source(self):
        self.before = self.vgpu(self.source)
        self.assertEqual(self.before["link"], self.route.link)

    def needs_contents(self):
        return True

    def recover(self):
        """Puts another gantryd in the place of one that was killed."""
        if self.party in ("source-gantryd", "destination-gantryd"):
            killed = self.source if self.party == "source-gantryd" else self.destination
            self.assertEqual(killed.process.wait(timeout=TIMEOUT_S), KILLED)
            del killed.extra_env["GANTRY_FAULT"]
            start_again(killed)

    # The migration

    def ask(self, *way):
        """gantry's status and answer."""
        if self.party == "gantry":
            return self.migrate(*way, env=dict(os.environ, **self.fault_of("gantry")))
        return self.migrate(*way)

    def fails(self, *way, why=""):
        """gantry's answer to a migration that fails, or nothing if gantry itself was killed."""
        status, said = self.ask(*way)
        if self.party == "gantry":
            self.assertEqual((status, said), (KILLED, None))
        else:
            self.assertEqual(status, 1, said)
            self.assertIn(why, json.dumps(said["error"]))
        return said

    # The state afterwards

    def vgpu(self, daemon):
        vgpus = daemon.vgpus()
        self.assertEqual(len(vgpus), 1, vgpus)
        return vgpus[0]

    def reaches(self, *states):
        """The vGPU at the source."""
        self.assertTrue(
            wait_until(lambda: [v["state"] for v in self.source.vgpus()] in [[s] for s in states],
                       TIMEOUT_S), self.source.vgpus())

    def is_empty(self, daemon):
        self.assertTrue(wait_until(lambda: not daemon.vgpus(), TIMEOUT_S))

    def nothing_arrived(self):
        """Neither a vGPU at the destination nor a file."""

    def has_same_worker(self):
        after = self.vgpu(self.source)
        self.assertEqual((after["id"], after["worker_pid"]),
                         (self.before["id"], self.before["worker_pid"]))

    def files_left(self, n_files, said=None):
        """Their paths. gantry's answer, if there is one, names each of them."""
        left = [os.path.join(self.files, name) for name in os.listdir(self.files)]
        self.assertEqual(len(left), n_files, left)
        for path in left if said else ():
            self.assertIn(path, said["error"]["why"])
        return left

    # The outcomes that all kinds of routes have

    def stays(self):
        """The source resumes at the same worker in each way; nothing is left elsewhere."""
        for way in self.route.ways:
            self.fails(*way, why=self.says_of_stay)
            self.reaches(*RESUMED)
            self.nothing_arrived()
        self.has_same_worker()
        self.program.ends_well()

    def lost(self):
        """gantry fails, the program is told of the loss, and no vGPU is left."""
        said = self.fails(why=self.says_of_loss if self.party == "source" else "")
        if self.tells_before_recovery:
            self.program.is_told_of_loss(said)
        self.recover()
        self.nothing_arrived()
        if not self.tells_before_recovery:
            self.program.is_told_of_loss(said)
        self.is_empty(self.source)

    def lost_after_the_move(self):
        """The migration succeeds; then the program is told of the loss, and no vGPU is left."""
        status, said = self.ask()
        # Over tcp the destination may end before the source knows of the success.
        if not (self.route.listens and self.party == "destination-gantryd"):
            self.assertEqual(status, 0, said)
        self.recover()
        self.program.is_told_of_loss(said)
        self.is_empty(self.destination)
        if self.route.listens:
            self.is_empty(self.source)
        else:
            self.assertEqual(self.source.vgpus(), [])

    def ends(self):
        """The program was killed: no vGPU is left at either gantryd."""
        self.migrate()
        self.assertEqual(self.program.process.wait(timeout=TIMEOUT_S), KILLED)
        self.is_empty(self.source)
        self.is_empty(self.destination)


class LocalCase(RouteCase):
    """To another worker of the same gantryd."""

    says_of_stay = "goes on where it was"
    tells_before_recovery = True

    def start_gantryds(self, *args, **env):
        """`env`: of gantryd, and of its workers."""
        self.source = self.destination = self.daemon(
            "a", *args, env=dict(self.fault_of("source", "destination", "source-gantryd"), **env))

    def migrate(self, *way, **options):
        """Asks again as long as the source has not heard that an earlier migration ended."""
        words = (("mode", self.before["id"], self.route.mode) if self.route.mode else
                 ("migrate", self.before["id"], "local"))
        while True:
            status, said = gantry(self.source, *words, *self.route.options, *way, **options)
            if "has not ended an earlier move" not in json.dumps(said):
                return status, said


class BetweenCase(RouteCase):
    """To another gantryd."""

    says_of_stay = "goes on where it was"

    @property
    def says_of_loss(self):
        return "" if self.route.listens else "the vGPU is lost"

    def start_gantryds(self, *args, **env):
        """`args` and `env`: of the source's gantryd, and so of its workers."""
        # A killed program does not reconnect: its vGPU need not wait for the default grace.
        grace = ()
        if self.route.listens and self.party == "program":
            grace = ("--tcp-grace", "1")
        self.source = self.not_started(
            "a", *grace, *args, env=dict(self.fault_of("source", "source-gantryd"), **env))
        self.destination = self.not_started(
            "b", *grace, env=self.fault_of("destination", "destination-gantryd"))
        if self.route.from_shm:
            self.home = self.not_started("home")
        self.start_together(*filter(None, (self.source, self.destination, self.home)))

    def migrate(self, *way, to=None, **options):
        return gantry(self.source, "migrate", self.before["id"],
                      to or self.address_of(self.destination), *self.route.options, *way, **options)

    def nothing_arrived(self):
        self.is_empty(self.destination)
        if not self.route.listens:
            self.assertNotIn("broke the protocol", self.destination.log())

    def stays_and_moves_later(self):
        """The source resumes at the same worker, and the next migration succeeds."""
        self.fails()
        self.recover()
        self.reaches(*RESUMED)
        self.has_same_worker()
        if self.party == "gantry":
            self.assertEqual(self.migrate()[0], 0)
        else:
            self.assertTrue(wait_until(lambda: self.migrate()[0] == 0, TIMEOUT_S))
        self.program.ends_well()

    def moves(self):
        """The destination has the vGPU, although gantry fails."""
        self.fails()
        self.recover()
        self.assertTrue(wait_until(lambda: len(self.destination.vgpus()) == 1, TIMEOUT_S))
        self.program.ends_well()

    def moves_or_lost(self):
        """gantry fails; the destination has the vGPU, or the program is told of the loss."""
        self.fails()
        self.recover()
        if self.program.goes_on_or_is_told():
            self.assertEqual(self.vgpu(self.destination)["id"], self.before["id"])
            self.program.ends_well()
        self.is_empty(self.destination)
        self.is_empty(self.source)

class FileCase(RouteCase):
    """Into a file and, with `stop`, out of it by another gantryd at the same address. The faults of
    the destination are those of the restore: the file is complete then."""

    def start_gantryds(self, *args, **env):
        """`env`: of gantryd, and of its workers."""
        port = 0
        if self.route.listens:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
        self.source = self.destination = self.daemon(
            "a", *args, port=port, env=dict(self.fault_of("source", "source-gantryd"), **env))

    def needs_contents(self):
        """A buffer's contents lie with the program, an image's do not."""
        return self.point == "load-contents"

    def migrate(self, *way, **options):
        """Up to the step that meets the fault."""
        restores = self.party in ("destination", "destination-gantryd")
        stop = ("--stop",) if self.route.stop else ()
        status, said = gantry(self.source, "checkpoint", self.before["id"], self.file, *stop, *way,
                              **options)
        if restores:
            self.assertEqual(status, 0, said)
            self.source.extra_env["GANTRY_FAULT"] = self.point
            start_again(self.source)
            self.reaches("stopped")
            status, said = self.restore(self.file)
        return status, said

    def restore(self, path):
        return gantry(self.source, "restore", path)

    def recover(self):
        super().recover()
        if self.party == "destination":
            self.reaches("stopped")
            del self.source.extra_env["GANTRY_FAULT"]
            start_again(self.source)  # its workers are without the fault

    def nothing_arrived(self):
        """No file; or one that is already used up."""
        if self.party == "destination-gantryd":
            self.assertEqual(self.restore(self.file)[0], 1)
        else:
            self.files_left(0)

    def stays_with_file(self):
        """The source resumes at the same worker; a file is left that cannot be restored."""
        self.fails()
        path, = self.files_left(1)
        self.reaches(*RESUMED)
        self.has_same_worker()
        self.assertEqual(self.restore(path)[0], 1)
        self.program.ends_well()

    def lost_with_file(self):
        """The program is told of the loss; gantry cannot know of it, and names a complete file,
        which cannot be restored."""
        said = self.fails()
        self.recover()
        path, = self.files_left(1, said)
        self.program.is_told_of_loss(said)
        self.is_empty(self.source)
        self.assertEqual(self.restore(path)[0], 1)

    def waits_in_file(self):
        """The program waits, and its file is restored."""
        said = self.fails()
        self.recover()
        path, = self.files_left(1, said if self.party == "source-gantryd" else None)
        if self.party == "gantry" and self.route.link == "shm":
            self.assertEqual(self.vgpu(self.source)["state"], "stopped")
        elif self.route.link == "tcp" or self.party == "source-gantryd":
            self.reaches("stopped")
        # Else the restore itself waits for the program.
        if self.party == "gantry":
            self.assertNotIn("worker_pid", self.vgpu(self.source))
        status, said = self.restore(path)
        self.assertEqual(status, 0, said)
        self.program.ends_well()


CASES = {"local": LocalCase, "gantryd": BetweenCase, "file": FileCase}
