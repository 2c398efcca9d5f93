# SPDX-License-Identifier: Apache-2.0
"""One attack on a vGPU, on gantryd or on a neighbour, and what becomes of it.

    attacks.py --build DIR CASE

The attacker's vGPU ends with a reason in the log, or it is refused; a neighbour's program gets its right results meanwhile and
afterwards; gantryd lives, and holds nothing more than before. Status 0: so it is; 1: a sentence says what is wrong.
"""

import argparse
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "../edges")]

import rawguest as raw  # noqa: E402
from gantry import Gantry, LeftBehind, Wrong, built_tree, gone, held_kib, wait_until  # noqa: E402
from rawguest import RawGuest  # noqa: E402
from wire import DEVICE, Wire, arg, handle, words  # noqa: E402

sys.path.append(os.path.join(HERE, "../../src/daemon"))
import gantryd_harness as link  # noqa: E402

MEMORY_KIB = 1024  # that gantryd may hold more than before, while nobody is there: malloc's own slack
REASON = re.compile(r"vgpu=([0-9a-f]{8}).* ends: (.+)")
PAUSES_MS = {"breaches": 60000}  # of all others: none
FREE_BREACHES = 10
CRASH = re.compile(r"AddressSanitizer|runtime error:|ThreadSanitizer|was ended by signal|LeakSanitizer")
# On a program's stderr: where.c's word, or ASan's, that its worker has crashed in a kernel of the program's own, which lies in PoCL's cache.
IN_A_KERNEL = re.compile(r"(?m)^(?:signal \d+ in|SUMMARY: AddressSanitizer: SEGV \()\s?\S*/cache/[A-Z]{2}/\S+\.so\b")


class Attack:
    """A gantryd, a neighbour who works, and what there was before."""

    def __init__(self, options, work):
        self.build = os.path.abspath(options.build)
        self.work = work
        self.no_memory = options.no_memory
        self.pause_ms = PAUSES_MS.get(options.case, 0)
        self.crashed_themselves = set()  # vGPUs whose program's kernel has crashed: the program's affair
        self.edges = os.path.join(self.build, "tests/edges/edges")
        self.attacker = os.path.join(self.build, "tests/attacks/attacker")
        self.stage = built_tree(os.path.join(work, "tree"), options.build)
        self.wire = Wire(self.build)
        self.start = (self.wire.context(), self.wire.queue(), self.wire.buffer())

    def gantryd(self, name, pause_ms, preload=("libwhere.so",)):
        # A sanitizer says so itself, and wants to be loaded first.
        paths = ":".join(os.path.join(self.build, "tests/attacks", p) for p in preload)
        return Gantry(self.stage, os.path.join(self.work, name), args=["--breach-pause", str(pause_ms)],
                      env={} if self.no_memory else {"LD_PRELOAD": paths})

    def __enter__(self):
        self.gantry = self.gantryd("gantryd", self.pause_ms)
        self.gantry.__enter__()
        try:
            self.begin()
        except BaseException:
            self.gantry.__exit__(*sys.exc_info())
            raise
        return self

    def begin(self):
        with self.gantry.program([self.edges, "life"]) as p:
            p.end()
        self.before = self.gantry.settle_first()
        self.held = held_kib(self.gantry.process.pid)
        self.neighbour = self.gantry.program([self.edges, "steps", "1000000"])
        self.neighbour.hear("ready")

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.neighbour_works()
                self.neighbour.kill()
                self.gantry.settle(self.before)
                log = self.log()
                crash = CRASH.search(log)
                if crash:
                    raise Wrong("somebody crashed: " + log[max(0, crash.start() - 300):crash.start() + 3000])
                more = held_kib(self.gantry.process.pid) - self.held
                if more > MEMORY_KIB and not self.no_memory:
                    raise Wrong("gantryd holds {} KiB more than before".format(more))
        finally:
            self.neighbour.__exit__()
            self.gantry.__exit__(kind, value, trace)

    def log(self, since=0):
        """gantryd's, without the ends of those that have crashed themselves."""
        return "".join(line for line in self.gantry.log()[since:].splitlines(True)
                       if not any("vgpu={}: its worker".format(v) in line for v in self.crashed_themselves))

    def command(self, *args):
        subprocess.run([os.path.join(self.build, "src/ctl/gantry"), *args, "--connect", self.gantry.address], check=True)

    def neighbour_works(self, times=3):
        for _ in range(times):
            self.neighbour.tell()
            self.neighbour.hear("step")

    def guest(self, **how):
        return RawGuest(self.gantry.socket, **how)

    def reason(self, g):
        """Why the log says that it ended."""
        found = []

        def there():
            found[:] = [m.group(2) for m in REASON.finditer(self.gantry.log()) if m.group(1) == "{:08x}".format(g.id)]
            return bool(found)

        if not wait_until(there, 60):
            raise Wrong("vgpu {:08x} ended without a reason in the log: {}".format(g.id, self.gantry.log()))
        if len(found) != 1:
            raise Wrong("one end, several reasons: {}".format(found))
        return found[0]

    def must_end(self, what, expected, *messages, before=(), after=None):
        """A vGPU of its own gets these, and ends for the reason that is expected."""
        with self.guest() as g:
            g.need(*before)
            for m in messages:
                g.send(m)
            if after:
                after(g)
            if not g.ended():
                raise Wrong("{}: the vGPU goes on".format(what))
            reason = self.reason(g)
            if not re.search(expected, reason):
                raise Wrong("{}: it ended because of \"{}\"".format(what, reason))
        self.neighbour_works(1)


