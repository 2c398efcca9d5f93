#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a vendor's driver with Gantry in front of it, call by call: a daemon of its own, then compare.py.

    gantry_test.py STAGE DIFFTEST pocl        the machine's drivers
    gantry_test.py STAGE DIFFTEST tcp         the same, over tcp
    gantry_test.py STAGE DIFFTEST passthrough the same, the vGPU in the program
    gantry_test.py STAGE DIFFTEST evict       the machine's drivers; all memory is evicted each time
    gantry_test.py STAGE DIFFTEST oclgrind ICD    a second, quite different driver, behind a lock (libserial-icd.so); what it crashes on
                                              by itself is left out, and misuse that it lets pass may be refused
    gantry_test.py STAGE DIFFTEST discrete ICD [MODE [OPTIONS [FAMILY]...]]    the emulated discrete GPU (libdiscrete-icd.so); MODE: remote or
                                              passthrough; OPTIONS: as in $DISCRETE
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))

sys.path.insert(0, os.path.join(HERE, "..", "discrete"))

import daemon   # noqa: E402
from device_state import Device     # noqa: E402

SKIP = 77
OCLGRIND = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
OCLGRIND_CASE_S = "30"
LEAST_EVICTIONS = {"a buffer": 500, "an image": 200}
LEAST_WITHOUT_COPY = 1000
# On which it hangs by itself, each for as long as a case may take.
OCLGRIND_HANGS = ("build.bad_options", "event.gate", "graph.overtaking", "callback.kinds", "process.leave_with_work")
# Where oclgrind itself departs from the specification, and Gantry does not follow it.
OCLGRIND_DEPARTS = {
    "subbuffer.create": "gives a CL_MEM_HOST_PTR to buffers that have none",
    "subbuffer.share": "gives a CL_MEM_HOST_PTR to buffers that have none",
    "map.flavours": "CL_MEM_MAP_COUNT is always 0",
    "map.nested": "CL_MEM_MAP_COUNT is always 0",
    "buffer.create_errors": "lets a buffer pass that is larger than the device's memory",
    "context.create": "appends memory to an empty list of properties",
    "context.create_errors": "lets a property pass that nobody knows",
    "image.errors": "answers an image query about a buffer with memory that nobody wrote",
    "imagedata.map_over_buffers": "tells a slice pitch of images that have no slices",
    "imagedata.map_used": "tells a slice pitch of images that have no slices",
    "extensions.functions": "does not know clIcdGetPlatformIDsKHR by platform",
    "pending.launches": "lets a launch pass whose size the kernel's work-groups do not divide",
    "pending.buffers": "lets a copy pass between a buffer and its part that overlap",
    "pending.images": "lets a copy pass whose regions of one image overlap",
}
# What cannot be had over tcp, and is not offered: memory at the same addresses on both machines.
TCP_LACKS_FAMILIES = {"svm", "svmuse"}
TCP_LACKS = {case: "has no shared virtual memory" for case in ("cmdbufuse.shared_memory", "pending.shared")}
# Cases that differ in these lines alone.
TCP_SAYS_SO = {"platform.device_info": "CL_DEVICE_SVM_CAPABILITIES", "subdevice.partition": "CL_DEVICE_SVM_CAPABILITIES"}


def lacks(case, lines):
    """Whether a difference over tcp is one of those above."""
    if case.split(".")[0] in TCP_LACKS_FAMILIES or case in TCP_LACKS:
        return True
    changed = [line for line in lines if line[4:5] in ("-", "+")]
    return case in TCP_SAYS_SO and changed and all(TCP_SAYS_SO[case] in line for line in changed)


def judge_tcp(output):
    cases, name = {}, None
    for line in output.splitlines():
        if line.startswith("FAIL "):
            name = line.split()[1]
            cases[name] = []
        elif name and line.startswith("    "):
            cases[name].append(line)
    wrong = sorted(name for name, lines in cases.items() if not lacks(name, lines))
    for name in sorted(cases):
        if name in wrong:
            print("FAIL {}\n{}".format(name, "\n".join(cases[name])))
        else:
            print("over tcp: {} {}".format(name, TCP_LACKS.get(name, "has no shared virtual memory")))
    last = output.splitlines()[-1:]
    print(*last)
    return 0 if not wrong and last and " passed, " in last[0] else 1


