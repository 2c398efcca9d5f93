#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the differential test program on two drivers and compares their transcripts case by case.

  compare.py --vendors DIR [FAMILY]...       the machine's drivers against those that DIR's .icd files name
  compare.py --native-vendors A --vendors B  the same with another reference (a second driver, oclgrind)
  compare.py --self [RUNS]                   the reference against itself: shows records that are not stable
  compare.py --baseline FILE                 a saved transcript (--save FILE) as the reference

The environment is passed on, so a daemon's address or a driver's own settings come from there. Nothing in a transcript
is rewritten; the lists of extensions alone may be shorter than the reference's. The last line is 'N passed, N failed'; the exit status is 1 when anything differs, 2 for a misuse.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

BROKEN = (" CRASH ", " HANG", " EXIT ", "setup failed", "no platform ")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--difftest", help="the test program; default: the one beside this script or in DIFFTEST")
    parser.add_argument("--vendors", metavar="DIR", help="directory of .icd files of the driver under test")
    parser.add_argument("--native-vendors", metavar="DIR", help="the reference's; default: the system's")
    parser.add_argument("--platform", default="0", help="platform index of the driver under test")
    parser.add_argument("--native-platform", default="0", help="platform index of the reference")
    parser.add_argument("--self", type=int, nargs="?", const=5, default=0, metavar="RUNS", dest="self_runs")
    parser.add_argument("--baseline", metavar="FILE", help="transcript to compare with instead of a reference run")
    parser.add_argument("--save", metavar="FILE", help="keep the reference's transcript")
    parser.add_argument("--save-other", metavar="FILE", help="keep the transcript of the driver under test")
    parser.add_argument("--case", action="append", default=[], help="a single case, FAMILY.NAME")
    parser.add_argument("--without", action="append", default=[], metavar="CASE", help="a case that is left out")
    parser.add_argument("--skip-broken", action="store_true",
                        help="leave out cases on which the reference itself crashes, hangs, cannot start or differs "
                             "from one run to the next")
    parser.add_argument("--lenient", action="store_true",
                        help="the reference lets misuse pass that the specification refuses: what it calls a success may be "
                             "an error behind the driver under test, a failed event may have another negative status")
    parser.add_argument("--lines", type=int, default=12, help="differing lines shown for a case")
    parser.add_argument("--timeout", default="60", help="seconds for one case")
    parser.add_argument("--cache", metavar="DIR", help="POCL_CACHE_DIR of the runs")
    parser.add_argument("--quiet", action="store_true", help="print failing cases only")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    if not options.vendors and not options.self_runs and not options.save and not options.baseline:
        parser.error("one of --vendors, --self, --baseline, --save is needed")
    return options


def find_program(options):
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (options.difftest, os.environ.get("DIFFTEST"), os.path.join(here, "difftest")):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("compare.py: no test program: name it with --difftest")


