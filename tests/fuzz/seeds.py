#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand-made inputs of vgpu_fuzz.c anew, laid out as this build's wire is: after a change of the API description.

    tests/fuzz/seeds.py BUILD
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../attacks"))

from wire import DEVICE, PLATFORM, Wire, arg, handle, words  # noqa: E402

FOLDER = os.path.join(HERE, "corpus/vgpu")
GENTLE, LATER = 0, 1  # the driver ends commands at once, or when an input says so
SEGMENT = bytes([4])
BASE = 0x300000000000


def taken(m):
    """A message as vgpu_fuzz.c takes it."""
    return bytes([0, 0]) + struct.pack("<H", len(m)) + m


def end(which=0, status=0):
    return bytes([1 | which << 3, status & 255])


def written(at, data):
    return bytes([2]) + struct.pack("<HB", at, len(data)) + data


def session(op, seq, payload=b""):
    return bytes([3, op, seq, len(payload)]) + payload


def seeds(w):
    def put(name, *parts, mode=GENTLE):
        with open(os.path.join(FOLDER, name), "wb") as f:
            f.write(bytes([mode]) + b"".join(p if p[:1] != b"m" else taken(p[1:]) for p in parts))

    def m(message):
        return b"m" + message  # to be told from other steps

    start = [m(w.context()), m(w.queue()), m(w.buffer()), m(w.program()), m(w.build()), m(w.kernel())]
    context = m(w.context())

    put("copied-from-nowhere", context, m(w.buffer(flags=0x21)))
    put("used-from-nowhere", context, m(w.buffer(flags=0x9, initial=4096)))
    image = dict(id=handle(7), context=handle(2), image_format=struct.pack("<II", 0x10B5, 0x10DA),
                 image_desc=struct.pack("<I4xQQQQQQIIQ", 0x10F1, 16, 16, 1, 1, 0, 0, 0, 0, 0))
    put("image-copied-from-nowhere", context, m(w.message("Image", flags=0x21, has_host_ptr=1, **image)))
    put("image", context, m(w.message("Image", flags=0x21, has_host_ptr=1, host_ptr=(1, 0, 0), initial=4096, **image)))
    put("odd-context-properties", m(w.context(properties=words(0x1084, 0, 0x1085, 0), n_properties=4)))
    put("odd-buffer-properties", context, m(w.buffer(properties=words(0x1084, 0))))
    put("odd-sampler-properties", context, m(w.message("clCreateSamplerWithProperties", id=handle(4), context=handle(2),
                                                       sampler_properties=(1, 16, 0x7ff0))), written(0x7ff0, words(0x1152)))
    part = dict(in_device=DEVICE)
    put("endless-partition", m(w.message("SubDevices", properties=words(0x1087, 1, 1, 1), ids=words(handle(8)), n_properties=4, n_ids=1,
                                         **part)))
    put("short-partition", m(w.message("SubDevices", properties=words(0x1086), n_properties=1, **part)))
    put("partition", m(w.message("SubDevices", properties=words(0x1086, 1, 0), ids=words(handle(8), handle(9)), n_properties=3, n_ids=2,
                                 **part)), m(w.destroy(handle(8), "device")), m(w.destroy(handle(9), "device")))
    put("partition-over-a-handle", m(w.message("SubDevices", properties=words(0x1086, 1, 0), ids=words(handle(8), 0), n_properties=3,
                                               n_ids=2, **part)))
    put("buffer-as-big-argument", *start, m(w.set_arg(arg(5, 3, 256, handle(4)))))
    put("null-as-big-argument", *start, m(w.set_arg(arg(5, 6, 256, 0))), m(w.launch(arg(5, 6, 256, 0))))
    put("huge-null-argument", *start, m(w.set_arg(arg(5, 6, 0xffffffff, 0))))
    put("local-of-any-size", *start, m(w.set_arg(arg(1, 2, 0xfffffff0, 0))))
    put("argument-of-no-kind", *start, m(w.set_arg(arg(0, 9, 4096, 0))))
    put("launch", *start, m(w.launch(arg(0, 3, 8, handle(4)) + arg(5, 1, 256, 0, b"z" * 256), event=1)), m(w.launch(event=2, waits=[1])),
        m(w.message("Finish", queue=handle(3), event=3, reply=0)))
    put("launch-later", *start, m(w.launch(arg(0, 3, 8, handle(4)), event=1)), m(w.launch(event=2, waits=[1])), end(0, -5), end(),
        mode=LATER)
    put("waits-for-itself", *start, m(w.launch(event=1, waits=[1])), m(w.launch(event=2)))
    put("user-event", *start, m(w.user_event(9)), m(w.launch(event=1, waits=[9])), m(w.set_user_event(9)))
    put("user-event-failed", *start, m(w.user_event(9)), m(w.launch(event=1, waits=[9])), m(w.set_user_event(9, -10)), mode=LATER)
    put("watched", *start, m(w.user_event(9)), m(w.message("WatchEvent", event=9, cookie=7, phase=0)), m(w.set_user_event(9)))
    ask = dict(msg_flags=1, reply=256)
    put("asked", *start, m(w.user_event(9)), m(w.launch(event=1, **ask)), m(w.launch(event=2, waits=[9], assumed=-48, **ask)),
        m(w.launch(event=3, waits=[9], **ask)))
    put("event-in-use", *start, m(w.user_event(9)), m(w.launch(event=9)))
    put("event-outside", *start, m(w.launch(event=1 << 20)))
    put("transfers", *start, m(w.read(event=1)), m(w.message("clEnqueueWriteBuffer", queue=handle(3), event=2, buffer=handle(4), size=4096,
                                                             ptr=(1, 0, 0), reply=0)))
    home = dict(home=1, contents=(1, 0, 4096), initial=4096)
    put("home", context, m(w.queue()), m(w.buffer(**home)), m(w.read(event=1)), m(w.message("LeaveHome", buffer=handle(4), event=2, reply=0)),
        m(w.destroy(handle(4), "mem")))
    put("home-of-nowhere", context, m(w.buffer(home=1)))
    put("home-too-small", context, m(w.buffer(home=1, contents=(1, 0, 0), initial=64)))
    put("home-left-twice", context, m(w.buffer(**home)), *[m(w.message("LeaveHome", buffer=handle(4), event=2, reply=0))] * 2)
    put("a-handle-twice", context, context)
    put("a-handle-over-another", context, m(w.context(handle(2, 2))))
    put("a-lie-for-a-handle", context, m(w.queue(context=handle(9))))
    put("a-stale-handle", context, m(w.destroy(handle(2), "context")), m(w.queue()))
    put("another-kind", context, m(w.queue(context=handle(1))))
    copied = dict(flags=0x21, initial=4096)
    put("segment", SEGMENT, context, m(w.buffer(contents=(2, 0, 0), **copied)))
    put("no-such-segment", context, m(w.buffer(contents=(9, 0, 0), **copied)))
    put("beyond-a-segment", context, m(w.buffer(contents=(1, 0, 0x7001), **copied)))
    put("contents-too-short", context, m(w.buffer(flags=0x21, contents=(1, 0, 0), initial=4000)))
    put("many-kernels", *start, m(w.message("Kernels", program=handle(5), ids=words(handle(10), handle(11), handle(12)), num_kernels=3)))
    put("kernels-without-names", *start, m(w.message("Kernels", program=handle(5), num_kernels=3)))
    put("binaries", *start, *[m(w.message("ProgramBinaries", program=handle(5), n=n)) for n in (1, 0, 2, 0xffffffff)],
        m(w.message("ProgramBinaries", program=handle(5), sizes=(1, 8, 0), n=1, bytes=(1, 64, 64), total=64)))
    put("frames-on-the-session", session(3, 0x61), session(3, 0x22))
    put("an-odd-frame-on-the-session", session(7, 1))
    put("gantryd-says-end", bytes([12, 43, 0, 0]))
    put("gantryd-sends-a-link", bytes([12, 44, 0x20, 0]))
    put("gantryd-leases", bytes([12, 57, 1, 8]) + words(1 << 30), bytes([12, 58, 0, 8]) + words(1))
    put("svm", SEGMENT, context, m(w.queue()), m(w.message("SvmWindow", platform=PLATFORM, address=BASE, bytes=1 << 30,
                                                           capabilities=(1, 8, 0), largest=(1, 8, 8), n_devices=1)),
        m(w.message("Svm", id=handle(4), context=handle(2), flags=1, size=4096, address=BASE, pages=(2, 0, 0))),
        m(w.message("SvmFill", queue=handle(3), event=5, address=BASE, pattern=b"abcd", pattern_size=4, size=4096, reply=0)))
    command_buffer_seeds(put, m, w, start)


