/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_PLACEMENT_INTERNAL_H
#define GN_DAEMON_SCHEDULE_PLACEMENT_INTERNAL_H

#include "daemon/schedule/placement.h"
#include "daemon/schedule/scheduler_internal.h"

/* The data of placement.c (its callers' thread) and swap.c (the scheduler's thread). All under the
 * scheduler's lock. */

/* Copies in host memory of what a worker has on its device. */
enum gn_placed_copies {
    GN_COPIES_NONE,
    GN_COPIES_ALLOWED,   /* of what comes in from now on; nothing has */
    GN_COPIES_MADE,      /* it has come in, and keeps them */
    GN_COPIES_DISCARDED, /* it is to discard them, and has not answered */
};

/* A worker's memory on one device. Does not move while the worker is a member. */
struct gn_placed {
    struct gn_place_vgpu place;
    struct gn_placing *on; /* NULL: the device is not placed */
    struct gn_placement *of;
    uint32_t device;
    struct gn_share *share; /* NULL: its worker does not serve a program yet, or any more */
    enum gn_placement_state state;
    bool has_work;                /* its share wants the device, or has it */
    bool wants;                   /* a request of its program waits for evicted memory */
    bool grows;                   /* gn_placement_resize() has returned 0 */
    uint64_t bytes, pinned_bytes; /* of the last gn_placement_resize() */
    /* The swap that it loses `out` in. */
    struct gn_list leaving; /* in gn_placing.leaving */
    struct gn_chunk_set out;
    bool refused;        /* its worker has answered that it cannot */
    uint32_t n_refusals; /* one after another */
    uint32_t n_missing;  /* of its chunks, those that the swap brings in */
    uint32_t n_unfit;    /* one after another: its driver has had no room for all of it */
    uint64_t retry_ns;   /* after that it comes in again; 0: it may */
    enum gn_placed_copies copies;
    /* At its last eviction with copies, the part that was copied out, of GN_PLACE_WHOLE: a guess at
     * what it changes until the next one. */
    uint32_t changed_share;
    uint64_t told_bytes, told_ns, answer_by_ns;
    /* Orders for its worker that gn_placement_next() has yet to return. */
    struct gn_list order; /* in gn_scheduler.orders */
    uint32_t number;      /* of the last RESIDE */
    bool tells, tells_discard, has_room, overdue;
    bool ended; /* it has been overdue */
    /* counts */
    uint64_t n_residencies, in_bytes, out_bytes, evicted_ns, evicted_since_ns;
};

/* A swap: first vGPUs lose memory, then others, as a rule one, bring theirs in. */
enum gn_swap_phase { GN_SWAP_NONE, GN_SWAP_LEAVE, GN_SWAP_COME };

/* A device whose memory is placed. */
struct gn_placing {
    struct gn_place place;
    enum gn_swap_phase phase;
    struct gn_place_plan plan; /* of the swap, in LEAVE; void once the swap is broken */
    bool broken;
    struct gn_placed *coming; /* in LEAVE: the vGPU that the plan is for; NULL: it has gone */
    struct gn_list leaving;
    uint32_t n_awaited;    /* answers */
    uint32_t n_discarding; /* members that discard; no swap begins meanwhile */
    uint64_t swap_bytes, began_ns, again_ns;
    uint64_t no_swap_until_ns; /* a worker could not evict */
    uint64_t retry_ns;         /* the members' first one; 0: none */
    uint64_t n_swaps, copying_ns;
};

static inline struct gn_placed *gn_placed_of(struct gn_place_vgpu *v)
{
    return gn_container_of(v, struct gn_placed, place);
}

/* ---- swap.c */

/* Decides on swaps, and looks at deadlines. The scheduler's thread, after it has read the grants.
 */
void gn_placing_decide(struct gn_scheduler *s, struct gn_placing *on, uint64_t now);
/* The member's work, for src/place: of its share, its requests and its growth. */
void gn_placed_update(struct gn_placed *m, uint64_t now);
/* Brings the member's `bytes` into chunks. As gn_placement_resize(). */
int gn_placed_fit(struct gn_scheduler *s, struct gn_placed *m, uint64_t now);
/* Its worker has answered the last RESIDE; refused: that it cannot evict as much. */
void gn_placed_answered(struct gn_scheduler *s, struct gn_placed *m, bool refused,
                        const struct gn_worker_resides *r, uint64_t now);
void gn_placed_gone(struct gn_scheduler *s, struct gn_placed *m, uint64_t now);
/* Its worker has discarded its copies. */
void gn_placed_discarded(struct gn_placed *m, uint64_t now);
/* Its share is scheduled only while all that it needs is on the device. */
void gn_placed_set_evicted(struct gn_scheduler *s, struct gn_placed *m, uint64_t now);
/* Its worker is to be ended. */
void gn_placed_end(struct gn_scheduler *s, struct gn_placed *m);
/* Makes gn_placement_next() return the member's orders. */
void gn_placed_post(struct gn_scheduler *s, struct gn_placed *m);

/* ---- placement.c, called by scheduler.c with the lock held */

int gn_placement_add_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t);
void gn_placement_weigh_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t);
void gn_placement_remove_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t);
void gn_placement_stop(struct gn_scheduler *s);

/* ---- swap.c, called by scheduler.c for a share's turns */

/* Is the holder to give the device back for a swap, or do evicted vGPUs wait? */
bool gn_placing_preempts(const struct device *d, const struct gn_share *holder);
void gn_placed_ready(struct gn_share *sh, bool ready, uint64_t now);
/* The share's vGPU leaves the scheduler. */
void gn_placed_unbind(struct gn_share *sh, uint64_t now);
void gn_placed_turn(struct gn_share *sh, uint64_t now);
void gn_placed_turn_over(struct gn_scheduler *s, struct gn_share *sh, uint64_t used_ns,
                         bool more_work, uint64_t now);

#endif
