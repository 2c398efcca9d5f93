#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a vendor's driver with Gantry in front of it, call by call: a daemon of its own, then compare.py.

    gantry_test.py STAGE DIFFTEST pocl        the machine's drivers
    gantry_test.py STAGE DIFFTEST oclgrind    a second, quite different driver; what it crashes on by itself is left out,
                                              and misuse that it lets pass may be refused
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))

import daemon   # noqa: E402

SKIP = 77
OCLGRIND = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
OCLGRIND_CASE_S = "10"
# Where oclgrind itself departs from the specification, and Gantry does not follow it.
OCLGRIND_DEPARTS = {
    "subbuffer.create": "gives a CL_MEM_HOST_PTR to buffers that have none",
    "subbuffer.share": "gives a CL_MEM_HOST_PTR to buffers that have none",
    "map.flavours": "CL_MEM_MAP_COUNT is always 0",
    "map.nested": "CL_MEM_MAP_COUNT is always 0",
    "context.create": "appends memory to an empty list of properties",
    "image.errors": "answers an image query about a buffer with memory that nobody wrote",
    "extensions.functions": "does not know clIcdGetPlatformIDsKHR by platform",
}


def main():
    stage, difftest, vendor = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    missing = daemon.stage_ready(stage)
    if missing:
        print("SKIP: " + missing)
        return SKIP
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, os.path.join(HERE, "compare.py"), "--difftest", difftest, "--quiet", "--lines", "20",
                   "--cache", os.path.join(work, "native-cache"), "--vendors", os.path.join(stage, "etc/OpenCL/vendors")]
        # A kernel that PoCL compiles wrongly by its default method is no difference of Gantry's, but it is a right answer's enemy.
        settings = {"POCL_WORK_GROUP_METHOD": "loops"}
        if vendor == "oclgrind":
            if not os.path.exists(OCLGRIND):
                print("SKIP: oclgrind is not installed: run 'make deps'")
                return SKIP
            vendors = os.path.join(work, "vendors")
            os.mkdir(vendors)
            with open(os.path.join(vendors, "oclgrind.icd"), "w", encoding="utf-8") as f:
                f.write(OCLGRIND + "\n")
            settings["OCL_ICD_VENDORS"] = vendors
            command += ["--native-vendors", vendors, "--skip-broken", "--lenient", "--timeout", OCLGRIND_CASE_S]
        with daemon.Daemon(stage, work, env=settings) as gantry:
            env = {**daemon.clean_env(), "GANTRY_CONNECT": gantry.address,
                   **{k: v for k, v in settings.items() if k.startswith("POCL_")}}
            if vendor != "oclgrind":
                return subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode
            result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            print(result.stdout)
            failed = {line.split()[1] for line in result.stdout.splitlines() if line.startswith("FAIL ")}
            for case in sorted(failed & set(OCLGRIND_DEPARTS)):
                print("oclgrind departs from the specification: {} {}".format(case, OCLGRIND_DEPARTS[case]))
            ran = result.stdout.splitlines()[-1:] and " passed, " in result.stdout.splitlines()[-1]
            return 0 if ran and failed <= set(OCLGRIND_DEPARTS) else 1


if __name__ == "__main__":
    sys.exit(main())