def command_buffer_seeds(put, m, w, start):
    def args(first=(3, handle(4)), last=b"z" * 256):
        """All that the strict driver's kernels have."""
        return b"".join((arg(0, first[0], 8, first[1]), arg(1, 2, 64, 0), *(arg(i, 1, 8, i) for i in (2, 3, 4)),
                         arg(5, 1, 256, 0, last)))

    recorded = [*start, m(w.command_buffer()), m(w.record_fill()), m(w.record("BarrierWithWaitList", points=[1], sync_point=(1, 4, 64))),
                m(w.record("CopyBuffer", src_buffer=handle(4), dst_buffer=handle(4), dst_offset=2048, size=2048, points=[1, 2])),
                m(w.record_launch(args(), points=[3])), m(w.finalize())]
    gone = [m(w.destroy(handle(4), "mem")), m(w.destroy(handle(6), "kernel")), m(w.destroy(handle(5), "program"))]
    dropped = m(w.destroy(handle(7), "cmdbuf"))
    put("command-buffer", *recorded, m(w.run()), m(w.run(event=2, waits=[1], shown=1)), dropped)
    put("command-buffer-alone", *recorded, *gone, m(w.run()), m(w.run(event=2)), dropped)
    put("command-buffer-dropped", *recorded, *gone, m(w.run()), m(w.run(event=2, waits=[1])), dropped, end(), end(), mode=LATER)
    put("command-buffer-late", *recorded, m(w.user_event(9)), m(w.run(waits=[9])), m(w.run(event=2)), *gone, dropped,
        m(w.set_user_event(9, -5)))
    put("command-buffer-over-kernels", *start, m(w.message("Kernels", program=handle(5), ids=words(handle(10), handle(11), handle(12)),
                                                           num_kernels=3)), m(w.command_buffer()), m(w.record_launch(args(), kernel=handle(10))),
        m(w.record_launch(args(), kernel=handle(11), sizes=(8, 8, 8))), m(w.finalize()), m(w.run()))
    put("command-buffer-on-another-queue", *recorded, m(w.queue(handle(8), properties=1)), m(w.run(queue=handle(8))))
    put("odd-command-buffer-properties", *start, m(w.command_buffer(properties=words(0x1293))),
        m(w.command_buffer(handle(8), properties=words(0x1293, 8, 0))), m(w.command_buffer(handle(9), properties=words(0x1084, 1, 0))))
    put("command-buffer-of-no-queue", *start, m(w.command_buffer(queue=0)), m(w.command_buffer(queue=handle(4))))
    put("run-while-recorded", *recorded[:-1], m(w.run()), m(w.finalize()), m(w.run(event=2)))
    put("recorded-after-the-end", *recorded, m(w.record_fill()), m(w.record_launch(args())), m(w.finalize()), m(w.run()))
    put("points-of-no-command", *start, m(w.command_buffer()), m(w.record_fill(points=[1])), m(w.record_fill(points=[0])),
        m(w.record_fill()), m(w.record_fill(points=[2])), m(w.record_fill(points=[0xffffffff, 1])))
    put("points-without-a-list", *start, m(w.command_buffer()),
        m(w.message("clCommandBarrierWithWaitListKHR", command_buffer=handle(7), num_sync_points_in_wait_list=0x40000001)))
    put("recorded-from-nowhere", *start, m(w.command_buffer()), m(w.record_fill(buffer=0)), m(w.record_fill(pattern=b"")),
        m(w.record("CopyBuffer", dst_buffer=handle(4), size=16)), m(w.record("CopyBuffer", src_buffer=handle(4), size=16)),
        m(w.record("CopyBufferRect", src_buffer=handle(4), dst_buffer=handle(4))), m(w.record("FillImage", image=handle(4))))
    put("recorded-beyond", *start, m(w.command_buffer()), m(w.record_fill(offset=(1 << 64) - 4, size=4096)),
        m(w.record_fill(offset=4092, size=8)), m(w.record_fill(pattern=b"x" * 129)), m(w.finalize()), m(w.run()))
    begun = [*start, m(w.command_buffer())]
    put("recorded-launch-of-nothing", *begun, m(w.record_launch(args(), kernel=0)), m(w.record_launch(args(), work_dim=0, sizes=())),
        m(w.record_launch(args(), sizes=(1, 1, 1, 1))), m(w.record_launch(args(), sizes=())))
    put("recorded-launch-of-many", *begun, m(w.record_launch(args(), sizes=(1,), work_dim=0xffffffff)))
    put("recorded-arguments-missing", *begun, m(w.record_launch()), m(w.record_launch(args()[:16])), m(w.record_launch(args()[16:])),
        m(w.record_launch(args()[:16] * 2)), m(w.record_launch(args() + arg(6, 1, 8, 0))))
    put("recorded-argument-of-no-kind", *begun, m(w.record_launch(args((9, 0)))))
    put("recorded-argument-beyond", *begun, m(w.record_launch(args(last=b"z" * 8))))
    put("recorded-argument-of-another-kind", *begun, m(w.record_launch(args((3, handle(3))))))
    put("recorded-argument-gone", *begun, m(w.destroy(handle(4), "mem")), m(w.record_launch(args())))
    put("recorded-arguments-odd", *begun, m(w.record_launch(args((6, 0)))), m(w.record_launch(args((3, 0)))),
        m(w.record_launch(args((5, BASE)))), m(w.record_launch(args((2, 0)))), m(w.finalize()), m(w.run()))
    put("another-kind-for-a-command-buffer", *start, m(w.record_fill(command_buffer=handle(4))))
    put("run-of-another-kind", *start, m(w.run(command_buffer=handle(4))))
    put("run-of-nothing", *start, m(w.run(command_buffer=0)))


