/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_PLACEMENT_H
#define GN_DAEMON_SCHEDULE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "place/place.h"

struct gn_placed;
struct gn_scheduler;
struct gn_shares;
struct gn_tenant_shares;
struct gn_worker_resides;

/*
 * Which vGPUs' memory is on a device (`--oversubscribe`): src/place inside gantryd, as scheduler.h
 * is src/sched. One swap a device at a time: the vGPUs that lose memory give the grant back and
 * evict, then one vGPU brings all of its memory in and may have the grant again. Workers are told
 * how many bytes may be on the device (GN_WORKER_RESIDE); which objects these are is theirs.
 *
 *              preempted             told RESIDE            RESIDES
 *   RESIDENT ----------> PREEMPTED -------------> LEAVING ----------> EVICTED
 *      ^                    (when the grant is back)                     |
 *      |  RESIDES                                  told RESIDE_ALL       |
 *      '---------------------------- COMING <----------------------------'
 *
 * A worker whose driver has no room for all goes from COMING to EVICTED, and comes again later.
 *
 * A vGPU that needs more slots than are free stays RESIDENT in its worker, and is not scheduled
 * until it has them.
 *
 * now_ns: CLOCK_MONOTONIC. Called on gantryd's thread, unless a comment says otherwise; takes the
 * scheduler's lock. A swap is decided on the scheduler's thread.
 */

/* Settings of gantryd. All zeros: every vGPU's memory is on its device. */
struct gn_placement_options {
    bool on;
    const struct gn_place_policy *policy; /* NULL: the default */
    /* Host memory for evicted contents, of each device: with the device's own the most that is
     * leased. */
    uint64_t swap_bytes;
    bool share_set;
    uint32_t
        share; /* with share_set: f, the part of time that copies may take, of GN_PLACE_WHOLE */
    uint64_t residency_max_ns, idle_ns; /* 0: the default */
};

/* A device's memory; bytes 0: it is not placed. slot_bytes 0: the default. swap_bytes: host memory
 * for evicted contents. */
struct gn_placement_memory {
    uint64_t bytes, slot_bytes, swap_bytes;
};

enum gn_placement_state {
    GN_PLACEMENT_RESIDENT,
    GN_PLACEMENT_PREEMPTED,
    GN_PLACEMENT_LEAVING,
    GN_PLACEMENT_EVICTED,
    GN_PLACEMENT_COMING,
};

/* A worker's memory on its devices. All zeros: no device of it is placed. */
struct gn_placement {
    struct gn_placed *of; /* owned; in the worker's order of devices */
    uint32_t n;
};

/* memory: of each device of the scheduler; copied. news_fd: an eventfd of the caller's, written to
 * when gn_placement_next() has a result. Before any vGPU joins. 0 or -errno. */
int gn_placement_start(struct gn_scheduler *s, const struct gn_placement_options *options,
                       const struct gn_placement_memory *memory, int news_fd);
bool gn_placement_is_on(const struct gn_scheduler *s);
/* Is the memory of its only device placed? */
bool gn_placement_has_one(const struct gn_placement *p);

/* The tenant's reserve on a device, in whole slots. 0, or -ENOSPC: too much; nothing has changed.
 */
int gn_placement_reserve(struct gn_scheduler *s, struct gn_tenant_shares *t, uint32_t device,
                         uint64_t bytes);

/* A worker without memory. devices: n device numbers of the scheduler. *tenant is created if it is
 * NULL. Does nothing if no device is placed. 0 or -ENOMEM. */
int gn_placement_join(struct gn_scheduler *s, struct gn_placement *p,
                      struct gn_tenant_shares **tenant, uint32_t tenant_weight, uint32_t weight,
                      const uint32_t *devices, uint32_t n, uint64_t now_ns);
/* The worker is dead, and its memory is free. Does nothing if it has not joined. */
void gn_placement_leave(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns);
/* From now on the worker works under these shares, of the same devices, or (NULL) under none. */
void gn_placement_bind(struct gn_scheduler *s, struct gn_placement *p, struct gn_shares *sh,
                       uint64_t now_ns);

/* The worker saves or loads a vGPU: it keeps its memory on the device, and gets what it waits for
 * before others. */
void gn_placement_set_moves(struct gn_scheduler *s, struct gn_placement *p, bool moves);

/*
 * The worker's i-th device holds so many bytes of it, and pinned_bytes of these can never be
 * evicted. 1: there is room for all. 0: it has to wait; gn_placement_next() tells when all is
 * there. -ENOSPC: not all of it can ever be on the device at once, or it may not pin so much;
 * nothing has changed.
 */
int gn_placement_resize(struct gn_scheduler *s, struct gn_placement *p, uint32_t i, uint64_t bytes,
                        uint64_t pinned_bytes, uint64_t now_ns);
/* Are all pinned_bytes of the last gn_placement_resize() counted as pinned? False: the tenant may
 * pin no more. */
bool gn_placement_pins_all(struct gn_scheduler *s, const struct gn_placement *p);
/* The worker's answer to the order with this number, and its wish for evicted memory. -EPROTO. */
int gn_placement_answered(struct gn_scheduler *s, struct gn_placement *p, uint32_t number,
                          const struct gn_worker_resides *r, uint64_t now_ns);
int gn_placement_wanted(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns);
/* The worker has discarded its copies. -EPROTO: it was not told to. */
int gn_placement_discarded(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns);

enum gn_placement_order_kind {
    GN_PLACEMENT_RESIDE,  /* tell the worker: number, bytes, keeps_copies */
    GN_PLACEMENT_DISCARD, /* tell the worker */
    GN_PLACEMENT_ROOM,    /* there is room for all that gn_placement_resize() has named */
    GN_PLACEMENT_OVERDUE  /* the worker does not answer, or pins more than it may: end it */
};
struct gn_placement_order {
    enum gn_placement_order_kind kind;
    struct gn_placement *of;
    uint32_t number;
    uint64_t bytes;
    bool keeps_copies; /* copies of what is on the device may stay in host memory */
};
/* False: none. */
bool gn_placement_next(struct gn_scheduler *s, struct gn_placement_order *ret);

/* A vGPU's memory on one device. */
struct gn_placement_figures {
    enum gn_placement_state state;
    uint64_t memory_bytes;   /* leased, in whole slots */
    uint64_t resident_bytes; /* of these on the device */
    uint64_t pinned_bytes;
    uint64_t n_residencies; /* how often it came in after an eviction */
    uint64_t in_bytes, out_bytes;
    uint64_t evicted_ns; /* for how long not all of it was on the device */
};

struct gn_placement_device {
    const char *policy;
    uint64_t slot_bytes;
    uint32_t n_slots, n_free, n_reserved;
    uint64_t swap_bytes;   /* the setting */
    uint64_t n_swaps;      /* vGPUs brought in after an eviction */
    uint64_t copying_ns;   /* time in swaps */
    uint64_t n_rearranged; /* gn_place.n_rearranged */
};

/* False: the memory of the share's device, or this device, is not placed. */
bool gn_placement_figures(struct gn_scheduler *s, const struct gn_shares *sh, uint32_t i,
                          struct gn_placement_figures *ret);
bool gn_placement_device(struct gn_scheduler *s, uint32_t device, struct gn_placement_device *ret);
/* For all devices. NULL: no device's memory is placed. */
const struct gn_place_policy *gn_placement_policy(struct gn_scheduler *s);
void gn_placement_set_policy(struct gn_scheduler *s, const struct gn_place_policy *policy);

#endif
