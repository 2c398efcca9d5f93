# SPDX-License-Identifier: Apache-2.0
"""One attack on gantryd by strangers or tenants, who want its loop, its log or its descriptors for themselves.

    strangers.py --build DIR CASE

As attacks.py, whose gantryd and neighbour it has: others are served meanwhile, and gantryd holds no more afterwards.
"""

import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

import attacks  # noqa: E402
from attacks import Skip, Wrong, link, wait_until  # noqa: E402
from foreign_files import Lingering, SilentFolder  # noqa: E402
from gantry import Gantry, stopped  # noqa: E402

LINES_BURST, LINE_PERIOD_S = 64, 0.2  # src/daemon/bucket.h
MOST_CLOSING, CLOSER_A_SOURCE = 64, 2  # src/daemon/net/quota.h, closer.h
FRAME_DESCRIPTORS = 2  # docs/link.md
DIRECT, WAIT, CLAIM, PASS, LEASE = 9, 26, 20, 29, 56  # src/link/link_wire.h, worker_wire.h
REQUESTS_BURST, REQUEST_S, STARTING = 40, 0.05, 16  # connection_turns.h
UNGREETED, HELD_KIB = 256, (64 << 10) + 4096  # connection_limits.h, connection_limits.c
FEW_DESCRIPTORS = 1024
STRANGER = 65533

def stranger_of(a):
    """Makes connections of another user, who may use the tenant `default`."""
    if os.geteuid():
        raise Skip("only root can be another user")
    os.chmod(a.gantry.socket_dir, 0o711)
    a.command("tenant", "set", "default", "--uid", "any")

    def connect(greet=True):
        os.seteuid(STRANGER)
        try:
            return link.Client(a.gantry.socket, greet=greet)
        except PermissionError as e:
            raise Skip("the socket's folder is out of another user's reach") from e
        finally:
            os.seteuid(0)
    return connect


LEFT_OUT = re.compile(r"\((\d+) lines about this user were left out before\)")


def faults(a):
    """Faults without end: the log has few lines of them, and says how many it lacks."""
    began, log_at, n = time.monotonic(), len(a.gantry.log()), 3000

    def lines():
        return [line for line in a.gantry.log()[log_at:].splitlines() if "sent a malformed frame" in line]

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
    attacker = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "foreign_files.py"), folder, a.gantry.socket, str(STRANGER), "160", str(n_clients)],
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
        # Threads that closed what the neighbours left end after a second without work.
        few = wait_until(lambda: n_threads() - threads <= CLOSER_A_SOURCE + 1, 60)
        if ask("held") != str(CLOSER_A_SOURCE) or not few:
            raise Wrong("{} files are being closed, and gantryd has {} threads more".format(ask("held"), n_threads() - threads))
        held = link.count_fds(pid) - fds
        # A frame of each connection may have been read before the bound was met, and waits for its turn with its descriptors.
        if not MOST_CLOSING <= held <= MOST_CLOSING + n_clients * (1 + FRAME_DESCRIPTORS) + 4:
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


def stuck_cache(a):
    """A file system that answers nothing, in the place of its owner's kernel cache: only the owner's program waits, for so long."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        raise Skip("a file system of our own needs the superuser and /dev/fuse")
    work = os.path.join(a.work, "second")
    folder = os.path.join(work, "cache", "@{}".format(STRANGER))
    os.makedirs(folder)
    os.chown(folder, STRANGER, -1)
    os.chmod(a.work, 0o711)
    try:
        files = SilentFolder(folder)
    except OSError as e:
        raise Skip("no file system of our own: {}".format(e)) from e
    # Without walls caches are folders on the disk.
    with Gantry(a.stage, work, args=["--walls", "none", "--start-limit", "2"]) as g:
        try:
            os.chmod(g.socket_dir, 0o711)
            subprocess.run([os.path.join(a.build, "src/ctl/gantry"), "tenant", "set", "default", "--uid", "any", "--connect", g.address],
                           check=True)
            os.seteuid(STRANGER)
            victim = link.Client(g.socket)
            os.seteuid(0)
            victim.send(link.frame(link.ATTACH, 1, link.attach()), (2, 2))
            if not wait_until(lambda: files.n_asked, 60):
                raise Wrong("nobody looks into the cache")
            with g.program([a.edges, "life"]) as p:
                p.end()
            reply = victim.receive()
            if reply.op != link.ERROR or "has not started the driver" not in reply.error()[1]:
                raise Wrong("it is told {}".format(reply.op))
            with g.program([a.edges, "life"]) as p:
                p.end()
            victim.close()
        finally:
            os.seteuid(0)
            files.close()


def stuck_places(a):
    """One stranger's files that cannot be closed, and another's connections, hold all descriptors: the connections make room."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        raise Skip("a file system of our own needs the superuser and /dev/fuse")
    connect, pid, folder, n_clients = stranger_of(a), a.gantry.process.pid, os.path.join(a.work, "stuck"), 150
    os.mkdir(folder)
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, hard))
    attacker = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "foreign_files.py"), folder, a.gantry.socket, str(STRANGER - 1),
                                 str(n_clients), str(n_clients), "halves"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    others = []
    try:
        said = attacker.stdout.readline().strip()
        if said.startswith("skip"):
            raise Skip("no file system of our own: " + said[5:])
        attacker.stdin.write("hang up\n")
        attacker.stdout.readline()
        if not wait_until(lambda: link.count_fds(pid) >= 2 * n_clients, 60):
            raise Wrong("gantryd has closed the files")
        for _ in range(FEW_DESCRIPTORS - FEW_DESCRIPTORS // 4):
            os.seteuid(STRANGER)
            c = socket.socket(socket.AF_UNIX)
            c.settimeout(60)
            c.connect(a.gantry.socket)
            os.seteuid(0)
            c.sendall(link.frame(link.HELLO, 1, link.hello()))
            others.append(c)
        c = link.Client(a.gantry.socket)
        c.close()
        with a.gantry.program([a.edges, "life"]) as p:
            p.end()
        a.neighbour_works()
    finally:
        os.seteuid(0)
        for c in others:
            c.close()
        attacker.stdin.close()
        attacker.wait(60)
        attacker.stdout.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))


