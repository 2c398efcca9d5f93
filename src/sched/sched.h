/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_H
#define GN_SCHED_H

#include "sched/policy.h"

/*
 * Decides which vGPU gets a device next, and for how long. Tenants share the device by weight, and
 * a tenant's vGPUs share the tenant's part, so that more processes gain nothing. A policy orders
 * each of the two levels. A tenant may also have a cap (never more than this part of the device,
 * even if it is alone) and a floor (at least this part while it has work).
 *
 * A turn is the time from gn_sched_pick() to gn_sched_yield(); a slice is the longest turn that is
 * granted. A struct gn_sched belongs to one device; its entities are vGPUs on that device:
 *
 *   wake -> pick (it holds the device) -> yield, with the time it used -> pick ...
 *
 * Pure: time is an argument, in nanoseconds of any monotonic clock. The caller owns all structs;
 * nothing is allocated. One thread at a time.
 */
#define GN_SCHED_WHOLE 1000000u /* caps and floors are parts of a million */

struct gn_sched_entity;

struct gn_sched_tenant {
    struct gn_sched_node node;       /* in the device's queue of tenants */
    struct gn_sched_queue queue;     /* of its entities */
    struct gn_list link;             /* in gn_sched.tenants */
    struct gn_list waiting;          /* in gn_sched.capped while its cap keeps it from running */
    struct gn_list promised;         /* in gn_sched.floored while it has a floor */
    uint32_t n_ready;                /* number of ready entities */
    uint32_t cap, floor;             /* of GN_SCHED_WHOLE; 0: none */
    int64_t cap_ns, floor_ns;        /* time it may still use; time it is owed */
    uint64_t cap_at_ns, floor_at_ns; /* when these two were last filled */
    uint64_t used_ns;                /* total */
};

struct gn_sched_entity {
    struct gn_sched_node node; /* in its tenant's queue */
    struct gn_sched_tenant *tenant;
    uint64_t ready_at_ns;
    uint64_t used_ns, waited_ns; /* totals: time with the device; time ready without it */
    uint64_t n_grants;
};

struct gn_sched {
    const struct gn_sched_policy *policy;
    struct gn_sched_queue queue;
    uint64_t slice_ns;
    struct gn_list tenants, capped, floored;
    struct gn_sched_entity *running;    /* holds the device; NULL: none */
    uint32_t floors;                    /* sum of all floors */
    uint32_t n_ready;                   /* number of ready entities */
    uint64_t longest_ns, longest_at_ns; /* the longest recent turn, and when it ended */
};

void gn_sched_init(struct gn_sched *s, const struct gn_sched_policy *policy, uint64_t slice_ns,
                   uint64_t now_ns);

/* weight: 1 to GN_SCHED_WEIGHT_MAX. Returns -EINVAL for any other and changes nothing. */
int gn_sched_tenant_add(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight,
                        uint64_t now_ns);
/* Removes a tenant that has no entities. */
void gn_sched_tenant_remove(struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns);
/* cap: in parts of GN_SCHED_WHOLE; 0: none. Takes effect at once. -EINVAL: out of range, or below
 * the floor. */
int gn_sched_tenant_set_cap(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t cap,
                            uint64_t now_ns);
/* Returns -EINVAL if the floor is out of range or above the tenant's cap, -ENOSPC if all floors
 * together would exceed the device. */
int gn_sched_tenant_set_floor(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t floor,
                              uint64_t now_ns);
int gn_sched_tenant_set_weight(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight);

int gn_sched_add(struct gn_sched *s, struct gn_sched_tenant *t, struct gn_sched_entity *e,
                 uint32_t weight, uint64_t now_ns);
/* Removes an entity in any state. A turn that it has not ended is not charged. */
void gn_sched_remove(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/* The entity has work. Does nothing if it is ready or holds the device. */
void gn_sched_wake(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);
/* The entity has no more work; it does not hold the device. Does nothing if it is not ready. */
void gn_sched_sleep(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/* Chooses the next holder of a free device, and the longest time that it may hold it. NULL: none;
 * *ret_retry_ns is then when to call again even if no entity wakes (a cap allows more), or 0. */
struct gn_sched_entity *gn_sched_pick(struct gn_sched *s, uint64_t now_ns, uint64_t *ret_slice_ns,
                                      uint64_t *ret_retry_ns);
/* Ends the holder's turn, in which it used used_ns; more_work: it is ready again at once. */
void gn_sched_yield(struct gn_sched *s, uint64_t used_ns, bool more_work, uint64_t now_ns);
/* The picked entity did not take the device. Nothing is charged, and the entity and its tenant lose
 * the time they were owed: otherwise a node could save time by letting grants fail. The entity has
 * no work until it wakes. */
void gn_sched_miss(struct gn_sched *s, uint64_t now_ns);
/*
 * How long the holder should keep the device when it has no work at the moment. If recent turns
 * were long and cannot be cut short, giving the device up may cost as much as such a turn, so
 * waiting for a twentieth of that is worthwhile. UINT64_MAX: to the end of the slice, under a
 * policy that polls.
 */
uint64_t gn_sched_keep_ns(const struct gn_sched *s, uint64_t now_ns);
/* Whether the device is held while another entity waits: then the time must be measured. */
bool gn_sched_contended(const struct gn_sched *s);
/* The CPU scheduler runs the program of e: whether to take the device from its holder. Only for
 * policies with by_cpu. */
bool gn_sched_ask(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

#endif
