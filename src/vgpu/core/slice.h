/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SLICE_H
#define GN_VGPU_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Kernel slicing (FairGV 3.3.2 and 5.5.2), the driver-independent half: how a grid of work-groups
 * is cut into launches, the time per group, and the number of groups to submit next. Pure: no
 * clock, no memory, no lock.
 *
 * Groups are numbered from 0, the first dimension fastest. The submitted groups are always those
 * below some number, so "the next group" is the whole state of a launch in progress.
 */

/*
 * A launch of this many groups has an overhead below 5 % (FairGV table 4). No part is smaller, and
 * no rest is.
 */
#define GN_SLICE_LEAST_GROUPS 1500u

/*
 * With no other vGPU waiting: a launch that takes longer than this is cut, so that a migration or
 * the next vGPU waits only for the parts that the driver has. The limit is high because a part may
 * cost more than its share of the whole: compilers optimize for an offset of 0.
 */
#define GN_SLICE_LONG_NS 100000000u
/*
 * Length of such a part. Two are in the driver at a time, so that the device does not idle between
 * parts.
 */
#define GN_SLICE_ALONE_NS 10000000u

/* Work-groups in each dimension, each at least 1. */
struct gn_grid {
    uint64_t groups[3];
};

/* The groups of one launch. */
struct gn_box {
    uint64_t first[3], n[3];
};

/* Number of groups; 0 when a dimension is empty or the product overflows. */
uint64_t gn_grid_groups(const struct gn_grid *g);
/*
 * Cuts a box of about `want` groups that starts at group `at`, where an earlier cut with the same
 * `least` ended. It has at least `least` groups, unless the whole grid has fewer, and leaves either
 * nothing or at least `least`. It has at most 2 * max(want, least) + least groups. Returns its
 * number of groups; 0 when `at` is behind the last group.
 */
uint64_t gn_grid_cut(const struct gn_grid *g, uint64_t at, uint64_t want, uint64_t least,
                     struct gn_box *ret);

/* Time per group in picoseconds; 0: not known. */
uint64_t gn_pace_of(uint64_t groups, uint64_t ns);
/*
 * Updates the pace with a measurement. Falls faster than it rises, since a kernel's first launch
 * may include the driver's compilation.
 */
uint64_t gn_pace_learn(uint64_t pace_ps, uint64_t sample_ps);
/* Time of `groups` groups; saturates. */
uint64_t gn_pace_ns(uint64_t pace_ps, uint64_t groups);
/*
 * Whether a launch is too long to run whole while no other vGPU waits. True if its pace is unknown.
 */
bool gn_slice_is_long(uint64_t groups, uint64_t pace_ps);

enum gn_slice_verdict {
    GN_SLICE_ALL,  /* submit the whole rest */
    GN_SLICE_PART, /* submit *ret_groups groups */
    GN_SLICE_WAIT, /* submit nothing until a part that the driver has ends */
    GN_SLICE_STOP, /* submit nothing in this slice: too little of it is left */
};

struct gn_slice_case {
    uint64_t groups; /* not yet submitted */
    uint64_t pace_ps;
    uint64_t least;    /* fewest groups of a part */
    uint64_t slice_ns; /* length of the slice */
    uint64_t left_ns;  /* rest of the slice */
    uint32_t n_open;   /* parts that the driver has */
    uint32_t max_open; /* parts that the driver may have */
};

/* Decides on the next launch of a command that may be cut. *ret_groups is set for GN_SLICE_PART. */
enum gn_slice_verdict gn_slice_decide(const struct gn_slice_case *k, uint64_t *ret_groups);

#endif
