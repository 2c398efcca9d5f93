#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to what ARCHITECTURE.md says of it.

    structure.py folders ROOT               which folder includes which: the table `| Folder | What lives there | May use |`
    structure.py circles ROOT               no files that call or include each other in a circle across sub-folders, nor against their order
    structure.py files ROOT                 licence line, lengths of files and lines, include guards, no OpenCL where it has no business, and no
                                            descriptor made but by base/descriptor.h in what programs load
    structure.py format ROOT                as `make format` leaves it
    structure.py headers ROOT BUILD         every header compiles alone, with the flags its folder is built with
    structure.py library BUILD              what libgantry-opencl.so exports and needs

Prints one line a violation and exits 1; 77 when what it looks at is not there yet.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SKIP = 77
CLANG_FORMAT = 14

# A file longer than this says why in a comment that begins with `Long because`.
MAX_LINES = {".c": 800, ".h": 400, ".py": 800}
MAX_COLUMNS = 100  # in src; clang-format leaves literals and some comments longer

# Folders, sub-folders and files that know no API: every API uses them.
API_FREE = ("base", "control", "daemon", "guest/attach", "guest/core", "guest/migrate", "guest/session", "link", "migrate", "place", "sched", "shm",
            "stream",
            "vgpu/core", "vgpu/migrate", "vgpu/residency", "vgpu/session", "wall", "wire", "worker")
# Names of an API's, and of what is generated from one; in strings, too, but in tests.
API_NAMES = re.compile(r"\bcl_(?:int|uint|ulong|long|mem|event|kernel|program|context|device_id|platform_id|command_queue|bool)\b"
                       r"|\bCL_[A-Z]|\bGN_(?:KIND|OP)_[A-Za-z]\w*|\bgn_(?:opencl|cl)_")
API_WORDS = re.compile(r"opencl|\bOCL_|pocl|\.icd\b", re.I)

# What programs load. A line that only a worker runs says so: `in a worker`.
IN_PROGRAMS = ("base", "direct", "guest", "link", "migrate", "shm", "stream", "vgpu", "wire")
MAKES_DESCRIPTOR = re.compile(r"(?<![\w>.])(?:socket|socketpair|accept4?|eventfd|memfd_create|timerfd_create|signalfd|epoll_create1?|open|openat|"
                              r"fopen|opendir|pipe2?|dup|inotify_init1?|mkstemp)\(|F_DUPFD|MSG_CMSG_CLOEXEC|SYS_pidfd_open")

# cl_khr_icd, both versions: docs/icd.md.
EXPORTS = {"clGetExtensionFunctionAddress", "clGetPlatformInfo", "clIcdGetPlatformIDsKHR", "clIcdGetFunctionAddressForPlatformKHR",
           "clIcdSetPlatformDispatchDataKHR"}
NEEDS = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux[-\w]*)\.so\.\d+$")


# Files of gantryd's loop that have other processes' descriptors in hand: close() of one may wait for as long as that process likes, so
# gn_quota_close() has a thread do it (src/daemon/closer.h).
CLOSE_NOTHING = {"src/daemon/" + name
                 for name in ("migrate/inbound.c", "migrate/outbound.c", "migrate/checkpoint.c", "net/attach.c", "net/quota.c",
                              "migrate/local.c", "programs.c", "transport_local.c", "transport_tcp.c", "vgpu/create.c", "vgpu/lifecycle.c",
                              "vgpu/program_process.c", "vgpu/segments.c", "vgpu/session_shm.c", "vgpu/session_tcp.c",
                              "vgpu/tcp_sessions.c", "vgpu/worker_boot.c", "vgpu/worker_process.c")}


# Folders whose sub-folders are named in the table and are held to one direction.
SUB_FOLDERS = ("daemon", "guest", "vgpu")
# In these, a sub-folder calls and includes those before it alone. Files beside the sub-folders are above all but the API's.
ORDER = ("residency", "core", "session", "migrate", "opencl")
ORDERED = ("guest", "vgpu")
# But each may include the tables by which it reaches a session, and what other folders see of a vGPU.
SEEN_BY_ALL = ("src/guest/session/session_ops.h", "src/vgpu/session/session.h", "src/vgpu/vgpu.h")


class NotThere(Exception):
    pass


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources(root, *folders, endings=(".c", ".h")):
    """Paths relative to root, sorted."""
    found = []
    for folder in folders:
        for where, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(where, name), root) for name in names if name.endswith(endings)]
    return sorted(found)


