#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which entry points and query names of CL/cl.h, and of the extensions that Gantry carries, no case of the
differential test program reaches.

  coverage.py TRANSCRIPT...      transcripts as difftest or compare.py --save write them
  coverage.py --run DIFFTEST     runs the program itself, natively, first

Fails when an entry point is never called or a query name never asked.
"""

import argparse
import os
import re
import subprocess
import sys

HEADER = "/usr/include/CL/cl.h"
EXTENSIONS_HEADER = "/usr/include/CL/cl_ext.h"
# Those that have entry points of their own.
EXTENSIONS = ("cl_khr_command_buffer",)
# Names in cl.h's lists of queries that are values, not queries, or are gone from the specification.
QUERY_LISTS = ("platform_info", "device_info", "context_info", "command_queue_info", "mem_info", "image_info",
               "pipe_info", "sampler_info", "program_info", "program_build_info", "kernel_info", "kernel_arg_info",
               "kernel_work_group_info", "kernel_sub_group_info", "event_info", "profiling_info",
               "command_buffer_info_khr")


def entry_points(header):
    return sorted(set(re.findall(r"^\s*(cl[A-Z][A-Za-z0-9]*)\s*\(", header, re.M)))


def part_of(header, extension):
    """What cl_ext.h says between an extension's name and the next one's."""
    found = re.search(r"^#define {} 1$(.*?)^/\*{{20}}".format(extension), header, re.M | re.S)
    if not found:
        sys.exit("coverage.py: {} has no {}".format(EXTENSIONS_HEADER, extension))
    return found[1]


def query_names(header):
    names = {}
    current = None
    for line in header.splitlines():
        if line.startswith("/*"):
            word = re.match(r"/\* cl_(\w+)", line)
            if word:
                current = word[1] if word[1] in QUERY_LISTS else None
        found = re.match(r"#define (CL_\w+)\s+(0x[0-9A-F]+)", line)
        if current and found and found[2] not in names:
            names[found[2]] = found[1]
        if line.startswith("typedef") or line.startswith("extern"):
            current = None
    return sorted(names.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="DIFFTEST")
    parser.add_argument("--header", default=HEADER)
    parser.add_argument("transcripts", nargs="*")
    options = parser.parse_args()
    text = ""
    for path in options.transcripts:
        with open(path, encoding="utf-8", errors="replace") as file:
            text += file.read()
    if options.run:
        env = dict(os.environ)
        env.setdefault("POCL_CACHE_DIR", os.path.join(os.path.dirname(os.path.abspath(options.run)), "pocl-cache"))
        os.makedirs(env["POCL_CACHE_DIR"], exist_ok=True)
        text += subprocess.run([os.path.abspath(options.run)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=env, check=True).stdout.decode("utf-8", "replace")
    if not text:
        parser.error("no transcript")
    with open(options.header, encoding="utf-8") as file:
        header = file.read()
    with open(EXTENSIONS_HEADER, encoding="utf-8") as file:
        extensions = file.read()
    for extension in EXTENSIONS:
        header += part_of(extensions, extension)
    called = set(re.findall(r"^\s*(cl[A-Z][A-Za-z0-9]*)(?=\(| ->)", text, re.M))
    words = set(re.findall(r"CL_\w+", text))
    entries, queries = entry_points(header), query_names(header)
    missed = [name for name in entries if name not in called]
    unasked = [name for name in queries if name not in words]
    for name in missed:
        print(f"never called: {name}")
    for name in unasked:
        print(f"never asked: {name}")
    print(f"{len(entries) - len(missed)} of {len(entries)} entry points called, "
          f"{len(queries) - len(unasked)} of {len(queries)} queries asked")
    return 1 if missed or unasked else 0


if __name__ == "__main__":
    sys.exit(main())
