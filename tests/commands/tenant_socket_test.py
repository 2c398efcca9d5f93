# SPDX-License-Identifier: Apache-2.0
"""Sockets of single tenants: what is mounted into a container is the credential, and uids inside do not matter."""

import json
import os
import signal
import stat
import subprocess
import unittest

from commands_harness import FAKE, CommandTest

from gantryd_harness import ATTACHED, ERROR, Client, Gantryd, beside, hello, HELLO

NOBODY = 65534


class Daemon(Gantryd):
    def __init__(self, folder, config=None, **how):
        args = []
        if config is not None:
            path = os.path.join(folder, "gantry.conf")
            with open(path, "w", encoding="ascii") as f:
                f.write(config)
            args = ["--config", path]
        super().__init__(*args, env={"OCL_ICD_VENDORS": FAKE}, socket_path=os.path.join(folder, "g.sock"), **how)

    def ask(self, request, **words):
        c = Client(beside(self.path, "control"))
        try:
            return json.loads(c.control(json.dumps(dict(words, version=1, request=request)).encode()))
        finally:
            c.close()

    def tenant(self, what, name, **settings):
        reply = self.ask("tenant-" + what, name=name, **settings)
        assert "error" not in reply, reply
        return reply


class TenantSockets(CommandTest):
    def setUp(self):
        super().setUp()
        self.run = os.path.join(self.dir, "run")
        os.mkdir(self.run)
        self.tenants = os.path.join(self.run, "tenants")

    def daemon(self, config=None, **how):
        return self.enterContext(Daemon(self.run, config, **how))

    def folder(self, name):
        return os.path.join(self.tenants, name)

    def socket(self, name):
        return os.path.join(self.folder(name), "gantry.sock")

    def mounted(self, name):
        """The folder as a container that has it mounted goes on to see it."""
        fd = os.open(self.folder(name), os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, fd)
        return "/proc/self/fd/{}/gantry.sock".format(fd)

    def attaches(self, client, **how):
        reply = client.attach(**how)
        error = None if reply.op == ATTACHED else reply.error()[1]
        reply.close()
        return error

    def connect(self, path, **how):
        c = Client(path, **how)
        self.addCleanup(c.close)
        return c

    def seen(self, client, request="tenants"):
        return [t["name"] for t in json.loads(client.control(json.dumps({"version": 1, "request": request}).encode()))["tenants"]]

    def test_where_it_lies_and_with_which_permissions(self):
        g = self.daemon()
        self.assertFalse(os.path.exists(self.tenants))
        said = self.prefix.run("tenant", "add", "blue", "--socket", "--json", address="unix:" + g.path)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual(json.loads(said.stdout)["tenants"][0]["socket"], self.socket("blue"))
        self.assertEqual({path: stat.S_IMODE(os.stat(path).st_mode) for path in (self.tenants, self.folder("blue"), self.socket("blue"))},
                         {self.tenants: 0o700, self.folder("blue"): 0o755, self.socket("blue"): 0o666})
        self.assertEqual(stat.S_IMODE(os.stat(g.path).st_mode), 0o600)
        table = self.prefix.run("tenant", "ls", address="unix:" + g.path).stdout
        self.assertRegex(table, r"(?m)^blue .* socket +remote")

    def test_its_peers_belong_to_the_tenant(self):
        g = self.daemon()
        g.tenant("add", "blue", socket=True, uids=[4321])
        c = self.connect(self.socket("blue"))
        self.assertEqual(self.seen(c), ["blue"])
        self.assertIsNone(self.attaches(c))
        self.assertEqual([v["tenant"] for v in g.ask("ls")["vgpus"]], ["blue"])
        c = self.connect(self.socket("blue"))
        self.assertIsNone(self.attaches(c, tenant=b"blue"))
        c = self.connect(self.socket("blue"))
        says = 'this socket belongs to the tenant "blue" and admits to no other'
        self.assertEqual(self.attaches(c, tenant=b"default"), says)
        c = self.connect(self.socket("blue"), greet=False)
        reply = c.ask(HELLO, hello()[:8] + (1).to_bytes(8, "little") + hello()[16:] + b"default".ljust(64, b"\0") + bytes(264))
        self.assertEqual(reply.op, ERROR)
        self.assertEqual(reply.error()[1], says)

    def test_default_may_have_one(self):
        g = self.daemon("[tenant default]\nuid = none\nsocket = yes\n")
        self.assertIsNone(self.attaches(self.connect(self.socket("default"))))
        c = self.connect(g.path, greet=False)
        self.assertEqual(c.ask(HELLO, hello()).op, ERROR)

    def test_commands_are_refused(self):
        g = self.daemon("[tenant blue]\nsocket = yes\n")
        for request in ("tenant-set", "policy-set", "drain", "trace-start", "about"):
            c = self.connect(self.socket("blue"))
            reply = json.loads(c.control(json.dumps({"version": 1, "request": request, "name": "blue", "vgpu": "1"}).encode()))
            self.assertIn("only operators may", reply["error"]["why"])
        self.assertEqual([t["name"] for t in g.ask("tenants")["tenants"]], ["default", "blue"])

    def test_a_folder_follows_a_restart(self):
        config = "[tenant blue]\nsocket = yes\n"
        first = Daemon(self.run, config)
        with first:
            mounted = self.mounted("blue")
            self.connect(mounted)
            first.stop()
        self.assertEqual(os.listdir(self.folder("blue")), [])
        self.daemon(config)
        self.assertEqual(self.seen(self.connect(mounted)), ["blue"])

    def test_after_a_kill_it_is_replaced(self):
        config = "[tenant blue]\nsocket = yes\n"
        with Daemon(self.run, config) as first:
            mounted = self.mounted("blue")
            first.stop(signal.SIGKILL)
        self.daemon(config)
        self.assertEqual(self.seen(self.connect(mounted)), ["blue"])

    def test_a_removed_tenants_connections_are_admitted_to_nothing_else(self):
        g = self.daemon()
        g.tenant("add", "blue", socket=True)
        mounted = self.mounted("blue")
        c = self.connect(mounted)
        g.tenant("rm", "blue")
        self.assertFalse(os.path.exists(self.tenants))
        self.assertIn("removed", self.attaches(c))
        self.assertIn("has no socket any more", self.attaches(c, tenant=b"default"))
        # One of that name later is another one.
        g.tenant("add", "blue", socket=True)
        self.assertIn("has no socket any more", self.attaches(c, tenant=b"blue"))
        with self.assertRaises(OSError):
            Client(mounted)
        self.assertEqual(self.seen(self.connect(self.socket("blue"))), ["blue"])

    def test_a_socket_that_is_taken_away(self):
        g = self.daemon()
        g.tenant("add", "blue", socket=True, uids=[os.getuid()])
        c = self.connect(self.socket("blue"))
        said = self.prefix.run("tenant", "set", "blue", "--no-socket", "--json", address="unix:" + g.path)
        self.assertNotIn("socket", json.loads(said.stdout)["tenants"][0])
        self.assertFalse(os.path.exists(self.folder("blue")))
        self.assertIn("has no socket any more", self.attaches(c))
        g.tenant("set", "blue", socket=True)
        self.assertIsNone(self.attaches(self.connect(self.socket("blue"))))
        g.tenant("set", "blue", weight=7)
        self.assertTrue(os.path.exists(self.socket("blue")))

    def test_folders_of_tenants_that_are_no_more_are_removed(self):
        with Daemon(self.run, "[tenant old]\nsocket = yes\n[tenant plain]\nsocket = yes\n") as g:
            g.stop(signal.SIGKILL)
        os.mkdir(self.folder("precious"))
        with open(os.path.join(self.folder("precious"), "file"), "w", encoding="ascii"):
            pass
        self.daemon("[tenant new]\nsocket = yes\n[tenant plain]\n")
        self.assertEqual(sorted(os.listdir(self.tenants)), ["new", "precious"])

    def test_two_gantryds_in_one_folder(self):
        self.daemon("[tenant blue]\nsocket = yes\n")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=os.path.join(self.run, "next.sock")) as other:
            self.assertTrue(os.path.exists(self.socket("blue")))
            c = Client(beside(other.path, "control"))
            reply = json.loads(c.control(b'{"version":1,"request":"tenant-add","name":"blue","socket":true}'))
            self.assertIn("already listens at " + self.socket("blue"), reply["error"]["why"])
            reply = json.loads(c.control(b'{"version":1,"request":"tenants"}'))
            self.assertEqual([t["name"] for t in reply["tenants"]], ["default"])
            reply = json.loads(c.control(b'{"version":1,"request":"tenant-add","name":"red","socket":true}'))
            self.assertEqual(reply["tenants"][0]["socket"], self.socket("red"))
            c.close()
            other.stop()
        self.assertEqual(self.seen(self.connect(self.socket("blue"))), ["blue"])

    def test_what_is_in_the_way(self):
        os.mkdir(self.tenants)
        os.symlink("/", self.folder("blue"))
        p = subprocess.run([os.environ["GANTRYD"], "--socket", os.path.join(self.run, "x.sock"), "--config",
                            self.file("c", "[tenant blue]\nsocket = yes\n")], env=dict(os.environ, OCL_ICD_VENDORS=FAKE),
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("cannot make the folder of " + self.socket("blue"), p.stderr)
        self.assertEqual(os.listdir(self.run), ["tenants"])
        os.unlink(self.folder("blue"))
        if os.geteuid() == 0:
            os.mkdir(self.folder("theirs"))
            os.mkdir(self.folder("theirs/own"))
            os.chown(self.tenants, NOBODY, NOBODY)
            g = self.daemon()
            reply = g.ask("tenant-add", name="blue", socket=True)
            self.assertIn("it is another user's", reply["error"]["why"])
            self.assertEqual([t["name"] for t in g.ask("tenants")["tenants"]], ["default"])
            self.assertEqual(os.listdir(self.tenants), ["theirs"])

    def test_names_that_are_no_folders(self):
        g = self.daemon()
        for name in (".", ".."):
            self.assertIn("is not a tenant's name", g.ask("tenant-add", name=name, socket=True)["error"]["why"])
            self.refused(2, "is not a tenant's name", "tenant", "add", name, address="unix:" + g.path)
        self.refused(2, "takes no value", "tenant", "add", "x", "--socket=yes", address="unix:" + g.path)
        p = subprocess.run([os.environ["GANTRYD"], "--config", self.file("c", "[tenant x]\nsocket = maybe\n")], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr.split("c:2: ")[1]), (1, 'socket cannot be "maybe"; write yes or no\n'))

    CONTAINER = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/run"
