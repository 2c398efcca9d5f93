# SPDX-License-Identifier: Apache-2.0
"""Messages by the names of their fields, laid out as the generated header of this build says (docs/wire.md).

    wire = Wire("build")
    wire.message("Context", id=handle(2), devices=words(handle(1)), num_devices=1)

What is not named is zero, or nowhere. Bytes given for a span travel inline; a tuple (segment, bytes, offset) is written as it is.
"""

import os
import re
import struct

NOWHERE = 0xffffffff
NO_EVENT = 0xffffffff
# The token of a message that nothing asks about: an answer in a reply slot that RawGuest.ask never waits on. A request that had to wait
# for memory is answered after later ones, and would overwrite the answer that ask waits for.
UNREAD = 1 << 8 | 1
KINDS = {name: i for i, name in enumerate(("platform", "device", "context", "queue", "mem", "sampler", "program", "kernel", "event",
                                           "svm", "cmdbuf"), 1)}


def handle(index, generation=1):
    return generation << 32 | index


PLATFORM, DEVICE = handle(0), handle(1)


def words(*values):
    return struct.pack("<%dQ" % len(values), *values)


def arg(index, kind, n_bytes, value, tail=b"", zero=0):
    """One kernel argument of a run."""
    return struct.pack("<HBBIQ", index, kind, zero, n_bytes, value & (1 << 64) - 1) + tail


