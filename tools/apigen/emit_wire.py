# SPDX-License-Identifier: Apache-2.0
"""Writes the wire structs: one per request, with its number, and an assert for its size and every offset."""

WIDTH = {"u32": ("uint32_t", 4), "i32": ("int32_t", 4), "u64": ("uint64_t", 8)}


def layout(api, call):
    """The fields after struct gn_msg: those of eight bytes and more, then those of four, so that only the end is padded."""
    fields = []  # (ctype, name, bytes, comment)
    if call.served == "command":
        fields.append(("struct gn_command_head", "head", 32, ""))
    if call.served == "create":
        fields.append(("uint64_t", "id", 8, "what the new object is called"))
    small, present = [], 0
    for p in call.wire_params():
        if p.mode == "value":
            ctype, size = WIDTH[api.types[p.ctype]]
            (small if size == 4 else fields).append((ctype, p.name, size, p.ctype))
        elif p.mode == "handle":
            if call.served == "command" and p.kind == api.dialect.QUEUE_KIND:
                continue
            fields.append(("uint64_t", p.name, 8, p.kind))
        elif p.mode == "vec":
            fields.append(("uint64_t", p.name, 24, "vec"))
            present += 1
        elif p.mode == "area":
            fields.append(("struct gn_area_ref", p.name, 16, p.length))
        else:
            fields.append(("struct gn_span", p.name, 16, p.mode))
    if present:
        small.append(("uint32_t", "present", 4, "bit i: vector i was not NULL"))
    if len(small) % 2:
        small.append(("uint32_t", "zero_end", 4, ""))
    return fields + small


def offsets(fields):
    at = 16
    for ctype, name, size, _ in fields:
        yield name, at
        at += size
    yield None, at


def emit(api, out):
    out("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by apigen: do not edit. */")
    out(f"#ifndef GN_{api.name.upper()}_WIRE_H\n#define GN_{api.name.upper()}_WIRE_H\n")
    out('#include "wire/wire.h"\n\n#include <assert.h>\n#include <stddef.h>\n')
    out("enum gn_kind {")
    for i, handle in enumerate(api.handles, 1):
        out(f"    GN_KIND_{handle.upper()} = {i},")
    out(f"    GN_KIND_MAX = {len(api.handles) + 1}")
    out("};\n")
    travelling = [c for c in api.calls if c.travels]
    out(f"enum gn_{api.name}_op {{")
    for c in travelling:
        out(f"    GN_OP_{c.name} = {c.number},")
    out(f"    GN_OP_MAX = {max(c.number for c in travelling) + 1}")
    out("};\n")
    for c in travelling:
        fields = layout(api, c)
        out(f"struct gn_wire_{c.name} {{\n    struct gn_msg msg;")
        for ctype, name, size, comment in fields:
            array = "[3]" if size == 24 else ""
            note = f" /* {comment} */" if comment else ""
            out(f"    {ctype} {name}{array};{note}")
        out("};")
        for name, at in offsets(fields):
            if name is None:
                out(f'static_assert(sizeof(struct gn_wire_{c.name}) == {at}, "wire");')
                out(f'static_assert({at} <= GN_MSG_MAX_BYTES, "a message fits in the ring");\n')
            else:
                out(f'static_assert(offsetof(struct gn_wire_{c.name}, {name}) == {at}, "wire");')
    out("#endif")
