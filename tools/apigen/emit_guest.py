# SPDX-License-Identifier: Apache-2.0
"""Writes the guest's half: a gn_send_* for every request, the generated stubs, and the table of entry points."""
import re

from emit_wire import layout


def kind(k):
    return f"GN_KIND_{k.upper()}"


def pointee(p):
    return re.sub(r"^const ", "", p.ctype[:-1].strip())


def element(p):
    return "1" if p.in_bytes or p.mode == "area" else f"sizeof({pointee(p)})"


def send_params(call):
    """The parameters of gn_send_X: the session, the new object, and the parameters that travel."""
    params = ["struct gn_session *session"]
    if call.served == "create":
        params.append("struct gn_object *made")
    for p in call.params:
        if p.mode in ("local", "callback", "fixed", "null", "event", "err"):
            continue
        params.append(f"const struct gn_area_ref *{p.name}" if p.mode == "area" else p.declare())
    d = call.dialect
    if call.served == "command" and not call.param("waits"):
        params += [f"{d.COUNT} {d.WAITS[0]}", f"const {d.EVENT} *{d.WAITS[1]}"]
    if call.served == "command":
        params.append("const struct gn_command_show *show")
    return params


def prototype(call):
    result = "void" if call.quiet else call.dialect.RESULT
    return f"{result} gn_send_{call.name}({', '.join(send_params(call))})"


def api_prototype(call):
    params = ", ".join(p.declare() for p in call.params) or "void"
    return f"{call.dialect.returned_type(call)} {call.dialect.CALL}gn_{call.name}({params})"


def send_body(api, call, out):
    d = api.dialect
    names = {f[1] for f in layout(api, call)}
    wire = f"struct gn_wire_{call.name}"
    out("{")
    out("    struct gn_call c;")
    out(f"    {wire} *w = gn_call_begin(&c, session, GN_OP_{call.name}, sizeof *w);")
    if call.served == "command":
        queue = call.params[0].name
        out(f"    gn_call_command(&c, &w->head, {queue}, {d.WAITS[0]}, {d.WAITS[1]}, show);")
    if call.served == "create":
        out("    w->id = made->id;")
    if "present" in names:
        out("    w->present = 0;")
    bit = 0
    valids = {p.valid: p for p in call.params if p.valid}
    if call.served == "info":
        valids[d.QUERY[3]] = call_param(call, d.QUERY[2])
    outs = []
    for p in call.wire_params():
        n = p.name
        if p.mode == "value":
            out(f"    w->{n} = {n};")
        elif p.mode == "handle":
            if not (call.served == "command" and p.kind == d.QUEUE_KIND):
                out(f"    w->{n} = gn_id_of({n});")
        elif p.mode == "vec":
            out(f"    gn_call_vec(w->{n}, &w->present, {bit}, {n});")
            bit += 1
        elif p.mode == "area":
            out(f"    w->{n} = *{n};")
        elif p.mode == "in":
            out(f"    w->{n} = gn_call_in(&c, {n}, (uint64_t)({p.length}) * {element(p)});")
        elif p.mode == "string":
            out(f"    w->{n} = gn_call_in(&c, {n}, {n} ? strlen({n}) + 1 : 0);")
        elif p.mode == "list":
            out(f"    w->{n} = gn_call_list(&c, {n});")
        elif p.mode == "handles":
            out(f"    w->{n} = gn_call_handles(&c, {n}, {p.length});")
        elif p.mode == "out":
            outs.append(p)
    # An output that limits another is fetched even when the program passes NULL for it.
    for p in [q for q in outs if q.name in valids]:
        out(f"    {pointee(p)} valid_{p.name} = 0;")
        out(f"    w->{p.name} = gn_call_out(&c, &valid_{p.name}, sizeof valid_{p.name});")
    limited = {v.name: k for k, v in valids.items() if v}
    if any(p.always for p in outs):
        out("    c.outs_always = true;")
    for p in [q for q in outs if q.name not in valids]:
        size = f"(uint64_t)({p.length}) * {element(p)}"
        if p.name in limited:
            limit = limited[p.name]
            out(f"    w->{p.name} = gn_call_out_limited(&c, {p.name}, {size}, &valid_{limit}, sizeof valid_{limit}, "
                f"{element(p)});")
        else:
            out(f"    w->{p.name} = gn_call_out(&c, {p.name}, {size});")
    if call.quiet:
        out("    gn_call_post(&c);")
    elif call.served == "command":
        out("    return gn_call_submit(&c, show);")
    elif any(q.name in valids for q in outs):
        out(f"    {d.RESULT} result = gn_call_wait(&c);")
        for p in [q for q in outs if q.name in valids]:
            out(f"    if (!result && {p.name})\n        *{p.name} = valid_{p.name};")
        out("    return result;")
    else:
        out("    return gn_call_wait(&c);")
    out("}\n")


