#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man pages against the programs: each option, command, configuration key and field of --help and of the code is in its page,
and nothing else is. Also whether groff has anything to complain about."""

import os
import re
import shutil
import subprocess
import unittest

from commands_harness import FAKE, ROOT, CommandTest, Prefix

MAN = os.path.join(ROOT, "man")


def plain(text):
    """Without roff's escapes and fonts."""
    text = re.sub(r"\\f[PBIR]", "", text)
    return text.replace("\\-", "-").replace("\\(bu", "*").replace("\\ ", " ").replace("\\&", "")


def page(name):
    with open(os.path.join(MAN, name), encoding="utf-8") as f:
        return f.read()


def section(text, title):
    return text.split("\n.SH " + title + "\n", 1)[1].split("\n.SH ", 1)[0]


def items(text):
    """What the .TP paragraphs of a piece of a page are about, one line each."""
    lines = plain(text).splitlines()
    return [re.sub(r"^\.[BIR]+ ", "", lines[i + 1]) for i, line in enumerate(lines) if line == ".TP"]


def options(words):
    return sorted(set(re.findall(r"--[a-z][a-z-]*", " ".join(words))))


def options_of_help(text):
    """The words that begin its indented lines of options, not its examples."""
    found = []
    for line in text.split("\nExamples:")[0].splitlines():
        match = re.match(r"  (--[a-z-]+(?:, --[a-z-]+)*)", line)
        if match:
            found += options([match.group(1)])
    return sorted(found)


