# SPDX-License-Identifier: Apache-2.0
"""System calls per OpenCL call, on the program's side and on Gantry's (gantryd and its workers together).

Each kind of call is made `few` and then `many` times under strace; the difference over many - few is what a call costs,
whatever starting and ending cost. strace slows only system calls, so a path without any is not disturbed by it.
"""

import os
import shutil
import tempfile

from .rows import Findings, Group, barred, figure
from .targets import BenchError, Gantry, run

KINDS = ["image_formats", "create_sampler", "work_group_info", "event_status", "finish_idle", "enqueue", "launch", "read",
         "write"]
# What the bars speak of: null calls. A launch makes the driver itself call the system. An enqueue makes no call by itself, but wakes a
# worker that fell asleep while some other thread had the program's processor: it is shown, and tests/counts asserts that it does no more.
BARS = {"image_formats": ("program", "host"), "create_sampler": ("program", "host")}
# Enqueues between two clFinish, for the two counts.
GROUPS = 10, 100
# The bar is none at all; less than one in a thousand calls is a timer or a clock adjustment, not the path of a call.
NONE = 0.001


def parse(path):
    """{system call: count} from strace -c."""
    counts = {}
    if not os.path.exists(path):
        raise BenchError("strace wrote no counts: may it trace here?")
    with open(path) as f:
        for line in f:
            fields = line.split()
            # "% time  seconds  usecs/call  calls  [errors]  syscall"
            if len(fields) in (5, 6) and fields[0].replace(".", "").isdigit() and fields[-1] != "total":
                counts[fields[-1]] = int(fields[3])
    return counts


def count(context, program, kind, calls, group, on_gantry):
    """System calls of (program, Gantry) for so many calls of one kind, in groups of `group` if that is not 0."""
    with tempfile.TemporaryDirectory(prefix="gantry-bench-") as folder:
        program_file = os.path.join(folder, "program")
        host_file = os.path.join(folder, "host")
        command = ["strace", "-f", "-c", "-o", program_file, program, "--only", kind, "--count", str(calls), "--json"]
        if group:
            command += ["--group", str(group)]
        if kind in ("read", "write"):
            command += ["--bytes", "4"]
        if on_gantry:
            with Gantry(context.stage, context.driver, prefix=["strace", "-f", "-c", "-o", host_file]) as target:
                run(target, command)
            return parse(program_file), parse(host_file)
        run(context.native, command)
        return parse(program_file), {}


def per_call(few, many, calls):
    """({system call: per OpenCL call}, all together). A count below zero is noise of starting and ending; kept."""
    each = {name: (many.get(name, 0) - few.get(name, 0)) / calls for name in set(few) | set(many)}
    return {k: v for k, v in each.items() if abs(v) >= NONE}, sum(each.values())


SIDES = {"program": "program", "host": "gantryd and worker"}


def side_row(kind, side, sides):
    """sides: what was counted natively ("native") and, unless there is no staged tree, on each side."""
    counted = sides.get(side, {"total": None, "each": {}})
    most = max(counted["each"], key=lambda k: abs(counted["each"][k]), default=None)
    name = f"{kind}: {SIDES[side]}" + (f" (most: {most})" if most else "")
    beside = sides["native"]["total"] if side == "program" else None
    if side in BARS.get(kind, ()):
        return barred(name, counted["total"], at_least=-NONE, at_most=NONE, text="none", beside=beside)
    return figure(name, counted["total"], beside=beside)


def run_section(context):
    if shutil.which("strace") is None:
        raise BenchError("strace is not installed")
    program = os.path.join(context.build, "bench/calls/bench-calls")
    few, many = 1000, 11_000 if context.quick else 101_000
    rows, raw = [], []
    for target in (context.native, context.gantry):
        if target is not None:
            run(target, [program, "--count", "1"])  # compiling belongs to neither count
    for kind in KINDS:
        sides = {}
        # Waiting calls make several system calls each, which strace slows a hundred times: fewer of those.
        scale = 10 if kind in ("launch", "read", "write", "enqueue") else 1
        low, high = few // scale, many // scale
        groups = 0, 0
        if kind == "enqueue":
            # A clFinish ends each group and may sleep: as many groups in both counts, so that it cancels out.
            groups = GROUPS
            low, high = (group * ((many - few) // scale // GROUPS[1]) for group in GROUPS)
        for on_gantry in (False, True):
            if on_gantry and context.stage is None:
                continue
            small = count(context, program, kind, low, groups[0], on_gantry)
            large = count(context, program, kind, high, groups[1], on_gantry)
            for i, side in enumerate(SIDES if on_gantry else ("native",)):
                each, total = per_call(small[i], large[i], high - low)
                sides[side] = {"total": total, "each": each}
        rows += [side_row(kind, side, sides) for side in SIDES]
        raw.append({"kind": kind, "calls": high - low} | sides)
        context.progress(f"{kind}: " + ", ".join(f"{s} {sides[s]['total']:.3f}" for s in sides))
    return Findings("System calls of one OpenCL call", [Group(rows=rows, beside="native program")],
                    notes=[f"Counted by strace over {many - few:,} calls; below {NONE} counts as none."], raw=raw)
