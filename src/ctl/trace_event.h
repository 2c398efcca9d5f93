/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TRACE_EVENT_H
#define GN_CTL_TRACE_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/trace.h"

/* An event of gantryd's "trace" reply; false: it is none that is known. */
bool gn_trace_event_read(const json_t *o, struct gn_trace_event *ret);
/* The first word of an attach's text. */
void gn_trace_event_tenant(const struct gn_trace_event *e,
                           char ret[static GN_TRACE_TEXT_BYTES + 1]);

#endif
