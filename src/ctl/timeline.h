/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TIMELINE_H
#define GN_CTL_TIMELINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes gantryd's trace events as a timeline in the trace-event format, for Perfetto and
 * chrome://tracing: one track per device (the vGPU that has the turn), one per vGPU and device
 * (wanted, held), and counters of the shares. Events are written one per line as soon as their
 * order is final. Every begin has its end, and spans on a device's track never overlap, even if
 * events were lost. One thread.
 */
struct gn_timeline;
struct gn_trace_event;

/* devices: gantryd's list of devices. The caller owns `to`. NULL: no memory. */
struct gn_timeline *gn_timeline_begin(FILE *to, uint64_t began_ns, const json_t *devices);
/* 0 or -ENOMEM. */
int gn_timeline_add(struct gn_timeline *t, const struct gn_trace_event *event);
/* Sorts and writes the events up to until_ns; the caller has added all of them. */
void gn_timeline_settle(struct gn_timeline *t, uint64_t until_ns);
/* Records that n events were lost before at_ns. */
void gn_timeline_lost(struct gn_timeline *t, uint64_t n, uint64_t at_ns);
/*
 * Writes the remaining events, ends the open spans and frees the timeline. Write errors are left in
 * the FILE.
 */
void gn_timeline_end(struct gn_timeline *t, uint64_t now_ns);

#endif
