# SPDX-License-Identifier: Apache-2.0
"""The roles of gantryd's sockets: every request by every role, the sockets' permissions, and root inside a container."""

import json
import os
import re
import resource
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

from commands_harness import FAKE, ROOT, CommandTest, as_nobody

from gantryd_harness import ATTACHED, CONTROL, ERROR, HELLO, WELCOME, Client, Gantryd, beside, frame

CONTROL_ONLY = 2
NOBODY = 65534
ONLY_OPERATORS = "only operators may, by gantryd's control socket"

ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"
# Of each request: what program, view and control sockets make of it. "failed": it may, but its object is not there.
TABLE = {
    "ls": (ANSWERED, ANSWERED, ANSWERED),
    "devices": (ANSWERED, ANSWERED, ANSWERED),
    "status": (ANSWERED, ANSWERED, ANSWERED),
    "tenants": (ANSWERED, ANSWERED, ANSWERED),
    "policy": (ANSWERED, ANSWERED, ANSWERED),
    "place": (ANSWERED, ANSWERED, ANSWERED),
    "about": (REFUSED, FAILED, FAILED),
    "trace-start": (REFUSED, REFUSED, ANSWERED),
    "trace-read": (REFUSED, REFUSED, ANSWERED),
    "trace-stop": (REFUSED, REFUSED, ANSWERED),
    "policy-set": (REFUSED, REFUSED, ANSWERED),
    "place-set": (REFUSED, REFUSED, FAILED),    # no memory is placed
    "tenant-add": (REFUSED, REFUSED, ANSWERED),
    "tenant-set": (REFUSED, REFUSED, ANSWERED),
    "tenant-rm": (REFUSED, REFUSED, ANSWERED),
    "drain": (REFUSED, REFUSED, ANSWERED),
    "migrate": (REFUSED, REFUSED, FAILED),
    "kill": (FAILED, REFUSED, FAILED),   # an owner may
    "receive": (REFUSED, REFUSED, FAILED),
    "checkpoint": (REFUSED, REFUSED, FAILED),
    "checkpoint-keep": (FAILED, REFUSED, FAILED),   # by the connection that asked for the checkpoint
    "restore": (REFUSED, REFUSED, ANSWERED),
}
DEVICE = {"name": "d", "vendor": "v", "version": "1", "driver_version": "1", "present_as": "d", "memory_bytes": 1,
          "max_allocation_bytes": 1, "local_memory_bytes": 1, "compute_units": 1}
# What each has to say beside its name.
WORDS = {
    "about": {"vgpu": "ffffffff"},
    "policy-set": {"name": "rr"},
    "place-set": {"name": "turn"},
    "tenant-add": {"name": "made"},
    "tenant-set": {"name": "made", "weight": 7},
    "tenant-rm": {"name": "made"},
    "drain": {"undo": True},
    "migrate": {"vgpu": "ffffffff", "to": "local"},
    "kill": {"vgpu": "ffffffff"},
    "receive": {"about": {"id": "00000001", "tenant": "none", "program": "p", "api": "opencl", "platform": "p", "weight": 1,
                          "need_bytes": 1, "memory_limit_bytes": 0, "devices": [DEVICE]}},
    "checkpoint": {"vgpu": "ffffffff", "stop": False},
    "restore": {"vgpu": "ffffffff", "tenant": "default", "key": "00" * 32, "ring_at": 0},
}


def requests_of_source():
    """The names in control.c's table: none is forgotten here."""
    with open(os.path.join(ROOT, "src", "control", "control.c"), encoding="utf-8") as f:
        text = f.read()
    return re.findall(r'^ +\{"([a-z-]+)", GN_ROLE_', text[text.index("requests[] = {"):], re.M)


def hello(features, tenant=b""):
    head = struct.pack("<IIQII128s", 0x79727467, 1, features | (1 if tenant else 0), os.getpid(), 0, b"test")
    return head + (struct.pack("<64sII256s", tenant, 0, 0, b"") if tenant else b"")


def asker(path, features=CONTROL_ONLY):
    c = Client(path, greet=False)
    reply = c.ask(HELLO, hello(features))
    assert reply.op == WELCOME, reply.error()
    return c


