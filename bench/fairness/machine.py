# SPDX-License-Identifier: Apache-2.0
"""The device and the programs: who runs on which core, a gantryd with tenants, programs that run when told to.

On two cores PoCL with one thread, pinned to one, is the device; gantryd and its workers are there too (FairGV 4.2 binds
scheduler and vGPUs to one core), and all programs share the other, as the papers' virtual machines do. Natively PoCL's thread is pinned
to the device's core by PoCL itself (POCL_AFFINITY), since it belongs to the program.
"""

import json
import os
import select
import subprocess
import time

from harness.targets import BenchError, Gantry, clean_environment

LOAD = "bench/loads/gantry-load"
SETTLE_NS = 100_000_000
START_S = 60


class Cores:
    def __init__(self, device=None, programs=None):
        allowed = sorted(os.sched_getaffinity(0))
        device = allowed[0] if device is None else device
        others = [c for c in allowed if c != device] or allowed
        self.all = ",".join(str(c) for c in allowed)
        self.of_device = str(device)
        self.programs = others if programs is None else programs

    def of_program(self, number, n):
        """Adjacent programs share a core, as FairGV's virtual machines do."""
        return self.programs[number * len(self.programs) // n]


class EveryCore:
    """Nobody is kept anywhere: for more devices than cores can be set aside for."""

    def __init__(self, cores):
        self.of_device = cores.all
        self.all = cores.all

    def of_program(self, number, n):
        return self.all


class Daemon(Gantry):
    """A gantryd with a tenant for each entry of tenants ({name: {setting: value}}), on the device's core."""

    def __init__(self, stage, driver, cores, policy, tenants, more=()):
        super().__init__(stage, driver, prefix=["taskset", "-c", cores.of_device])
        self.policy = policy
        self.tenants = tenants
        self.more = list(more)

    def options(self, folder):
        path = os.path.join(folder, "gantry.conf")
        with open(path, "w") as f:
            for name, settings in self.tenants.items():
                f.write(f"[tenant {name}]\nuid = {os.getuid()}\n")
                f.writelines(f"{k} = {v}\n" for k, v in settings.items())
        return ["--config", path, "--policy", self.policy, *self.more]

    def pid(self):
        return self.process.pid  # taskset becomes gantryd


class Program:
    """A `gantry-load --obey` that waits for orders."""

    def __init__(self, command, environment, core, name):
        self.name = name
        self.process = subprocess.Popen(["taskset", "-c", str(core), *command], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.first = None

    def ready(self):
        self.first = self.answer(START_S)
        return self

    def order(self, seconds):
        try:
            self.process.stdin.write(f"run {seconds:.6f}\n")
            self.process.stdin.flush()
        except OSError:
            self.died()

    def answer(self, timeout_s):
        """The next line. A program that says nothing for so long has hung: that is a result, and is told as one."""
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        if not ready:
            raise BenchError(f"{self.name} gave no answer in {timeout_s:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.died()
        return json.loads(line)

    def died(self):
        self.process.kill()
        raise BenchError(f"{self.name} ended: {self.process.communicate()[1].strip()[-200:] or 'it said nothing'}")

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for f in (self.process.stdout, self.process.stderr):
            f.close()


def phase(programs, seconds):
    """All of them at once; their answers."""
    for p in programs:
        p.order(seconds)
    deadline = time.monotonic() + seconds * 4 + 60
    return [p.answer(max(1, deadline - time.monotonic())) for p in programs]


def native_program(context, driver, options, core):
    environment = clean_environment() | driver | {"POCL_AFFINITY": "1"}
    return Program([os.path.join(context.build, LOAD), *options, "--obey", "--no-profile"], environment, core, f"{' '.join(options)} (native)").ready()


class Natives:
    """Programs without Gantry, all of them on the same two cores."""

    def __init__(self, context, options):
        self.context = context
        self.options = options
        self.programs = []

    def __enter__(self):
        try:
            for options in self.options:
                self.programs.append(native_program(self.context, self.context.driver, options, self.context.cores.programs[0]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for p in self.programs:
            p.stop()

    def run(self, number, seconds):
        return phase([self.programs[number]], seconds)[0]


class Scene:
    """A daemon and programs on it, and the same programs natively; all wait for orders.

    programs: [(load options, tenant)]. Phases run some of them at once, for a time.
    """

    def __init__(self, context, programs, tenants, policy, native=True, daemon_options=(), driver=None, cores=None):
        self.context = context
        self.wanted = programs
        self.with_native = native
        self.driver = context.driver | (driver or {})
        self.cores = cores or context.cores
        self.daemon = Daemon(context.stage, self.driver, self.cores, policy, tenants, [*daemon_options, *context.daemon_options])
        self.programs = []
        self.natives = {}

    def __enter__(self):
        load = os.path.join(self.context.build, LOAD)
        cores = self.cores
        self.daemon.start()
        try:
            for number, (options, tenant) in enumerate(self.wanted):
                environment = self.daemon.environment() | ({"GANTRY_TENANT": tenant} if tenant else {})
                command = [load, *options, "--obey", "--no-profile"]
                self.programs.append(Program(command, environment, cores.of_program(number, len(self.wanted)), f"{' '.join(options)} ({tenant})"))
                self.programs[-1].ready()
            for options, _ in self.wanted:
                if self.with_native and options not in self.natives:
                    self.natives[options] = native_program(self.context, self.driver, options, cores.programs[0])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for p in [*self.programs, *self.natives.values()]:
            p.stop()
        self.daemon.stop()

    def turns(self):
        """For each program the counters of its turns, over all of its devices."""
        by_pid = {v["pid"]: v["devices"] for v in self.daemon.ask("ls")["vgpus"]}
        return [{k: sum(d[k] for d in by_pid.get(p.process.pid, [])) for k in ("used_ns", "device_ns", "waited_ns", "grants")}
                for p in self.programs]

    def alone(self, number, seconds):
        return phase([self.programs[number]], seconds)[0]

    def native(self, number, seconds):
        return phase([self.natives[self.wanted[number][0]]], seconds)[0]

    def together(self, seconds, numbers=None):
        return phase([self.programs[i] for i in (range(len(self.programs)) if numbers is None else numbers)], seconds)
