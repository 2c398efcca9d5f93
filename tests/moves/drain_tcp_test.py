#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gantryd that is emptied to one that is reached over tcp: programs that share memory with their vGPUs and those that are attached over tcp
go, each as its tenant; who is not let in stays and is named.

    drain_tcp_test.py STAGE MOVED BUSY [TEST]...    STAGE: what make stage leaves; MOVED, BUSY: moved and busy; TEST: as unittest names it
"""

import json
import os
import signal
import subprocess
import sys

from moves_harness import STEPS, TIMEOUT_S, TcpCase, command, gantry, telling, start_again, wait_until

TcpCase.stage, TcpCase.path, BUSY = (os.path.abspath(p) for p in sys.argv[1:4])
TENANTS = ("blue", "red")


class DrainTcp(TcpCase):
    def token(self, tenant, name):
        return "the-token-of-{}-at-{}".format(tenant, name)

    def token_file(self, tenant, name):
        return self.private(tenant + "." + name, self.token(tenant, name) + "\n")

    def secure(self, name):
        """Serves TLS alone over tcp, and knows tenants by tokens of its own."""
        rules = ["[tenant {}]\ntoken-file = {}\nuid = {}\n".format(t, self.token_file(t, name), os.getuid()) for t in TENANTS]
        return self.daemon(name, "--config", self.private(name + ".conf", "".join(rules)), insecure=False)

    def started(self, daemon, *envs):
        """Programs that have come to their first step, by vGPU. Those that name no gantryd are attached over tcp."""
        programs = [self.program(daemon, **env) for env in envs]
        for program in programs:
            self.assertEqual(program.at(), STEPS[0])
        ids = {v["pid"]: v["id"] for v in daemon.vgpus()}
        return {ids[p.process.pid]: p for p in programs}

    def shared(self, daemon, **env):
        """What has one share memory with its vGPU."""
        return {"GANTRY_CONNECT": daemon.address, "MOVED_WITHOUT_SVM": "1", **env}

    def end_well(self, programs):
        """All of them, side by side."""
        for name in STEPS[1:]:
            for program in programs:
                program.on()
            for program in programs:
                self.assertEqual(program.at(), name)
        for program in programs:
            program.on()
        for program in programs:
            self.assertIsNone(program.ends_well())

    def test_each_goes_as_its_tenant_and_who_is_not_let_in_stays(self):
        a, b = self.secure("a"), self.secure("b")
        programs = self.started(a, *(self.shared(a, GANTRY_TENANT=t) for t in TENANTS),
                                *({"GANTRY_TENANT": t, "GANTRY_TOKEN": self.token(t, "a")} for t in TENANTS))
        before = {v["id"]: v for v in a.vgpus()}
        self.assertEqual(sorted((v["tenant"], v["link"]) for v in before.values()), [(t, link) for t in TENANTS for link in ("shm", "tcp")])
        wrong = self.private("wrong", "not-a-token-that-anybody-has\n")
        red = ("--token-file", "red=" + self.token_file("red", "b"))
        what = self.drain(a, b, 1, "--token-file", "blue=" + wrong, *red)
        self.assertEqual({id_: (v["tenant"], v["result"]) for id_, v in what.items()},
                         {id_: (v["tenant"], "stays" if v["tenant"] == "blue" else "moved") for id_, v in before.items()})
        for v in what.values():
            if v["result"] == "moved":
                self.assertGreater(v["downtime_ns"], 0)
                self.assertEqual(v["downtime_ns"], v["move"]["downtime_ns"])
                self.assertEqual(v["move"]["to"], b.tcp_address)
            else:
                self.assertIn("refuses the TLS handshake", v["why"])
                self.assertIn("--token-file blue=FILE", v["fix"])
        self.assertEqual([v["tenant"] for v in a.vgpus()], ["blue"] * 2)
        self.assertEqual(sorted((v["tenant"], v["link"]) for v in b.vgpus()), [("red", "shm"), ("red", "tcp")])
        # Nor is it by another tenant's token.
        status, said = gantry(a, "drain", b.tcp_address, *red, "--token-file", "blue=" + self.token_file("red", "b"))
        self.assertEqual(status, 1, said)
        self.assertIn("the token is not that of the tenant \"blue\"", said["error"]["why"])
        # The reason is gone: those that are left go. A token without a tenant is everybody's who has none of his own.
        went = self.drain(a, b, 0, "--token-file", self.token_file("blue", "b"))
        self.assertEqual({id_: v["result"] for id_, v in went.items()}, {id_: "moved" for id_, v in before.items() if v["tenant"] == "blue"})
        self.assertEqual(a.vgpus(), [])
        # Whoever has shared his memory goes by tcp; who comes to his machine by tcp shares it there.
        other = {"shm": "tcp", "tcp": "shm"}
        self.assertEqual({v["id"]: (v["tenant"], v["link"]) for v in b.vgpus()}, {id_: (v["tenant"], other[v["link"]]) for id_, v in before.items()})
        self.end_well(programs.values())

    def test_the_other_one_is_lost_meanwhile(self):
        a, b = self.daemon("a"), self.daemon("b")
        programs = self.started(a, {}, {}, self.shared(a), self.shared(a))
        workers = [v["worker_pid"] for v in a.vgpus()]
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        busy = subprocess.Popen([BUSY, "home"], env=dict(a.program_env(), GANTRY_CONNECT=a.address), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (busy.kill(), busy.wait(), busy.stdin.close(), busy.stdout.close()))
        self.assertEqual(busy.stdout.readline().strip(), "goes")
        drain = subprocess.Popen(command(a, "drain", "--json", b.tcp_address), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (drain.kill(), drain.wait(), drain.stdout.close(), drain.stderr.close()))
        # None of their moves can end, so the fifth has not begun.
        self.assertTrue(wait_until(lambda: sum(v["state"] == "moving" for v in a.vgpus()) == 4, TIMEOUT_S))
        start_again(b)
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        out, errors = drain.communicate(timeout=TIMEOUT_S)
        self.assertEqual((drain.returncode, errors), (1, ""), out)
        said = json.loads(out)["drain"]["vgpus"]
        self.assertEqual({v["id"]: v["result"] for v in said}, {v["id"]: "stays" for v in a.vgpus()})
        self.assertEqual(len(said), 5)
        for v in said:
            self.assertTrue(v["why"] and v["fix"], v)
        self.assertEqual(b.vgpus(), [])
        # They went on, and it may be given again.
        self.assertEqual({v["result"] for v in self.drain(a, b, 0).values()}, {"moved"})
        self.assertEqual(sorted(v["link"] for v in b.vgpus()), ["shm", "shm", "tcp", "tcp", "tcp"])
        disturbed, _ = busy.communicate("on\n", timeout=TIMEOUT_S)
        self.assertEqual(busy.returncode, 0, disturbed)
        alone = subprocess.run([BUSY, "home", disturbed.split("\n")[0]], env=b.program_env(), stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual((alone.returncode, alone.stdout), (0, "goes\n" + disturbed))
        self.end_well(programs.values())

    def test_what_cannot_be_begun_changes_nothing(self):
        a, b = self.secure("a"), self.secure("b")
        ((vgpu, program),) = self.started(a, self.shared(a, GANTRY_TENANT="blue")).items()
        blue = ("--token-file", self.token_file("blue", "b"))
        for what, address, *how in (("requires credentials", b.tcp_address), ("No such file", b.tcp_address, "--token-file", "blue=/nonexistent"),
                                    ("more than one token file", b.tcp_address, *blue, *blue),
                                    ("not 4", b.tcp_address, "--token-file", self.private("short", "1234")), ("no gantryd listens", "tcp:127.0.0.1:1", *blue),
                                    ("is this one", a.tcp_address, "--token-file", "blue=" + self.token_file("blue", "a"))):
            with self.subTest(what):
                status, said = gantry(a, "drain", address, *how)
                self.assertEqual(status, 1, said)
                self.assertIn(what, json.dumps(said["error"]))
                self.assertNotIn("draining", a.ctl("ls"))
        # One that has nothing to move is emptied by whichever tenant's token is given.
        self.assertEqual(self.drain(b, a, 0, "--token-file", "red=" + self.token_file("red", "a")), {})
        status, said = gantry(a, "drain", b.tcp_address, *blue)
        self.assertEqual(status, 1)
        self.assertIn("is draining itself", said["error"]["why"])
        self.assertNotIn("draining", a.ctl("ls"))
        self.assertEqual([v["id"] for v in a.vgpus()], [vgpu])
        self.end_well([program])


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