# The front end's (guest_fuzz.c): what the program does, and what it is answered in between: how (16: each word its own), a number out
# of `ODD`, and, with 16, six more.
ODD = {0: 0, 1: 1, 2: 2, 8: 6, 33: 9, 64: 10, 1 << 20: 17, 65537: 16, (1 << 64) - 33: 23}


def says(n, *more):
    return bytes([16, ODD[n], *(ODD[m] for m in more), *[0] * (6 - len(more))]) if more else bytes([0, ODD[n]])


def guest_seeds():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "guest")
    good = says(0)
    buffer_ = bytes([2, 0, 0, 0, 0, 0]) + good
    program = bytes([3, 0, 0]) + good + bytes([0])
    kernel = program + bytes([4, 0, 0, 0]) + good
    for name, parts in {
        "every-step": b"".join(bytes([s]) + bytes(24) for s in range(19)),
        "every-step-ones": b"".join(bytes([s]) + b"A" * 24 for s in range(19)),
        "extensions-without-end": bytes([6, 129]) + says((1 << 64) - 33),
        "more-arguments-the-second-time": kernel + says(33) + says(65537) + good,
        "a-group-of-nothing": kernel + says(1) + says(1, 1, 0, 0) + bytes([10, 0, 0, 16]) + good + bytes([0]),
        "more-binaries-than-told": program + bytes([9, 0, 1]) + says(8) + says(1 << 20) + good,
        "at-home-unasked": buffer_ + says(1) + bytes([0, 12, 0, 0, 4, 7]),
        "more-kernels-than-asked-for": program + bytes([4, 0, 2]) + says(2) + says(64) + good * 8,
        "points-and-runs": buffer_ + bytes([0, 16, 0, 0]) + good * 2 + bytes([0]) +
                           b"".join(bytes([17, 0, 0, 0, which]) + says(1 << 20) for which in (0, 8, 17, 6, 30)) +
                           bytes([18, 0, 0, 9]) + good * 2 + bytes([0, 18, 0, 0, 0xcb]) + good * 8 + bytes([0] * 8),
        "recorded-launch": kernel + good * 2 + bytes([16, 0, 0, 0]) + good * 2 + bytes([17, 0, 0, 0, 7, 0]) + says(1) +
                           bytes([18, 0, 0, 9]) + good * 2,
        "more-parts-than-asked-for": bytes([7]) + says(2) + says(64),
    }.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(parts)


if __name__ == "__main__":
    guest_seeds()
    seeds(Wire(sys.argv[1]))
