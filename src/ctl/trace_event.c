/* SPDX-License-Identifier: Apache-2.0 */
/* Reads trace events from gantryd's JSON; see trace_event.h. Pure; malformed numbers become 0. */
#include "ctl/trace_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const json_t *o, const char *key)
{
    const json_t *n = key ? json_object_get(o, key) : NULL;
    return json_is_true(n) ? 1 : json_integer_value(n) > 0 ? (uint64_t)json_integer_value(n) : 0;
}

bool gn_trace_event_read(const json_t *o, struct gn_trace_event *ret)
{
    const enum gn_trace_kind kind =
        gn_trace_kind_named(json_string_value(json_object_get(o, "what")));
    const char *id = json_string_value(json_object_get(o, "vgpu")),
               *text = json_string_value(json_object_get(o, "text"));
    if (!kind)
        return false;
    *ret = (struct gn_trace_event){.at_ns = number_of(o, "at_ns"),
                                   .a = number_of(o, gn_trace_kinds[kind].a),
                                   .b = number_of(o, gn_trace_kinds[kind].b),
                                   .vgpu = id ? (uint32_t)strtoul(id, NULL, 16) : 0,
                                   .device = (uint16_t)number_of(o, "device"),
                                   .kind = (uint8_t)kind};
    if (text)
        gn_trace_set_text(ret, text);
    return true;
}

void gn_trace_event_tenant(const struct gn_trace_event *e, char ret[static GN_TRACE_TEXT_BYTES + 1])
{
    const char *blank = memchr(e->text, ' ', e->n_text);
    snprintf(ret, GN_TRACE_TEXT_BYTES + 1, "%.*s", blank ? (int)(blank - e->text) : (int)e->n_text,
             e->text);
}