class Pages(CommandTest):
    def help(self, *command):
        p = subprocess.run([*command, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                           env=self.prefix.env())
        return p.stdout

    def commands(self):
        text = self.help(self.prefix.gantry).split("Commands:\n")[1].split("\n\n")[0]
        return [line.split()[0] for line in text.splitlines()]

    def test_every_option_has_its_place(self):
        pages = [("gantry.1", [self.prefix.gantry]), ("gantryd.8", [os.environ["GANTRYD"]])]
        pages += [("gantry-{}.1".format(c), [self.prefix.gantry, c]) for c in self.commands() if c != "help"]
        for name, command in pages:
            shown = options_of_help(self.help(*command))
            self.assertTrue(shown, name)
            self.assertEqual(options(items(section(page(name), "OPTIONS"))), shown, name)

    def test_every_option_is_taken(self):
        """What --help lists the command line knows. Without its value, or with one where there is none, nothing is done."""
        for command in self.commands():
            for option in options_of_help(self.help(self.prefix.gantry, command)):
                if option.startswith("--") and option != "--help":
                    p = subprocess.run([self.prefix.gantry, command, option.split()[0] + "="], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env=self.prefix.env(), check=False)
                    self.assertNotIn("unknown option", p.stderr, (command, option))

    def test_every_command_has_its_place(self):
        text = page("gantry.1")
        self.assertEqual(items(section(text, "COMMANDS")), self.commands())
        for command in self.commands():
            if command != "help":
                self.assertIn(".BR gantry\\-{} (1)".format(command), text)

    def test_every_page_is_installed_and_referred_to(self):
        with open(os.path.join(MAN, "meson.build"), encoding="utf-8") as f:
            installed = re.findall(r"'([\w.-]+\.[158])'", f.read())
        self.assertEqual(sorted(installed), sorted(name for name in os.listdir(MAN) if name != "meson.build"))
        for name in installed:
            self.assertTrue(page(name).startswith('.\\" SPDX-License-Identifier: Apache-2.0\n.TH '), name)
            for other, number in re.findall(r"\.BR (\S+) \((\d)\)", page(name)):
                self.assertIn("{}.{}".format(other.replace("\\-", "-"), number), installed, name)

    def test_the_version_is_this_one(self):
        version = self.prefix.run("--version").stdout.split()[1]
        for name in os.listdir(MAN):
            if name != "meson.build":
                self.assertIn('"Gantry {}"'.format(version), page(name).splitlines()[1], name)

    def test_every_configuration_key(self):
        """gantryd itself names the keys that it knows."""
        def complaint(text):
            path = self.file("conf", text)
            p = subprocess.run([os.environ["GANTRYD"], "--config", path, "--socket", os.path.join(self.dir, "s")],
                               stderr=subprocess.PIPE, text=True, env=self.prefix.env(), stdin=subprocess.DEVNULL)
            self.assertEqual(p.returncode, 1)
            return p.stderr
        text = page("gantry.conf.5")
        for title, example, sentence in (("[gantryd]", "[gantryd]", r"the keys of \[gantryd\] are (.*)"),
                                         ("[device NAME]", "[device x]", r"the keys of \[device NAME\] are (.*)"),
                                         ("[tenant NAME]", "[tenant x]", r"the keys of \[tenant NAME\] are (.*)")):
            known = re.search(sentence, complaint(example + "\nno-such-key = 1\n")).group(1)
            documented = items(section(text, title))
            self.assertEqual(documented, re.split(r" and |, ", known))
            for key in documented:
                self.assertIn("no value for", complaint("{}\n{} =\n".format(example, key)))
        sections = re.findall(r"\n\.SH (\[.*\])\n", text)
        self.assertIn("the sections are {}, {} and {}".format(*sections), complaint("[no-such-section]\n"))

    def test_the_examples_configuration_is_one(self):
        example = plain(page("gantry.conf.5").split(".EX\n")[1].split(".EE")[0])
        example = example.replace("/run/gantry/gantry.sock", os.path.join(self.dir, "s")).replace("pthread", "no-such-device")
        p = subprocess.run([os.environ["GANTRYD"], "--config", self.file("conf", example)], stderr=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL, env={**self.prefix.env(), "OCL_ICD_VENDORS": FAKE, "GANTRY_WORKER": os.environ["GANTRY_WORKER"]})
        # Read whole and understood: all that is wrong is the device's name.
        self.assertEqual(p.stderr.count("\n"), 1)
        self.assertIn('contains "no-such-device"', p.stderr)

    def test_every_field_of_json(self):
        with open(os.path.join(ROOT, "src", "control", "control.c"), encoding="utf-8") as f:
            code = f.read()
        for function, name in (
                ("add_vgpu", "gantry-ls.1"), ("add_moving", "gantry-ls.1"),
                ("add_share", "gantry-ls.1"), ("add_placed", "gantry-ls.1"),
                ("add_policy", "gantry-policy.1"), ("add_device", "gantry-devices.1"),
                ("add_slots", "gantry-devices.1"), ("add_tenant", "gantry-tenant.1")):
            body = code.split("static void {}(".format(function))[1].split("\n}\n")[0]
            documented = set(re.findall(r"[a-z_]+", section(page(name), "JSON")))
            for key in re.findall(r'json_object_set_new\(\w+, "(\w+)"', body):
                self.assertIn(key, documented, name)

    def test_every_check_of_doctor(self):
        checks = set()
        for where, _, names in os.walk(os.path.join(ROOT, "src", "ctl")):
            for name in names:
                if name.startswith("doctor"):
                    with open(os.path.join(where, name), encoding="utf-8") as f:
                        text = f.read()
                    checks |= set(re.findall(r'gn_doctor_add\(d, "([a-z ]+)"', text))
                    checks |= set(re.findall(r'check\[\] = "([a-z ]+)"', text))
        documented = [word for item in items(section(page("gantry-doctor.1"), "DESCRIPTION")) for word in item.split(", ")]
        self.assertEqual(sorted(word.strip(" ,") for word in documented), sorted(checks))

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for name in os.listdir(MAN):
            if name != "meson.build":
                p = subprocess.run(["groff", "-ww", "-z", "-man", "-Tutf8", os.path.join(MAN, name)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
                self.assertEqual((p.returncode, p.stdout), (0, ""), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