def call_param(call, name):
    return next((p for p in call.params if p.name == name), None)


def check_handles(call, out, failed):
    """The first handle gives the session. The others may be NULL, which the driver judges, but must be of their kind."""
    d = call.dialect
    for i, p in enumerate(q for q in call.params if q.mode in ("handle", "null")):
        if p.mode == "null":
            out(f"    if ({p.name})\n        return {failed(p.error)};")
        elif i == 0:
            # Programs never release root objects: a query about one replaces a lost vGPU.
            of = "anew" if call.served == "info" and p.kind in d.ROOT_KINDS else "of"
            out(f"    struct gn_object *object = gn_object_{of}({p.name}, {kind(p.kind)});")
            out(f"    if (!object)\n        return {failed(d.invalid(p.kind))};")
        else:
            out(f"    if ({p.name} && !gn_object_of_session(object, {p.name}, {kind(p.kind)}))")
            out(f"        return {failed(d.invalid(p.kind))};")
    for p in call.params:
        if p.mode == "handles":
            out(f"    if ({p.name} && !gn_objects_of_session(object, {p.name}, {p.length}, {kind(p.kind)}))")
            out(f"        return {failed(d.invalid(p.kind))};")


def arguments(call):
    args = ["object->session"]
    if call.served == "create":
        args.append("made")
    args += [p.name for p in call.params if p.mode not in ("local", "callback", "fixed", "null", "event", "err")]
    return args


def stub(call, out):
    d = call.dialect
    out(api_prototype(call))
    out("{")
    if call.served in ("retain", "release"):
        p = call.params[0]
        out(f"    struct gn_object *object = gn_object_of({p.name}, {kind(call.kind)});")
        out(f"    if (!object)\n        return {d.invalid(call.kind)};")
        out(f"    return gn_{call.kind}_{call.served}(object);")
    elif call.served == "absent":
        for p in call.params:
            out(f"    (void){p.name};")
        out(f"    return {call.error};")
    elif call.served == "create":
        check_handles(call, out, lambda e: f"gn_refuse({d.ERROR}, {e})")
        out(f"    struct gn_object *made = gn_object_new(object->session, {kind(call.kind)}, object);")
        out(f"    if (!made)\n        return gn_refuse({d.ERROR}, {d.NO_MEMORY});")
        out(f"    {d.RESULT} result = gn_send_{call.name}({', '.join(arguments(call))});")
        if call.made:
            args = ", ".join(["made"] + [p.name for p in call.params if p.mode != "err"])
            out(f"    if (!result)\n        result = gn_made_{call.name}({args});")
        out("    if (result)\n        gn_object_drop(made), made = NULL;")
        out(f"    if ({d.ERROR})\n        *{d.ERROR} = result;")
        out("    return (void *)made;")
    elif call.served == "command":
        check_handles(call, out, lambda e: e)
        waits, n_waits, event = d.WAITS[1], d.WAITS[0], d.WAITS[2]
        out(f"    {d.RESULT} result = gn_command_begin(object, {n_waits}, {waits});")
        out("    if (result)\n        return result;")
        out("    struct gn_command_show show = {GN_NO_EVENT, 0, GN_ASK(0)};")
        if call.check:
            args = ", ".join(p.name for p in call.params if p.mode not in ("waits", "event"))
            out(f"    show.doubt = gn_check_{call.name}({args});")
        out(f"    struct gn_object *shown = {event} ? gn_event_new(object, {call.event}, &show) : NULL;")
        out(f"    if ({event} && !shown)\n        return {d.NO_MEMORY};")
        args = ", ".join([a for a in arguments(call)] + ["&show"])
        out(f"    result = gn_send_{call.name}({args});")
        out(f"    return gn_command_sent(object, shown, {event}, result);")
    else:
        check_handles(call, out, lambda e: e)
        if call.local_names:
            out(f"    switch ({d.QUERY[0]}) {{")
            for name in call.local_names:
                out(f"    case {name}:")
            args = ", ".join(p.name for p in call.params)
            out(f"        return gn_local_{call.name}({args});")
            out("    default:\n        break;\n    }")
        if call.track[:1] == ["adds"]:
            addition(call, out)
        else:
            out(f"    return gn_send_{call.name}({', '.join(arguments(call))});")
    out("}\n")


