/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_H
#define GN_SCHED_H

#include "sched/policy.h"

/*
 * Decides which vGPU gets a device next, and for how long. Tenants share the device by weight, and
 * a tenant's vGPUs share the tenant's part, so that more processes gain nothing. A policy orders
 * each of the two levels. Besides its weight a tenant may have a cap (never more than this part of
 * the device, even alone) and a floor (at least this part while it has work).
 *
 * Pure: time is an argument, in nanoseconds of any monotonic clock. The caller owns the structs;
 * nothing is allocated. One thread at a time. Each device has its own struct gn_sched; its
 * entities are the vGPUs on that device.
 *
 *   wake -> pick (the entity holds the device) -> yield, with the time used -> pick ...
 */
#define GN_SCHED_WHOLE 1000000u /* The unit of caps and floors is parts per million. */

struct gn_sched_entity;

struct gn_sched_tenant {
    struct gn_sched_node node;   /* among the device's tenants */
    struct gn_sched_queue queue; /* of its entities */
    struct gn_list link;         /* in gn_sched.tenants */
    struct gn_list waiting;      /* in gn_sched.capped while its cap excludes it */
    struct gn_list promised;     /* in gn_sched.floored while it has a floor */
    uint32_t n_ready;            /* number of ready entities */
    uint32_t cap, floor;         /* parts of GN_SCHED_WHOLE; 0: none */
    /* Buckets: the time that the cap still allows; the time that the floor still owes. */
    int64_t cap_ns, floor_ns;
    uint64_t cap_at_ns, floor_at_ns; /* the times up to which the buckets are filled */
    uint64_t used_ns;                /* counter */
};

struct gn_sched_entity {
    struct gn_sched_node node; /* among its tenant's entities */
    struct gn_sched_tenant *tenant;
    bool evicted;       /* its memory is not on the device */
    bool awaits_memory; /* evicted with work: in no queue */
    uint64_t ready_at_ns;
    uint64_t used_ns, waited_ns; /* Counters: time on the device; time ready without it. */
    uint64_t n_grants;
};

struct gn_sched {
    const struct gn_sched_policy *policy;
    struct gn_sched_queue queue;
    uint64_t slice_ns;
    struct gn_list tenants, capped, floored;
    struct gn_sched_entity *running;    /* holds the device, or NULL */
    uint32_t floors;                    /* sum of all tenants' floors */
    uint32_t n_ready;                   /* number of ready entities */
    uint64_t longest_ns, longest_at_ns; /* the longest recent turn, and when it ended */
};

void gn_sched_init(struct gn_sched *s, const struct gn_sched_policy *policy, uint64_t slice_ns,
                   uint64_t now_ns);

/* weight: 1 to GN_SCHED_WEIGHT_MAX. -EINVAL: out of range, nothing has changed. */
int gn_sched_tenant_add(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight,
                        uint64_t now_ns);
/* The tenant must have no entities left. */
void gn_sched_tenant_remove(struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns);
/*
 * cap: parts of GN_SCHED_WHOLE, 0: none. -EINVAL: out of range, or below the floor. It holds at
 * once.
 */
int gn_sched_tenant_set_cap(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t cap,
                            uint64_t now_ns);
/*
 * -EINVAL: out of range, or above the tenant's cap. -ENOSPC: the sum of all floors would exceed the
 * device.
 */
int gn_sched_tenant_set_floor(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t floor,
                              uint64_t now_ns);
int gn_sched_tenant_set_weight(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight);

int gn_sched_add(struct gn_sched *s, struct gn_sched_tenant *t, struct gn_sched_entity *e,
                 uint32_t weight, uint64_t now_ns);
/* Removes an entity in any state. If it holds the device, that turn is not charged. */
void gn_sched_remove(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/* The entity has work. Does nothing if it is ready already, or holds the device. */
void gn_sched_wake(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);
/* The entity has no work any more, and was not picked. */
void gn_sched_sleep(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/*
 * The entity's memory is not on the device, or is there again. While evicted it is not picked; it
 * may wake and sleep, and its waiting time counts. One that holds the device keeps it until it
 * yields. When its memory is back it is queued like one that wakes: no other waits for its arrears.
 */
void gn_sched_set_evicted(struct gn_sched *s, struct gn_sched_entity *e, bool evicted,
                          uint64_t now_ns);

/*
 * Picks the next holder of the device, if it has none, and sets for how long at most. NULL: there
 * is no candidate; *ret_retry_ns is then the time at which a cap allows a tenant again, when the
 * caller must ask again even without a wake, or 0.
 */
struct gn_sched_entity *gn_sched_pick(struct gn_sched *s, uint64_t now_ns, uint64_t *ret_slice_ns,
                                      uint64_t *ret_retry_ns);
/*
 * The holder gives the device back and has used it for used_ns. more_work: it is ready again at
 * once.
 */
void gn_sched_yield(struct gn_sched *s, uint64_t used_ns, bool more_work, uint64_t now_ns);
/*
 * The picked entity did not acquire the device. Nothing is charged, but the entity and its tenant
 * forfeit their credit: otherwise a node that lets grants fail could save it up. The entity has no
 * work until it wakes.
 */
void gn_sched_miss(struct gn_sched *s, uint64_t now_ns);
/*
 * Returns for how long a holder without work should keep the device. If recent turns of work that
 * cannot be sliced were long, giving the device up may cost as much as one of them; waiting in vain
 * costs at most a twentieth of that. UINT64_MAX: to the slice's end, under a policy that polls.
 */
uint64_t gn_sched_keep_ns(const struct gn_sched *s, uint64_t now_ns);
/* True if an entity waits while another holds the device. Then the use must be measured. */
bool gn_sched_contended(const struct gn_sched *s);
/*
 * The processors' scheduler runs this entity's program: must the holder give the device up to it?
 * Always false for policies without by_cpu.
 */
bool gn_sched_ask(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

#endif
