/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TRACE_EVENT_H
#define GN_CTL_TRACE_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/trace.h"

/* Reads an event of gantryd's "trace" reply; false: unknown or malformed. */
bool gn_trace_event_read(const json_t *o, struct gn_trace_event *ret);
/* The tenant of an attach event: the first word of its text. */
void gn_trace_event_tenant(const struct gn_trace_event *e,
                           char ret[static GN_TRACE_TEXT_BYTES + 1]);

#endif