mount --bind -o ro "$2" "$1/run"
mount -o remount,bind,ro "$1/run"
shift 2
exec setpriv --no-new-privs --bounding-set -all --inh-caps -all "$@"
"""

    def test_in_a_container(self):
        """With the folder mounted, as any uid; and a user outside gets nowhere."""
        if os.geteuid() != 0:
            self.skipTest("only root can make such namespaces everywhere")
        g = self.daemon("[tenant blue]\nsocket = yes\n[tenant red]\nsocket = yes\n")
        inside = os.path.join(self.dir, "inside")
        os.mkdir(inside)
        os.chmod(self.run, 0o711)
        for uid in (0, 1000, NOBODY):
            drop = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
            unshare = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc", "sh", "-c", self.CONTAINER, "sh"]
            p = self.prefix.run("tenant", "ls", "--json", address="unix:" + os.path.join(inside, "run", "gantry.sock"),
                                before=[*unshare, inside, self.folder("blue"), *drop])
            if p.stderr.startswith("unshare"):
                self.skipTest("cannot make namespaces")
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertEqual([t["name"] for t in json.loads(p.stdout)["tenants"]], ["blue"])
        outside = self.prefix.run("ls", address="unix:" + self.socket("blue"), before=["setpriv", "--reuid", "1000", "--clear-groups"])
        self.assertEqual(outside.returncode, 1)
        self.assertIn("Permission denied", outside.stderr)
        self.assertIsNotNone(g)


if __name__ == "__main__":
    unittest.main(verbosity=2)
