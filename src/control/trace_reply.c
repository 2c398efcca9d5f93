/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and handles the requests about tracing, with events as JSON. `gantry` builds them;
 * gantryd's loop handles them. It never stores an event.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/trace.h"
#include "control/source.h"
#include "control/json_region.h"

static json_t *number(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

/* The text may come from a driver through a worker. */
static json_t *text_of(const struct gn_trace_event *e)
{
    char plain[GN_TRACE_TEXT_BYTES];
    json_t *j = json_stringn(e->text, e->n_text);
    if (j)
        return j;
    for (size_t i = 0; i < e->n_text; i++)
        plain[i] = e->text[i] & 0x80 ? '?' : e->text[i];
    return json_stringn(plain, e->n_text);
}

static void add_event(void *arg, const struct gn_trace_event *e)
{
    const struct gn_trace_kind_name *k = &gn_trace_kinds[e->kind];
    json_t *o = json_object();
    char id[16];
    json_object_set_new(o, "at_ns", number(e->at_ns));
    json_object_set_new(o, "what", json_string(k->name));
    if (e->vgpu) {
        snprintf(id, sizeof id, "%08x", e->vgpu);
        json_object_set_new(o, "vgpu", json_string(id));
    }
    if (k->on_device)
        json_object_set_new(o, "device", json_integer(e->device));
    if (k->a)
        json_object_set_new(o, k->a, number(e->a));
    if (k->b)
        json_object_set_new(o, k->b, number(e->b));
    if (e->n_text)
        json_object_set_new(o, "text", text_of(e));
    json_array_append_new(arg, o);
}

static char *trace(const struct gn_control_source *source, const json_t *request,
                   enum gn_control_tracing what)
{
    static const char *const failures[] = {"cannot trace", "cannot go on tracing",
                                           "cannot stop tracing"};
    const json_t *vgpu = json_object_get(request, "vgpu");
    struct gn_control_trace t = {0};
    struct gn_error err = {{0}, {0}};
    if (vgpu &&
        (!json_is_string(vgpu) || strlen(json_string_value(vgpu)) != json_string_length(vgpu)))
        return gn_control_error(failures[what], "\"vgpu\" is not a vGPU's id", NULL);
    if (!source->commands->trace)
        return gn_control_error(failures[what], "there is no tracing here", NULL);
    json_t *root = json_object(), *o = json_object(), *events = json_array();
    int rc = source->commands->trace(source->ctx, what, vgpu ? json_string_value(vgpu) : "", &t,
                                     add_event, events, &err);
    json_object_set_new(root, "version", json_integer(GN_CONTROL_VERSION));
    json_object_set_new(o, "now_ns", number(t.now_ns));
    json_object_set_new(o, "dropped", number(t.n_dropped));
    json_object_set_new(o, "more", json_boolean(t.more));
    json_object_set_new(o, "events", events);
    json_object_set_new(root, "trace", o);
    if (!rc)
        return gn_json_text(root, 0);
    json_decref(root);
    return gn_control_error(failures[what], err.what, err.fix);
}

char *gn_control_trace_start(const struct gn_control_source *source, const struct json_t *request)
{
    return trace(source, request, GN_CONTROL_TRACE_START);
}

char *gn_control_trace_read(const struct gn_control_source *source, const struct json_t *request)
{
    return trace(source, request, GN_CONTROL_TRACE_READ);
}

char *gn_control_trace_stop(const struct gn_control_source *source, const struct json_t *request)
{
    return trace(source, request, GN_CONTROL_TRACE_STOP);
}

char *gn_control_trace_request(const char *vgpu)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", json_integer(GN_CONTROL_VERSION));
    json_object_set_new(root, "request", json_string("trace-start"));
    if (vgpu)
        json_object_set_new(root, "vgpu", json_string(vgpu));
    return gn_json_text(root, 0);
}
