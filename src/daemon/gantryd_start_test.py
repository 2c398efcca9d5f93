# SPDX-License-Identifier: Apache-2.0
"""Tests of gantryd's start with errors in the command line, the configuration and the machine.

Each failure is one line on stderr and an exit status, and changes nothing. Needs GANTRYD,
GANTRY_WORKER and FAKE_VENDOR_LIBRARY in the environment.
"""
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from gantryd_harness import ATTACHED, HELLO, PATIENCE, Client, Gantryd, children, hello, sockets

FAKE = os.environ["FAKE_VENDOR_LIBRARY"]


def tree(top):
    return sorted(os.path.join(d, name) for d, dirs, files in os.walk(top) for name in dirs + files)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gantryd-start-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.socket = os.path.join(self.dir, "s")

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def run_gantryd(self, *args, env=None, prefix=(), **how):
        full = {"PATH": os.environ["PATH"], "OCL_ICD_VENDORS": FAKE,
                "GANTRY_WORKER": os.environ["GANTRY_WORKER"],
                "POCL_CACHE_DIR": "/nonexistent"}
        for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                full[name] = os.environ[name]
        full.update(env or {})
        full = {k: v for k, v in full.items() if v is not None}
        return subprocess.run([*prefix, os.environ["GANTRYD"], *args], env=full,
                              stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=PATIENCE, **how)

    def refused(self, status, says, *args, warnings=0, **how):
        before = tree(self.dir)
        p = self.run_gantryd(*args, **how)
        lines = p.stderr.splitlines()
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(p.stdout, "")
        self.assertEqual(len(lines), 1 + warnings, p.stderr)
        self.assertTrue(lines[-1].startswith("gantryd: "), p.stderr)
        self.assertIn(says, lines[-1])
        self.assertEqual(tree(self.dir), before)

    def test_wrong_command_lines(self):
        for args, says in ((["--frobnicate"], "unknown option --frobnicate"),
                           (["-x"], "unknown option -x"),
                           (["--listen", "unix:/x"], "not an address to listen at"),
                           (["--listen", "tcp:x"], "is not an address"),
                           (["--insecure=yes"], "takes no value"),
                           (["--tcp-grace", "0"], "the grace cannot be"),
                           (["--start-limit", "x"], "the limit of a start cannot be"),
                           (["--policy", "fare"], 'no policy "fare"; the policies are none, fair'),
                           (["--policy="], 'no policy ""'),
                           (["--slice", "0"], "the slice cannot be"),
                           (["--slice", "long"], "the slice cannot be"),
                           (["--kernel-limit", "0.01"], "the limit of a kernel cannot be"),
                           (["--oversubscribe", "--place", "left"],
                            'no placement policy "left"; the policies are turn, first-fit, size, '
                            "utilization"),
                           (["--place", "size"],
                            "place needs oversubscribe; give --oversubscribe, too, or leave it "
                            "out"),
                           (["--idle-after", "20s"], "idle-after needs oversubscribe"),
                           (["--oversubscribe", "--policy", "none"],
                            "the policy none has no turns; choose another policy, or leave "
                            "oversubscribe out"),
                           (["--oversubscribe=yes"], "takes no value"),
                           (["--sock", self.socket], "unknown option --sock"),
                           (["--socket"], "needs a value"),
                           (["--help=1"], "takes no value"), (["now"], 'unexpected argument "now"'),
                           (["--device", ""], "names no device"),
                           (["--device", "x,present-as=tv"], 'presented as "tv"'),
                           (["--device", "x,colour=red"], "unknown setting")):
            self.refused(2, says, *args)

    def test_help_and_version(self):
        p = self.run_gantryd("--help")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn("--socket PATH", p.stdout)
        p = self.run_gantryd("--version")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertRegex(p.stdout, r"^gantryd \d+\.\d+\.\d+\n$")
        with open("/dev/full", "w") as full:
            p = subprocess.run([os.environ["GANTRYD"], "--version"], stdout=full)
        self.assertEqual(p.returncode, 1)

    def test_configurations_that_are_wrong(self):
        at = ["--socket", self.socket]
        self.refused(1, "/nonexistent: No such file or directory; name a file that", *at,
                     "--config", "/nonexistent")
        self.refused(1, "is not a file of at most 1 MiB; name a plain file", *at,
                     "--config", self.dir)
        self.refused(1, "c:3: unknown key \"scoket\"", *at, "--config",
                     self.file("c", "# mine\n[gantryd]\nscoket = /x\n"))
        self.refused(1, "e:1: malformed line \"a?[31m?\"", *at, "--config",
                     self.file("e", "a\x1b[31m\x7f\n"))
        self.refused(1, "d:1: ", *at, "--config", self.file("d", "\x01\x02"))
        self.refused(1, "f:3: the floor of the tenant \"a\", 0.5, is above its cap, 0.25", *at,
                     "--config", self.file("f", "[tenant a]\nfloor = 50%\ncap = 25%\n"))
        self.refused(1, "g:2: \"1.5\" is more than the whole device", *at, "--config",
                     self.file("g", "[tenant a]\ncap = 1.5\n"))
        # Floors add up on each device: blue and green use different ones, red uses both.
        apart = ("[tenant blue]\nfloor = 60%\ndevice = One\n"
                 "[tenant green]\nfloor = 0.7\ndevice = Two\n")
        self.refused(1,
                     "h:9: the floor 0.4 of the tenant \"red\" and the floors of others, 0.7, "
                     "together exceed the device \"", *at, "--config",
                     self.file("h", apart + "[tenant red]\ncap = 1\nfloor = 40%\n"))
        self.refused(1, "at most 0.3 is left; lower the floor", *at, "--config",
                     self.file("h", apart + "[tenant red]\nfloor = 40%\n"))
        budget = "[device One]\nmemory = 1M\n[tenant blue]\nreserve = 1M\ndevice = One\n"
        self.refused(1, "i:7: the reserve of the tenant \"red\", 1024 bytes, and the reserves of "
                     "others together exceed the memory of the device \"Fake Device One\", "
                     "1048576; at most 0 bytes are left; lower the reserve, or others'",
                     *at, "--config",
                     self.file("i", budget + "[tenant red]\nreserve = 1K\n"))
        self.refused(1, "no device's name contains \"Voodoo\"", *at, "--config",
                     self.file("e", "[device Voodoo]\npresent-as = gpu\n"))
        self.refused(1, "bytes of memory, and memory = 1125899906842624 is more than that; lower "
                     "memory in its [device] section", *at, "--config",
                     self.file("i", "[device One]\nmemory = 1024T\n"))

    def test_memory_that_cannot_be_placed(self):
        at = ["--socket", self.socket]
        self.refused(1, "evicted contents of all devices may take 2097152 MiB of host memory, and "
                     "this machine has ", *at, "--oversubscribe", "--swap-memory", "1T")
        self.refused(1, "may take ", *at, "--oversubscribe", "--swap-memory",
                     str(2 ** 64 - 1))
        self.refused(1, 'the device "Fake Device One" has 1073741824 bytes of memory, less than a '
                     "slot of 2147483648; lower slot in its [device] section", *at, "--config",
                     self.file("c", "[device One]\nslot = 2G\n"))
        self.refused(1, "less than a slot of 67108864; set slot in its [device] section", *at,
                     "--config",
                     self.file("c", "[gantryd]\noversubscribe = yes\n"
                                        "[device Two]\nmemory = 8M\n"))
        # Other tenants' reserves are in the device's own memory.
        text = ("[gantryd]\noversubscribe = yes\n[device One]\nmemory = 64M\n"
                "[tenant red]\nreserve = 65M\ndevice = One\n")
        self.refused(1, "c:6: the reserve of the tenant \"red\", 68157440 bytes, and the reserves "
                     "of others together exceed the memory of the device", *at, "--config",
                     self.file("c", text))

    def test_no_driver_and_no_device(self):
        at = ["--socket", self.socket]
        empty = os.path.join(self.dir, "vendors")
        os.mkdir(empty)
        self.refused(1, "no driver is installed", *at, env={"OCL_ICD_VENDORS": empty})
        with open(os.path.join(empty, "gantry.icd"), "w", encoding="ascii") as f:
            f.write("/somewhere/lib/libgantry-opencl.so\n")
        self.refused(1, "the only ICD file where loaders look is Gantry's own; name the vendors' "
                     "ICD files in OCL_ICD_VENDORS", *at, env={"OCL_ICD_VENDORS": empty})
        self.refused(1, "cannot read the OpenCL drivers", *at,
                     env={"OCL_ICD_VENDORS": None, "OPENCL_VENDOR_PATH": "/nonexistent"})
        self.refused(1, "no driver offers a device", *at, warnings=1,
                     env={"OCL_ICD_VENDORS": "/nonexistent/lib.so"})
        for mode, warnings in (("no-device", 0), ("gantry", 0), ("not-an-icd", 1),
                               ("crash-in-probe", 1)):
            self.refused(1, "no driver offers a device", *at, env={"FAKE_VENDOR": mode},
                         warnings=warnings)
        self.refused(1, 'no such device: "Voodoo"', *at, "--device", "Voodoo")
        self.refused(1, 'no such device: "Device" with that index', *at, "--device", "Device:2")
        self.refused(1, "GANTRY_WORKER", *at, env={"GANTRY_WORKER": "/nonexistent"})

    def test_too_few_descriptors(self):
        # LeakSanitizer opens files at gantryd's exit, and fails without descriptors.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.refused(1, "cannot start: Too many open files; raise gantryd's limit of open files",
                     "--socket",
                     self.socket, prefix=["prlimit", "--nofile=4:4"], env={"ASAN_OPTIONS": asan})

    def test_sockets_that_cannot_be(self):
        self.refused(1, "too long", "--socket", os.path.join(self.dir, "x" * 108))
        self.refused(1, "cannot use the directory", "--socket", os.path.join(self.dir, "no", "s"))
        self.refused(1, "is a directory", "--socket", self.dir + "/")
        self.refused(1, "exists and is no socket", "--socket", self.dir)
        self.refused(1, "exists and is no socket", "--socket", self.file("file", "precious"))
        self.refused(1, "XDG_RUNTIME_DIR", prefix=self.as_nobody())

    def as_nobody(self):
        """Runs as a user without rights: root could write to every directory."""
        if os.geteuid() != 0:
            return ()
        probe = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "test", "-x",
                                os.environ["GANTRYD"]])
        if probe.returncode != 0:
            self.skipTest("nobody cannot reach the build folder")
        return ("setpriv", "--reuid", "65534", "--clear-groups")

    def test_no_permission(self):
        os.chmod(self.dir, 0o555)
        try:
            self.refused(1, "Permission denied", "--socket", self.socket, prefix=self.as_nobody())
        finally:
            os.chmod(self.dir, 0o755)

    def test_a_full_disk(self):
        mount = 'mount -t tmpfs -o nr_inodes=1 none "$0" && exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", mount, self.dir, "true"],
                          capture_output=True).returncode:
            self.skipTest("cannot mount a small file system")
        self.refused(1, "No space left on device", "--socket", self.socket,
                     prefix=("unshare", "-m", "sh", "-c", mount, self.dir))

    def test_a_live_gantryds_socket_is_refused(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=self.socket) as g:
            self.refused(1, "already listens", "--socket", self.socket)
            Client(g.path).close()  # and is none the worse

    def test_a_directory_that_somebody_else_has_locked(self):
        held = os.open(self.dir, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            self.refused(1, "another process has locked the directory of", "--socket", self.socket)
        finally:
            os.close(held)

    def test_told_to_end_while_probing(self):
        g = Gantryd(env={"OCL_ICD_VENDORS": FAKE, "FAKE_VENDOR": "hang-in-probe"}, wait=False)
        with g:
            while not any(os.path.exists("/proc/%d" % p) for p in children(g.pid)):
                pass
            status, said = g.stop()
            self.assertEqual((status, said), (0, ""))
            self.assertEqual(tree(g.dir), [])


class Starts(unittest.TestCase):
    def test_a_dead_gantryds_socket_is_replaced(self):
        env = {"OCL_ICD_VENDORS": FAKE}
        with Gantryd(env=env) as first:
            first.stop(signal.SIGKILL)
            self.assertTrue(os.path.exists(first.path))
            with Gantryd(env=env, socket_path=first.path) as second:
                self.assertEqual(second.lines, ["ready unix:%s\n" % first.path])
                Client(first.path).close()
                self.assertEqual(os.stat(first.path).st_mode & 0o777, 0o600)

    def test_its_own_icd_file_is_skipped_without_a_word(self):
        with tempfile.TemporaryDirectory() as vendors:
            for name, library in (("gantry", "/somewhere/lib/libgantry-opencl.so"), ("fake", FAKE)):
                with open(os.path.join(vendors, name + ".icd"), "w", encoding="ascii") as f:
                    f.write(library + "\n")
            with Gantryd(env={"OCL_ICD_VENDORS": vendors}) as g:
                self.assertEqual(g.lines, ["ready unix:%s\n" % g.path])

    def test_a_hang_up_and_other_signals_end_nothing(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            c = g.client()
            self.assertEqual(c.attach().op, ATTACHED)
            os.kill(g.pid, signal.SIGHUP)
            self.assertIn("SIGHUP is ignored", g.process.stderr.readline().decode())
            for number, text in ((signal.SIGUSR1, "User defined signal 1"),
                                 (signal.SIGUSR2, "User defined signal 2"),
                                 (signal.SIGALRM, "Alarm clock")):
                os.kill(g.pid, number)
                self.assertIn(text + " is ignored", g.process.stderr.readline().decode())
            self.assertEqual(len(json.loads(c.control(b'{"version":1,"request":"ls"}'))["vgpus"]),
                             1)
            c.close()
            status, said = g.stop()
            self.assertEqual((status, said), (0, ""))

    def test_a_hang_up_while_probing(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "FAKE_VENDOR": "hang-in-probe"},
                     wait=False) as g:
            while len(tree(g.dir)) < 3:
                pass
            os.kill(g.pid, signal.SIGHUP)
            self.assertIsNone(g.process.poll())
            self.assertEqual(g.stop()[0], 0)

    def test_a_killed_starts_leavings_are_swept(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "FAKE_VENDOR": "hang-in-probe"},
                     wait=False) as g:
            while len(tree(g.dir)) < 3:
                pass
            left = tree(g.dir)
            self.assertEqual(len([path for path in left if "/.gantryd-" in path]), 3)
            g.stop(signal.SIGKILL)
            self.assertEqual(tree(g.dir), left)
            with Gantryd(env={"OCL_ICD_VENDORS": FAKE}, socket_path=g.path):
                self.assertEqual(sorted(tree(g.dir)), sorted(sockets(g.path)))

    def test_another_gantryds_new_socket_is_not_removed(self):
        env = {"OCL_ICD_VENDORS": FAKE}
        with Gantryd(env=env) as first:
            for path in sockets(first.path):
                os.unlink(path)
            with Gantryd(env=env, socket_path=first.path):
                first.stop()
                for path in sockets(first.path):
                    Client(path, greet=False).close()

    def test_the_manager_is_told(self):
        with tempfile.TemporaryDirectory() as d:
            manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            manager.settimeout(PATIENCE)
            manager.bind(os.path.join(d, "notify"))
            with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "NOTIFY_SOCKET": os.path.join(d, "notify")}):
                self.assertEqual(manager.recv(100), b"READY=1")
            manager.close()

    def test_nothing_listens_before_the_devices_are_known(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE, "FAKE_VENDOR": "hang-in-probe"},
                     wait=False) as g:
            while not tree(g.dir):
                pass
            self.assertFalse(os.path.exists(g.path))

    def test_started_without_stdio(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "s")
            p = subprocess.Popen(["sh", "-c", 'exec "$0" --socket "$1" <&- >&- 2>&-',
                                  os.environ["GANTRYD"], path],
                                 env=dict(os.environ, OCL_ICD_VENDORS=FAKE))
            while not os.path.exists(path):
                self.assertIsNone(p.poll())
            c = Client(path)
            self.assertEqual(c.attach().op, ATTACHED)
            c.close()
            p.terminate()
            self.assertEqual(p.wait(PATIENCE), 0)

    def test_the_default_socket(self):
        prefix = Refusals.as_nobody(self) if os.geteuid() == 0 else ()
        with tempfile.TemporaryDirectory() as d:
            if prefix:
                os.chown(d, 65534, -1)
            env = dict(os.environ, OCL_ICD_VENDORS=FAKE, XDG_RUNTIME_DIR=d)
            p = subprocess.Popen([*prefix, os.environ["GANTRYD"]], env=env, stderr=subprocess.PIPE,
                                 text=True)
            path = os.path.join(d, "gantry", "gantry.sock")
            self.assertEqual(p.stderr.readline(), "ready unix:%s\n" % path)
            self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
            p.terminate()
            self.assertEqual(p.communicate(timeout=PATIENCE)[1], "")
            self.assertEqual((p.returncode, tree(d)), (0, []))

    def test_devices_are_selected(self):
        request = b'{"version":1,"request":"devices"}'

        def shown(*args, slice_ns=6000000):
            with Gantryd(*args, env={"OCL_ICD_VENDORS": FAKE}) as g:
                c = Client(g.path)
                devices = json.loads(c.control(request))["devices"]
                c.close()
                self.assertEqual({d["slice_ns"] for d in devices}, {slice_ns})
                return [(d["name"].split()[-1], d["present_as"]) for d in devices]

        self.assertEqual(shown(), [("One", "gpu"), ("Two", "accelerator")])
        self.assertEqual(shown("--device", "two"), [("Two", "accelerator")])
        self.assertEqual(shown("--device", "device:0,present-as=cpu"), [("One", "cpu")])
        self.assertEqual(shown("--device", "Two,present-as=gpu", "--device", "One"),
                         [("One", "gpu"), ("Two", "gpu")])
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("[gantryd]\ndevice = Fake:1\n[device Fake]\npresent-as = cpu\nslice = 30\n")
            f.flush()
            self.assertEqual(shown("--config", f.name, slice_ns=30000000), [("Two", "cpu")])
            self.assertEqual(shown("--config", f.name, "--slice", "12", slice_ns=30000000),
                             [("Two", "cpu")])
            self.assertEqual(shown("--config", f.name, "--device", "One", slice_ns=30000000),
                             [("One", "cpu")])
        self.assertEqual(shown("--slice", "12", "--device", "two", slice_ns=12000000),
                         [("Two", "accelerator")])

    def test_host_memory_is_not_shown_as_the_devices(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("[device One]\nmemory = 256M\nslot = 1M\n")
            f.flush()
            with Gantryd("--config", f.name, "--oversubscribe", "--swap-memory", "1G",
                         env={"OCL_ICD_VENDORS": FAKE}) as g:
                c = Client(g.path)
                devices = json.loads(c.control(b'{"version":1,"request":"devices"}'))["devices"]
                c.close()
                self.assertEqual([d["memory_bytes"] for d in devices], [256 << 20, 1 << 30])

    def test_another_users_program_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            os.chmod(g.dir, 0o755)
            os.chmod(g.path, 0o666)
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.setuid(65534)
                c = Client(g.path, greet=False)
                reply = c.ask(HELLO, hello())
                os.write(write, repr((reply.op, reply.error()[0], c.receive())).encode())
                os._exit(0)
            os.close(write)
            os.waitpid(pid, 0)
            self.assertEqual(os.read(read, 100), b"(8, 13, None)")
            os.close(read)

    def test_a_link_in_place_of_the_socket_keeps_its_targets_mode(self):
        with Gantryd(env={"OCL_ICD_VENDORS": FAKE}) as g:
            victim = os.path.join(g.dir, "victim")
            with open(victim, "w"):
                os.chmod(victim, 0o640)
            c = g.operator()
            os.rename(g.path, g.path + ".moved")
            os.symlink("victim", g.path)
            c.control(b'{"version":1,"request":"tenant-set","name":"default","uids":"any"}')
            self.assertEqual(os.stat(victim).st_mode & 0o777, 0o640)
            c.close()
            os.unlink(g.path)
            os.rename(g.path + ".moved", g.path)
            self.assertIn("another file has replaced the socket", g.stop()[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
