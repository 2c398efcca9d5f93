# SPDX-License-Identifier: Apache-2.0
"""Where a program's vGPU moves: within one gantryd, or between two with a wire of some rate between them, each in a network namespace of its
own (ip netns, tc tbf: needs root). There the program is attached over tcp, and lives in the first one's."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/programs"))
from daemon import Daemon  # noqa: E402

TIMEOUT_S = 240


def ask(daemon, words, prefix=()):
    done = subprocess.run([*prefix, os.path.join(daemon.stage, "bin/gantry"), words[0], "--json", "--connect", daemon.address, *words[1:]],
                          stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout)["move"]


class Here:
    def __init__(self, stage, work, passthrough):
        self.daemon, self.prefix = Daemon(stage, work, passthrough=passthrough), []

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *what):
        self.daemon.__exit__(*what)

    def env(self):
        return self.daemon.program_env()

    def moved(self, command, to, *how):
        return ask(self.daemon, [command, self.daemon.vgpus()[0]["id"], to, *how])


class Wire:
    def __init__(self, stage, work, rate):
        self.names = ["gn-{}-{}".format(os.getpid(), i) for i in range(2)]
        self.prefixes = [["ip", "netns", "exec", name] for name in self.names]
        self.prefix, self.rate, self.at = self.prefixes[0], rate, 0
        self.daemons = [Daemon(stage, os.path.join(work, str(i)), prefix=self.prefixes[i],
                               args=["--listen", "tcp:10.77.0.{}:0".format(i + 1), "--insecure"]) for i in range(2)]

    def __enter__(self):
        def run(*words):
            subprocess.run(words, check=True)
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.names[0], "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", self.names[1])
        for i, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", "10.77.0.{}/24".format(i + 1), "dev", "wire")
            run("ip", "-n", name, "link", "set", "wire", "up")
            run(*self.prefixes[i], "tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", self.rate, "burst", "2mb", "latency", "20ms")
        for daemon in self.daemons:
            daemon.__enter__()
        return self

    def __exit__(self, *what):
        for daemon in self.daemons:
            daemon.__exit__(*what)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def env(self):
        return self.daemons[0].program_env()

    def moved(self, command, _to, *how):
        """To the other one."""
        here, there = self.daemons[self.at], self.daemons[1 - self.at]
        move = ask(here, [command, here.vgpus()[0]["id"], there.tcp_address, "--link", "tcp", *how], self.prefixes[self.at])
        self.at = 1 - self.at
        return move
