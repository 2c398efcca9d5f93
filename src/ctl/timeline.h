/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TIMELINE_H
#define GN_CTL_TIMELINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * gantryd's trace points as a timeline in the trace-event format, which Perfetto and
 * chrome://tracing open: a track a device (who has the turn), one a vGPU and device (wanted, held),
 * counters of shares. Written as it goes, one event a line; what is kept is what is open. Begin and
 * end stand in pairs, and on a device's track nothing overlaps, whatever was lost. One thread.
 */
struct gn_timeline;
struct gn_trace_event;

/* devices: gantryd's listing; to: the caller's. NULL: no memory. */
struct gn_timeline *gn_timeline_begin(FILE *to, uint64_t began_ns, const json_t *devices);
/* 0 or -ENOMEM. */
int gn_timeline_add(struct gn_timeline *t, const struct gn_trace_event *event);
/* Whatever is older than this has been added: it is put in order and written. */
void gn_timeline_settle(struct gn_timeline *t, uint64_t until_ns);
/* So many were lost until then. */
void gn_timeline_lost(struct gn_timeline *t, uint64_t n, uint64_t at_ns);
/* Writes the rest, ends what is open, frees. Write errors are the file's. */
void gn_timeline_end(struct gn_timeline *t, uint64_t now_ns);

#endif