def verdict(reply):
    error = reply.get("error")
    return ANSWERED if not error else REFUSED if error.get("why") == ONLY_OPERATORS else FAILED


class Requests(CommandTest):
    daemon = True

    def setUp(self):
        super().setUp()
        path = self.gantryd.path
        self.sockets = {"program": path, "view": beside(path, "view"), "control": beside(path, "control")}

    def ask(self, client, request, **words):
        return json.loads(client.control(json.dumps(dict(words, version=1, request=request)).encode()))

    def test_every_request_has_a_line_here(self):
        self.assertEqual(sorted(TABLE), sorted(requests_of_source()))

    def test_every_request_by_every_role(self):
        for i, role in enumerate(("program", "view", "control")):
            client = asker(self.sockets[role])
            self.addCleanup(client.close)
            for request, results in TABLE.items():
                reply = self.ask(client, request, **WORDS.get(request, {}))
                self.assertEqual(verdict(reply), results[i], (role, request, reply))
                if results[i] == REFUSED:
                    self.assertRegex(reply["error"]["what"], "^(cannot |it is not accepted there)")

    def test_a_refused_command_changes_nothing(self):
        program, operator = asker(self.sockets["program"]), asker(self.sockets["control"])
        self.addCleanup(program.close)
        self.addCleanup(operator.close)
        before = [self.ask(operator, q) for q in ("tenants", "policy", "status")]
        for role in ("program", "view"):
            client = asker(self.sockets[role])
            for request in (r for r in TABLE if TABLE[r][0] == REFUSED):
                self.ask(client, request, **WORDS.get(request, {}))
            client.close()
        self.assertEqual([self.ask(operator, q) for q in ("tenants", "policy", "status")], before)

    def test_a_file_before_a_refused_command_is_not_a_fault(self):
        client = asker(self.sockets["program"])
        self.addCleanup(client.close)
        for _ in range(3):
            client.send(frame(24, 7), [2])
        self.assertEqual(verdict(self.ask(client, "checkpoint", vgpu="1")), REFUSED)
        self.assertIn("vgpus", self.ask(client, "ls"))

    def test_programs_do_not_attach_at_the_view_socket(self):
        client = Client(self.sockets["view"], greet=False)
        self.addCleanup(client.close)
        reply = client.ask(HELLO, hello(0))
        self.assertEqual(reply.op, ERROR)
        self.assertIn("view socket is for queries", reply.error()[1])
        for path in (self.sockets["program"], self.sockets["control"]):
            c = Client(path)
            self.addCleanup(c.close)
            reply = c.attach()
            self.assertEqual(reply.op, ATTACHED)
            reply.close()

    def test_a_viewer_sees_every_tenant_and_a_program_its_own(self):
        operator = asker(self.sockets["control"])
        self.addCleanup(operator.close)
        self.ask(operator, "tenant-add", name="other", uids=[os.getuid()])
        names = {}
        for role, path in self.sockets.items():
            client = asker(path)
            names[role] = [t["name"] for t in self.ask(client, "tenants")["tenants"]]
            client.close()
        self.ask(operator, "tenant-rm", name="other")
        self.assertEqual(names, {"program": ["default"], "view": ["default", "other"], "control": ["default", "other"]})


class Users(CommandTest):
    daemon = True

    def test_commands_of_an_ordinary_user(self):
        """Each says the same, and that before it makes a file."""
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        nobody = as_nobody(self, self.prefix.gantry)
        os.chmod(self.gantryd.dir, 0o755)
        os.chmod(self.dir, 0o777)
        self.prefix.run("tenant", "set", "default", "--uid", "any", address=self.address, check=True)
        client = self.gantryd.client()
        self.addCleanup(client.close)
        reply = client.attach()
        self.addCleanup(reply.close)
        vgpu = "{:08x}".format(struct.unpack("<I", reply.payload[:4])[0])
        file = os.path.join(self.dir, "f")
        for command in (("checkpoint", vgpu, file), ("checkpoint", "--quiet", "abc", file), ("checkpoint", vgpu, file, "--stop"),
                        ("migrate", vgpu, "local"), ("migrate", vgpu, "unix:" + file), ("mode", vgpu, "remote"),
                        ("drain", "--undo"), ("policy", "rr"), ("tenant", "add", "x", "--uid", "any"),
                        ("tenant", "set", "default", "--weight", "7"), ("tenant", "rm", "x"), ("trace", "-o", file, "--seconds", "1")):
            with self.subTest(command):
                p = self.prefix.run(*command, address=self.address, before=nobody)
                self.sentence(p, 1, "gantry " + command[0], ONLY_OPERATORS + "; run it as gantryd's own user, as root or as a member of "
                              "the group gantry-operator")
                self.assertEqual(os.listdir(self.dir), [])


