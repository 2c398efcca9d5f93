# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups of workers: what all processes of one may have together, and what is left of the groups.

    groups.py --build DIR CASE

Status as walls.py's.
"""

import os
import subprocess
import sys

from walls import MMAP, O_WRONLY, OPEN, Skip, Wrong, main, refused

from gantry import Gantry, read_file, wait_until


def memory_group(pid):
    """(the folder of a process's memory cgroup, the file in it that bounds its memory)"""
    lines = [line.split(":", 2) for line in read_file("/proc/{}/cgroup".format(pid)).splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return "/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"
    return "/sys/fs/cgroup" + lines[-1][2], "memory.max"


def nearly_fill(folder):
    """As if 64 MiB more were all that the processes of a memory cgroup may have, and there were no swap."""
    v2 = os.path.exists(os.path.join(folder, "memory.max"))
    most = int(read_file(os.path.join(folder, "memory.current" if v2 else "memory.usage_in_bytes"))) + (64 << 20)
    for name, value in ({"memory.max": most, "memory.swap.max": 0} if v2 else
                        {"memory.limit_in_bytes": most, "memory.memsw.limit_in_bytes": most}).items():
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write(str(value))


def group(case):
    """All processes of a worker have a bound together, and one that comes to it takes nothing from others."""
    with case.gantry() as gantry:
        case.need(gantry, "memory of all processes")
        with case.start(gantry, "bob") as other, case.start(gantry, "alice") as p:
            worker = gantry.worker_of(p)
            others, (folder, name) = memory_group(gantry.worker_of(other))[0], memory_group(worker)
            root, limit = os.path.dirname(folder), os.path.join(folder, name)
            if folder == others or root != os.path.dirname(others) or not root.endswith("/gantry-{}".format(gantry.process.pid)):
                raise Wrong("workers are in the memory cgroups {} and {}".format(folder, others))
            ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
            if not 0 < int(read_file(os.path.join(root, name))) < ram:
                raise Wrong("workers may have all of the memory: {}".format(read_file(os.path.join(root, name))))
            before, big = int(read_file(limit)), 1 << 30
            if p.ask("buffer {}".format(big), "buffer") != ["0"] or int(read_file(limit)) < before + big:
                raise Wrong("the bound does not follow the lease: {} was {}".format(read_file(limit), before))
            p.ask("buffer 0", "buffer")
            if p.ask("forks 3", "made")[0] != "3" or len(read_file(os.path.join(folder, "cgroup.procs")).split()) < 4:
                raise Wrong("processes of a worker's are elsewhere: {}".format(read_file(os.path.join(folder, "cgroup.procs"))))
            for where in (folder, root, os.path.dirname(root)):
                for leave in ("cgroup.procs", name):
                    refused(leave, p.call(OPEN, '"' + os.path.join(where, leave), O_WRONLY)[0])
            was, most = folder, int(read_file(limit))
            case.run("migrate", gantry.vgpu_of(p)["id"], "local", "--quiet", gantry=gantry)
            folder = memory_group(gantry.worker_of(p))[0]
            limit = os.path.join(folder, name)
            if folder == was or os.path.dirname(folder) != root or int(read_file(limit)) > most:
                raise Wrong("after a move the worker is in {} with {}, which was {} with {}".format(folder, read_file(limit), was, most))
            if not wait_until(lambda: not os.path.exists(was), 60):
                raise Wrong("the memory cgroup of a worker that was replaced stays")
            before = int(read_file(limit))
            if p.ask("buffer {}".format(big), "buffer") != ["0"] or int(read_file(limit)) < before + big:
                raise Wrong("after a move the bound does not follow the lease: {} was {}".format(read_file(limit), before))
            p.ask("buffer 0", "buffer")
            nearly_fill(folder)
            lost = p.ask("call {} 0 {} 3 {} -1 0".format(MMAP, 256 << 20, 0x8022))  # MAP_POPULATE
            if lost[0] != "lost":
                raise Wrong("more than the bound can be had: {}".format(lost))
            if not wait_until(lambda: "because its memory cgroups or the machine had no memory left" in gantry.log(), 60):
                raise Wrong("the log does not say why the worker has ended: {}".format(gantry.log()))
            other.right()
        if not wait_until(lambda: not os.path.exists(folder) and not os.path.exists(others), 60):
            raise Wrong("memory cgroups outlive their workers: {}".format(os.listdir(root)))
    if os.path.exists(root):
        raise Wrong("a memory cgroup outlives gantryd: {}".format(os.listdir(root)))


def killed(case):
    """Memory cgroups of a gantryd that was killed go when another one starts."""
    with case.gantry() as gantry:
        case.need(gantry, "memory of all processes")
        p = case.start(gantry)
        folder = memory_group(gantry.worker_of(p))[0]
        gantry.kill()
        p.kill()
        if not os.path.exists(folder):
            raise Wrong("{} is not what a killed gantryd leaves".format(folder))
        # Its processes are out of the group a moment after they have been killed.
        if not wait_until(lambda: not read_file(os.path.join(folder, "cgroup.procs")), 60):
            raise Wrong("a worker outlives gantryd")
        gantry.__enter__()
        with case.start(gantry) as again:
            if os.path.exists(os.path.dirname(folder)):
                raise Wrong("{} is there still".format(os.path.dirname(folder)))
            if memory_group(gantry.worker_of(again))[0] == folder:
                raise Wrong("a worker is in the group of another gantryd's")
            again.right()


def ungrouped(case):
    """Where gantryd may make no cgroups doctor says so, and programs run all the same."""
    if os.geteuid() != 0:
        raise Skip("only root can make a mount read-only")
    read_only = "for m in /sys/fs/cgroup/memory /sys/fs/cgroup; do mount -o remount,bind,ro $m && break; done && exec \"$@\""
    prefix = ("unshare", "--mount", "sh", "-c", read_only, "sh")
    if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no mount can be made read-only here")
    with Gantry(case.stage, os.path.join(case.work, "gantryd"), prefix=prefix) as gantry, case.start(gantry) as p:
        if "memory of all processes" in gantry.log():
            raise Wrong("gantryd warns of what few machines have: {}".format(gantry.log()))
        group_of = {pid: memory_group(pid)[0] for pid in (gantry.process.pid, gantry.worker_of(p))}
        if len(set(group_of.values())) != 1:
            raise Wrong("a worker is in a memory cgroup of its own: {}".format(group_of))
        doctor = case.run("doctor", gantry=gantry)
        lines = [line for line in doctor.splitlines() if "memory of all processes" in line]
        if len(lines) != 1 or "this machine lacks: memory of all processes;" not in lines[0]:
            raise Wrong("doctor does not say once what is missing: {}".format(doctor))
        p.right()


if __name__ == "__main__":
    sys.exit(main({f.__name__: f for f in (group, killed, ungrouped)}))
