#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gantry sim: what it prints, in text and JSON, that a seed tells all, that memory is bounded, and that every mistake is one sentence."""

import json
import os
import re
import subprocess
import unittest

from commands_harness import ROOT, CommandTest
from man_test import items, page, plain, section

POLICIES = ["fair", "credit", "credit-hs", "strict", "rr", "xenocredit"]
NAMES = "start_ns,vgpu,tenant,kernel_ns\n"


class Sim(CommandTest):
    def sim(self, *args):
        p = self.prefix.run("sim", *args)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout

    def json(self, *args):
        text = self.sim(*args, "--json")
        self.assertEqual(text.count("\n"), 1)
        reply = json.loads(text)
        self.assertEqual(reply["version"], 1)
        return reply

    def run_of(self, *args):
        run, = self.json(*args)["runs"]
        return run

    # What it shows.

    def test_shares_by_weight(self):
        run = self.run_of("--tenant", "a:3", "--tenant", "b:1", "--time", "12s")
        self.assertEqual(run["policy"], "fair")
        self.assertEqual([round(t["share"], 3) for t in run["tenants"]], [0.75, 0.25])
        self.assertEqual([round(t["entitled"], 6) for t in run["tenants"]], [0.75, 0.25])
        self.assertGreater(run["fairness"], 0.99)
        self.assertEqual(run["busy"], 1)
        self.assertEqual(run["used_ns"], 12 * 10 ** 9)
        self.assertEqual(run["turns"], run["yields"] + 1)

    def test_the_table(self):
        lines = self.sim("--tenant", "a:3", "--tenant", "b:1,copies=2", "--time=12s").splitlines()
        self.assertEqual(lines[0], "1 device, 3 vGPUs, 12s; slice 6ms, spin 50us, seed 1")
        self.assertEqual(lines[2].split()[:5], ["TENANT", "WEIGHT", "VGPUS", "SHARE", "ENTITLED"])
        self.assertRegex(lines[3], r"^a +3 +1 +60\.0% +60\.0% +1\.00 .* =+\|$")
        self.assertRegex(lines[4], r"^b x2 +1 +2 +40\.0% +40\.0% +1\.00 ")
        self.assertRegex(lines[-1], r"^fair +(1\.000|0\.99\d) +100\.0% ")

    def test_the_picture(self):
        lines = self.sim("--tenant", "a:3", "--tenant", "b:1", "--policy", "rr").splitlines()
        bars = [re.search(r"[=|][=| ]*$", line).group() for line in lines[3:5]]
        # Half for each; entitled to three quarters and one: | stands behind the bar, and within it.
        self.assertEqual(bars, ["=" * 20 + " " * 10 + "|", "=" * 10 + "|" + "=" * 9])

    def test_several_policies_side_by_side(self):
        text = self.sim("--policy", "all", "--tenant", "a:3", "--tenant", "b:1", "--time", "1s")
        self.assertEqual(len(re.findall(r"^TENANT +" + " +".join(POLICIES) + "$", text, re.M)), 2)
        self.assertEqual(re.findall(r"^([a-z-]+) +\d\.\d{3} ", text, re.M), POLICIES)
        runs = self.json("--policy", "rr,fair", "--policy", "strict", "--tenant", "a")["runs"]
        self.assertEqual([run["policy"] for run in runs], ["rr", "fair", "strict"])

    def test_programs_have_a_table_where_it_says_more(self):
        text = self.sim("--tenant", "a", "--program", "p,tenant=a,kernel=200us,think=5ms", "--program", "q,tenant=a")
        self.assertRegex(text, r"(?m)^PROGRAM +TENANT +VGPUS ")
        self.assertNotIn("PROGRAM", self.sim("--tenant", "a"))

    def test_cost_is_the_real_clock_s_alone(self):
        run = self.run_of("--tenant", "a", "--tenant", "b", "--time", "1s", "--cost")
        self.assertEqual([c["vgpus"] for c in run["cost"]], [10, 100, 1000, 10000])
        self.assertIn("real_ns", run)
        del run["cost"], run["real_ns"]
        self.assertEqual(run, self.run_of("--tenant", "a", "--tenant", "b", "--time", "1s"))
        self.assertIn("real clock", self.sim("--tenant", "a", "--time", "1s", "--cost"))

    def test_a_seed_tells_all(self):
        args = ["--tenant", "a:2,kernel=exp:1ms,vgpus=3", "--tenant", "b,kernel=100us..3ms,think=exp:2ms", "--policy", "all"]
        self.assertEqual(self.sim(*args), self.sim(*args))
        self.assertNotEqual(self.sim(*args), self.sim(*args, "--seed", "2").replace("seed 2", "seed 1"))

    def test_a_file_and_options_together(self):
        path = self.file("lab.sim", "[sim]\ndevices = 2\npolicy = rr\npolicy = credit\ntime = 1s\n[tenant a]\nweight = 3\n[tenant b]\n")
        reply = self.json(path)
        self.assertEqual([run["policy"] for run in reply["runs"]], ["rr", "credit"])
        self.assertEqual(reply["time_ns"], 10 ** 9)
        reply = self.json("--policy", "fair", path, "--time", "2s", "--tenant", "c")
        self.assertEqual([run["policy"] for run in reply["runs"]], ["fair"])
        self.assertEqual(reply["time_ns"], 2 * 10 ** 9)
        self.assertEqual([t["name"] for t in reply["runs"][0]["tenants"]], ["a", "b", "c"])
        self.assertEqual(len(reply["runs"][0]["devices"]), 2)

    def test_a_recording(self):
        # Two launches at once, of 2 ms and 1 ms: the second waits for 2. Then one that nobody is in the way of.
        rows = [(0, "x", "a", 2000000), (0, "y", "b", 1000000), (10000000, "x", "a", 500000)]
        csv = NAMES + "".join("{},{},{},{}\n".format(*row) for row in rows)
        lines = "".join(json.dumps(dict(zip(NAMES.strip().split(","), row))) + "\n" for row in rows)
        self.file("day.csv", csv)
        runs = [self.run_of("--trace", self.file("day", text), "--spin", "0") for text in (csv, lines)]
        runs.append(self.run_of(self.file("lab.sim", "[sim]\ntrace = day.csv\nspin = 0\n")))
        for run in runs:
            self.assertEqual([t["used_ns"] for t in run["tenants"]], [2500000, 1000000])
            self.assertEqual([t["wait_longest_ns"] for t in run["tenants"]], [0, 2000000])
            self.assertEqual(run["kernels"], 3)
            self.assertEqual([p["name"] for p in run["programs"]], ["a.trace", "b.trace"])

    def test_ten_thousand_vgpus_on_a_hundred_devices(self):
        args = ["--devices", "100", "--tenant", "busy,copies=500,vgpus=10,kernel=2ms", "--tenant", "lazy,copies=5000,think=exp:1s"]
        peaks = []
        for time in ("200ms", "2s"):
            p = subprocess.Popen([self.prefix.gantry, "sim", *args, "--time", time, "--json"], stdout=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, env=self.prefix.env())
            run, = json.loads(p.stdout.read())["runs"]
            p.stdout.close()
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = status
            self.assertEqual(status, 0)
            self.assertEqual(run["vgpus"], 10000)
            self.assertEqual([d["vgpus"] for d in run["devices"]], [100] * 100)
            self.assertGreater(run["busy"], 0.99)
            peaks.append(usage.ru_maxrss)
        self.assertLess(peaks[1] - peaks[0], 8192)    # KiB: longer takes no more

    def test_memory(self):
        args = ["--memory", "8G", "--bus", "12G", "--tenant", "a,memory=3G,copies=3", "--tenant", "b,memory=3G,writes=50%,reserve=1G", "--time", "100s"]
        run = self.run_of(*args)
        device, = run["devices"]
        self.assertEqual(run["place"], "turn")
        self.assertEqual((device["slots"], device["slot_bytes"]), (128, 64 << 20))
        self.assertEqual(device["chunk_copies"] * (64 << 20), device["swap_in_bytes"])
        self.assertEqual(sum(p["swap_in_bytes"] for p in run["programs"]), run["swap_in_bytes"])
        self.assertEqual([p["memory_bytes"] for p in run["programs"]], [3 << 30, 3 << 30])
        self.assertEqual(run["tenants"][1]["reserve_bytes"], 1 << 30)
        self.assertGreater(run["swaps"], 4)
        self.assertLess(device["copier_busy"], 0.12)
        self.assertLessEqual(run["of_wait_bound"], 1)
        text = self.sim(*args)
        self.assertRegex(text, r"(?m)^PROGRAM +TENANT +VGPUS +MEMORY +SWAPS +IN +OUT +OTHERS BETWEEN$")
        self.assertRegex(text, r"(?m)^turn +%d +%d " % (run["swaps"], device["chunk_copies"]))
        self.assertNotIn("SWAPS", self.sim("--tenant", "a"))
        # A device's memory is no secret of a file.
        path = self.file("lab.sim", "[sim]\nmemory = 8G\nbus = 12G\ntime = 100s\n[tenant a]\nmemory = 3G\ncopies = 3\n"
                         "[tenant b]\nmemory = 3G\nwrites = 50%\nreserve = 1G\n")
        self.assertEqual(self.run_of(path), run)

    def test_placements_side_by_side(self):
        args = ["--memory", "320M", "--swap-share", "none", "--tenant", "a,memory=256M,copies=2", "--time", "1s"]
        runs = self.json(*args, "--place", "all")["runs"]
        self.assertEqual([run["place"] for run in runs], ["turn", "first-fit", "size", "utilization"])
        # DymGPU III.B: 4 and 4 on 5 slots share 3.
        self.assertEqual(runs[2]["devices"][0]["chunk_copies"], 4 + 3 * (runs[2]["turns"] - 1) + 1)
        text = self.sim(*args, "--place", "turn,size", "--policy", "fair,rr")
        self.assertRegex(text, r"(?m)^TENANT +fair/turn +fair/size +rr/turn +rr/size$")
        self.assertEqual(len(self.sim(*args, "--place", "all", "--policy", "all").splitlines()[4].split()), 2 + 24 * 2)

    # What is wrong.

    def test_bad_options(self):
        for says, *args in (
                ('--tenant a:0: "0" is not a weight', "--tenant", "a:0"),
                ('a cap of "1.5" is more than a device has', "--tenant", "a,cap=1.5"),
                ("the floors promise 110 % of a device", "--tenant", "a,floor=60%", "--tenant", "b,floor=50%"),
                ('the floor of "a" is above its cap', "--tenant", "a,floor=60%,cap=50%"),
                ('there is no policy "lottery"; write fair, credit, credit-hs, strict, rr, xenocredit or all', "--tenant", "a", "--policy", "lottery"),
                ("the policy fair is named twice", "--tenant", "a", "--policy", "fair,fair"),
                ("no tenants are described; try gantry sim --tenant a:3", ),
                ('"0" is not a number of devices', "--devices", "0"),
                ('"6" is not a time', "--slice", "6"),
                ("shows nothing", "--time", "0"),
                ('"-1" is not a seed', "--seed=-1"),
                ('there is no tenant "b"', "--tenant", "a", "--program", "p,tenant=b"),
                ('a second description of the tenant "a"', "--tenant", "a", "--tenant", "a"),
                ('there is no placement "left"; write turn, first-fit, size, utilization or all', "--tenant", "a", "--place", "left"),
                ("the placement turn is named twice", "--tenant", "a", "--place", "turn,turn"),
                ('"a" has memory, and the devices have none; give the devices a memory, too', "--tenant", "a,memory=1G"),
                ("the memory of a device is less than a slot", "--memory", "32M", "--tenant", "a"),
                ("a slot of no memory", "--slot", "0", "--tenant", "a"),
                ("the reserves are more than a device has", "--memory", "1G", "--tenant", "a,reserve=600M,copies=2"),
                ('"b" has more memory than a device has beside the reserves', "--memory", "1G", "--tenant", "a,reserve=512M", "--tenant", "b,memory=600M"),
                ('"much" is not a size', "--memory", "much"),
                ("is more than a device has", "--swap-share", "110%"),
                ("more than 100000 vGPUs", "--tenant", "a,copies=1000,vgpus=1000"),
                ('unknown key "colour"; the keys of [tenant NAME] are', "--tenant", "a,colour=blue"),
                ("unknown option --tenants; did you mean --tenant?", "--tenants", "a"),
                ("unknown option --connect", "--connect", "unix:/x"),
                ("needs a value", "--tenant"),
                ('unexpected argument "two"', "one", "two")):
            self.refused(2, says, "sim", *args)

    def test_bad_files(self):
        for says, text in (
                (':2: "0" is not a weight', "[tenant a]\nweight = 0\n"),
                (':3: a cap of "2" is more than a device has', "\n[tenant a]\ncap = 2\n"),
                (":4: with \"b\" the floors promise 130 % of a device", "[tenant a]\nfloor = 0.6\n[tenant b]\nfloor = 0.7\n"),
                (':2: there is no policy "lottery"', "[sim]\npolicy = lottery\n"),
                (':1: malformed line "hello"', "hello\n"),
                (':2: unknown key "devcies"', "[sim]\ndevcies = 1\n"),
                (':1: unknown section "gantryd"', "[gantryd]\n")):
            path = self.file("bad.sim", text)
            self.refused(1, path + says, "sim", path)
        for says, text in ((":1: there is no column", "1,2,3\n"), (":2: this is not a time", NAMES + "x,1,a,5\n"),
                           (":3: a second tenant of the vGPU", NAMES + "0,1,a,5\n0,1,b,5\n")):
            path = self.file("bad.csv", text)
            self.refused(1, path + says, "sim", "--trace", path)
        self.refused(1, "cannot read the workload " + self.dir + "/none", "sim", self.dir + "/none")
        self.refused(1, "cannot read the recorded workload /nonexistent/t", "sim", "--trace", "/nonexistent/t")
        self.refused(1, "not a file of at most 1 MiB", "sim", "/dev/zero")
        self.refused(1, "this is not a line of text", "sim", "--trace", "/dev/zero")

    def test_failures_in_json(self):
        p = self.prefix.run("sim", "--tenant", "a:0", "--json")
        self.sentence(p, 2, "gantry sim", "is not a weight")
        self.assertIn("is not a weight", json.loads(p.stdout)["error"]["why"])

    # The man page.

    def test_every_key_has_its_place(self):
        text = page("gantry-sim.1").replace(".TQ", ".TP")
        for title, example in (("[sim]", "[sim]"), ("[tenant NAME]", "[tenant x]"), ("[program NAME]", "[program x]")):
            p = self.prefix.run("sim", self.file("f", example + "\nno-such-key = 1\n"))
            known = set(re.split(r" and |, ", re.search(r"the keys of \[[\w ]+\] are (.*)", p.stderr).group(1)))
            documented = set(items(section(text, title)))
            if title == "[tenant NAME]":
                documented |= set(items(section(text, "[program NAME]"))) - {"tenant"}
            self.assertEqual(documented, known, title)
        self.assertEqual(items(section(text, "RECORDINGS")), NAMES.strip().split(","))

    def test_every_field_of_json(self):
        with open(os.path.join(ROOT, "src", "ctl", "sim_json.c"), encoding="utf-8") as f:
            keys = re.findall(r'json_object_set_new\(\w+, "(\w+)"', f.read())
        documented = set(re.findall(r"\w+", plain(section(page("gantry-sim.1"), "JSON"))))
        self.assertEqual(set(keys) - documented, set())

    def test_the_man_pages_file_is_one(self):
        example = plain(section(page("gantry-sim.1"), "EXAMPLES").split(".EX\n")[2].split(".EE")[0])
        run = self.run_of(self.file("lab.sim", example), "--time", "20s")
        self.assertEqual([t["name"] for t in run["tenants"]], ["research", "web", "students"])

    def test_the_examples_of_the_help_are_fair(self):
        shown = self.prefix.run("sim", "--help").stdout.split("Examples:\n")[1].splitlines()
        examples = [line.split()[2:] for line in shown if ".sim" not in line and "--policy" not in line]
        self.assertGreater(len(examples), 1)
        for example in examples:
            p = self.prefix.run("sim", *example, "--json", check=True)
            self.assertGreater(json.loads(p.stdout)["runs"][0]["fairness"], 0.9, example)


if __name__ == "__main__":
    unittest.main(verbosity=2)
