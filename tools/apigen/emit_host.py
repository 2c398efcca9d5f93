# SPDX-License-Identifier: Apache-2.0
"""Writes the host's half: decoding with every check, the call into the driver, and the table of requests."""
import re

from emit_guest import element, kind, pointee
from emit_wire import layout


def args_struct(call, out):
    out(f"struct gn_args_{call.name} {{")
    for p in call.wire_params():
        if p.mode == "handle":
            out(f"    {p.ctype} {p.name};\n    struct gn_vobject *{p.name}_object;")
        elif p.mode in ("handles", "in", "out", "string", "list", "area"):
            t = p.ctype if p.ctype.endswith("*") else p.ctype + " *"
            out(f"    {t}{p.name};")
        elif p.mode == "value":
            out(f"    {p.ctype} {p.name};")
    out("};\n")


def expression(call, text, command):
    """A length expression over the decoded message."""
    def replace(m):
        word = m.group(0)
        p = next((q for q in call.params if q.name == word), None)
        if p is None:
            return call.dialect.LENGTH_WORDS.get(word, word)
        if p.mode == "handle":
            return f"c->refs[{refs(call).index(p)}]"
        return f"w->{word}"
    return re.sub(r"[A-Za-z_]\w*", replace, text)


def refs(call):
    return [p for p in call.params if p.mode == "handle" and not (call.served == "command" and p.kind == call.dialect.QUEUE_KIND)]


def bytes_of(call, p):
    return f"gn_times({expression(call, p.length, False)}, {element(p)})"


def driver(call):
    """The driver's function."""
    return f"{call.dialect.driver_table(call)}->{call.name}"


def pads(api, call):
    return any(name == "zero_end" for _, name, _, _ in layout(api, call))


def known_names(call, out):
    """Queries whose answers are plain values. An unknown query could answer with a pointer or a handle of this process."""
    name = call.dialect.QUERY[0]
    ctype = next(p.ctype for p in call.params if p.name == name)
    out(f"bool gn_asks_{call.name}({ctype} {name})\n{{\n    switch ({name}) {{")
    for name in call.asks:
        out(f"    case {name}:")
    out("        return true;\n    default:\n        return false;\n    }\n}\n")


def known_keys(call, out):
    """List keys whose values are plain. The driver could take an unknown key's value for a pointer."""
    for name, (error, keys) in call.keys.items():
        if keys and error != "host":
            out(f"static const uint64_t keys_{call.name}_{name}[] = {{{', '.join(keys)}}};\n")


def refuse(call, out):
    """Refuses an unknown key. In place of an unknown query the driver is asked a known one, without room, so that it still
    reports other errors."""
    if call.served == "info":
        name, room, answer, used = call.dialect.QUERY
        out(f"    const bool known = gn_asks_{call.name}(a.{name});\n    if (!known) {{\n        a.{name} = {call.asks[0]};")
        out(f"        a.{answer} = NULL;\n        a.{room} = 0;\n        a.{used} = NULL;\n    }}")
    for name, (error, keys) in call.keys.items():
        known = f"keys_{call.name}_{name}, GN_ARRAY_SIZE(keys_{call.name}_{name})" if keys else "NULL, 0"
        if error != "host":
            out(f"    if (!gn_list_knows(a.{name}, {known})) {{")
            out(f"        r->result = gn_request_made(r, {kind(call.kind)}, w->id, NULL, {error});\n        return;\n    }}")


