#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry run: the program's output, environment and end are its own; Gantry's failures have exit statuses of their own."""

import os
import signal
import subprocess
import unittest

from commands_harness import CommandTest, Prefix


class Run(CommandTest):
    daemon = True

    def run_program(self, *args, **how):
        how.setdefault("address", self.address)
        return self.prefix.run("run", *args, **how)

    def environment(self, *args, **how):
        p = self.run_program(*args, "--", "env", "-0", **how)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return dict(item.split("=", 1) for item in p.stdout.split("\0") if item)

    def test_exit_statuses_are_the_programs(self):
        for status in (0, 1, 2, 7, 125, 255):
            p = self.run_program("--", "sh", "-c", "exit {}".format(status))
            self.assertEqual((p.returncode, p.stdout, p.stderr), (status, "", ""))

    def test_a_signals_end_is_the_programs(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE):
            p = self.run_program("--", "sh", "-c", "kill -{} $$".format(int(number)))
            self.assertEqual((p.returncode, p.stdout, p.stderr), (-number, "", ""))
        shell = subprocess.run(["sh", "-c", '"$0" run -- sh -c \'kill -9 $$\'; echo $?', self.prefix.gantry],
                               env=self.prefix.env(self.address), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(shell.stdout, "137\n")

    def test_a_program_that_is_not_there_or_cannot_be_run(self):
        plain = self.file("plain", "echo hello\n")
        headless = self.file("headless", "#!/nonexistent/interpreter\n", 0o755)
        for status, program, says in ((127, "no-such-program-anywhere", "there is no program no-such-program-anywhere"),
                                      (127, "/nonexistent/x", "there is no program /nonexistent/x"),
                                      (127, "", "there is no program"),
                                      (126, self.dir, "Permission denied"),
                                      (126, plain, "Permission denied; make it executable (chmod +x)"),
                                      (126, headless, "its interpreter may be missing")):
            self.refused(status, says, "run", "--", program, address=self.address)

    def test_streams_are_the_programs(self):
        raw = bytes(range(256)) * 300
        p = subprocess.run([self.prefix.gantry, "run", "--", "sh", "-c", "cat; echo complaint >&2"], input=raw,
                           env=self.prefix.env(self.address), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((p.returncode, p.stderr), (0, b"complaint\n"))
        self.assertEqual(p.stdout, raw)

    def test_it_becomes_the_program(self):
        with subprocess.Popen([self.prefix.gantry, "run", "--", "sh", "-c", "echo $$; ls /proc/self/fd"],
                              env=self.prefix.env(self.address), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as p:
            pid, *descriptors = p.stdout.read().split()
        self.assertEqual((int(pid), p.returncode), (p.pid, 0))
        self.assertEqual(descriptors, ["0", "1", "2", "3"])     # ls has its directory open

    def test_arguments_arrive_as_they_are(self):
        words = ["--json", "", "a b", "--", "-h", "$HOME", "\n"]
        p = self.run_program("printf", "[%s]", *words)
        self.assertEqual(p.stdout, "".join("[{}]".format(word) for word in words))
        self.assertEqual(self.run_program("--", "printf", "%s", "--help").stdout, "--help")

    def test_the_environment_for_loaders(self):
        env = self.environment(env={"KEPT": "yes", "OCL_ICD_FILENAMES": "/other/driver.so"})
        self.assertEqual(env["OCL_ICD_VENDORS"], self.prefix.vendors)
        self.assertEqual(env["OCL_ICD_FILENAMES"], self.prefix.library)
        self.assertEqual(env["GANTRY_CONNECT"], self.address)
        self.assertEqual(env["KEPT"], "yes")
        self.assertEqual({name for name in env if name.startswith("GANTRY_")}, {"GANTRY_CONNECT"})

    def test_other_drivers_beside_gantry_are_not_offered(self):
        crowded = Prefix()
        self.addCleanup(crowded.close)
        with open(os.path.join(crowded.vendors, "other.icd"), "w", encoding="utf-8") as f:
            f.write("libother.so\n")
        p = crowded.run("run", "printenv", "OCL_ICD_VENDORS", address=self.address)
        self.assertEqual(p.stdout, crowded.icd + "\n")

    def test_usr_has_its_etc_beside_it(self):
        system = Prefix(below="usr")
        self.addCleanup(system.close)
        p = system.run("run", "printenv", "OCL_ICD_VENDORS", address=self.address)
        self.assertEqual((p.stdout, p.stderr), (system.vendors + "\n", ""))

    def test_found_through_a_link(self):
        link = os.path.join(self.dir, "gantry")
        os.symlink(self.prefix.gantry, link)
        p = subprocess.run([link, "run", "printenv", "OCL_ICD_VENDORS"], env=self.prefix.env(self.address), stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.stdout, self.prefix.vendors + "\n")

    def test_options_become_the_programs_environment(self):
        for name in ("team.a", "mine"):
            self.assertEqual(self.prefix.run("tenant", "add", name, "--uid", str(os.getuid()), address=self.address).returncode, 0)
        env = self.environment("--tenant", "team.a", "--weight", "250", "--memory=3G", "--mode", "remote")
        self.assertEqual([env["GANTRY_" + name] for name in ("TENANT", "WEIGHT", "MEMORY", "MODE")],
                         ["team.a", "250", str(3 << 30), "remote"])
        env = self.environment("--weight=9", env={"GANTRY_TENANT": "mine", "GANTRY_WEIGHT": "1"})
        self.assertEqual((env["GANTRY_TENANT"], env["GANTRY_WEIGHT"]), ("mine", "9"))

    def test_a_token_file_becomes_the_programs_token(self):
        token = self.file("token", "0123456789abcdef-\n", 0o600)
        p = self.prefix.run("tenant", "add", "guarded", "--token-file", token, address=self.address)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))
        env = self.environment("--tenant", "guarded", "--token-file", token)
        self.assertEqual((env["GANTRY_TENANT"], env["GANTRY_TOKEN"]), ("guarded", "0123456789abcdef-"))
        touch = ["--", "touch", os.path.join(self.dir, "was-run")]
        for args, says in ((["--token-file", self.file("wrong", "0123456789abcdef"), "--tenant", "guarded"], "the token is not that of"),
                           (["--token-file", self.file("short", "0123")], "16 to 255 characters, not 4"),
                           (["--token-file", self.file("empty")], "is empty"),
                           (["--token-file", "/nonexistent"], "No such file"), (["--tenant", "nobody"], 'may not attach to "nobody"')):
            self.refused(125, says, "run", *args, *touch, address=self.address)

    def test_a_relative_address_still_holds_elsewhere(self):
        p = self.run_program("--connect", "unix:s", "--", "sh", "-c", "cd / && printenv GANTRY_CONNECT", address=None,
                             cwd=os.path.dirname(self.gantryd.path))
        self.assertEqual(p.stdout, self.address + "\n")

    def test_gantrys_failures(self):
        touch = ["--", "touch", os.path.join(self.dir, "was-run")]
        gone = "unix:" + os.path.join(self.dir, "s")
        for args, says in (([*touch], "no gantryd listens at " + gone + "; start gantryd"),
                           (["--connect", "here", *touch], "is not an address")):
            self.refused(125, says, "run", *args, address=gone)
        for args, says in (([], "no program is given; write gantry run -- PROGRAM"), (["--"], "no program is given"),
                           (["--wieght", "3", *touch], "unknown option --wieght; did you mean --weight?"),
                           (["--json", *touch], "unknown option --json"),
                           (["--mode", "native", *touch], "is not a mode"), (["--weight", "0", *touch], "is not a weight"),
                           (["--memory", "1X", *touch], "is not a size"), (["--memory"], "needs a value"),
                           (["--tenant", "a/b", *touch], "is not a tenant's name")):
            self.refused(125, says, "run", *args, address=self.address)

    def test_an_installation_that_is_not_whole(self):
        for icd, says in ((None, "cannot read Gantry's ICD file"), ("\n", "names no library"), ("/nonexistent/lib.so\n", "cannot read the library")):
            broken = Prefix()
            self.addCleanup(broken.close)
            os.unlink(broken.icd)
            if icd:
                with open(broken.icd, "w", encoding="utf-8") as f:
                    f.write(icd)
            p = broken.run("run", "true", address=self.address)
            self.sentence(p, 125, "gantry run", says)
            self.assertIn("install Gantry as a whole", p.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