def replies_of(client):
    """How many whole frames have come."""
    data, n = b"", 0
    client.socket.setblocking(False)
    try:
        while True:
            piece = client.socket.recv(1 << 20)
            if not piece:
                break
            data += piece
    except BlockingIOError:
        pass
    while len(data) >= 16 and len(data) >= struct.unpack_from("<I", data)[0]:
        data = data[struct.unpack_from("<I", data)[0]:]
        n += 1
    return n


def requests(a):
    """Listings without end, by many connections of one user: so many in a second are answered and no more, and others are served."""
    connect = stranger_of(a)
    clients = [connect() for _ in range(64)]
    began = time.monotonic()
    for c in clients:
        c.send(link.frame(link.CONTROL, 1, b'{"version":1,"request":"ls"}') * 50)
    for _ in range(200):
        link.Client(a.gantry.socket).close()
    with a.gantry.program([a.edges, "life"]) as p:
        p.end()
    a.neighbour_works()
    n = sum(replies_of(c) for c in clients)
    most = REQUESTS_BURST + (time.monotonic() - began) / REQUEST_S + 1
    if not REQUESTS_BURST <= n <= most:
        raise Wrong("{} requests were answered, and not {} to {}".format(n, REQUESTS_BURST, int(most)))
    for c in clients:
        c.close()
    a.neighbour_works()


def starting(a):
    """Attaches without end: so many vGPUs of a user are made at a time, and another user's is made beside them."""
    connect = stranger_of(a)
    template, = link.children(a.gantry.process.pid)
    operator = link.Client(link.beside(a.gantry.socket, "control"))

    def coming():
        reply = operator.control(b'{"version":1,"request":"drain","undo":true}')
        return json.loads(reply)["drain"]["coming"]

    def until(n):
        if not wait_until(lambda: coming() == n, 60):
            raise Wrong("{} vGPUs are being made, and not {}".format(coming(), n))

    os.kill(template, signal.SIGSTOP)
    try:
        clients = [connect() for _ in range(3 * STARTING)]
        for c in clients:
            c.send(link.frame(link.ATTACH, 1, link.attach()), (2, 2))
        until(STARTING)
        clients.append(link.Client(a.gantry.socket))
        clients[-1].send(link.frame(link.ATTACH, 1, link.attach()), (2, 2))
        until(STARTING + 1)
        # Those of them that hang up leave no work behind.
        for c in clients[STARTING:2 * STARTING]:
            c.close()
    finally:
        os.kill(template, signal.SIGCONT)
    for c in clients[:STARTING] + clients[2 * STARTING:]:
        reply = c.receive()
        if not reply or reply.op != link.ATTACHED:
            raise Wrong("an attach that waited was not answered")
        reply.close()
        c.close()
    operator.close()
    a.neighbour_works()


def connects(a):
    """Connections without end, each with a greeting, that hang up at once or say nothing: others are served, and few of them are kept."""
    connect, before = stranger_of(a), link.count_fds(a.gantry.process.pid)
    silent = [connect(greet=False) for _ in range(2 * UNGREETED)]
    link.Client(a.gantry.socket).close()  # which comes behind them
    kept = link.count_fds(a.gantry.process.pid) - before
    if kept > UNGREETED + 8:
        raise Wrong("gantryd has {} descriptors more".format(kept))
    hello = link.frame(link.HELLO, 1, link.hello())
    for _ in range(20):
        for _ in range(100):
            c = connect(greet=False)
            c.send(hello)
            c.close()
        link.Client(a.gantry.socket).close()
    with a.gantry.program([a.edges, "life"]) as p:
        p.end()
    a.neighbour_works()
    for c in silent:
        c.close()