class House:
    """The table of ARCHITECTURE.md, and its line on CL headers."""

    def __init__(self, text):
        self.may_use = {}
        self.may_include = {}   # headers that are allowed one by one, of folders that are not
        self.named = {}     # of each folder: what its description has in backquotes
        self.problems = []
        inside = False
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.lstrip().startswith("|"):
                inside = False
            elif [cell.lower() for cell in cells] == ["folder", "what lives there", "may use"]:
                inside = True
            elif inside and len(cells) == 3:
                for folder in re.findall(r"`src/(\w+)/?`", cells[0]):
                    uses = {word.strip(" `") for word in cells[2].split(",")}
                    self.may_include[folder] = {word for word in uses if word.endswith(".h")}
                    self.may_use[folder] = uses - self.may_include[folder] - {"libc", "-", ""}
                    self.named[folder] = set(re.findall(r"`(\w+)`", cells[1]))
        for folder, uses in self.may_use.items():
            for unknown in sorted(uses - set(self.may_use)):
                self.problems.append("ARCHITECTURE.md: {} may use {}, which is not in the table".format(folder, unknown))
            for header in sorted(h for h in self.may_include[folder] if h.split("/")[0] not in self.may_use):
                self.problems.append("ARCHITECTURE.md: {} may use {}, whose folder is not in the table".format(folder, header))
        self._find_cycles()
        match = re.search(r"CL headers only in ((?:`[\w/]+`(?:,| and|, and)? ?)+)", text)
        self.cl_places = tuple(re.findall(r"`(?:src/)?([\w/]+)`", match.group(1))) if match else ()
        if self.may_use and not match:
            self.problems.append("ARCHITECTURE.md does not say `CL headers only in ...`")

    def _find_cycles(self):
        done = set()

        def visit(folder, path):
            if folder in path:
                self.problems.append("ARCHITECTURE.md: a circle: " + " -> ".join(path[path.index(folder):] + [folder]))
            elif folder not in done:
                headers = {header.split("/")[0] for header in self.may_include.get(folder, ())}
                for used in sorted(self.may_use.get(folder, set()) | headers):
                    visit(used, path + [folder])
                done.add(folder)

        for folder in sorted(self.may_use):
            visit(folder, [])

    def allows(self, user, included):
        used = included.split("/")[0]
        return used in ("base", user) or used in self.may_use.get(user, ()) or included in self.may_include.get(user, ())


def house(root):
    path = os.path.join(root, "ARCHITECTURE.md")
    if not os.path.exists(path):
        raise NotThere("no ARCHITECTURE.md yet")
    parsed = House(read(path))
    if not parsed.may_use:
        parsed.problems.append("ARCHITECTURE.md has no table `| Folder | What lives there | May use |` with rows like `src/base/`")
    return parsed


def check_folders(root):
    rules = house(root)
    problems = list(rules.problems)
    for folder in sorted(os.listdir(os.path.join(root, "src"))):
        if os.path.isdir(os.path.join(root, "src", folder)) and folder not in rules.may_use:
            problems.append("src/{} is not in ARCHITECTURE.md's table".format(folder))
    for folder in SUB_FOLDERS:
        for inner in sub_folders(root, folder):
            if inner not in rules.named.get(folder, ()):
                problems.append("src/{}/{} is not in ARCHITECTURE.md's table".format(folder, inner))
    for path in sources(root, "src"):
        inside = os.path.relpath(path, "src")
        user = inside.split(os.sep)[0]
        for number, line in enumerate(read(os.path.join(root, path)).splitlines(), 1):
            where = "{}:{}".format(path, number)
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            included = match.group(2)
            if included.startswith("CL/"):
                if not inside.startswith(rules.cl_places):
                    problems.append("{}: CL headers only in {}".format(where, ", ".join(rules.cl_places)))
            elif match.group(1) == '"':
                if ".." in included.split("/"):
                    problems.append("{}: '{}': name the folder instead of '..'".format(where, included))
                if "/" not in included:
                    continue    # beside the file, or generated for its folder alone
                used = included.split("/")[0]
                if not rules.allows(user, included):
                    problems.append("{}: {} may not use {}".format(where, user, used))
                if included.endswith("_internal.h") and used != user:
                    problems.append("{}: {} is {}'s own".format(where, included, used))
    return problems


def sub_folders(root, folder):
    where = os.path.join(root, "src", folder)
    return sorted(name for name in os.listdir(where) if os.path.isdir(os.path.join(where, name))) if os.path.isdir(where) else []