class Crowds(CommandTest):
    """Operators connect while programs hold all descriptors."""

    def setUp(self):
        super().setUp()
        self.gantryd = self.enterContext(Gantryd(env={"OCL_ICD_VENDORS": FAKE}))

    def ask_as(self, role):
        c = asker(self.gantryd.path if role == "program" else beside(self.gantryd.path, role))
        self.addCleanup(c.close)
        return c

    def late(self):
        c = Client(self.gantryd.path, greet=False)
        self.addCleanup(c.close)
        c.send(frame(HELLO, 1, hello(CONTROL_ONLY)))
        return c

    def attach(self):
        c = Client(self.gantryd.path)
        self.addCleanup(c.close)
        reply = c.attach()
        self.assertEqual(reply.op, ATTACHED)
        self.addCleanup(reply.close)
        return c

    def take_all_descriptors(self):
        """Lowers gantryd's limit to what is open."""
        there = {int(fd) for fd in os.listdir("/proc/{}/fd".format(self.gantryd.pid))}
        _, hard = resource.prlimit(self.gantryd.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.gantryd.pid, resource.RLIMIT_NOFILE, (min(set(range(len(there) + 1)) - there), hard))

    def test_no_descriptors(self):
        programs = [self.attach() for _ in range(3)]
        self.take_all_descriptors()
        for _ in range(2):
            operator = self.ask_as("control")
            vgpus = json.loads(operator.control(b'{"version":1,"request":"ls"}'))["vgpus"]
            operator.close()
        self.assertEqual(len(vgpus), 3)
        late = self.late()
        killed = self.prefix.run("kill", *(v["id"] for v in vgpus), address="unix:" + self.gantryd.path)
        self.assertEqual((killed.returncode, killed.stderr), (0, ""))
        for c in programs:
            c.close()
        self.assertEqual(late.receive().op, WELCOME)

    def test_operators_connections_stay(self):
        operator, viewer = (self.ask_as(role) for role in ("control", "view"))
        idle = [self.ask_as("program") for _ in range(8)]
        self.take_all_descriptors()
        self.assertEqual(self.late().receive().op, WELCOME)
        self.assertIsNone(idle[0].receive())
        idle[-1].control(b'{"version":1,"request":"status"}')
        for c in (operator, viewer):
            self.assertEqual(json.loads(c.control(b'{"version":1,"request":"ls"}'))["vgpus"], [])
        operator.close()


