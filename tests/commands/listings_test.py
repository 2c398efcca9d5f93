#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry ls, devices, help and what every command has: what they print, and how they fail."""

import json
import os
import re
import select
import signal
import struct
import unittest

from commands_harness import CommandTest, FakeGantryd, as_nobody

from gantryd_harness import ATTACHED, CONTROL, ERROR, HELLO, WELCOME, Gantryd, frame

VGPU_KEYS = {"id", "tenant", "program", "pid", "worker_pid", "platform", "link", "mode", "state", "weight", "memory_bytes",
             "leased_bytes", "calls", "sync_calls", "copies", "devices"}
DEVICE_KEYS = {"index", "name", "vendor", "api", "platform", "platform_index", "type", "present_as", "compute_units", "clock_mhz",
               "memory_bytes", "max_allocation_bytes", "local_memory_bytes", "slice_ns", "version", "driver_version",
               "vgpus", "leased_bytes", "use"}


def columns(line):
    """Where the words of a line of titles begin and end."""
    found, start = [], None
    for i, c in enumerate(line + " "):
        if c != " " and start is None:
            start = i
        elif c == " " and start is not None:
            found.append((start, i))
            start = None
    return found


class Listings(CommandTest):
    daemon = True

    def attach(self, **how):
        client = self.gantryd.client()
        self.addCleanup(client.close)
        reply = client.attach(**how)
        self.assertEqual(reply.op, ATTACHED)
        self.addCleanup(reply.close)
        return "%08x" % struct.unpack("<I", reply.payload[:4])

    def add_tenant(self, name):
        client = self.gantryd.operator()
        request = {"version": 1, "request": "tenant-add", "name": name, "uids": [os.getuid()]}
        self.assertEqual(json.loads(client.control(json.dumps(request).encode()))["tenants"][0]["name"], name)
        client.close()

    def ask(self, command):
        p = self.prefix.run(command, "--json", address=self.address)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.count("\n"), 1)
        reply = json.loads(p.stdout)
        self.assertEqual(reply["version"], 1)
        return reply

    def vgpu(self, wanted):
        found = [v for v in self.ask("ls")["vgpus"] if v["id"] == wanted]
        self.assertEqual(len(found), 1)
        return found[0]

    def table(self, command):
        p = self.prefix.run(command, address=self.address)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        lines = p.stdout.splitlines()
        self.assertEqual([line for line in lines if line != line.rstrip()], [])
        return lines

    def test_vgpus_as_json(self):
        plain = self.vgpu(self.attach())
        self.assertEqual(set(plain), VGPU_KEYS)
        self.assertEqual((plain["tenant"], plain["program"], plain["pid"], plain["weight"], plain["state"], plain["mode"], plain["link"]),
                         ("default", "test", os.getpid(), 100, "idle", "remote", "shm"))
        self.assertEqual(set(plain["copies"]), {"two", "mapped", "bypass"})
        for key in ("calls", "sync_calls", "memory_bytes", "leased_bytes"):
            self.assertEqual(plain[key], 0)
        nothing = {"device_ns": 0, "used_ns": 0, "waited_ns": 0, "grants": 0, "interactive": False, "used": False, "share": 0, "entitled": 0}
        self.assertEqual(plain["devices"], [dict(nothing, index=0, name="Fake Device One"), dict(nothing, index=1, name="Fake Device Two")])
        self.add_tenant("team.a")
        limited = self.vgpu(self.attach(weight=7, memory=3 << 30, tenant=b"team.a"))
        self.assertEqual(set(limited), VGPU_KEYS | {"memory_limit_bytes"})
        self.assertEqual((limited["tenant"], limited["weight"], limited["memory_limit_bytes"]), ("team.a", 7, 3 << 30))

    def test_vgpus_as_a_table(self):
        self.add_tenant("somebody-else")
        first, second = self.attach(), self.attach(weight=1000, memory=3 << 29, tenant=b"somebody-else")
        lines = self.table("ls")
        titles = lines[0].split()
        self.assertEqual(titles, ["VGPU", "TENANT", "PID", "PROGRAM", "STATE", "WEIGHT", "SHARE", "MEMORY", "LIMIT", "CALLS", "WAITED", "LINK",
                                  "MODE", "DEVICE", "PLATFORM"])
        rows = {line.split()[0]: line for line in lines[1:]}
        self.assertRegex(first, "^[0-9a-f]{8}$")
        self.assertEqual(rows[first].split()[1:],
                         ["default", str(os.getpid()), "test", "idle", "100", "0%", "0", "-", "0", "0", "shm", "remote", "-", "Fake", "Platform"])
        self.assertEqual(rows[second].split()[5:9], ["1000", "0%", "0", "1.5G"])
        # Aligned: each column's words all begin, or all end, where its title does.
        for line in (rows[first], rows[second]):
            for (start, end), (word_start, word_end) in zip(columns(lines[0]), columns(line)):
                self.assertTrue(start == word_start or end == word_end, lines)

    def test_who_takes_no_turns_has_no_share(self):
        self.prefix.run("policy", "none", address=self.address, check=True)
        self.addCleanup(self.prefix.run, "policy", "fair", address=self.address, check=True)
        it = self.attach()
        self.assertEqual([d.get("share") for d in self.vgpu(it)["devices"]], [None, None])
        self.assertEqual(next(line.split()[6] for line in self.table("ls") if line.startswith(it)), "-")

    def test_no_vgpu(self):
        with Gantryd(env={"OCL_ICD_VENDORS": os.environ["FAKE_VENDOR_LIBRARY"]}) as alone:
            p = self.prefix.run("ls", "--json", "--connect", "unix:" + alone.path)
            self.assertEqual((p.returncode, p.stdout), (0, '{"version":1,"vgpus":[]}\n'))
            p = self.prefix.run("ls", "--connect=unix:" + alone.path)
            self.assertEqual((p.returncode, len(p.stdout.splitlines())), (0, 1))

    def test_a_worker_that_died(self):
        it = self.attach()
        worker = self.vgpu(it)["worker_pid"]
        end = os.pidfd_open(worker)
        os.kill(worker, signal.SIGKILL)
        select.select([end], [], [])
        os.close(end)
        while self.vgpu(it)["state"] != "lost":     # gantryd hears of it as we do
            pass
        self.assertEqual(set(self.vgpu(it)), VGPU_KEYS - {"worker_pid"})

    def test_devices_as_json(self):
        devices = self.ask("devices")["devices"]
        self.assertEqual([set(d) for d in devices], [DEVICE_KEYS, DEVICE_KEYS])
        self.assertEqual([(d["type"], d["present_as"], d["api"]) for d in devices],
                         [("gpu", "gpu", "opencl"), ("accelerator", "accelerator", "opencl")])

    def test_devices_as_a_table(self):
        lines = self.table("devices")
        self.assertEqual(lines[0].split(), ["NUMBER", "DEVICE", "TYPE", "UNITS", "CLOCK", "MEMORY", "BUFFER", "LEASED", "VGPUS", "PLATFORM", "DRIVER"])
        self.assertEqual(len(lines), 3)
        for line, d in zip(lines[1:], self.ask("devices")["devices"]):
            self.assertTrue(line.startswith("%-6d  %s  " % (d["index"], d["name"])), line)
        with Gantryd("--device", "Two,present-as=cpu", env={"OCL_ICD_VENDORS": os.environ["FAKE_VENDOR_LIBRARY"]}) as other:
            p = self.prefix.run("devices", "--connect", "unix:" + other.path)
            self.assertIn("  accelerator-as-cpu  ", p.stdout)

    def fake(self, reply):
        """The lines of `ls` or `devices` against a gantryd that answers this."""
        path = os.path.join(self.dir, "s")

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(
                CONTROL, seq, json.dumps(dict(reply, version=1)).encode())
        with FakeGantryd(path, answer):
            p = self.prefix.run("ls" if "vgpus" in reply else "devices", address="unix:" + path)
        os.unlink(path)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return [re.split("  +", line.strip()) for line in p.stdout.splitlines()]

    def test_vgpus_with_placed_memory(self):
        """RESIDENT is there if one of the vGPUs has placed memory, and empty for the others."""
        def on(resident, memory):
            return {"placement_state": "evicted", "resident_bytes": resident,
                    "memory_bytes": memory}
        plain = {"id": "00000001", "memory_bytes": 1 << 30, "memory_limit_bytes": 7,
                 "devices": [{"index": 0}]}
        lines = self.fake({"vgpus": [plain]})
        self.assertNotIn("RESIDENT", lines[0])
        lines = self.fake({"vgpus": [
            plain, dict(plain, devices=[on(6 << 28, 3 << 30)]),
            dict(plain, devices=[on(0, 1 << 30), on(1 << 30, 1 << 30)]),
            dict(plain, devices=[on(0, 64 << 20)])]})
        at = lines[0].index("RESIDENT")
        self.assertEqual(lines[0][at - 1:at + 2], ["MEMORY", "RESIDENT", "LIMIT"])
        self.assertEqual([line[at - 1:at + 2] for line in lines[1:]],
                         [["1G", "-", "7"], ["1G", "1.5G of 3G", "7"], ["1G", "1G of 2G", "7"],
                          ["1G", "0 of 64M", "7"]])

    def test_devices_with_placed_memory(self):
        plain = {"index": 0, "name": "d", "memory_bytes": 1 << 30, "leased_bytes": 5,
                 "vgpus": 2}
        self.assertNotIn("SLOTS", self.fake({"devices": [plain]})[0])
        placed = dict(plain, slots=54, slot_bytes=64 << 20, free_slots=7, reserved_slots=2,
                      swap_bytes=1 << 30)
        lines = self.fake({"devices": [plain, placed]})
        at = lines[0].index("LEASED")
        self.assertEqual(lines[0][at:at + 6],
                         ["LEASED", "SLOTS", "FREE", "RESERVED", "SWAP", "VGPUS"])
        self.assertEqual(lines[1][at:at + 6], ["5", "-", "-", "-", "-", "2"])
        self.assertEqual(lines[2][at:at + 6], ["5", "54x64M", "7", "2", "1G", "2"])

    def test_a_full_disk(self):
        for args in (["ls"], ["ls", "--json"], ["devices"], ["help"], ["--help"], ["--version"], ["help", "ls"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                p = self.prefix.run(*args, address=self.address, stdout=full)
            self.sentence(p, 1, "gantry" if args[0][0] == "-" else "gantry " + args[0], "No space left on device")

    def test_no_permission(self):
        nobody = as_nobody(self, self.prefix.gantry)
        if not nobody:
            self.skipTest("needs two users")
        self.addCleanup(os.chmod, self.gantryd.dir, 0o700)
        os.chmod(self.gantryd.dir, 0o755)
        self.refused(1, "Permission denied; ask an operator to admit this user (gantry tenant add NAME --uid 65534)", "ls", address=self.address, before=nobody)
        self.addCleanup(os.chmod, self.gantryd.path, 0o600)
        os.chmod(self.gantryd.path, 0o666)
        self.refused(1, 'may not attach to "default"; ask an operator for the right (gantry tenant set default --uid 65534)', "ls", address=self.address, before=nobody)


class NoDaemon(CommandTest):
    def test_nobody_listens(self):
        gone = "unix:" + os.path.join(self.dir, "s")
        for command in ("ls", "devices"):
            self.refused(1, "no gantryd listens at " + gone + "; start gantryd", command, address=gone)
            p = self.prefix.run(command, "--json", "--connect", gone)
            self.sentence(p, 1, "gantry " + command, gone)
            error = json.loads(p.stdout)
            self.assertEqual(set(error), {"version", "error"})
            self.assertEqual(set(error["error"]), {"what", "why", "fix"})
            self.assertIn(gone, error["error"]["why"])
        self.refused(1, "/run/gantry/gantry.sock", "ls", env={"XDG_RUNTIME_DIR": self.dir})

    def test_addresses_that_are_none(self):
        for address, says in (("here", "is not an address"), ("unix:", "is not an address"), ("tcp:h", "is not an address"), ("tcp:h:x", "is not an address"),
                              ("unix:/" + "x" * 200, "too long")):
            self.refused(2, says, "ls", "--connect", address)
            self.refused(125, says, "run", "--connect", address, "true")
            self.refused(1, says, "ls", address=address)
        self.refused(1, "no gantryd listens", "ls", address="unix:" + self.file("s"))

    def test_the_users_own_daemon_is_found(self):
        runtime = os.path.join(self.dir, "gantry")
        os.mkdir(runtime)
        with FakeGantryd(os.path.join(runtime, "gantry.sock"), FakeGantryd.greeting):
            self.refused(1, "gantryd closed the connection; see gantryd's log for the reason", "ls", env={"XDG_RUNTIME_DIR": self.dir})

    def test_a_peer_that_is_no_gantryd(self):
        def welcome_then(op, payload):
            def answer(asked, seq):
                return FakeGantryd.greeting(asked, seq) or frame(op, seq, payload)
            return answer
        path = os.path.join(self.dir, "s")
        error = struct.pack("<II384s256s", 13, 0, b"not for you", b"go away")
        for answer, says in ((lambda op, seq: None, "closed the connection"),
                             (lambda op, seq: b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3, "is not a frame; see that the address is a gantryd's"),
                             (lambda op, seq: frame(WELCOME, seq + 1, bytes(16)), "is not a frame"),
                             (lambda op, seq: frame(ERROR, seq, error), "not for you; go away"),
                             (welcome_then(CONTROL, b"no json"), "is not a JSON object"),
                             (welcome_then(CONTROL, b'{"version":1}'), 'has no "vgpus"'),
                             (welcome_then(CONTROL, b'{"version":1,"error":{"what":"w","why":"y","fix":"f"}}'), "y; f")):
            with FakeGantryd(path, answer):
                self.refused(1, says, "ls", address="unix:" + path)
                p = self.prefix.run("ls", "--json", address="unix:" + path)
                self.assertEqual(p.returncode, 1)
                self.assertIn(says.split("; ")[0], json.loads(p.stdout)["error"]["why"])
            os.unlink(path)

    def test_names_cannot_command_a_terminal(self):
        path = os.path.join(self.dir, "s")
        reply = json.dumps({"version": 1, "vgpus": [{"id": "00000001", "program": "a\x1b[2Jb\n\u00e9\u4e2dc", "devices": []}, {"id": 5}]})

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(CONTROL, seq, reply.encode())
        with FakeGantryd(path, answer):
            p = self.prefix.run("ls", address="unix:" + path)
        lines = p.stdout.splitlines()
        self.assertEqual((p.returncode, len(lines)), (0, 3))
        self.assertIn("a?[2Jb?\u00e9\u4e2dc", lines[1])
        self.assertEqual(lines[2].split()[:4], ["-"] * 4)

    def test_names_turn_no_text_around_them(self):
        path = os.path.join(self.dir, "s")
        names = ["c1-\u009b2J", "bidi-\u202egnp.exe", "isolate-\u2066x\u2069", "line-\u2028x"]
        reply = json.dumps({"version": 1, "vgpus": [{"id": "0000000{}".format(i), "program": name, "devices": []}
                                                    for i, name in enumerate(names)]}, ensure_ascii=False)

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(CONTROL, seq, reply.encode())
        with FakeGantryd(path, answer):
            for args in (["ls"], ["ls", "--json"]):
                p = self.prefix.run(*args, address="unix:" + path)
                self.assertEqual([c for c in p.stdout if c in "\u009b\u202e\u2066\u2069\u2028"], [], args)
                self.assertEqual(p.stdout.count("bidi-"), 1, args)
            p = self.prefix.run("ls", "--json", address="unix:" + path)
        self.assertEqual([v["program"] for v in json.loads(p.stdout)["vgpus"]], names)

    def test_two_blanks_part_the_columns(self):
        path = os.path.join(self.dir, "s")
        moving = {"what": "move", "to": "gpu2", "phase": "ahead", "round": 1, "done_bytes": 1, "total_bytes": 2, "sent_bytes": 1, "elapsed_ns": 1}
        names = {"  two  blanks ": "two blanks", "   ": "-", "": "-", "tab\tand  b": "tab?and b"}
        vgpus = [{"id": "00000001", "tenant": "t", "program": name, "state": "moving", "moving": moving, "mode": "remote", "driver_stays": True,
                  "platform": "The  Platform", "devices": [{"index": 0, "used": True}, {"index": 1, "used": True}]} for name in names]
        reply = json.dumps({"version": 1, "vgpus": vgpus})

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(CONTROL, seq, reply.encode())
        with FakeGantryd(path, answer):
            p = self.prefix.run("ls", address="unix:" + path)
        rows = [re.split("  +", line) for line in p.stdout.splitlines()]
        self.assertEqual([len(row) for row in rows], [15] * 5, p.stdout)
        self.assertEqual([row[3] for row in rows[1:]], list(names.values()))
        self.assertEqual([(row[4], row[12], row[13], row[14]) for row in rows[1:]], [("moving:ahead:50%", "remote+driver", "0,1", "The Platform")] * 4)

    def test_nor_can_what_somebody_says_who_refuses(self):
        path = os.path.join(self.dir, "s")
        words = "a\x1b[2Jb\n\u00e9\u4e2dc"
        reply = json.dumps({"version": 1, "error": {"what": "w", "why": words, "fix": words}})

        def answer(op, seq):
            return FakeGantryd.greeting(op, seq) if op == HELLO else frame(CONTROL, seq, reply.encode())
        with FakeGantryd(path, answer):
            self.refused(1, "gantry ls: a?[2Jb?\u00e9\u4e2dc; a?[2Jb?\u00e9\u4e2dc", "ls", address="unix:" + path)
            p = self.prefix.run("ls", "--json", address="unix:" + path)
        self.assertEqual(json.loads(p.stdout)["error"]["fix"], words)


class Usage(CommandTest):
    def test_wrong_command_lines(self):
        for args, says in ((["lss"], 'there is no command "lss"; did you mean ls?'),
                           (["placement"], 'there is no command "placement"; gantry help lists'),
                           (["--frobnicate"], "unknown option --frobnicate"), ([""], 'no command ""')):
            self.refused(2, says, *args, who="gantry")
        p = self.prefix.run()
        self.sentence(p, 2, "gantry", "no command is given")
        for args, says in ((["ls", "--jsno"], "did you mean --json?"), (["ls", "-j"], "unknown option -j"),
                           (["ls", "x"], 'unexpected argument "x"; gantry help ls shows its arguments'), (["ls", "--json=1"], "takes no value"),
                           (["devices", "--connect"], "needs a value"), (["doctor", "--weight", "1"], "unknown option --weight"),
                           (["help", "ls", "ls"], "unexpected argument")):
            p = self.prefix.run(*args)
            self.sentence(p, 2, "gantry " + args[0], says)
            self.assertEqual(p.stdout, "")
        self.sentence(self.prefix.run("help", "runn"), 2, "gantry help", "did you mean run?")

    def test_words_that_are_none(self):
        """Before gantryd is asked: there is none."""
        for args, says in ((["drain"], "no address is given; write gantry drain"), (["drain", "foo"], '"foo" is not an address'),
                           (["drain", ""], '"" is not an address'), (["migrate"], "no vGPU is given"), (["migrate", "1f"], "no destination is given"),
                           (["migrate", "", "local"], "no vGPU is given"), (["migrate", "1f", "foo"], '"foo" is not a destination; write gantry migrate'),
                           (["migrate", "1f", "unix:"], '"unix:" is not a destination'), (["mode", "1f"], "no mode is given"),
                           (["mode", "1f", "fast"], '"fast" is not a mode; write gantry mode'), (["mode", "", "remote"], "no vGPU is given"),
                           (["kill", ""], "no vGPU is given"), (["kill", "1f", ""], "no vGPU is given"), (["checkpoint", "1f"], "no file is given"),
                           (["checkpoint", "", "f"], "no vGPU is given"), (["restore"], "no file is given"), (["inspect"], "no file is given"),
                           (["tenant"], "no command is given")):
            with self.subTest(args):
                self.refused(2, says, *args, address="unix:" + self.file("s"))

    def test_wrong_command_lines_as_json(self):
        for args in (["ls", "--json", "--frobnicate"], ["ls", "--frobnicate", "--json"], ["lss", "--json"]):
            p = self.prefix.run(*args)
            self.assertEqual(p.returncode, 2)
            self.assertEqual(set(json.loads(p.stdout)["error"]), {"what", "why", "fix"})

    def test_help_and_version(self):
        overview = self.prefix.run("--help")
        self.assertEqual((overview.returncode, overview.stderr), (0, ""))
        self.assertEqual(self.prefix.run("help").stdout, overview.stdout)
        commands = [line.split()[0] for line in overview.stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertEqual(commands, [
            "run", "ls", "top", "trace", "devices", "tenant", "policy", "place", "migrate", "drain",
            "kill", "mode", "checkpoint", "restore", "sim", "inspect", "doctor", "help"])
        for command in commands:
            shown = self.prefix.run("help", command)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertTrue(shown.stdout.startswith("usage: gantry " + command + " "))
            self.assertIn("\nExamples:\n  gantry ", shown.stdout)
            self.assertEqual(max(len(line) for line in shown.stdout.splitlines()) <= 85, True)
            for ask in ("--help", "-h"):
                self.assertEqual(self.prefix.run(command, ask).stdout, shown.stdout)
        p = self.prefix.run("--version")
        self.assertRegex(p.stdout, r"^gantry \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
