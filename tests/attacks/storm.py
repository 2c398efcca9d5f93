# SPDX-License-Identifier: Apache-2.0
"""Attacks a gantryd, one after the other, until it is ended: for a benchmark to look at who works beside it.

    storm.py --build DIR --socket PATH [--tenant NAME] [--pause S]

Says "storming" when the first attack is over.
"""

import argparse
import itertools
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

from rawguest import RawGuest  # noqa: E402
from wire import Wire, handle  # noqa: E402

import gantryd_harness as link  # noqa: E402


def bad_op(g, w):
    g.send(w.raw(500))
    g.ended()


def bad_handle(g, w):
    g.send(w.queue(context=handle(900)))
    g.ended()


def corrupt_ring(g, w):
    g.words[g.slot_at(g.tail) // 4] = 77
    g.wake()
    g.ended()


def many_objects(g, w):
    g.need(w.context(), w.queue())
    for i in range(500):
        g.send(w.buffer(handle(10 + i), size=64))
    g.ask(w.question())


def waits_for_ever(g, w):
    g.need(w.context(), w.queue(), w.buffer())
    for i in range(200):
        g.arm(i)
        g.send(w.read(event=i, waits=[i], size=64))
    g.ask(w.question())


def half_frames(path):
    held = [link.Client(path, greet=False) for _ in range(20)]
    for c in held:
        c.send(link.frame(link.HELLO, 1, link.hello())[:30])
    for c in held:
        c.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--tenant", default="", help="whose programs they are")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two attacks")
    options = parser.parse_args()
    wire = Wire(options.build)
    for i, attack in enumerate(itertools.cycle((bad_op, bad_handle, corrupt_ring, many_objects, waits_for_ever))):
        with RawGuest(options.socket, tenant=options.tenant.encode()) as g:
            attack(g, wire)
        half_frames(options.socket)
        if i == 0:
            print("storming", flush=True)
        time.sleep(options.pause)


if __name__ == "__main__":
    main()