class Sockets(CommandTest):
    daemon = True

    def test_their_permissions(self):
        g = self.gantryd
        modes = {path: stat.S_IMODE(os.stat(path).st_mode) for path in (g.path, beside(g.path, "view"), beside(g.path, "control"))}
        with open("/etc/group", encoding="utf-8") as f:
            groups = {line.split(":")[0]: int(line.split(":")[2]) for line in f}
        self.assertEqual(modes[g.path], 0o600)
        for end, group in (("view", "gantry-view"), ("control", "gantry-operator")):
            path = beside(g.path, end)
            owned = os.geteuid() == 0 and group in groups
            self.assertEqual(modes[path], 0o660 if owned else 0o600)
            self.assertEqual(os.stat(path).st_gid, groups[group] if owned else os.getegid())

    def test_groups_where_the_machine_has_them(self):
        """In a mount namespace whose /etc/group has them."""
        if os.geteuid() != 0:
            self.skipTest("only root's gantryd gives its sockets to groups")
        with open("/etc/group", encoding="utf-8") as f:
            lines = [line for line in f if not line.startswith("gantry-")]
        group = self.file("group", "".join(lines) + "gantry-view:x:65001:\ngantry-operator:x:65002:\n")
        path = os.path.join(self.dir, "g.sock")
        command = 'mount --bind "$0" /etc/group && exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", command, group, "true"], capture_output=True).returncode:
            self.skipTest("cannot mount")
        env = dict(os.environ, OCL_ICD_VENDORS=FAKE)
        p = subprocess.Popen(["unshare", "-m", "sh", "-c", command, group, os.environ["GANTRYD"], "--socket", path], env=env,
                             stderr=subprocess.PIPE, text=True)
        try:
            self.assertTrue(any(line.startswith("ready") for line in p.stderr))
            seen = {end: os.stat(beside(path, end)) for end in ("view", "control")}
            self.assertEqual({end: (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) for end, st in seen.items()},
                             {"view": (0, 65001, 0o660), "control": (0, 65002, 0o660)})
            # Members do what their socket is for; nobody else gets there.
            for gid, sees, changes in ((65001, True, False), (65002, True, True), (NOBODY, False, False)):
                member = ["setpriv", "--reuid", str(NOBODY), "--regid", str(gid), "--clear-groups"]
                ls = self.prefix.run("ls", address="unix:" + path, before=member)
                self.assertEqual(ls.returncode, 0 if sees else 1, ls.stderr)
                change = self.prefix.run("policy", "rr", address="unix:" + path, before=member)
                self.assertEqual(change.returncode, 0 if changes else 1, change.stderr)
        finally:
            p.terminate()
            p.communicate()
        self.assertEqual(os.listdir(self.dir), ["group"])

    def test_names_without_sock_at_their_end(self):
        for name in ("s", "a.sock.b"):
            path = os.path.join(self.dir, name)
            with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=path):
                self.assertEqual(sorted(os.listdir(self.dir)), sorted([name, name + ".view", name + ".control"]))

    def test_without_one_of_its_sockets_gantryd_does_not_start(self):
        for end in ("view", "control"):
            path = os.path.join(self.dir, "x.sock")
            in_the_way = self.file("x." + end)
            p = subprocess.run([os.environ["GANTRYD"], "--socket", path], env=dict(os.environ, OCL_ICD_VENDORS=FAKE),
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, 1)
            self.assertEqual(p.stderr, "gantryd: {} exists and is no socket; choose another path\n".format(in_the_way))
            self.assertEqual(os.listdir(self.dir), ["x." + end])
            os.unlink(in_the_way)

    def test_the_command_tries_what_it_can_use(self):
        """A query by control, view or program socket, a command by control or program socket."""
        seen = []

        def fake(role):
            path = os.path.join(self.dir, "g.sock") if role == "program" else os.path.join(self.dir, "g." + role)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(path)
            s.listen()
            s.settimeout(0)
            self.addCleanup(s.close)
            return role, s, path
        roles = [fake(role) for role in ("control", "view", "program")]
        for command, tries in ((["ls"], ["control", "view", "program"]), (["policy", "rr"], ["control", "program"])):
            for role in tries:
                p = subprocess.Popen([self.prefix.gantry, *command], env=self.prefix.env("unix:" + roles[2][2]),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                took = None
                while took is None:
                    for name, s, _ in roles:
                        try:
                            s.accept()[0].close()
                            took = name
                        except BlockingIOError:
                            pass
                p.wait()
                self.assertEqual(took, role, command)
                path = next(path for name, _, path in roles if name == role)
                os.rename(path, path + ".away")
            for _, _, path in roles:
                if os.path.exists(path + ".away"):
                    os.rename(path + ".away", path)


class Container(CommandTest):
    """Root, or gantryd's own user, in namespaces of its own, without a capability, with the program socket alone."""

    SCRIPT = r"""
set -e
mount -t tmpfs none "$1"
touch "$1/s.sock"
mount --bind "$2" "$1/s.sock"
shift 2
exec setpriv --no-new-privs --bounding-set -all --inh-caps -all "$@"
"""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can make such namespaces everywhere")
        self.inside = os.path.join(self.dir, "run")
        os.mkdir(self.inside)

    def contained(self, gantryd, uid, *args):
        drop = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
        return self.prefix.run(*args, address="unix:" + os.path.join(self.inside, "s.sock"),
                               before=["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc", "sh", "-c",
                                       self.SCRIPT, "sh", self.inside, gantryd.path, *drop])

    def check(self, gantryd, uid):
        """It is a program of `default`, and no operator."""
        operator = asker(beside(gantryd.path, "control"))
        self.addCleanup(operator.close)

        def ask(request, **words):
            return json.loads(operator.control(json.dumps(dict(words, version=1, request=request)).encode()))
        ask("tenant-add", name="blue", uids=[4321], memory_limit_bytes=1 << 30)
        before = [ask(q) for q in ("tenants", "policy", "status")]
        blues = Client(beside(gantryd.path, "control"))
        self.addCleanup(blues.close)
        reply = blues.attach(tenant=b"blue")
        self.assertEqual(reply.op, ATTACHED)
        reply.close()
        vgpu = ask("ls")["vgpus"][0]["id"]
        if self.contained(gantryd, uid, "devices").stderr.startswith("unshare"):
            self.skipTest("cannot make namespaces")
        p = self.contained(gantryd, uid, "ls", "--json")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(json.loads(p.stdout)["vgpus"], [])
        p = self.contained(gantryd, uid, "tenant", "ls", "--json")
        self.assertEqual([t["name"] for t in json.loads(p.stdout)["tenants"]], ["default"])
        for args in (("checkpoint", vgpu, "/dev/shm/x"), ("tenant", "set", "blue", "--memory", "1M"), ("tenant", "add", "red"),
                     ("tenant", "set", "default", "--uid", "any"), ("drain", "--undo"), ("mode", vgpu, "passthrough"),
                     ("migrate", vgpu, "local"), ("policy", "rr"), ("trace", "-o", "-", "--seconds", "0.1")):
            p = self.contained(gantryd, uid, *args)
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(ONLY_OPERATORS, p.stderr, args)
        p = self.contained(gantryd, uid, "run", "--tenant", "blue", "true")
        self.assertEqual(p.returncode, 125)
        self.assertIn('uid {} may not attach to'.format(uid), p.stderr)
        self.assertEqual([t for t in ask("tenants")["tenants"] if t["name"] == "default"],
                         [t for t in before[0]["tenants"] if t["name"] == "default"])
        self.assertEqual([ask("policy")], before[1:2])

    def test_as_root(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=os.path.join(self.dir, "g.sock")) as g:
            self.check(g, 0)
            # A rule of `default` holds for root, too.
            for rule in ({"uids": []}, {"uids": [4321]}, {"gids": [4321]}):
                c = asker(beside(g.path, "control"))
                c.control(json.dumps(dict({"gids": []}, **rule, version=1, request="tenant-set", name="default")).encode())
                c.close()
                p = self.contained(g, 0, "ls")
                self.assertEqual(p.returncode, 1)
                self.assertIn('uid 0 may not attach to', p.stderr)

    def test_as_gantryds_own_user(self):
        place = tempfile.mkdtemp(prefix="gantryd-nobody-")
        self.addCleanup(shutil.rmtree, place)
        os.chown(place, NOBODY, NOBODY)
        path = os.path.join(place, "g.sock")
        prefix = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        if subprocess.run([*prefix, "test", "-x", os.environ["GANTRYD"]]).returncode:
            self.skipTest("nobody cannot reach the build folder")
        p = subprocess.Popen([*prefix, os.environ["GANTRYD"], "--socket", path], stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, OCL_ICD_VENDORS=FAKE))
        self.addCleanup(p.communicate)
        self.addCleanup(p.terminate)
        self.assertTrue(any(line.startswith("ready") for line in p.stderr))

        class Nobodys:
            pass
        Nobodys.path = path
        self.check(Nobodys, NOBODY)


if __name__ == "__main__":
    unittest.main(verbosity=2)