def request(api, call, out):
    """A request with a reply: decodes the message into args, then calls the driver or the handwritten handler."""
    d = api.dialect
    if call.served == "info":
        known_names(call, out)
    known_keys(call, out)
    out(f"static void host_{call.name}(struct gn_vgpu *v, struct gn_request *r)\n{{")
    out(f"    const struct gn_wire_{call.name} *w = gn_request_message(r);")
    out(f"    struct gn_args_{call.name} a = {{0}};")
    for p in call.wire_params():
        n = p.name
        if p.mode == "value":
            out(f"    a.{n} = w->{n};")
        elif p.mode == "handle":
            # A handwritten query knows the answers for an object that the driver does not have now.
            get = "gn_request_named" if call.served == "info" and call.host else "gn_request_object"
            out(f"    a.{n}_object = {get}(r, {kind(p.kind)}, w->{n});")
            out(f"    a.{n} = gn_driver_of(a.{n}_object);")
        elif p.mode == "handles":
            out(f"    a.{n} = gn_request_objects(r, {kind(p.kind)}, &w->{n}, {expression(call, p.length, False)});")
        elif p.mode == "in":
            out(f"    a.{n} = gn_request_in(r, &w->{n}, {bytes_of(call, p)});")
        elif p.mode == "string":
            out(f"    a.{n} = gn_request_string(r, &w->{n});")
        elif p.mode == "list":
            out(f"    a.{n} = gn_request_list(r, &w->{n});")
        elif p.mode == "out":
            out(f"    a.{n} = gn_request_out(r, &w->{n}, {bytes_of(call, p)});")
        elif p.mode == "area":
            out(f"    a.{n} = gn_request_area(r, &w->{n}, {bytes_of(call, p)});")
    # The guest's stub always sends these, so a message without them is hostile; handlers rely on them.
    for p in call.wire_params():
        if p.mode in ("in", "out", "handles", "string", "list") and not p.optional:
            out(f"    gn_request_need(r, &w->{p.name});")
    if pads(api, call):
        out("    r->fault |= w->zero_end != 0;")
    out("    if (gn_request_faulty(r))\n        return;")
    refuse(call, out)
    driver_args = []
    for p in call.params:
        if p.mode in ("local", "callback", "err"):
            continue
        driver_args.append({"fixed": p.length, "null": "NULL"}.get(p.mode) or f"a.{p.name}")
    if call.served == "create":
        out(f"    {d.RESULT} result = {d.SUCCESS};")
        if call.host:
            out(f"    void *made = gn_host_{call.name}(v, r, &a, &result);")
        else:
            out(f"    void *made = NULL;\n    if ({driver(call)})")
            out(f"        made = {driver(call)}({', '.join(driver_args + ['&result'])});")
            out(f"    else\n        result = {d.UNSUPPORTED};")
        out(f"    r->result = gn_request_made(r, {kind(call.kind)}, w->id, made, result);")
    elif call.host:
        out(f"    r->result = gn_host_{call.name}(v, r, &a);")
    else:
        out(f"    r->result = {driver(call)} ? {driver(call)}({', '.join(driver_args)}) : {d.UNSUPPORTED};")
    if call.served == "info":
        out(f"    if (!known && r->result == {d.SUCCESS})\n        r->result = {d.UNKNOWN_QUERY};")
    if call.track and call.track[0] in ("changes", "adds"):
        out(f"    gn_request_changed(r, a.{call.track[1]}_object);")
    out("}\n")


def command(api, call, out):
    d = api.dialect
    wire = f"struct gn_wire_{call.name}"
    out(f"static void admit_{call.name}(struct gn_vgpu *v, struct gn_command *c)\n{{")
    out(f"    {wire} *w = gn_command_message(c);\n    (void)v;\n    (void)w;")
    if pads(api, call):
        out("    c->fault |= w->zero_end != 0;")
    for i, p in enumerate(refs(call)):
        out(f"    gn_command_ref(c, {i}, {kind(p.kind)}, w->{p.name});")
    for p in call.wire_params():
        if p.mode == "in":
            out(f"    gn_command_in(c, &w->{p.name}, {bytes_of(call, p)});")
        elif p.mode == "handles":
            out(f"    gn_command_objects(c, {kind(p.kind)}, &w->{p.name}, {expression(call, p.length, True)});")
        elif p.mode == "area":
            out(f"    c->area = gn_command_area(c, &w->{p.name}, {bytes_of(call, p)});")
    if call.host:
        out(f"    if (!c->fault)\n        gn_admit_{call.name}(v, c);")
    out("}\n")
    out(f"static int32_t submit_{call.name}(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,")
    out("                       void *const *waits, void **event)\n{")
    out(f"    const {wire} *w = gn_command_message(c);\n    (void)w;")
    if call.host:
        out(f"    return gn_submit_{call.name}(v, c, queue, n_waits, (const {d.EVENT} *)waits, ({d.EVENT} *)event);")
        out("}\n")
        return
    args, bit = [], 0
    for p in call.params:
        n = p.name
        if p.mode == "handle":
            args.append("queue" if p.kind == d.QUEUE_KIND else f"gn_driver_of(c->refs[{refs(call).index(p)}])")
        elif p.mode == "value":
            args.append(f"w->{n}")
        elif p.mode == "fixed":
            args.append("gn_zero3" if p.length == "zero3" else p.length)
        elif p.mode == "null":
            args.append("NULL")
        elif p.mode == "vec":
            args.append(f"w->present & {1 << bit}u ? (const size_t *)w->{n} : NULL")
            bit += 1
        elif p.mode == "in":
            args.append(f"gn_command_bytes(c, &w->{n})")
        elif p.mode == "handles":
            args.append(f"(const {d.MEMORY} *)gn_command_drivers(c)")
        elif p.mode == "area":
            args.append("c->area")
        elif p.mode == "event":
            args += ["n_waits", f"(const {d.EVENT} *)waits", f"({d.EVENT} *)event"]
    out("    /* A vendor's table may have holes, or end with an older version. */")
    out(f"    if (!{driver(call)})\n        return {d.UNSUPPORTED};")
    out(f"    return {driver(call)}({', '.join(args)});")
    out("}\n")


def writes_mask(call):
    if not call.track or call.track[0] != "writes":
        return "0" if not call.track else "0"
    mask = 0
    for i, p in enumerate(refs(call)):
        if p.name in call.track[1:]:
            mask |= 1 << i
    return "GN_WRITES_ARGS" if call.track[1:] == ["args"] else str(mask)


