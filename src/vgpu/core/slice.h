/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SLICE_H
#define GN_VGPU_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Kernel slicing (FairGV 3.3.2 and 5.5.2), the part that knows no driver: how a grid of work-groups
 * is cut into launches, what a group takes, and how much goes to the driver next. Pure: no clock,
 * no memory, no lock.
 *
 * Groups are counted from 0, the first dimension fastest. What has been given to the driver is
 * always the groups below some number, so "the next group" is all that has to be known of a launch
 * that is under way.
 */

/* A launch costs under 5 % from so many groups on (FairGV table 4): no part has less, and none is
 * left with less. */
#define GN_SLICE_LEAST_GROUPS 1500u

/*
 * With nobody waiting for the device: what takes longer goes in parts, so that a move, and who
 * comes next, waits for no more than what the driver has of it. Not sooner, since a part may cost
 * more than its share of the whole: a compiler knows an offset of 0, and no other;
 */
#define GN_SLICE_LONG_NS 100000000u
/* a part takes so long, and one more is in the driver, so that the device does not wait between
 * two. */
#define GN_SLICE_ALONE_NS 10000000u

/* Work-groups in each dimension, each at least 1. */
struct gn_grid {
    uint64_t groups[3];
};

/* What one launch covers. */
struct gn_box {
    uint64_t first[3], n[3];
};

/* All of them; 0 when a dimension is empty or the number does not fit. */
uint64_t gn_grid_groups(const struct gn_grid *g);
/*
 * The box that begins at group `at`, where an earlier cut with the same `least` has ended, of about
 * `want` groups: at least `least`, unless the whole grid has less, and so that not less than
 * `least` remains, unless nothing does. At most twice `want` and `least` more. Returns how many
 * groups it has; 0 when `at` is behind the last.
 */
uint64_t gn_grid_cut(const struct gn_grid *g, uint64_t at, uint64_t want, uint64_t least,
                     struct gn_box *ret);

/* What a group takes, in picoseconds; 0: not known. */
uint64_t gn_pace_of(uint64_t groups, uint64_t ns);
/* After a measurement. A driver compiles at a kernel's first launch, so less is believed sooner
 * than more. */
uint64_t gn_pace_learn(uint64_t pace_ps, uint64_t sample_ps);
/* What so many groups take; saturates. */
uint64_t gn_pace_ns(uint64_t pace_ps, uint64_t groups);
/* Is a launch of so many too long to go whole where nobody waits? One of which nothing is known may
 * be. */
bool gn_slice_is_long(uint64_t groups, uint64_t pace_ps);

enum gn_slice_verdict {
    GN_SLICE_ALL,  /* what is left of it in one launch */
    GN_SLICE_PART, /* so many groups */
    GN_SLICE_WAIT, /* nothing now: for the end of what the driver has of it */
    GN_SLICE_STOP, /* nothing in this slice: too little is left of it */
};

struct gn_slice_case {
    uint64_t groups; /* not yet given to the driver */
    uint64_t pace_ps;
    uint64_t least;    /* groups */
    uint64_t slice_ns; /* the whole */
    uint64_t left_ns;  /* of the slice */
    uint32_t n_open;   /* parts that the driver has */
    uint32_t max_open; /* and may have */
};

/* What goes to the driver next of a launch that may be cut. *ret_groups for a PART. */
enum gn_slice_verdict gn_slice_decide(const struct gn_slice_case *k, uint64_t *ret_groups);

#endif