class Wire:
    def __init__(self, build):
        with open(os.path.join(build, "api/opencl_wire.h"), encoding="utf-8") as f:
            text = f.read()
        self.ops = {m.group(1): int(m.group(2)) for m in re.finditer(r"^    GN_OP_(\w+) = (\d+)", text, re.M)}
        self.fields = {}
        for m in re.finditer(r"^struct gn_wire_(\w+) \{\n(.*?)^\};", text, re.M | re.S):
            found = re.findall(r"^    (?:struct )?(\w+) (\w+)(\[3\])?;", m.group(2), re.M)
            self.fields[m.group(1)] = [(kind, name, bool(three)) for kind, name, three in found[1:]]

    def message(self, op, msg_flags=0, reply=UNREAD, assumed=0, claimed=None, queue=0, waits=None, event=NO_EVENT, **values):
        """claimed: the size that it says it has. queue, waits, event: a command's head."""
        if event != NO_EVENT and all(kind != "gn_command_head" for kind, _, _ in self.fields[op]):
            values["event"] = event  # a field of its own
        pieces = []  # bytes, or [bytes] for what goes behind the fields
        for kind, name, three in self.fields[op]:
            value = values.pop(name, None)
            if kind == "gn_command_head":
                pieces.append(struct.pack("<Q", queue))
                pieces.append(self._span(struct.pack("<%dI" % len(waits), *waits) if isinstance(waits, list) else waits))
                pieces.append(struct.pack("<II", event, 0))
            elif kind == "gn_span":
                pieces.append(self._span(value))
            elif kind == "gn_area_ref":
                segment, zero, offset = value or (NOWHERE, 0, 0)
                pieces.append(struct.pack("<IIQ", segment, zero, offset))
            elif kind == "uint64_t":
                many = value if three and value is not None else [value or 0] * (3 if three else 1)
                pieces += [struct.pack("<Q", v & (1 << 64) - 1) for v in many]
            else:
                pieces.append(struct.pack("<I", (value or 0) & 0xffffffff))
        if values:
            raise KeyError("{} has no {}".format(op, ", ".join(values)))
        end = 16 + sum(16 if isinstance(p, list) else len(p) for p in pieces)
        fixed, tail = b"", b""
        for p in pieces:
            if isinstance(p, list):
                tail += bytes(-(end + len(tail)) % 8)
                fixed += struct.pack("<IIQ", 0, len(p[0]), end + len(tail))
                tail += p[0]
            else:
                fixed += p
        return self.raw(self.ops[op], fixed + tail, msg_flags, reply, assumed, claimed)

    @staticmethod
    def raw(op, body=b"", flags=0, reply=UNREAD, assumed=0, claimed=None):
        return struct.pack("<IHHIi", 16 + len(body) if claimed is None else claimed, op, flags, reply, assumed) + body

    @staticmethod
    def _span(value):
        if isinstance(value, (bytes, bytearray)):
            return [value]
        return struct.pack("<IIQ", *(value or (NOWHERE, 0, 0)))

    # ---- what most begin with. Handles: 2 a context, 3 a queue, 4 a buffer, 5 a program, 6 a kernel.

    def context(self, id=handle(2), properties=None, n_properties=0, notify=0):
        return self.message("Context", id=id, properties=properties, n_properties=n_properties, devices=words(DEVICE), num_devices=1,
                            notify=notify)

    def queue(self, id=handle(3), context=handle(2), properties=0):
        return self.message("clCreateCommandQueue", id=id, context=context, device=DEVICE, properties=properties)

    def buffer(self, id=handle(4), context=handle(2), size=4096, flags=1, contents=None, initial=0, **more):
        return self.message("Buffer", id=id, context=context, size=size, flags=flags, has_host_ptr=1 if flags & 0x28 else 0,
                            host_ptr=contents, initial=initial, at_home=(0, 4, 0), told_flags=(0, 8, 8), **more)

    def program(self, id=handle(5), context=handle(2), source=b"kernel void k(){}"):
        return self.message("ProgramFromSource", id=id, context=context, source=source, bytes=len(source))

    def build(self, program=handle(5), options=b"-cl-x\0"):
        return self.message("Build", program=program, options=options)

    def kernel(self, id=handle(6), program=handle(5), name=b"k\0"):
        return self.message("clCreateKernel", id=id, program=program, kernel_name=name)

    def set_arg(self, run, kernel=handle(6)):
        return self.message("SetArg", kernel=kernel, args=run, bytes=len(run))

    def launch(self, run=b"", kernel=handle(6), queue=handle(3), **how):
        return self.message("Launch", queue=queue, kernel=kernel, global_work_size=[64, 1, 1], work_dim=1, present=2, args=run or None,
                            args_bytes=len(run), reply=how.pop("reply", 0), **how)

    def command_buffer(self, id=handle(7), queue=handle(3), properties=None):
        return self.message("CommandBuffer", id=id, command_queue=queue, properties=properties)

    def record(self, what, command_buffer=handle(7), points=(), **values):
        """clCommand`what`KHR, or RecordLaunch for "Launch"."""
        op = "RecordLaunch" if what == "Launch" else "clCommand{}KHR".format(what)
        waits = struct.pack("<%dI" % len(points), *points) if points else None
        return self.message(op, command_buffer=command_buffer, sync_point_wait_list=waits,
                            num_sync_points_in_wait_list=len(points), **values)

    def record_launch(self, run=b"", kernel=handle(6), sizes=(64,), work_dim=None, **how):
        return self.record("Launch", kernel=kernel, global_work_size=words(*sizes) if sizes else None,
                           work_dim=len(sizes) if work_dim is None else work_dim, args=run or None, args_bytes=len(run), **how)

    def record_fill(self, buffer=handle(4), offset=0, size=4096, pattern=b"fill", **how):
        return self.record("FillBuffer", buffer=buffer, offset=offset, size=size, pattern=pattern, pattern_size=len(pattern), **how)

    def finalize(self, command_buffer=handle(7)):
        return self.message("clFinalizeCommandBufferKHR", command_buffer=command_buffer)

    def run(self, command_buffer=handle(7), queue=handle(3), event=1, **how):
        return self.message("EnqueueCommandBuffer", queue=queue, command_buffer=command_buffer, event=event,
                            reply=how.pop("reply", 0), **how)

    def read(self, buffer=handle(4), queue=handle(3), offset=0, size=4096, at=(1, 0, 0), event=1, **how):
        return self.message("clEnqueueReadBuffer", queue=queue, buffer=buffer, offset=offset, size=size, ptr=at, event=event,
                            reply=0, **how)

    def user_event(self, event):
        return self.message("UserEvent", event=event, reply=0)

    def set_user_event(self, event, status=0):
        return self.message("UserEventStatus", event=event, status=status, reply=0)

    def destroy(self, object, kind):
        return self.message("DestroyObject", object=object, kind=KINDS[kind], reply=0)

    def question(self):
        """Something that is answered: how many bytes is the device's type?"""
        return self.message("clGetDeviceInfo", device=DEVICE, param_name=0x1000, param_value_size_ret=(0, 8, 0))