def bad_ops(a):
    w, start = a.wire, a.start
    for op in (0, 1, 189, 500, 65535):
        a.must_end("op {}".format(op), "malformed", w.raw(op))
    a.must_end("a size that is not the message's", "malformed", w.message("Devices", claimed=4096))
    a.must_end("a message of eight bytes", "malformed", bytes(8))
    a.must_end("no struct", "malformed", w.raw(w.ops["Context"]))
    a.must_end("flags that there are not", "malformed", w.message("Finish", queue=handle(3), event=1, msg_flags=2), before=start)
    a.must_end("a question that is no command", "malformed", w.message("UserEvent", event=1, msg_flags=1))
    a.must_end("an assumption without a question", "malformed", w.message("Finish", queue=handle(3), event=1, assumed=-5),
               before=start)
    a.must_end("padding", "malformed", w.message("UserEvent", event=1, zero_end=7))


def lengths(a):
    w, start = a.wire, a.start

    def info(size, span):
        return w.message("clGetDeviceInfo", device=DEVICE, param_value_size=size, param_value=span, param_name=0x1000)

    for what, span in (("beyond the reply", (0, 8, 41)), ("of another length", (0, 4, 0)), ("beyond the area", (1, 8, 64 << 20)),
                       ("around the end of numbers", (1, 8, (1 << 64) - 4)), ("in no segment", (200, 8, 0))):
        a.must_end("an output " + what, "malformed", info(8, span))
    a.must_end("an output of 4 GiB", "malformed", info(0xffffffff, (1, 0xffffffff, 0)))
    a.must_end("a length above all", "malformed", info((1 << 64) - 1, (1, 0xffffffff, 0)))
    for what, span, n in (("behind the message", (0, 17, 10000), 17), ("that is longer than said", (1, 16, 0), 17),
                          ("behind its segment", (1, 4096, (64 << 20) - 1), 4096)):
        a.must_end("a source " + what, "malformed",
                   w.message("ProgramFromSource", id=handle(5), context=handle(2), source=span, bytes=n), before=start)
    a.must_end("a string without its end", "malformed", w.kernel(name=b"abc"), before=start)
    a.must_end("a read beyond the area", "malformed", w.read(at=(1, 0, (64 << 20) - 4095)), before=start)
    a.must_end("a buffer made of nothing", "shorter than the", w.buffer(handle(7), flags=0x21), before=start)
    a.must_end("a buffer made of less", "shorter than the", w.buffer(handle(7), flags=0x21, contents=(1, 0, 0), initial=4095),
               before=start)
    a.must_end("half a wait list", "malformed", w.message("Finish", queue=handle(3), waits=(1, 6, 0), reply=0), before=start)
    a.must_end("arguments that do not add up", "malformed", w.set_arg(arg(0, 1, 4096, 0)), before=start)
    a.must_end("a handle of 256 bytes", "malformed", w.set_arg(arg(0, 3, 256, handle(4))), before=start)
    a.must_end("a list that ends with a key", "malformed", w.buffer(handle(7), properties=words(0x1234, 0)), before=start)


