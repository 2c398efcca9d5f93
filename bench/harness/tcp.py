# SPDX-License-Identifier: Apache-2.0
"""The tcp link against plain sockets of the same run (with TLS: against a plain TLS pump), on loopback and through a relay that
delays every byte. One program, one worker, a processor for each side as on two machines: left to themselves, sides that share a
processor or not differ by a factor of two, plain sockets as much as the link."""

import os
import statistics
import subprocess

from .stats import abba, ratios
from .table import Table, ns
from .targets import BenchError, Gantry, clean_environment, run_json

SYNC_BAR_NS = 60_000
ENQUEUE_BAR_NS = 5_000
BULK_BAR = 0.9
BULK_BYTES = 64 << 20
TOKEN = "a-token-for-measurements"
HERE, *_, THERE = sorted(os.sched_getaffinity(0)) * 2  # a processor for the program, one for the other machine


def on(processor):
    return ["taskset", "-c", str(processor)]


class Child:
    """A process that prints the port it listens at."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.strip().isdigit():
            self.end()
            raise BenchError(f"{os.path.basename(command[0])} does not start")
        self.port = int(line)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Far(Gantry):
    """Gantry reached over tcp, at any port."""

    def __init__(self, stage, driver, secure):
        super().__init__(stage, driver, prefix=on(THERE))
        self.secure = secure
        self.port = None

    def pid(self):
        return self.process.pid  # taskset becomes what it runs

    def options(self, folder):
        listen = ["--listen", "tcp:127.0.0.1:0"]
        if not self.secure:
            return [*listen, "--insecure"]
        for name, text in (("token", TOKEN + "\n"), ("gantry.conf", f"[tenant bench]\ntoken-file = {folder}/token\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(os.path.join(folder, name), 0o600)
        return [*listen, "--config", os.path.join(folder, "gantry.conf")]

    def at(self, port):
        self.port = port
        return self

    def listening(self):
        return next(int(line.rsplit(":", 1)[1]) for line in self.log if line.startswith("listening tcp:"))

    def environment(self):
        identity = {"GANTRY_TENANT": "bench", "GANTRY_TOKEN": TOKEN} if self.secure else {}
        return super().environment() | {"GANTRY_CONNECT": f"tcp:127.0.0.1:{self.port}"} | identity


def figure(target, context, name, count, bytes_=0, group=None):
    command = [*on(HERE), os.path.join(context.build, "bench/calls/bench-calls"), "--json", "--only", name, "--count", str(count)]
    command += ["--data", "--bytes", str(bytes_)] if bytes_ else []
    command += ["--group", str(group)] if group else []
    return run_json(target, command)["figures"][0]["median_ns"]


def measure(context, far, secure, delay_us, children):
    pump = os.path.join(context.build, "bench/tcp/bench-tcp")
    relay = os.path.join(context.build, "tests/tcp/relay")
    tls = ["--tls"] if secure else []
    env = clean_environment() | {"GANTRY_TLS_MODULE": os.path.join(context.stage, "lib/libgantry-tls.so")}

    def behind(port):
        if delay_us is None:
            return port
        children.append(Child([relay, str(port), str(delay_us)]))
        return children[-1].port

    children.append(Child([*on(THERE), pump, "serve", *tls], env))
    pump_port, link_port = behind(children[-1].port), behind(far.listening())
    trips = 100 if (delay_us or 0) > 1000 else 1000

    class Pump:
        name = "plain sockets"

        @staticmethod
        def environment():
            return env

    def plain():
        return run_json(Pump, [*on(HERE), pump, "ask", str(pump_port), *tls, "--bytes", str(BULK_BYTES), "--trips", str(trips)])

    def link():
        target = far.at(link_port)
        return {"sync_ns": figure(target, context, "work_group_info", trips),
                "enqueue_ns": figure(target, context, "enqueue", 2000),
                "write_ns": figure(target, context, "write", 5, BULK_BYTES),
                "read_ns": figure(target, context, "read", 5, BULK_BYTES)}

    pairs = abba(context.pairs, plain, link)

    def median(side, key):
        return statistics.median(pair[side][key] for pair in pairs)

    return {"plain": {k: median(0, k) for k in ("trip_ns", "write_ns", "read_ns")},
            "link": {k: median(1, k) for k in ("sync_ns", "enqueue_ns", "write_ns", "read_ns")},
            "ratio": {k: ratios([(link[k], plain[k]) for plain, link in pairs]) for k in ("write_ns", "read_ns")}, "pairs": pairs}


def rows(table, title, m):
    plain, link = m["plain"], m["link"]
    table.row(f"{title}: a call that is answered", ns(plain["trip_ns"]), ns(link["sync_ns"]),
              bar=f"round trip + {ns(SYNC_BAR_NS)}", met=link["sync_ns"] <= plain["trip_ns"] + SYNC_BAR_NS)
    table.row(f"{title}: enqueue without waiting", "-", ns(link["enqueue_ns"]), bar=f"at most {ns(ENQUEUE_BAR_NS)}",
              met=link["enqueue_ns"] <= ENQUEUE_BAR_NS)
    for way in ("write", "read"):
        ratio = m["ratio"][way + "_ns"]["median"]
        table.row(f"{title}: {way} {BULK_BYTES >> 20} MiB", f"{BULK_BYTES / plain[way + '_ns']:.2f} GB/s",
                  f"{BULK_BYTES / link[way + '_ns']:.2f} GB/s ({ratio:.2f})", bar=f"at least {BULK_BAR}", met=ratio >= BULK_BAR)


def run(context):
    table = Table(f"The tcp link: medians, {context.pairs} pairs", ["plain sockets", "link"])
    results = {}
    if context.stage is None:
        raise BenchError("there is no staged tree")
    for secure in (False, True):
        with Far(context.stage, context.driver, secure) as far:
            for delay_us in (None, 200, 5000):
                children = []
                title = ("TLS" if secure else "plain") + (", loopback" if delay_us is None else f", {delay_us / 1000:g} ms late")
                context.progress(title)
                try:
                    results[title] = measure(context, far, secure, delay_us, children)
                finally:
                    for child in children:
                        child.end()
                rows(table, title, results[title])
    return table, results
