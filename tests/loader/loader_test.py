#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives khronos-like (see khronos_like.c).

    loader_test.py checks KHRONOS_LIKE FAKE_DIR     the checks themselves: a right driver passes, each fault is found
    loader_test.py vendor KHRONOS_LIKE              the drivers of this machine, as far as cl_khr_icd goes
    loader_test.py gantry KHRONOS_LIKE STAGE        Gantry, with a daemon and without one
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))

import daemon   # noqa: E402

SKIP = 77

# What the check must say about fake_icd.c built with each FAULT, in the order of its numbers.
FAULTS = ["ok", "clFinish, is NULL", "in one of clGetPlatformIDs and clUnloadCompiler only", "clIcdSetPlatformDispatchDataKHR is not",
          "does not carry its platform's dispatch_data", "libOpenCL.so", "knows a function that does not exist",
          "cl_khr_icd is not among", "other handles when asked again", "lets itself be unloaded"]


def run(command, env=None):
    result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
    return result.returncode, result.stdout.decode(errors="replace").strip(), result.stderr.decode(errors="replace")


def expect(title, ok, detail):
    print("{} {}{}".format("ok  " if ok else "FAIL", title, "" if ok else ": " + detail), flush=True)
    return ok


def checks(tool, fakes):
    good = True
    for fault, sentence in enumerate(FAULTS):
        status, out, err = run([tool, os.path.join(fakes, "libfake-icd-{}.so".format(fault)), "--load-only"])
        good &= expect("fault {}".format(fault), status == (fault != 0) and sentence in out,
                       "status {}, '{}' is not in '{}' {}".format(status, sentence, out, err))
    return good


def vendor(tool):
    folder = "/etc/OpenCL/vendors"
    libraries = []
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        if name.endswith(".icd") and "gantry" not in name:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                libraries.append(f.readline().strip())
    if not libraries:
        print("SKIP: no driver in " + folder)
        sys.exit(SKIP)
    good = True
    with tempfile.TemporaryDirectory() as cache:
        for library in libraries:
            status, out, err = run([tool, library, "--vendor"], {**daemon.clean_env(), "POCL_CACHE_DIR": cache})
            good &= expect(library, status == 0, "{} {}".format(out, err))
    return good


def gantry(tool, stage):
    reason = daemon.stage_ready(stage)
    if reason:
        print("SKIP: " + reason)
        sys.exit(SKIP)
    library = os.path.join(os.path.abspath(stage), "lib", "libgantry-opencl.so")
    with tempfile.TemporaryDirectory() as work:
        with daemon.Daemon(stage, work) as server:
            status, out, err = run([tool, library], server.program_env())
            good = expect("with a daemon", status == 0 and err == "", "{} {}\n{}".format(out, err, server.log()[-2000:]))
        # The socket is gone now: no platform, one line that says so, and a library that may be closed again.
        status, out, err = run([tool, library, "--no-platform"], server.program_env())
        good &= expect("without a daemon", status == 0 and out == "ok: no platform" and "no gantryd listens at" in err and err.count("\n") == 1,
                       "{} {}".format(out, err))
    return good


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    return 0 if {"checks": checks, "vendor": vendor, "gantry": gantry}[what](*arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
