# SPDX-License-Identifier: Apache-2.0
"""The tcp link against plain sockets of the same run (with TLS: against a plain TLS pump), on loopback and through a relay that
delays every byte. One program, one worker, a processor for each side as on two machines: left to themselves, sides that share a
processor or not differ by a factor of two, plain sockets as much as the link."""

import os
import statistics
import subprocess

from .figures import chart, limit, series
from .rows import Findings, Group, barred, figure
from .stats import abba, ratios
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


def median_ns(target, context, name, count, bytes_=0, group=None):
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
        return {"sync_ns": median_ns(target, context, "work_group_info", trips),
                "enqueue_ns": median_ns(target, context, "enqueue", 2000),
                "write_ns": median_ns(target, context, "write", 5, BULK_BYTES),
                "read_ns": median_ns(target, context, "read", 5, BULK_BYTES)}

    pairs = abba(context.pairs, plain, link)

    return {"plain": {k: [pair[0][k] for pair in pairs] for k in ("trip_ns", "write_ns", "read_ns")},
            "link": {k: [pair[1][k] for pair in pairs] for k in ("sync_ns", "enqueue_ns", "write_ns", "read_ns")},
            # A time of plain sockets over one of the link is a bandwidth of the link's over theirs.
            "over": {k: ratios([(link[k], plain[k]) for plain, link in pairs]) for k in ("write_ns", "read_ns")}}


def rows_of(title, m):
    plain, link = m["plain"], m["link"]
    trip = statistics.median(plain["trip_ns"])
    yield barred(f"{title}: a call that is answered", link["sync_ns"], at_most=trip + SYNC_BAR_NS,
                 text=f"at most the round trip + {SYNC_BAR_NS // 1000} us", unit="ns", beside=plain["trip_ns"])
    yield barred(f"{title}: enqueue without waiting", link["enqueue_ns"], at_most=ENQUEUE_BAR_NS, unit="ns")
    for way in ("write", "read"):
        yield barred(f"{title}: {way} {BULK_BYTES >> 20} MiB, bandwidth over plain sockets", m["over"][way + "_ns"], at_least=BULK_BAR)
        yield figure(f"{title}: {way} {BULK_BYTES >> 20} MiB", [BULK_BYTES / ns for ns in link[way + "_ns"]], "GB/s",
                     beside=[BULK_BYTES / ns for ns in plain[way + "_ns"]])


def run(context):
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
    drawn = chart("points", "", f"Bandwidth of {BULK_BYTES >> 20} MiB over plain sockets", "over plain sockets", [
        series(way, {title: m["over"][way + "_ns"] for title, m in results.items()}) for way in ("write", "read")],
        [limit(BULK_BAR, f"at least {BULK_BAR}")])
    return Findings("The tcp link beside plain sockets", [Group(rows=[row for title, m in results.items() for row in rows_of(title, m)],
                                                                beside="plain sockets")], [drawn], raw=results)
