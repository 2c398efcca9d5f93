/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_H
#define GN_SCHED_H

#include "sched/policy.h"

/*
 * Who gets a device next, and for how long. Tenants share the device by weight, a tenant's vGPUs
 * share its part, so that more processes gain nothing; a policy orders each of the two levels.
 * Beside weights a tenant may have a cap (never more than this part of the device, even alone) and
 * a floor (at least this part while it has work).
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not run backwards. The structs
 * are the caller's memory; nothing is allocated. One thread at a time. A struct gn_sched is one
 * device's; its entities are vGPUs on that device.
 *
 *   wake -> pick (it holds the device) -> yield, with what it used -> pick ...
 */
#define GN_SCHED_WHOLE 1000000u /* parts in a million: caps and floors */

struct gn_sched_entity;

struct gn_sched_tenant {
    struct gn_sched_node node;       /* among the device's tenants */
    struct gn_sched_queue queue;     /* of its entities */
    struct gn_list link;             /* in gn_sched.tenants */
    struct gn_list waiting;          /* in gn_sched.capped while its cap keeps it off */
    struct gn_list promised;         /* in gn_sched.floored while it has a floor */
    uint32_t n_ready;                /* entities */
    uint32_t cap, floor;             /* of GN_SCHED_WHOLE; 0: none */
    int64_t cap_ns, floor_ns;        /* what it may use until then; what it is owed */
    uint64_t cap_at_ns, floor_at_ns; /* when those were reckoned */
    uint64_t used_ns;                /* counter */
};

struct gn_sched_entity {
    struct gn_sched_node node; /* among its tenant's */
    struct gn_sched_tenant *tenant;
    uint64_t ready_at_ns;
    uint64_t used_ns, waited_ns; /* counters: of the device; ready and without it */
    uint64_t n_grants;
};

struct gn_sched {
    const struct gn_sched_policy *policy;
    struct gn_sched_queue queue;
    uint64_t slice_ns;
    struct gn_list tenants, capped, floored;
    struct gn_sched_entity *running;    /* holds the device; NULL: nobody */
    uint32_t floors;                    /* the sum */
    uint32_t n_ready;                   /* entities */
    uint64_t longest_ns, longest_at_ns; /* the longest turn lately, and when it was over */
};

void gn_sched_init(struct gn_sched *s, const struct gn_sched_policy *policy, uint64_t slice_ns,
                   uint64_t now_ns);

/* weight: 1 to GN_SCHED_WEIGHT_MAX. -EINVAL, and nothing is changed. */
int gn_sched_tenant_add(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight,
                        uint64_t now_ns);
/* Has no entities any more. */
void gn_sched_tenant_remove(struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns);
/* cap: parts of GN_SCHED_WHOLE, 0: none. -EINVAL: out of range. At once. */
int gn_sched_tenant_set_cap(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t cap,
                            uint64_t now_ns);
/* -EINVAL: out of range, or above the tenant's cap; -ENOSPC: with it the floors would be more than
 * the device. */
int gn_sched_tenant_set_floor(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t floor,
                              uint64_t now_ns);
int gn_sched_tenant_set_weight(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight);

int gn_sched_add(struct gn_sched *s, struct gn_sched_tenant *t, struct gn_sched_entity *e,
                 uint32_t weight, uint64_t now_ns);
/* Whatever it is doing; what it still held is not charged. */
void gn_sched_remove(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/* It has work. Nothing happens when it has had some, or holds the device. */
void gn_sched_wake(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);
/* It has none any more, and did not come to hold the device. */
void gn_sched_sleep(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

/*
 * Nobody holds the device: whose it is now, and for how long at most. NULL: nobody's; *ret_retry_ns
 * is then when to ask again although nobody wakes (a cap gives way), or 0.
 */
struct gn_sched_entity *gn_sched_pick(struct gn_sched *s, uint64_t now_ns, uint64_t *ret_slice_ns,
                                      uint64_t *ret_retry_ns);
/* Who holds the device gives it back, having used so much of it; more_work: it is ready again at
 * once. */
void gn_sched_yield(struct gn_sched *s, uint64_t used_ns, bool more_work, uint64_t now_ns);
/* The picked entity did not take the device: nothing is charged, and what the entity and its tenant
 * were owed is forfeited, since a node that lets grants fail could save it up. It has no work until
 * it wakes. */
void gn_sched_miss(struct gn_sched *s, uint64_t now_ns);
/*
 * How long it is worth keeping the device for who holds it and has no work this moment: when turns
 * that can't be cut short have been long lately, to give the device up may cost as much. To wait in
 * vain costs at most a twentieth of that. UINT64_MAX: to the slice's end, under a policy that
 * polls.
 */
uint64_t gn_sched_keep_ns(const struct gn_sched *s, uint64_t now_ns);
/* Does anybody wait while the device is held? Then what is used has to be measured. */
bool gn_sched_contended(const struct gn_sched *s);
/* The processors' scheduler runs this one's program: is the device to be taken from who holds it?
 * Policies with by_cpu only. */
bool gn_sched_ask(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns);

#endif