def on_discrete(command, env, device):
    """Both sides count on one device: it must have worked for each."""
    before = device.counts()
    program = command[command.index("--difftest") + 1]
    vendors = command[command.index("--vendors") + 1]
    subprocess.run([program, "--case", "buffer.create"], env={**env, "OCL_ICD_VENDORS": os.path.join(vendors, "")},
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    if device.counts()["creations"] == before["creations"]:
        print("FAIL Gantry does not use the emulated device")
        return 1
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode


def too_few_evictions(gantry):
    log, rc = gantry.log(), 0
    counts = {"evictions of " + kind: (log.count(" evicted {} of ".format(kind)), least)
              for kind, least in LEAST_EVICTIONS.items()}
    # What is not marked as written, and would be lost if it were.
    counts["evictions without a copy"] = (log.count(", 0 of them copied"), LEAST_WITHOUT_COPY)
    for what, (n, least) in counts.items():
        print("{} {}".format(n, what))
        if n < least:
            print("FAIL fewer than {}".format(least))
            rc = 1
    return rc


def main():
    stage, difftest, vendor = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    missing = daemon.stage_ready(stage)
    if missing:
        print("SKIP: " + missing)
        return SKIP
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, os.path.join(HERE, "compare.py"), "--difftest", difftest, "--quiet", "--lines", "20",
                   "--cache", daemon.shared_kernels("native-loops"), "--vendors", os.path.join(stage, "etc/OpenCL/vendors")]
        # A kernel that PoCL compiles wrongly by its default method is no difference of Gantry's, but it is a right answer's enemy.
        settings = {"POCL_WORK_GROUP_METHOD": "loops"}
        if vendor == "oclgrind":
            if not os.path.exists(OCLGRIND):
                print("SKIP: oclgrind is not installed: run 'make deps'")
                return SKIP
            vendors = os.path.join(work, "vendors")
            os.mkdir(vendors)
            with open(os.path.join(vendors, "oclgrind.icd"), "w", encoding="utf-8") as f:
                f.write(os.path.abspath(sys.argv[4]) + "\n")
            settings["OCL_ICD_VENDORS"] = vendors
            command += ["--native-vendors", vendors, "--skip-broken", "--lenient", "--timeout", OCLGRIND_CASE_S,
                        *(word for case in OCLGRIND_HANGS for word in ("--without", case))]
        if vendor == "evict":
            settings.update({"GANTRY_EVICT": "always", "GANTRY_LOG": "debug"})
        passthrough = vendor == "passthrough"
        if vendor == "discrete":
            icd, mode, options, *families = sys.argv[4:] + ["remote", ""][min(2, len(sys.argv) - 5):]
            os.chmod(work, 0o755)
            device = Device(icd, work, options)
            settings.update(device.env())
            command += ["--native-vendors", device.vendors, *families]
            passthrough = mode == "passthrough"
        args = ["--listen", "tcp:127.0.0.1:0", "--insecure"] if vendor == "tcp" else []
        with daemon.Daemon(stage, work, env=settings, args=args, cache=daemon.shared_kernels("loops"), passthrough=passthrough) as gantry:
            env = {**daemon.clean_env(), "GANTRY_CONNECT": gantry.tcp_address or gantry.address,
                   **{k: v for k, v in settings.items() if k.startswith(("POCL_", "DISCRETE"))}}
            if passthrough:
                env["GANTRY_MODE"] = "passthrough"
            if vendor == "tcp":
                result = subprocess.run(command + ["--lines", "400"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        text=True)
                return judge_tcp(result.stdout)
            if vendor == "discrete":
                return on_discrete(command, env, device)
            if vendor != "oclgrind":
                rc = subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode
                return rc or (vendor == "evict" and too_few_evictions(gantry))
            result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            print(result.stdout)
            failed = {line.split()[1] for line in result.stdout.splitlines() if line.startswith("FAIL ")}
            for case in sorted(failed & set(OCLGRIND_DEPARTS)):
                print("oclgrind departs from the specification: {} {}".format(case, OCLGRIND_DEPARTS[case]))
            ran = result.stdout.splitlines()[-1:] and " passed, " in result.stdout.splitlines()[-1]
            # Last, since a summary shows the end of a log.
            for case in sorted(failed - set(OCLGRIND_DEPARTS)):
                print("FAIL {} differs, and not by oclgrind's fault".format(case))
                print(result.stdout.split("FAIL " + case + "\n", 1)[1].split("\nok ", 1)[0])
            return 0 if ran and failed <= set(OCLGRIND_DEPARTS) else 1


if __name__ == "__main__":
    sys.exit(main())
