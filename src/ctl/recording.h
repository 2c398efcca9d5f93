/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_RECORDING_H
#define GN_CTL_RECORDING_H

#include <stdint.h>
#include <stdio.h>

struct gn_trace_event;

/*
 * gantryd's trace points as a recording that `gantry sim --trace` runs: a line for each turn, with
 * when it was wanted and what was charged for it. Lines are written as turns end. One thread.
 */
struct gn_recording;

/* to: the caller's. NULL: no memory. */
struct gn_recording *gn_recording_begin(FILE *to, uint64_t began_ns);
/* 0 or -ENOMEM. */
int gn_recording_add(struct gn_recording *r, const struct gn_trace_event *e);
/* How many turns it holds. Frees; write errors are the file's. */
uint64_t gn_recording_end(struct gn_recording *r);

#endif