def code_of(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", " ", text, flags=re.S)


# What is defined at the beginning of a line, and is not static: a function with its body, or an object with its initializer.
DEFINITION = re.compile(r"^(?!static\b|extern\b|typedef\b|#|\s)[\w\s*]*?\b(gn_\w+)(?:\[[^\]\n]*\])*\s*(?:=|\((?:[^(){};]|\([^()]*\))*\)\s*\{)", re.M)


def uses(root, folder):
    """Of each file of the folder: the files of it that it includes, and those that define what it calls."""
    paths = [path for path in sources(root, os.path.join("src", folder)) if not path.endswith("_test.c")]
    texts = {path: read(os.path.join(root, path)) for path in paths}
    code = {path: code_of(texts[path]) for path in paths}
    defined_in = {name: path for path in paths if path.endswith(".c") for name in DEFINITION.findall(code[path])}
    edges = {}
    for path in paths:
        edges[path] = {os.path.join("src", name) for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', texts[path], re.M)} & set(paths)
        if path.endswith(".c"):
            edges[path] |= {defined_in[name] for name in set(re.findall(r"\bgn_\w+", code[path])) if name in defined_in} - {path}
    return edges


def circles(edges):
    """Groups of files each of which reaches each other (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for used in sorted(edges[file]):
            if used not in number:
                visit(used)
            if used in stack:
                low[file] = min(low[file], low[used])
        if low[file] == number[file]:
            at = stack.index(file)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10000)
    for file in sorted(edges):
        if file not in number:
            visit(file)
    return found


def check_circles(root):
    problems = []
    for folder in SUB_FOLDERS:
        edges = uses(root, folder)
        for group in circles(edges):
            if len({os.path.dirname(path) for path in group}) == 1:
                continue
            across = ["{} -> {}".format(path, used) for path in group for used in sorted(edges[path] & set(group))
                      if os.path.dirname(path) != os.path.dirname(used)]
            problems.append("src/{}: {} files in a circle across sub-folders: {}".format(folder, len(group), "; ".join(across)))
        if folder in ORDERED:
            problems += check_order(root, folder, edges)
    return problems


def check_order(root, folder, edges):
    """Uses of a later sub-folder by an earlier one, except in code of tests."""
    beside = os.path.join("src", folder)
    rank = {os.path.join(beside, inner): at for at, inner in enumerate(ORDER)}
    problems = []
    for path in sorted(edges):
        own = rank.get(os.path.dirname(path))
        if own is None or "#include <cmocka.h>" in read(os.path.join(root, path)):
            continue
        problems += ["{} uses {}, which is above it".format(path, used) for used in sorted(edges[path])
                     if rank.get(os.path.dirname(used), len(ORDER) - 1) > own and used not in SEEN_BY_ALL]
    return problems


def check_files(root):
    problems = []
    for path in sources(root, "src", "tests", "bench", "tools", endings=(".c", ".h", ".py")):
        text = read(os.path.join(root, path))
        lines = text.splitlines()
        ending = os.path.splitext(path)[1]
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            problems.append("{}: its first line is not the licence line".format(path))
        if len(lines) > MAX_LINES[ending] and "Long because" not in text:
            problems.append("{}: {} lines: look for a second concept, or say `Long because ...`".format(path, len(lines)))
        if path.startswith("src"):
            problems += ["{}:{}: {} columns".format(path, number, len(line))
                         for number, line in enumerate(lines, 1) if len(line) > MAX_COLUMNS]
        if ending == ".h" and path.startswith("src") and not re.search(r"^#ifndef (GN_\w+_H)\n#define \1$", text, re.M):
            problems.append("{}: no include guard GN_..._H".format(path))
        if path in CLOSE_NOTHING and re.search(r"(?<![\w.>])close\(", text):
            problems.append("{}: calls close(): a descriptor of another process goes to gn_quota_close()".format(path))
        folder = path.split(os.sep)[1] if path.startswith("src") else None
        if folder in IN_PROGRAMS and path != os.path.join("src", "base", "descriptor.c") and not path.endswith("_test.c"):
            for number, line in enumerate(lines, 1):
                found = MAKES_DESCRIPTOR.search(re.sub(r"\"[^\"]*\"|^\s*/?\*.*", "", line))
                if found and "in a worker" not in line:
                    problems.append("{}:{}: {} in a program: base/descriptor.h makes it".format(path, number, found.group(0)))
        api_free = next((name for name in API_FREE if path.startswith((os.path.join("src", name, ""), os.path.join("src", name + ".")))), None)
        if api_free and ending != ".py":
            code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
            found = API_NAMES.search(re.sub(r"\"[^\"\n]*\"", "", code)) or \
                (None if path.endswith("_test.c") else API_WORDS.search(code))
            if found:
                problems.append("{}: {}: {} knows no API".format(path, found.group(0), api_free))
    return problems


def flags_by_folder(root, build):
    """-I, -D and -std of all commands that compile something of the folder, in order, once each."""
    path = os.path.join(build, "compile_commands.json")
    if not os.path.exists(path):
        raise NotThere("no {}".format(path))
    flags = {}
    for entry in json.loads(read(path)):
        file = os.path.relpath(os.path.normpath(os.path.join(entry["directory"], entry["file"])), root)
        parts = file.split(os.sep)
        if parts[0] != "src" or len(parts) < 3:
            continue
        known = flags.setdefault(parts[1], [])
        words = shlex.split(entry["command"])
        for i, word in enumerate(words):
            take = [word] if re.match(r"-I.|-D.|-std=", word) else [word, words[i + 1]] if word in ("-isystem", "-include") else []
            if take and take[0] not in known:
                known += take
    return flags


def check_headers(root, build):
    root = os.path.abspath(root)
    build = os.path.abspath(build)
    flags = flags_by_folder(root, build)

    def compiles(path):
        folder = path.split(os.sep)[1]
        command = ["cc", "-fsyntax-only", "-x", "c", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-D_GNU_SOURCE",
                   "-I" + os.path.join(root, "src")] + flags.get(folder, ["-std=gnu17"]) + ["-"]
        # Included twice through its own name: guards are tested too, and `#pragma once in main file` is no issue.
        text = '#include "{0}"\n#include "{0}"\n'.format(os.path.join(root, path))
        result = subprocess.run(command, input=text.encode(), cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode != 0:
            return "{}: does not compile alone:\n{}".format(path, result.stdout.decode(errors="replace")[:600])
        return None

    headers = sources(root, "src", endings=(".h",))
    if not headers:
        raise NotThere("no headers in src")
    with ThreadPoolExecutor(2) as pool:
        return [problem for problem in pool.map(compiles, headers) if problem]


def check_format(root):
    """Versions of clang-format differ in what they make of the same .clang-format."""
    said = ""
    try:
        said = tool("clang-format", "--version")
    except FileNotFoundError:
        pass
    if " version {}.".format(CLANG_FORMAT) not in said:
        raise NotThere("clang-format {} is not installed".format(CLANG_FORMAT))
    paths = sources(root, "src", "tests", "bench")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        formatted = pool.map(lambda path: tool("clang-format", os.path.join(root, path)) == read(os.path.join(root, path)), paths)
    return ["{}: not as `make format` leaves it".format(path) for path, good in zip(paths, formatted) if not good]


def tool(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def find_library(build):
    for where, folders, names in os.walk(build):
        folders[:] = [name for name in folders if not name.startswith("stage")]
        if "libgantry-opencl.so" in names:
            return os.path.join(where, "libgantry-opencl.so")
    raise NotThere("libgantry-opencl.so is not built yet")


def check_library(build):
    library = find_library(build)
    problems = []
    exported = {line.split()[-1].split("@")[0] for line in tool("nm", "-D", "--defined-only", library).splitlines() if line}
    for name in sorted(exported - EXPORTS):
        problems.append("{} exports {}".format(library, name))
    for name in sorted(EXPORTS - exported):
        problems.append("{} does not export {}".format(library, name))
    for line in tool("nm", "-D", "--undefined-only", library).splitlines():
        name = line.split()[-1].split("@")[0]
        if re.match(r"cl[A-Z]", name):
            problems.append("{} calls {} of the loader".format(library, name))
    dynamic = tool("readelf", "-d", "-W", library)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not NEEDS.match(needed):
            problems.append("{} needs {}".format(library, needed))
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        problems.append("{} has a run path".format(library))
    if "(TEXTREL)" in dynamic:
        problems.append("{} has text relocations".format(library))
    if not re.search(r"FLAGS_1\).*NODELETE", dynamic):
        problems.append("{} is not linked with -z nodelete".format(library))
    if re.search(r"GNU_STACK.*RWE", tool("readelf", "-l", "-W", library)):
        problems.append("{} wants an executable stack".format(library))
    return problems


CHECKS = {"folders": check_folders, "circles": check_circles, "files": check_files, "format": check_format, "headers": check_headers, "library": check_library}


def main():
    try:
        problems = CHECKS[sys.argv[1]](*sys.argv[2:])
    except NotThere as reason:
        print("SKIP: {}".format(reason))
        return SKIP
    for problem in problems:
        print(problem)
    print("{}: {} violation{}".format(sys.argv[1], len(problems), "" if len(problems) == 1 else "s"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