HOLDER = """
import resource, socket, sys
import gantryd_harness as link
path, n, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
halves = {"memory": (link.frame(link.CONTROL, 1, b"x" * 60000)[:50000], ()), "descriptors": (link.frame(link.ATTACH, 1, link.attach())[:20], (0, 0))}
for _ in range(n):
    c = link.Client(path)
    try:
        c.send(*halves.get(what, (link.frame(link.HELLO, 1, link.hello())[:1], ())))
    except (BrokenPipeError, ConnectionResetError):
        pass    # gantryd has dropped it to stay within its limits
    held.append(c)
print(len(held), flush=True)
sys.stdin.read()
"""


def hold(a, n_each, what):
    """As many connections as three processes have, each with half of something; give their processes to let_go()."""
    env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "../../src/daemon"))
    holders = [subprocess.Popen([sys.executable, "-B", "-c", HOLDER, a.gantry.socket, str(n_each), what], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=env) for _ in range(3)]
    for h in holders:
        if int(h.stdout.readline() or 0) != n_each:
            raise Wrong("the connections are not to be had")
    return holders


def let_go(holders):
    for h in holders:
        h.stdin.close()
        h.wait(60)
        h.stdout.close()


def halves(a):
    """Halves of frames, with as much memory or as many descriptors as there can be: gantryd's are not the attacker's to take."""
    pid = a.gantry.process.pid
    link.Client(a.gantry.socket).close()
    before = attacks.held_kib(pid)
    holders = hold(a, 500, "memory")
    try:
        more = attacks.held_kib(pid) - before
        if more > HELD_KIB and not a.no_memory:
            raise Wrong("halves of requests made gantryd hold {} MiB more".format(more // 1024))
        with a.gantry.program([a.edges, "life"]) as p:
            p.end()
        a.neighbour_works(1)
    finally:
        let_go(holders)
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, hard))
    holders = hold(a, 400, "descriptors")
    try:
        if not wait_until(lambda: link.count_fds(pid) <= FEW_DESCRIPTORS - FEW_DESCRIPTORS // 4, 60):
            raise Wrong("gantryd has {} of {} descriptors open".format(link.count_fds(pid), FEW_DESCRIPTORS))
        for _ in range(3):
            with a.gantry.program([a.edges, "life"]) as p:
                p.end()
            a.neighbour_works(1)
    finally:
        let_go(holders)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))


def places(a):
    """One tenant's vGPUs, as many as it gets: another tenant's program finds room, and so do both after that."""
    pid, log_at = a.gantry.process.pid, len(a.gantry.log())
    a.command("tenant", "add", "victim", "--uid", "0")
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS // 2, hard))
    clients, says = [], None
    while not says and len(clients) < FEW_DESCRIPTORS:
        clients.append(link.Client(a.gantry.socket))
        reply = clients[-1].attach()
        says = reply.error()[1:] if reply.op == link.ERROR else None
        reply.close()
    try:
        if not says or "has {} vGPUs".format(len(clients)) not in says[0] or "--vgpus" not in says[1]:
            raise Wrong("{} vGPUs, and then it says {}".format(len(clients), says))
        if not wait_until(lambda: says[0] in a.gantry.log()[log_at:], 60):
            raise Wrong("the refusal is not in the log")
        with a.guest(tenant=b"victim") as g:
            g.need(*a.start)
        reply = clients[-1].attach()
        if reply.op != link.ERROR:
            raise Wrong("the tenant has one vGPU more than it was told")
        limits = a.gantry.control("status")["gantryd"]["limits"]
        if limits["refused_vgpus"] != 2 or limits["descriptor_limit"] != FEW_DESCRIPTORS // 2:
            raise Wrong("it tells of {}".format(limits))
        # Its limit says otherwise: fewer, and it holds at once.
        a.command("tenant", "set", "default", "--vgpus", "3")
        reply = clients[-1].attach()
        if reply.op != link.ERROR or "and may have no more" not in reply.error()[1]:
            raise Wrong("a lower limit does not hold: {}".format(reply.op))
        a.command("tenant", "set", "default", "--vgpus", "none")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        for c in clients:
            c.close()
    if not wait_until(lambda: len(a.gantry.vgpus()) == 1, 60):
        raise Wrong("vGPUs outlive their programs")
    a.neighbour_works()


CASES = {"faults": faults, "lingering": lingering, "stuck-files": stuck_files, "stuck-places": stuck_places, "stuck-cache": stuck_cache, "requests": requests,
         "starting": starting, "connects": connects, "halves": halves, "places": places}

if __name__ == "__main__":
    sys.exit(attacks.main(CASES))
