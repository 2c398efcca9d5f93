# SPDX-License-Identifier: Apache-2.0
"""One attack on gantryd by strangers or tenants, who want its loop, its log or its descriptors for themselves.

    strangers.py --build DIR CASE

As attacks.py, whose gantryd and neighbour it has: others are served meanwhile, and gantryd holds no more afterwards.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

import attacks  # noqa: E402
from attacks import Skip, Wrong, link, wait_until  # noqa: E402
from foreign_files import Lingering  # noqa: E402
from gantry import stopped  # noqa: E402

LINES_BURST, LINE_PERIOD_S = 64, 0.2  # src/daemon/bucket.h
MOST_CLOSING, CLOSER_A_SOURCE = 64, 2  # src/daemon/quota.h, closer.h
DIRECT, WAIT, CLAIM, PASS, LEASE = 9, 26, 20, 29, 56  # src/link/link_wire.h, worker_wire.h
STRANGER = 65533
LEFT_OUT = re.compile(r"\((\d+) lines about this user were left out before\)")


def faults(a):
    """Faults without end: the log has few lines of them, and says how many it lacks."""
    began, log_at, n = time.monotonic(), len(a.gantry.log()), 3000

    def lines():
        return [line for line in a.gantry.log()[log_at:].splitlines() if "sent what is no frame" in line]

    def told():
        return len(lines()) + sum(int(m.group(1)) for m in LEFT_OUT.finditer(a.gantry.log()[log_at:]))

    def fault():
        c = link.Client(a.gantry.socket, greet=False)
        c.send(b"\xff" * 16)
        c.socket.shutdown(socket.SHUT_WR)
        c.receive()
        c.close()

    for i in range(n):
        fault()
    most = LINES_BURST + (time.monotonic() - began) / LINE_PERIOD_S
    if len(lines()) > most + 1:
        raise Wrong("{} lines of {} faults".format(len(lines()), n))

    def all_told():
        nonlocal n
        fault()
        n += 1
        return wait_until(lambda: told() == n, LINE_PERIOD_S)
    if not wait_until(all_told, 30):
        raise Wrong("{} faults, and {} told of".format(n, told()))
    a.neighbour_works()


class Stopped:
    """gantryd, while the block lasts."""

    def __init__(self, gantry):
        self.pid = gantry.process.pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        if not wait_until(lambda: stopped(self.pid), 60):
            raise Wrong("gantryd does not stop")

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def lingering(a):
    """Sockets that linger for a day, by every way on which gantryd may come to have the last descriptor of one: it waits for none."""
    files = Lingering()

    def sent(data, n, greet=True, before=b""):
        """On a connection of its own, which hangs up then."""
        def way():
            c = link.Client(a.gantry.socket, greet=greet)
            with Stopped(a.gantry):
                if before:
                    c.send(before)
                files.send(c.socket, data, n)
                c.close()
        return way

    def answered(data, n):
        """On a connection that stays until the refusal is there."""
        def way():
            c = link.Client(a.gantry.socket)
            with Stopped(a.gantry):
                files.send(c.socket, data, n)
            c.receive()
            c.close()
        return way

    def from_a_host():
        """By the control socket of a program that hosts its vGPU, which gantryd kills for it."""
        pid = os.fork()
        if pid == 0:
            try:
                c = link.Client(a.gantry.socket)
                c.send(link.frame(link.ATTACH, 1, link.attach(stdio=0, zero=1)))
                reply = c.receive()
                with socket.socket(fileno=reply.fds[0]) as control, Stopped(a.gantry):
                    for _ in range(20):
                        files.send(control, link.frame(LEASE, 1, bytes(16)), 1)
                c.receive()
            finally:
                os._exit(1)
        status = os.waitpid(pid, 0)[1]
        if status != signal.SIGKILL:
            raise Wrong("a host that breaks the protocol ends with {:#x}".format(status))

    wait, claim = bytes(56), bytes(40)
    a.command("tenant", "set", "default", "--mode", "remote", "--mode", "passthrough")
    for what, way in (("a greeting", sent(link.frame(link.HELLO, 1, link.hello()), 3, greet=False)),
                      ("a request", sent(link.frame(link.CONTROL, 1, b"{}"), 3)),
                      ("as many as a message has", sent(link.frame(link.CONTROL, 1, b"{}"), 253)),
                      ("half a frame", sent(link.frame(link.ATTACH, 1, link.attach())[:20], 2)),
                      ("half a frame of a stranger", sent(link.frame(link.HELLO, 1, link.hello())[:20], 2, greet=False)),
                      ("what is never read", sent(b"x", 8, greet=False, before=b"\xff" * 16)),
                      ("what is never read, often", sent(b"x", 253, before=b"\xff" * 16)),
                      ("an attach of no platform", answered(link.frame(link.ATTACH, 1, link.attach(platform=99)), 2)),
                      ("an attach that hangs up", sent(link.frame(link.ATTACH, 1, link.attach()), 2)),
                      ("a program that waits", answered(link.frame(WAIT, 1, wait), 2)),
                      ("a program that comes", answered(link.frame(CLAIM, 1, claim), 2)),
                      ("a segment of none", sent(link.frame(PASS, 1, bytes(16)), 1)),
                      ("a program that hosts its vGPU", from_a_host)):
        way()
        try:
            link.Client(a.gantry.socket).close()
        except OSError as e:
            raise Wrong("{}: gantryd does not answer: {}".format(what, e)) from e
        a.neighbour_works(1)
    # By a connection to a tenant's socket that goes before it is accepted.
    a.command("tenant", "add", "brief", "--socket")
    operator = link.Client(link.beside(a.gantry.socket, "control"))
    with Stopped(a.gantry), socket.socket(socket.AF_UNIX) as early:
        operator.send(link.frame(link.CONTROL, 1, b'{"version":1,"request":"tenant-rm","name":"brief"}'))
        early.connect(os.path.join(a.gantry.socket_dir, "tenants", "brief", "gantry.sock"))
        files.send(early, b"x", 8)
    if b"error" in operator.receive().payload:
        raise Wrong("the tenant is not removed")
    operator.close()
    a.neighbour_works(1)
    # One after the other on the same connection, which is not closed.
    c = link.Client(a.gantry.socket)
    for _ in range(50):
        with Stopped(a.gantry):
            files.send(c.socket, link.frame(link.ATTACH, 1, link.attach(platform=99)), 2)
        if c.receive().op != link.ERROR:
            raise Wrong("a platform that there is not was not refused")
    c.close()
    a.neighbour_works()
    files.close()


def stuck_files(a):
    """Files whose close() nothing ends, by a user of their own: nobody else waits, and gantryd takes no more of them than it says."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        raise Skip("a file system of our own needs the superuser and /dev/fuse")
    pid, folder, n_clients = a.gantry.process.pid, os.path.join(a.work, "stuck"), 20
    os.mkdir(folder)
    os.chmod(a.gantry.socket_dir, 0o711)
    a.command("tenant", "set", "default", "--uid", "any")

    def n_threads():
        return len(os.listdir("/proc/{}/task".format(pid)))

    threads, fds = n_threads(), link.count_fds(pid)
    attacker = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "foreign_files.py"), folder, a.gantry.socket, str(STRANGER), "160"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(word):
        attacker.stdin.write(word + "\n")
        return attacker.stdout.readline().strip()

    try:
        said = attacker.stdout.readline().strip()
        if said.startswith("skip"):
            raise Skip("no file system of our own: " + said[5:])
        if not wait_until(lambda: ask("held") == str(CLOSER_A_SOURCE), 60):
            raise Wrong("{} files are being closed at a time, and not {}".format(ask("held"), CLOSER_A_SOURCE))
        for _ in range(3):
            link.Client(a.gantry.socket).close()
            with a.gantry.program([a.edges, "life"]) as p:
                p.end()
            a.neighbour_works(1)
        more = n_threads() - threads
        if ask("held") != str(CLOSER_A_SOURCE) or more > CLOSER_A_SOURCE + 1:
            raise Wrong("{} files are being closed, and gantryd has {} threads more".format(ask("held"), more))
        held = link.count_fds(pid) - fds
        if not MOST_CLOSING <= held <= MOST_CLOSING + n_clients + 4:
            raise Wrong("gantryd has {} descriptors more".format(held))
        ask("hang up")
        link.Client(a.gantry.socket).close()
        a.neighbour_works()
        if ask("release") != "released":
            raise Wrong("the attacker does not end")
    finally:
        attacker.stdin.close()
        attacker.wait(60)
        attacker.stdout.close()


CASES = {"faults": faults, "lingering": lingering, "stuck-files": stuck_files}

if __name__ == "__main__":
    sys.exit(attacks.main(CASES))
