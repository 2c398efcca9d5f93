/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of trace points by kind and by name. gantryd and gantry call it, on any thread. It
 * never stores an event.
 */
#include "base/trace.h"

#include <string.h>

const struct gn_trace_kind_name gn_trace_kinds[GN_TRACE_N_KINDS] = {
    [GN_TRACE_ATTACH] = {.name = "attach"},
    [GN_TRACE_END] = {.name = "end"},
    [GN_TRACE_TENANT] = {.name = "tenant"},
    [GN_TRACE_POLICY] = {.name = "policy"},
    [GN_TRACE_WANT] = {.name = "want", .on_device = true},
    [GN_TRACE_LEAVE] = {.name = "leave", .on_device = true},
    [GN_TRACE_GRANT] = {.name = "hand", .a = "slice_ns", .b = "pressed", .on_device = true},
    [GN_TRACE_PREEMPT] = {.name = "press", .on_device = true},
    [GN_TRACE_CLEAR] = {.name = "ease", .on_device = true},
    [GN_TRACE_BACK] = {.name = "back", .a = "charged_ns", .b = "again", .on_device = true},
    [GN_TRACE_SWAP_OUT] = {.name = "swap out", .a = "bytes", .on_device = true},
    [GN_TRACE_EVICTED] = {.name = "evicted", .on_device = true},
    [GN_TRACE_SWAP_IN] = {.name = "swap in", .a = "bytes", .on_device = true},
    [GN_TRACE_RESIDENT] = {.name = "resident", .on_device = true},
};

enum gn_trace_kind gn_trace_kind_named(const char *name)
{
    for (int i = 1; name && i < GN_TRACE_N_KINDS; i++)
        if (strcmp(gn_trace_kinds[i].name, name) == 0)
            return (enum gn_trace_kind)i;
    return 0;
}

void gn_trace_set_text(struct gn_trace_event *e, const char *text)
{
    const size_t n = strnlen(text, sizeof e->text);
    memcpy(e->text, text, n);
    e->n_text = (uint8_t)n;
}