def addition(call, out):
    """The object that the request adds to keeps those that the request names alive."""
    to = call_param(call, call.track[1])
    named = [p.name for p in call.params if p.mode == "handle" and p is not to]
    if named:
        out(f"    void *const named[] = {{{', '.join(named)}}};")
    out(f"    struct gn_addition *addition = gn_{to.kind}_add(object, {'named' if named else 'NULL'}, {len(named)});")
    out(f"    if (!addition)\n        return {call.dialect.NO_MEMORY};")
    out(f"    return gn_{to.kind}_added(object, addition, gn_send_{call.name}({', '.join(arguments(call))}));")


def generated(call):
    return not call.message and call.served != "local" and not call.stub


def emit_header(api, out):
    out("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by apigen: do not edit. */")
    out(f"#ifndef GN_{api.name.upper()}_GUEST_H\n#define GN_{api.name.upper()}_GUEST_H\n")
    out(f'#include "{api.dialect.GUEST_INCLUDE}"\n')
    out("/* Requests: encode, send, wait. */")
    for c in api.calls:
        if c.travels:
            out(prototype(c) + ";")
    out("\n/* Entry points: generated, or handwritten where the description says local or stub. */")
    for c in api.calls:
        if not c.message:
            out(api_prototype(c) + ";")
    out("\n/* What generated entry points expect from handwritten files. */")
    for c in api.calls:
        if c.message:
            continue
        if c.local_names:
            out(f"{c.dialect.RESULT} gn_local_{c.name}({', '.join(p.declare() for p in c.params)});")
        if c.made:
            params = ", ".join(["struct gn_object *made"] + [p.declare() for p in c.params if p.mode != "err"])
            out(f"{c.dialect.RESULT} gn_made_{c.name}({params});")
        if c.check:
            params = ", ".join(p.declare() for p in c.params if p.mode not in ("waits", "event"))
            out(f"int gn_check_{c.name}({params});")
    out("\n/* Where a message's inputs are named: offsets of its gn_spans, the last one 0. */")
    out(f"const uint16_t *gn_{api.name}_inputs(uint16_t op);")
    api.dialect.declare_table(api, out)
    out("\n/* The function behind the name of an entry point that is in the table, or NULL. */")
    out(f"void *gn_{api.name}_function(const char *name);")
    out("/* The function behind the name of an extension's entry point, and which extension that is; or NULL. */")
    out(f"void *gn_{api.name}_extension_function(const char *name, const char **ret_extension);\n\n#endif")


def inputs(api, out):
    out(f"const uint16_t *gn_{api.name}_inputs(uint16_t op)\n{{")
    out("    static const uint16_t none[1];\n    switch (op) {")
    for c in api.calls:
        if not c.travels:
            continue
        names = ["head.waits"] if c.served == "command" else []
        names += [p.name for p in c.wire_params() if p.mode in ("in", "string", "list", "handles")]
        if names:
            places = ", ".join(f"offsetof(struct gn_wire_{c.name}, {n})" for n in names)
            out(f"    case GN_OP_{c.name}: {{\n        static const uint16_t at[] = {{{places}, 0}};\n        return at;\n    }}")
    out("    default:\n        return none;\n    }\n}\n")


def emit_source(api, out):
    out("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by apigen: do not edit. */")
    out(f'#include "{api.name}_guest.h"\n#include "{api.name}_wire.h"\n\n#include <stddef.h>\n#include <string.h>\n')
    for c in api.calls:
        if c.travels:
            out(prototype(c))
            send_body(api, c, out)
    for c in api.calls:
        if generated(c):
            stub(c, out)
    inputs(api, out)
    api.dialect.emit_table(api, out)
    out("static const struct {\n    const char *name;\n    void *function;\n} functions[] = {")
    for name in sorted([c.name for c in api.calls if not c.message and not c.extension] + api.absent):
        out(f'    {{"{name}", (void *)gn_{name}}},')
    out("};\n")
    out(f"void *gn_{api.name}_function(const char *name)\n{{")
    out("    size_t low = 0, high = sizeof functions / sizeof functions[0];")
    out("    while (low < high) {\n        size_t middle = (low + high) / 2;")
    out("        int order = strcmp(name, functions[middle].name);")
    out("        if (!order)\n            return functions[middle].function;")
    out("        if (order < 0)\n            high = middle;\n        else\n            low = middle + 1;\n    }")
    out("    return NULL;\n}\n")
    out(f"void *gn_{api.name}_extension_function(const char *name, const char **ret_extension)\n{{")
    for c in sorted((c for c in api.calls if c.extension), key=lambda c: c.name):
        out(f'    if (!strcmp(name, "{c.name}")) {{\n        *ret_extension = "{c.extension}";')
        out(f"        return (void *)gn_{c.name};\n    }}")
    out("    (void)name, (void)ret_extension;\n    return NULL;\n}")