def handles(a):
    w, start = a.wire, a.start
    a.must_end("a handle that never was", "malformed", w.queue(context=handle(900)))
    a.must_end("a handle of the future", "malformed", w.queue(handle(8), context=handle(2, 2)), before=start)
    a.must_end("a handle of another kind", "malformed", w.queue(handle(8), context=handle(4)), before=start)
    a.must_end("a queue that never was", "no queue", w.read(queue=handle(77)), before=start)
    a.must_end("a new object over the device", "taken", w.context(DEVICE))
    a.must_end("a new object over a live one", "taken", w.context(handle(2, 2)), before=start)
    a.must_end("a new object at the end of all indices", "taken", w.context(handle(0xffffffff)))
    a.must_end("a new object without a generation", "taken", w.context(handle(9, 0)))
    a.must_end("an event outside the table", "malformed", w.read(event=1 << 20), before=start)
    # A handle of something gone is no crime: the driver says what it thinks of none.
    with a.guest() as g:
        g.need(*start)
        g.send(w.destroy(handle(2), "context"))
        got = g.ask(w.queue(handle(8)))
        if not got or got[0] != -34:
            raise Wrong("a stale handle was answered with {}".format(got))


def replays(a):
    w, start = a.wire, a.start
    a.must_end("the same object twice", "taken", w.context(), w.context())
    a.must_end("an older generation", "taken", w.destroy(handle(9, 5), "context"), w.context(handle(9, 4)),
               before=(w.context(handle(9, 5)),))
    a.must_end("a user event twice", "index is taken", w.user_event(5), w.user_event(5))
    a.must_end("an event of a user's, for a command", "malformed", w.user_event(5), w.read(event=5), before=start)
    a.must_end("a user event set twice", "no open user event", w.user_event(5), w.set_user_event(5), w.set_user_event(5))

    def slot_again(g):
        """A slot, published for a lap that has passed."""
        g.need(w.question())
        g.words[g.slot_at(g.tail) // 4] = 5
        g.wake()
    a.must_end("a slot of another lap", "ring is corrupt", after=slot_again)


def rings(a):
    def published(n_bytes, seq=1):
        def attack(g):
            at = g.slot_at(g.tail)
            g.words[at // 4 + 1] = n_bytes
            g.words[at // 4] = g.tail + seq
            g.wake()
        return attack
    for what, n_bytes, seq in (("no bytes", 0, 1), ("897 bytes", 897, 1), ("65,535 bytes", 65535, 1),
                               ("slots that are not there", 896, 1), ("a sequence of its own", 16, 77)):
        a.must_end("a message of " + what, "ring is corrupt", after=published(n_bytes, seq))

    # A message that changes while it is read: what was copied is what counts, right or wrong, and nothing breaks.
    rng = random.Random(a.seed)
    for _ in range(20):
        with a.guest() as g:
            g.need(*a.start)
            for _ in range(200):
                m = a.wire.buffer(handle(100 + g.tail), size=4096)
                at = g.slot_at(g.tail)
                if not g.send(m[:8] + bytes(4) + m[12:]):
                    break
                for _ in range(20):
                    struct.pack_into("<I", g.ring, at + 8 + 4 * rng.randrange(14), rng.choice((0, 1, 896, 0xffffffff, 42)))
            if g.ended(0.2):
                a.reason(g)
    a.neighbour_works()


def descriptors(a):
    # To the worker: descriptors for requests that never come.
    def folders(g):
        for number in range(2000):
            try:
                g.tell(link.frame(raw.FOLDERS, number), [0] * 8)
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                if g.ended(0.01):
                    return
            except OSError:  # ETOOMANYREFS: more are on their way than the kernel lets us have
                if g.ended(0.01):
                    return
    a.must_end("descriptors without end", "socket|descriptors", after=folders)
    a.must_end("a frame that there is not", "socket", after=lambda g: g.tell(link.frame(9, 1)))
    a.must_end("a malformed frame", "socket", after=lambda g: g.tell(b"\xff" * 16))
    # To gantryd: none that it did not ask for, none kept.
    for payload, fds in ((link.frame(link.HELLO, 1, link.hello()), [0] * 3), (link.frame(link.CONTROL, 1, b"{}"), [0]),
                         (link.frame(link.ATTACH, 1, link.attach()), [0] * 8)):
        c = link.Client(a.gantry.socket, greet=payload[4] != link.HELLO)
        c.send(payload, fds)
        if c.receive() is not None:
            raise Wrong("gantryd took descriptors that it did not ask for")
        c.close()
    # All the segments that there can be, thrice over; gantryd keeps no descriptor of them.
    for _ in range(3):
        with a.guest() as g:
            for i in range(1, 300):
                reply = g.client.ask(link.SEGMENT, struct.pack("<Q", 65536))
                if reply.op == link.ERROR:
                    break
                reply.close()
            if i < 200:
                raise Wrong("the {}th segment was refused: {}".format(i, reply.error()))
            a.neighbour_works(1)


def many_objects(a):
    n = 10000
    with a.guest() as g:
        w = a.wire
        g.need(w.context(), w.queue())
        for i in range(n):
            g.send(w.buffer(handle(10 + i), size=64))
            if i % 2000 == 0:
                a.neighbour_works(1)
        for i in range(n):
            g.send(w.user_event(i))
        for i in range(n):
            g.send(w.message("WatchEvent", cookie=i, event=i % 50, reply=0))
        for i in range(1000):
            g.send(w.queue(handle(20000 + i)))
        got = g.ask(w.question())
        if got is None:
            raise Wrong("a vGPU ends of 10,000 objects: {}".format(a.reason(g)))
        a.neighbour_works()
    # Their end, too: all of it goes with the process.
    a.neighbour_works()


MOST_RECORDED = 16384  # commands of a command buffer
OUT_OF_RESOURCES, INVALID_VALUE, INVALID_OPERATION, INVALID_COMMAND_BUFFER, INVALID_SYNC_POINTS = -5, -30, -59, -1138, -1139


def recordings(a):
    """Command buffers in each wrong order, with too many commands, and without the objects that their commands name."""
    w, start = a.wire, a.start
    with a.guest() as g:
        g.need(*start)
        if g.ask(w.command_buffer()) != (0, b""):
            return  # the device has none
    begun = (*start, w.command_buffer())
    barrier = w.record("BarrierWithWaitList")
    a.must_end("a command into a buffer that is memory", "malformed", w.record_fill(command_buffer=handle(4)), before=start)
    a.must_end("a command into a buffer that never was", "malformed", w.record_fill(command_buffer=handle(900)), before=start)
    a.must_end("a run of memory", "malformed", w.run(command_buffer=handle(4)), before=start)
    a.must_end("points in no segment", "malformed",
               w.message("clCommandBarrierWithWaitListKHR", command_buffer=handle(7), num_sync_points_in_wait_list=1,
                         sync_point_wait_list=(200, 4, 0)), before=begun)

    def expect(g, what, result, message):
        got = g.ask(message)
        if not got or got[0] != result:
            raise Wrong("{}: {}, not {}".format(what, got, result))

    def memory_bytes():
        return next(v["memory_bytes"] for v in a.gantry.vgpus() if v["id"] == "{:08x}".format(g.id))

    with a.guest() as g:
        g.need(*begun, w.program(), w.build(options=b"\0"), w.kernel())
        expect(g, "a point of the next command", INVALID_SYNC_POINTS, w.record("BarrierWithWaitList", points=[1]))
        g.arm(1)
        g.send(w.run())
        if (g.event_over(1) or 0) >= 0:
            raise Wrong("a buffer runs while commands are recorded")
        g.need(w.record_fill(), w.record_launch())
        for i in range(3, MOST_RECORDED + 1):
            if i % 64:  # fewer at once than there are reply slots
                g.send(barrier)
            else:
                g.need(barrier)
        a.neighbour_works()
        expect(g, "one command more", OUT_OF_RESOURCES, barrier)
        g.need(w.finalize())
        expect(g, "a second end", INVALID_OPERATION, w.finalize())
        expect(g, "a command behind the end", INVALID_OPERATION, w.record_fill())
        # The guest destroys everything while a run is pending. The run keeps what it needs.
        g.arm(2)
        g.arm(3)
        g.send(w.user_event(2))
        g.send(w.run(event=3, waits=[2]))
        for object, kind in ((7, "cmdbuf"), (4, "mem"), (6, "kernel"), (5, "program"), (3, "queue")):
            g.send(w.destroy(handle(object), kind))
        expect(g, "a command into a buffer that is gone", INVALID_COMMAND_BUFFER, barrier)
        g.send(w.set_user_event(2))
        if g.event_over(3) != 0:
            raise Wrong("a run without its objects' handles fails")
        # A refused command holds nothing: the memory that it names is free when the guest destroys it.
        g.need(w.queue(handle(13)), w.command_buffer(handle(17), queue=handle(13)))
        g.need(w.buffer(handle(100), size=1 << 20))
        expect(g, "a fill beyond its buffer", INVALID_VALUE,
               w.record_fill(handle(100), command_buffer=handle(17), offset=1 << 20))
        g.send(w.destroy(handle(100), "mem"))
        if not wait_until(lambda: memory_bytes() == 0, 60):
            raise Wrong("{} bytes are in use after everything is destroyed".format(memory_bytes()))
        a.neighbour_works()


def endless_waits(a):
    """Commands that wait for themselves, for each other, for what never comes: theirs alone."""
    with a.guest() as g:
        g.need(*a.start)
        for i in range(2000):
            g.arm(i)
            g.send(a.wire.read(event=i, waits=[i, (i + 1) % 2000], size=64))
        g.ask(a.wire.question())
        a.neighbour_works()


def sources(a):
    """Builds without end, each in a vGPU of its own; their program is killed, and nothing of them goes on."""
    for case in ("include-bomb", "macro-bomb", "huge-source"):
        with a.gantry.program([a.attacker, case], env={"GANTRY_LOG": "none"}) as p:
            p.hear("building")
            pid = a.gantry.worker_of(p)
            for _ in range(5):
                a.neighbour_works(2)
            p.kill()
            if not wait_until(lambda: gone([pid]), 30):
                raise Wrong("{}: the build outlives its program".format(case))
        a.neighbour_works(1)


HOLDER = """
import resource, socket, sys
path, n, hello = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for i in range(min(n, hard - 50)):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.connect(path)
        s.settimeout(5)
        if i % 3:
            s.send(hello if i % 3 == 2 else hello[:i % 160 + 1])
    except OSError:
        break  # no more are to be had
    held.append(s)
print(len(held), flush=True)
sys.stdin.read()
"""


def sockets(a):
    """More connections than gantryd takes, that say nothing, or half of something, or good day and then nothing. Others are served."""
    hello = link.frame(link.HELLO, 1, link.hello())
    holders = [subprocess.Popen([sys.executable, "-c", HOLDER, a.gantry.socket, "3000", hello.hex()], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE) for _ in range(3)]
    try:
        held = [int(h.stdout.readline()) for h in holders]
        if sum(held) < 2000:
            raise Wrong("only {} connections could be held open: that is no attack".format(held))
        with a.gantry.program([a.edges, "life"]) as p:
            p.end()
        a.neighbour_works()
        a.gantry.vgpus()
    finally:
        for h in holders:
            h.stdin.close()
            h.wait(60)
            h.stdout.close()


def control(a):
    """Requests that never end, and answers that nobody reads: gantryd's memory is not the attacker's to take."""
    pid = a.gantry.process.pid
    before = held_kib(pid)
    held = []
    for i in range(300):
        c = link.Client(a.gantry.socket)
        c.socket.setblocking(False)
        try:
            for _ in range(200):
                c.socket.send(link.frame(link.CONTROL, 1, b"x" * 8000, flags=link.MORE) if i % 2 else
                              link.frame(link.CONTROL, 1, b'{"version":1,"request":"status"}') * 50)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        held.append(c)
    with a.gantry.program([a.edges, "life"]) as p:
        p.end()
    a.neighbour_works()
    more = held_kib(pid) - before
    for c in held:
        c.close()
    if more > 64 * 1024 and not a.no_memory:
        raise Wrong("300 connections made gantryd hold {} MiB more".format(more // 1024))


def attaching(a):
    """Programs that attach and go, at any point of it, as fast as they can."""
    rng = random.Random(a.seed)
    for _ in range(60):
        c = link.Client(a.gantry.socket, greet=False)
        data = link.frame(link.HELLO, 1, link.hello()) + link.frame(link.ATTACH, 2, link.attach(stdio=0))
        c.send(data[:rng.randrange(len(data) + 1)])
        if rng.randrange(2):
            c.socket.settimeout(rng.random() * 0.01)
            try:
                c.receive()
            except (TimeoutError, OSError):
                pass
        c.close()
        if rng.randrange(8) == 0:
            a.neighbour_works(1)
    for what, attach in (("a platform", link.attach(platform=99, stdio=0)), ("a tenant", link.attach(tenant=b"/../x", stdio=0)),
                         ("a weight", link.attach(weight=0xffffffff, stdio=0))):
        c = link.Client(a.gantry.socket)
        reply = c.ask(link.ATTACH, attach)
        if not reply or reply.op != link.ERROR or not reply.error()[1]:
            raise Wrong("{} that there is not was not refused".format(what))
        c.close()


def breaches(a):
    """Who breaks one vGPU after the other starts them with pauses; nobody else waits."""
    a.command("tenant", "add", "victim", "--uid", str(os.getuid()))
    line = "start one vGPU every {} ms".format(a.pause_ms)
    n = 0
    while True:
        late = link.Client(a.gantry.socket)
        late.send(link.frame(link.ATTACH, 9, link.attach()), (2, 2))
        if not wait_until(lambda: line in a.gantry.log() or select.select([late.socket], [], [], 0)[0], 30):
            raise Wrong("it is neither put off nor answered")
        if line in a.gantry.log():
            break
        with a.guest(asked=late) as g:
            g.send(a.wire.raw(500))
            if not g.ended():
                raise Wrong("the vGPU goes on")
        n += 1
        if n > 3 * FREE_BREACHES:
            raise Wrong("nobody need wait")
    if n < FREE_BREACHES:
        raise Wrong("it is made to wait after {} breaches".format(n))
    with a.guest(tenant=b"victim") as g:
        g.need(*a.start)
        g.ask(a.wire.question())
    if select.select([late.socket], [], [], 0)[0]:
        raise Wrong("it need not wait")
    if a.gantry.log().count(line) != 1:
        raise Wrong("not said once: " + a.gantry.log())
    late.close()
    with a.gantryd("gantryd-2", 20) as gantry:
        break_vgpus(a, FREE_BREACHES + 10, lambda: link.Client(gantry.socket))
    places_are_given_back(a)
    if os.geteuid() == 0:
        other_users_start_at_once(a)


def break_vgpus(a, n, connect):
    """One after the other, each with a client of its own."""
    for _ in range(n):
        late = connect()
        late.send(link.frame(link.ATTACH, 9, link.attach(stdio=0)))
        with RawGuest(None, asked=late) as g:
            g.send(a.wire.raw(500))
            if not g.ended():
                raise Wrong("the vGPU goes on")


def ask_and_leave(n, connect):
    for _ in range(n):
        c = connect()
        c.send(link.frame(link.ATTACH, 9, link.attach(stdio=0)))
        c.close()


def places_are_given_back(a):
    """A user that asks 300 times and hangs up waits no longer than one that asks once: at most until its breaches are forgotten."""
    with a.gantryd("gantryd-3", 500) as gantry:
        break_vgpus(a, FREE_BREACHES + 2, lambda: link.Client(gantry.socket))
        ask_and_leave(300, lambda: link.Client(gantry.socket))
        with RawGuest(gantry.socket) as g:  # 150 s later, if each had kept its place: longer than it waits
            g.need(*a.start)


class ClientOf(link.Client):
    """A connection of another user's. Its process lives until the close, or leaves: gantryd watches it."""

    def __init__(self, path, uid):
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for fd in map(int, os.listdir("/proc/self/fd")):
                    if fd > 2 and fd != theirs.fileno():
                        os.closerange(fd, fd + 1)
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                s.connect(path)
                socket.send_fds(theirs, [b"x"], [s.fileno()])
                s.close()
                theirs.recv(1)
            finally:
                os._exit(0)
        theirs.close()
        _, fds, _, _ = socket.recv_fds(self.ours, 1, 1)
        self.socket = socket.socket(fileno=fds[0])
        self.socket.settimeout(link.PATIENCE)
        self.seq = 0
        if self.ask(link.HELLO, link.hello()).op != link.WELCOME:
            raise Wrong("user {} is not admitted".format(uid))

    def leave(self):
        """The process ends, and the connection stays."""
        self.ours.close()
        if self.pid:
            os.waitpid(self.pid, 0)
        self.pid = 0

    def close(self):
        super().close()
        self.leave()


def other_users_start_at_once(a):
    """One user of a tenant breaks vGPUs and asks for more; another one of the same tenant does not wait."""
    first, second = 54331, 54332
    with a.gantryd("gantryd-4", a.pause_ms) as gantry:
        os.chmod(gantry.socket_dir, 0o711)
        subprocess.run([os.path.join(a.build, "src/ctl/gantry"), "tenant", "set", "default", "--uid", "any", "--connect", gantry.address],
                       check=True)
        break_vgpus(a, FREE_BREACHES + 1, lambda: ClientOf(gantry.socket, first))
        waiting = [ClientOf(gantry.socket, first) for _ in range(20)]
        for c in waiting:
            c.send(link.frame(link.ATTACH, 9, link.attach(stdio=0)))
        late = ClientOf(gantry.socket, second)
        late.send(link.frame(link.ATTACH, 9, link.attach(stdio=0)))
        with RawGuest(None, asked=late) as g:
            g.need(*a.start)
        # The first user's next program may start, since none of its had to wait before; the others wait.
        started = [c for c in waiting if select.select([c.socket], [], [], 0)[0]]
        if len(started) > 1:
            raise Wrong("{} programs of the user with the breaches start at once".format(len(started)))
        for c in waiting:
            c.close()


def renumbered(a):
    """A program's first process connects and ends; a process of root's gets its number. Nothing that the program then does is done to
    that one, where the kernel does not tell gantryd who is at the other end."""
    uid = 54333
    if os.geteuid():
        raise Skip("only root can choose a process's number")
    with a.gantryd("gantryd-2", 0, ("libwhere.so", "libold-kernel.so")) as gantry:
        os.chmod(gantry.socket_dir, 0o711)
        ctl = os.path.join(a.build, "src/ctl/gantry")
        subprocess.run([ctl, "tenant", "set", "default", "--uid", "any", "--mode", "remote", "--mode", "passthrough", "--connect",
                        gantry.address], check=True)
        live = ClientOf(gantry.socket, uid)
        refused(live.ask(link.ATTACH, link.attach(stdio=0, zero=1)), "needs the kernel to identify the process")
        live.close()
        c = ClientOf(gantry.socket, uid)
        number = c.pid
        c.leave()
        with subprocess.Popen([os.path.join(a.build, "tests/attacks/renumber"), str(number), "sleep", "1000"]) as victim:
            try:
                if not wait_until(lambda: os.path.exists("/proc/{}".format(number)) or victim.poll() is not None, 30) or victim.poll():
                    raise Skip("a process's number cannot be chosen here")
                refused(c.ask(link.ATTACH, link.attach(stdio=0, zero=1)), "needs the kernel to identify the process")
                c.send(link.frame(link.ATTACH, 9, link.attach(stdio=0)))
                with RawGuest(None, asked=c) as g:
                    g.need(*a.start)
                    moved = subprocess.run([ctl, "mode", "{:08x}".format(g.id), "passthrough", "--connect", gantry.address],
                                           stderr=subprocess.PIPE, text=True, check=False)
                    if moved.returncode != 1 or "needs the kernel to identify the process" not in moved.stderr:
                        raise Wrong("it is switched to passthrough: {}".format(moved.stderr))
                    # It is not watched in place of the program that has ended, either.
                    os.kill(number, 9)
                    if victim.wait(30) != 128 + 9:
                        raise Wrong("the victim had ended with status {} before".format(victim.returncode))
                    for _ in range(2):  # gantryd has heard of that end before it answers the second
                        listed = gantry.vgpus()
                    if [v["id"] for v in listed] != ["{:08x}".format(g.id)] or not g.ask(a.wire.question()):
                        raise Wrong("the end of another process has ended its vGPU: {}".format(listed))
            finally:
                victim.kill()


def refused(reply, says):
    if not reply or reply.op != link.ERROR or says not in reply.error()[1]:
        raise Wrong("it is not refused: {}".format(reply and (reply.op, reply.payload[:200])))


class Skip(Exception):
    """Not to be had on this machine, and why."""


def scribbled(a, seconds=None):
    """Another process overwrites what program and worker share while both work."""
    scribbler = os.path.join(a.build, "tests/attacks/scribbler")
    seconds = seconds or float(os.environ.get("SCRIBBLE_SECONDS", "0"))
    began, rounds, ended = time.monotonic(), 0, 0
    seed = a.seed
    while rounds < 16 or time.monotonic() - began < seconds:
        program = ("churn", "dag", "one_queue", "pieces", "live_events", "own_contexts", "many_buffers")[rounds % 7]
        log_at = len(a.gantry.log())
        with a.gantry.program([a.edges, program]) as p:
            try:
                vgpu = a.gantry.vgpu_of(p)
            except Wrong:
                vgpu = None  # it was quicker
            if vgpu:
                s = subprocess.Popen([scribbler, str(p.pid), str(seed)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                line = s.communicate(timeout=60)[0].decode()
                # What its own memory's being overwritten makes of the program is its own affair: wrong, an error, a wait without end.
                p.kill()
                if p.process.returncode not in (0, 1, -9):
                    raise Wrong("seed {}: {} ended with status {}; {}".format(seed, program, p.process.returncode, line))
                if not wait_until(lambda: gone([vgpu["worker_pid"]]), 30):
                    raise Wrong("seed {}: the worker of {} does not end; {}".format(seed, program, line))
                if IN_A_KERNEL.search(p.last_words()):
                    a.crashed_themselves.add(vgpu["id"])
        new = a.log(log_at)
        crash = CRASH.search(new)
        if crash:
            raise Wrong("seed {}, {}: {}".format(seed, program, new))
        if "ended with status 1" in new and not REASON.search(new):
            raise Wrong("seed {}: {} ended without a reason: {}{}".format(seed, program, new, p.last_words()))
        ended += bool(REASON.search(new))
        a.neighbour_works(1)
        rounds += 1
        seed += 1
    print("{} rounds, {} vGPUs ended with a reason, {} crashed in a kernel of their own, seeds {} to {}".format(
        rounds, ended, len(a.crashed_themselves), a.seed, seed - 1))


CASES = {"bad-ops": bad_ops, "lengths": lengths, "handles": handles, "replays": replays, "rings": rings, "descriptors": descriptors,
         "many-objects": many_objects, "recordings": recordings, "endless-waits": endless_waits, "sources": sources, "sockets": sockets, "control": control,
         "attaching": attaching, "breaches": breaches, "renumbered": renumbered, "scribbled": scribbled}


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--no-memory", action="store_true", help="a sanitizer keeps what is freed: don't ask how much gantryd holds")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("ATTACK_SEED", "1")))
    parser.add_argument("case", choices=sorted(cases))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gn-attacks-") as work:
        try:
            with Attack(options, work) as a:
                a.seed = options.seed
                cases[options.case](a)
        except Skip as why:
            print("SKIP: {}".format(why), file=sys.stderr)
            return 77
        except (Wrong, raw.Wrong, LeftBehind) as e:
            print("{} (seed {}): {}".format(options.case, options.seed, e))
            return 1
    print("{}: right".format(options.case))
    return 0


if __name__ == "__main__":
    sys.exit(main(CASES))
