#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a vendor's driver with Gantry in front of it, call by call: a daemon of its own, then compare.py.

    gantry_test.py STAGE DIFFTEST pocl        the machine's drivers
    gantry_test.py STAGE DIFFTEST oclgrind    a second, quite different driver; what it crashes on by itself is left out
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
            command += ["--native-vendors", vendors, "--skip-broken", "--timeout", OCLGRIND_CASE_S]
        with daemon.Daemon(stage, work, env=settings) as gantry:
            env = {**daemon.clean_env(), "GANTRY_CONNECT": gantry.address,
                   **{k: v for k, v in settings.items() if k.startswith("POCL_")}}
            return subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