def listed(program, *chosen):
    return subprocess.run([program, "--list", *chosen], stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def select(program, options):
    """The families or cases to run. Native kernels are left out unless named: they cannot leave their process."""
    chosen = options.families + [word for name in options.case for word in ("--case", name)]
    if not chosen:
        chosen = sorted({name.split(".")[0] for name in listed(program)} - {"native"})
    if options.without:
        chosen = [word for name in listed(program, *chosen) if name not in options.without for word in ("--case", name)]
    return chosen


def run(program, options, vendors, platform, work):
    env = dict(os.environ)
    env.pop("OCL_ICD_VENDORS", None)
    env.setdefault("POCL_CACHE_DIR", options.cache or os.path.join(os.path.dirname(program), "pocl-cache"))
    if options.cache:
        env["POCL_CACHE_DIR"] = options.cache
    os.makedirs(env["POCL_CACHE_DIR"], exist_ok=True)
    if vendors:
        # A trailing slash says "a directory" to both loaders.
        env["OCL_ICD_VENDORS"] = env["OPENCL_VENDOR_PATH"] = os.path.join(os.path.abspath(vendors), "")
    command = [program, "--platform", platform, "--timeout", options.timeout] + select(program, options)
    with open(os.path.join(work, "stderr"), "ab") as errors:
        done = subprocess.run(command, env=env, cwd=work, stdout=subprocess.PIPE, stderr=errors, check=False)
    if done.returncode:
        sys.exit(f"compare.py: {' '.join(command)} ended with {done.returncode}")
    return done.stdout.decode("utf-8", "backslashreplace")


def cases_of(transcript):
    cases, lines = {}, None
    for line in transcript.splitlines():
        if line.startswith("=== "):
            lines = cases.setdefault(line[4:], [])
        elif lines is not None:
            lines.append(line)
    return cases


def is_broken(lines):
    return not lines or any(mark in line for line in lines for mark in BROKEN) or lines[-1].startswith("=== ")


def extensions_of(line):
    """The line without its list and size, and the list as (name, version) pairs."""
    found = re.match(r"(.*_EXTENSIONS(?:_WITH_VERSION)?\)) -> CL_SUCCESS size \d+ = (.*?)(; larger.*)$", line)
    if not found:
        return line, []
    words = [word.partition("=") for word in found[2].strip('"').split()]
    return found[1] + found[3], [(name, version) for name, _, version in words]


def same_extensions(expected, actual):
    """Extensions may be fewer, since one whose entry points are not carried is not advertised; none may be new, out of
    order or of another version. cl_khr_icd is the loader's: its version is the ICD's own."""
    if len(expected) != len(actual):
        return False
    for left, right in zip(expected, actual):
        (text, all_names), (other_text, names) = extensions_of(left), extensions_of(right)
        kept = [(name, "" if name == "cl_khr_icd" else version) for name, version in names]
        allowed = [(name, "" if name == "cl_khr_icd" else version) for name, version in all_names]
        if text != other_text or kept != [pair for pair in allowed if pair in kept]:
            return False
    return True


def strip_status(line):
    return re.sub(r"status -\d+$", "status negative", line)


def only_refuses(expected, actual):
    """Whether the other differs in nothing but that it refuses calls which the reference lets pass."""
    if len(expected) != len(actual):
        return False
    for left, right in zip(expected, actual):
        text, _, good = left.partition(" -> ")
        other_text, _, bad = right.partition(" -> ")
        refused = text == other_text and re.match(r"(\w+(#\d+)? )?CL_SUCCESS\b", good) and \
            re.fullmatch(r"CL_(INVALID_\w+|PROFILING_INFO_NOT_AVAILABLE)", bad)
        if not refused and strip_status(left) != strip_status(right):
            return False
    return True


def show(expected, actual, limit):
    shown = 0
    for line in difflib.unified_diff(expected, actual, "reference", "other", lineterm="", n=1):
        if line.startswith(("---", "+++")):
            continue
        print("    " + (line if len(line) < 400 else line[:400] + "..."))
        shown += 1
        if shown >= limit:
            print("    ...")
            return


def compare(reference, other, unstable, options):
    passed = failed = 0
    for name in list(reference) + [name for name in other if name not in reference]:
        expected, actual = reference.get(name, []), other.get(name, [])
        if is_broken(expected):
            if options.skip_broken:
                print(f"skip {name} (the reference itself fails)")
                continue
            print(f"FAIL {name} (the reference itself fails)")
            print("    " + (expected[-1] if expected else "(missing)"))
            failed += 1
        elif name in unstable:
            print(f"skip {name} (the reference differs from itself)")
        elif expected != actual and options.lenient and only_refuses(expected, actual):
            print(f"ok   {name} ({len(expected)} lines, some refused that the reference lets pass)")
            passed += 1
        elif expected != actual and not (name == "extensions.lists" and same_extensions(expected, actual)):
            print(f"FAIL {name}")
            show(expected, actual, options.lines)
            failed += 1
        else:
            if not options.quiet:
                print(f"ok   {name} ({len(expected)} lines)")
            passed += 1
    return passed, failed


def main():
    options = parse_arguments()
    program = find_program(options)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="difftest-") as work:
        if options.baseline:
            with open(options.baseline, encoding="utf-8") as file:
                text = file.read()
        else:
            text = run(program, options, options.native_vendors, options.native_platform, work)
        if options.save:
            with open(options.save, "w", encoding="utf-8") as file:
                file.write(text)
        reference = cases_of(text)
        others, unstable = [], set()
        if options.skip_broken and not options.self_runs and not options.baseline:
            again = cases_of(run(program, options, options.native_vendors, options.native_platform, work))
            unstable = {name for name in reference if again.get(name) != reference[name]}
        if options.vendors:
            others.append((options.vendors, options.platform))
        others += [(options.native_vendors, options.native_platform)] * options.self_runs
        if options.baseline and not others:
            others.append((options.native_vendors, options.native_platform))
        for vendors, platform in others:
            text = run(program, options, vendors, platform, work)
            if options.save_other:
                with open(options.save_other, "w", encoding="utf-8") as file:
                    file.write(text)
            good, bad = compare(reference, cases_of(text), unstable, options)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or (others and not passed) else 0


if __name__ == "__main__":
    sys.exit(main())
