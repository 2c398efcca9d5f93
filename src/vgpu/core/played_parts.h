/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_PLAYED_PARTS_H
#define GN_VGPU_PLAYED_PARTS_H

#include "vgpu/core/vgpu_core.h"

/*
 * For tests: a vGPU with one device and one queue, and a fake driver that keeps each command until
 * the test ends it. There is one of each, used on the test's thread.
 */
#define GN_PLAYED_KIND_QUEUE 3
#define GN_PLAYED_NO_TURNS   UINT64_MAX

struct gn_played {
    struct {
        struct gn_box box;
        struct gn_part *part;
        uint32_t n_waits;
        void *after;
    } parts[64]; /* in the order in which they were submitted */
    uint32_t n_parts, n_whole, n_took;
    uint32_t refuse_at; /* number of the part that the driver refuses, from 1; 0: none */
    struct gn_command *whole[8];
    uint64_t pace_ps, groups; /* time per group of a launch, and its number of groups */
    bool ready;               /* prepare succeeds */
    bool busy;                /* the driver's commands have not ended */
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

/*
 * Around each test. `every`: the slice_groups option of tests and benchmarks; 0: a grant that other
 * vGPUs wait for; GN_PLAYED_NO_TURNS: no scheduling.
 */
void gn_played_start(bool in_order, uint64_t every);
void gn_played_stop(void);
/* Wait: the index of an event to wait for, or GN_NO_EVENT. */
void gn_played_enqueue(const struct gn_request_class *class, uint32_t event, uint32_t wait);
/* The scheduler assigns the grant. */
void gn_played_grant(uint64_t slice_ns);
/* Ends the i-th part, then does the woken submit thread's work. */
void gn_played_end(uint32_t i, int32_t status);
enum gn_event_phase gn_played_phase(uint32_t event, int32_t *ret_error);
/* Checks that `all` groups were submitted, each once and in order. */
void gn_played_check_once(uint64_t all);

#endif
