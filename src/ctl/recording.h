/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_RECORDING_H
#define GN_CTL_RECORDING_H

#include <stdint.h>
#include <stdio.h>

struct gn_trace_event;

/*
 * Writes gantryd's trace events as a recording for `gantry sim --trace`: one line per turn, with
 * the time at which the vGPU wanted it and the time charged. A line is written when its turn ends.
 * One thread.
 */
struct gn_recording;

/* The caller owns `to`. NULL: no memory. */
struct gn_recording *gn_recording_begin(FILE *to, uint64_t began_ns);
/* 0 or -ENOMEM. */
int gn_recording_add(struct gn_recording *r, const struct gn_trace_event *e);
/*
 * Frees the recording and returns the number of turns written. Write errors are left in the FILE.
 */
uint64_t gn_recording_end(struct gn_recording *r);

#endif
