/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_PLAYED_PARTS_H
#define GN_VGPU_PLAYED_PARTS_H

#include "vgpu/core/vgpu_core.h"

/*
 * For tests: a vGPU with one device and one queue, and a driver that is played: it keeps what it is
 * given until the test says that it is over. One of each, on the test's thread.
 */
#define GN_PLAYED_KIND_QUEUE 3
#define GN_PLAYED_NO_TURNS   UINT64_MAX

struct gn_played {
    struct {
        struct gn_box box;
        struct gn_part *part;
        uint32_t n_waits;
        void *after;
    } parts[64]; /* that the driver was given, in that order */
    uint32_t n_parts, n_whole, n_took;
    uint32_t refuse_at; /* the part that the driver refuses, from 1 on; 0: none */
    struct gn_command *whole[8];
    uint64_t pace_ps, groups; /* what a group of a launch takes, and how many it has */
    bool ready;               /* what parts need is there */
    bool busy;                /* what the driver has goes on */
    char events[64];
    struct gn_vgpu vgpu;
    struct gn_vdevice device;
    struct gn_counters counters;
    struct gn_vgpu_boot boot;
    struct gn_grant_slot slot;
    uint64_t queue_id;
};
extern struct gn_played gn_played;

extern const struct gn_request_class gn_played_requests[2], gn_played_marker;
#define gn_played_launch gn_played_requests[0]
#define gn_played_other  gn_played_requests[1]

/* Around each test. `every`: the knob of tests and benchmarks; 0: a grant that others wait for;
 * GN_PLAYED_NO_TURNS: there is no policy. */
void gn_played_start(bool in_order, uint64_t every);
void gn_played_stop(void);
/* wait: another event's index, or GN_NO_EVENT. */
void gn_played_enqueue(const struct gn_request_class *class, uint32_t event, uint32_t wait);
/* The scheduler's grant comes. */
void gn_played_hand(uint64_t slice_ns);
/* The i-th part is over; then what the submit thread does when that has woken it. */
void gn_played_end(uint32_t i, int32_t status);
enum gn_event_phase gn_played_phase(uint32_t event, int32_t *ret_error);
/* So many groups were given, each once, in order. */
void gn_played_check_once(uint64_t all);

#endif
