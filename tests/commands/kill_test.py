# SPDX-License-Identifier: Apache-2.0
"""gantry kill: what becomes of each vGPU, and who may end which."""

import json
import os
import signal
import struct
import subprocess
import sys
import unittest

from commands_harness import FAKE, CommandTest, as_nobody

from gantryd_harness import ATTACHED, Client, Gantryd, beside, children

NOBODY = 65534


class Kill(CommandTest):
    def setUp(self):
        super().setUp()
        self.gantryd = self.enterContext(Gantryd(env={"OCL_ICD_VENDORS": FAKE}))
        self.address = "unix:" + self.gantryd.path

    def attach(self, tenant=b""):
        client = self.gantryd.operator()
        self.addCleanup(client.close)
        reply = client.attach(tenant=tenant)
        self.assertEqual(reply.op, ATTACHED)
        self.addCleanup(reply.close)
        return "%08x" % struct.unpack("<I", reply.payload[:4])

    def ask(self, request, **words):
        c = Client(beside(self.gantryd.path, "control"))
        try:
            return json.loads(c.control(json.dumps(dict(words, version=1, request=request)).encode()))
        finally:
            c.close()

    def until(self, vgpu, state):
        while [v["state"] for v in self.ask("ls")["vgpus"] if v["id"] == vgpu] != [state]:
            pass

    def kill(self, *args, status=0, **how):
        p = self.prefix.run("kill", *args, address=self.address, **how)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def test_one(self):
        vgpu, other = self.attach(), self.attach()
        p = self.kill(vgpu)
        self.assertEqual((p.stdout, p.stderr), (vgpu + " ended\n", ""))
        self.until(vgpu, "lost")
        self.assertEqual([v["state"] for v in self.ask("ls")["vgpus"] if v["id"] == other], ["idle"])

    def test_an_unknown_one_among_others(self):
        a, b = self.attach(), self.attach()
        p = self.kill(a, "zzz", b, status=1)
        self.assertEqual(p.stdout, "{} ended\n{} ended\n".format(a, b))
        self.assertEqual(p.stderr, 'gantry kill: there is no vGPU "zzz"; gantry ls lists them\n')
        for vgpu in (a, b):
            self.until(vgpu, "lost")
        said = json.loads(self.kill(a, "--json", status=1).stdout)
        self.assertEqual(said["kill"], [{"id": a, "result": "gone", "why": "it has ended already"}])
        self.assertEqual(said["error"]["what"], "cannot end 1 of 1 vGPUs")

    def test_a_whole_tenant(self):
        self.ask("tenant-add", name="blue")
        blues, other = [self.attach(b"blue") for _ in range(3)], self.attach()
        said = json.loads(self.kill("--tenant", "blue", "--json").stdout)
        self.assertEqual(sorted(k["id"] for k in said["kill"]), sorted(blues))
        self.assertEqual({k["result"] for k in said["kill"]}, {"ended"})
        for vgpu in blues:
            self.until(vgpu, "lost")
        self.until(other, "idle")
        self.ask("tenant-add", name="red")
        self.assertEqual(json.loads(self.kill("--tenant", "red", "--json").stdout)["kill"], [])
        self.assertEqual(self.kill("--tenant", "red").stdout, 'the tenant "red" has no vGPUs\n')

    def test_no_such_tenant(self):
        p = self.kill("--tenant", "green", status=1)
        self.assertEqual((p.stdout, p.stderr), ("", 'gantry kill: there is no tenant "green"; gantry tenant ls lists them\n'))
        said = json.loads(self.kill("--tenant", "green", "--json", status=1).stdout)
        self.assertEqual(said["error"]["why"], 'there is no tenant "green"')

    def test_the_log_says_by_whose_wish(self):
        vgpu = self.attach()
        self.kill(vgpu, "--reason", "room for\nothers \x1b[31m")
        self.until(vgpu, "lost")
        _, said = self.gantryd.stop()
        line = next(line for line in said.splitlines() if "is ended by" in line)
        self.assertIn('vgpu={}: "test" ({}) of the tenant "default" is ended by an operator: room for'.format(vgpu, os.getpid()), line)
        self.assertNotIn("\x1b", line)

    def test_wrong_usage(self):
        for args, says in (([], "no vGPU is given"), (["1", "--tenant", "blue"], "exclude each other"), (["--frob"], "unknown option"),
                           (["--reason"], "needs a value")):
            self.refused(2, says, "kill", *args, address=self.address)

    def test_owners(self):
        """The user that runs the program, and no other user of the tenant."""
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        nobody = as_nobody(self, self.prefix.gantry)
        os.chmod(self.gantryd.dir, 0o755)
        self.ask("tenant-set", name="default", uids="any")
        roots = self.attach()
        p = self.kill(roots, status=1, before=nobody)
        self.assertEqual(p.stderr, "gantry kill: only the owner of vGPU {} and operators may do that; gantry ls lists those "
                                   "of this tenant\n".format(roots))
        self.until(roots, "idle")
        # Root, too, is a user like others by the program socket.
        c = self.gantryd.client()
        self.addCleanup(c.close)
        nobodys = self.nobodys_vgpu(nobody)
        reply = json.loads(c.control(json.dumps({"version": 1, "request": "kill", "vgpu": nobodys}).encode()))
        self.assertIn("only the owner", reply["error"]["why"])
        reply = json.loads(c.control(json.dumps({"version": 1, "request": "kill", "vgpu": roots}).encode()))
        self.assertEqual(reply["kill"], {"id": roots, "result": "ended"})
        self.assertEqual(json.loads(self.kill(nobodys, "--json", before=nobody).stdout)["kill"], [{"id": nobodys, "result": "ended"}])
        self.until(nobodys, "lost")
        self.ask("tenant-set", name="default", owner=[])
        again = self.nobodys_vgpu(nobody)
        p = self.kill(again, status=1, before=nobody)
        self.assertIn("only operators may, by gantryd's control socket", p.stderr)
        # In another tenant's eyes it is not there.
        self.ask("tenant-add", name="blue", uids=[NOBODY])
        for tenant in ("default", "green"):
            p = self.kill("--tenant", tenant, status=1, before=nobody, env={"GANTRY_TENANT": "blue"})
            self.assertIn('you see no vGPUs of the tenant "{}"; ask an operator'.format(tenant), p.stderr)
        p = self.kill("--tenant", "blue", before=nobody, env={"GANTRY_TENANT": "blue"})
        self.assertEqual(p.stdout, 'the tenant "blue" has no vGPUs\n')
        p = self.kill(again, status=1, before=nobody, env={"GANTRY_TENANT": "blue"})
        self.assertIn('there is no vGPU "{}"'.format(again), p.stderr)

    def nobodys_vgpu(self, nobody):
        """Of a process of that user's, which ends with the test."""
        code = ("import sys; sys.path.insert(0, {!r}); import gantryd_harness as h; c = h.Client({!r}); r = c.attach(); "
                "print(r.payload[:4][::-1].hex(), flush=True); sys.stdin.read()").format(
                    os.path.dirname(os.path.abspath(sys.modules["gantryd_harness"].__file__)), self.gantryd.path)
        p = subprocess.Popen([*nobody, "/usr/bin/python3", "-B", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.communicate)
        return p.stdout.readline().strip()


class StraySignals(CommandTest):
    def test_a_worker_and_its_template_ignore_them(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "GANTRY_WORKER": os.environ["REAL_WORKER"]}) as g:
            c = g.client()
            self.addCleanup(c.close)
            reply = c.attach()
            self.assertEqual(reply.op, ATTACHED)
            self.addCleanup(reply.close)
            pids = children(g.pid)
            pids += [pid for template in pids for pid in children(template)]
            self.assertGreaterEqual(len(pids), 2)
            for pid in pids:
                for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
                    os.kill(pid, number)
            # A template that were ended would take its workers along; another vGPU is there later than that.
            other = g.client()
            self.addCleanup(other.close)
            self.assertEqual(other.attach().op, ATTACHED)
            self.assertEqual([v["state"] for v in json.loads(c.control(b'{"version":1,"request":"ls"}'))["vgpus"]], ["idle", "idle"])
            for pid in pids:
                with open("/proc/{}/stat".format(pid), encoding="ascii", errors="replace") as f:
                    self.assertNotIn(f.read().rsplit(")", 1)[1].split()[0], "XZ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