def parents(call):
    if "parent" not in call.track:
        return []
    return [w for w in call.track[call.track.index("parent") + 1:]]


def emit_header(api, out):
    out("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by apigen: do not edit. */")
    out(f"#ifndef GN_{api.name.upper()}_HOST_H\n#define GN_{api.name.upper()}_HOST_H\n")
    d = api.dialect
    out(f'#include "{d.HOST_INCLUDE}"\n#include "{api.name}_wire.h"\n')
    for c in api.calls:
        if not c.travels or c.served == "command":
            continue
        args_struct(c, out)
    out("/* Handwritten handlers. A creating one returns the driver's object and sets *result. */")
    for c in api.calls:
        if not c.travels or not c.host:
            continue
        if c.served == "command":
            out(f"void gn_admit_{c.name}(struct gn_vgpu *v, struct gn_command *c);")
            out(f"int32_t gn_submit_{c.name}(struct gn_vgpu *v, struct gn_command *c, {d.QUEUE} queue, {d.COUNT} n_waits, "
                f"const {d.EVENT} *waits, {d.EVENT} *event);")
        elif c.served == "create":
            out(f"void *gn_host_{c.name}(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_{c.name} *a, "
                f"{d.RESULT} *result);")
        else:
            out(f"{d.RESULT} gn_host_{c.name}(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_{c.name} *a);")
    out("\n/* Whether an answer to that question is known by type: the driver is asked no other. */")
    for c in api.calls:
        if c.served == "info":
            ctype = next(p.ctype for p in c.params if p.name == d.QUERY[0])
            out(f"bool gn_asks_{c.name}({ctype} {d.QUERY[0]});")
    out("\n/* What a command that has to wait would be answered, as far as can be told: 0, or an error. */")
    for c in api.calls:
        if c.judge:
            out(f"int32_t gn_judge_{c.name}(struct gn_vgpu *v, struct gn_command *c);")
    extensions(api, out)
    out(f"\nextern const struct gn_request_class gn_{api.name}_requests[GN_OP_MAX];\n\n#endif")


def extensions(api, out):
    calls = [c for c in api.calls if c.extension]
    if not calls:
        return
    out("\n/* The driver's entry points of extensions, which are asked for by name; NULL: it has none. */")
    out("struct gn_extensions {")
    for c in calls:
        params = ", ".join(p.declare() for p in c.params) or "void"
        out(f"    {c.dialect.returned_type(c)}({c.dialect.CALL}*{c.name})({params});")
    out("};\n")
    out("void gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx);")


def emit_source(api, out):
    out("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by apigen: do not edit. */")
    out(f'#include "{api.name}_host.h"\n\n#include <stddef.h>\n')
    for c in api.calls:
        if c.travels:
            (command if c.served == "command" else request)(api, c, out)
    out(f"const struct gn_request_class gn_{api.name}_requests[GN_OP_MAX] = {{")
    for c in api.calls:
        if not c.travels:
            continue
        fields = [f'.name = "{c.name}"', f".fixed_bytes = sizeof(struct gn_wire_{c.name})"]
        if c.served == "command":
            fields += [f".admit = admit_{c.name}", f".submit = submit_{c.name}", f".writes = {writes_mask(c)}"]
        else:
            fields += [f".serve = host_{c.name}"]
        if c.judge:
            fields.append(f".judge = gn_judge_{c.name}")
        if c.slow:
            fields.append(".slow = true")
        if c.served == "command" and any(p.mode == "area" and p.output for p in c.params):
            fields.append(".brings = true")
        for word in ("quiet", "ordered", "fence", "many"):
            if getattr(c, word):
                fields.append(f".{word} = true")
        if c.track[:1] == ["adds"]:
            fields.append(".adds = true")
        if c.served == "create":
            fields.append(f".creates = {kind(c.kind)}")
        kept = [f"offsetof(struct gn_wire_{c.name}, {w})" for w in parents(c)
                if next((p for p in c.params if p.name == w and p.mode == "handle"), None)]
        if "by" in c.track:
            key = c.track[c.track.index("by") + 1]
            fields.append(f".key_at = offsetof(struct gn_wire_{c.name}, {key})")
            fields.append(f".key_bytes = sizeof(((struct gn_wire_{c.name} *)0)->{key})")
        if kept:
            fields.append(f".parents = {{{', '.join(kept)}}}")
            fields.append(f".n_parents = {len(kept)}")
        out(f"    [GN_OP_{c.name}] = {{{', '.join(fields)}}},")
    out("};")
    calls = [c for c in api.calls if c.extension]
    if calls:
        out("\nvoid gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx)\n{")
        for c in calls:
            out(f'    e->{c.name} = (__typeof__(e->{c.name}))(uintptr_t)find(ctx, "{c.name}");')
        out("}")
