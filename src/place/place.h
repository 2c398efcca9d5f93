/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_PLACE_H
#define GN_PLACE_H

#include <bsd/sys/tree.h>
#include <stddef.h>

#include "base/list.h"
#include "place/chunk_set.h"

/*
 * The memory of one device, in slots, and the vGPUs that share it. A vGPU's memory is in chunks of
 * up to one slot. A chunk has one slot, or none: then its contents are in host memory. A policy
 * decides which chunks give their slots up when a vGPU needs its own.
 *
 * Follows DymGPU ("DymGPU: Dynamic Memory Management for Sharing GPUs in Virtualized Clouds"),
 * sections II.A and III; residency periods (residency.h) and the policy `turn` are Gantry's own.
 *
 * Pure: time is an argument, in nanoseconds of any monotonic clock. The caller owns the structs;
 * nothing is allocated. One thread at a time. Each device has its own struct gn_place.
 *
 *   wake -> plan -> vacate the victims' chunks, occupy the vGPU's -> turn begins -> turn ends ...
 */
#define GN_PLACE_SLOT_BYTES (UINT64_C(64) << 20) /* DymGPU II.A */
#define GN_PLACE_NOWHERE    UINT32_MAX
#define GN_PLACE_WHOLE      1000000u /* The unit of swap_share is parts per million. */
#define GN_PLACE_WEIGHT_MAX 1000000u
#define GN_PLACE_SAMPLES    20u /* seconds over which utilization is the mean: DymGPU III.A */
#define GN_PLACE_IDLE_NS    UINT64_C(20000000000)
#define GN_PLACE_LONGEST_NS UINT64_C(30000000000)
#define GN_PLACE_SHARE      100000u
/* A program pauses between commands that it waits for, and after its memory has come in. */
#define GN_PLACE_PAUSE_NS UINT64_C(10000000)
#define GN_PLACE_COPIES   7u

struct gn_place;
struct gn_place_plan;
struct gn_place_vgpu;

struct gn_place_tenant {
    struct gn_list link; /* in gn_place.tenants */
    uint32_t weight;
    uint32_t reserve;              /* slots that other tenants cannot take */
    uint32_t n_vgpus, weights;     /* number of vGPUs; sum of their weights */
    uint32_t n_chunks;             /* of all its vGPUs */
    uint32_t longest_run;          /* the most chunks that one object of theirs has had */
    uint32_t n_occupied, n_pinned; /* of all its vGPUs, in slots */
    uint32_t n_kept;               /* gn_place_kept */
    uint32_t n_leaving;            /* chunks that the plan with this number takes */
    uint64_t plan_number;
};

struct gn_place_vgpu {
    struct gn_list link;      /* in gn_place.vgpus, in the order of creation */
    struct gn_list sorted;    /* while a policy sorts */
    struct gn_list occupying; /* in gn_place.occupying while it has a slot */
    struct gn_list victim;    /* in gn_place_plan.victims */
    RB_ENTRY(gn_place_vgpu) wanting;
    uint64_t wanting_key;
    uint64_t sequence; /* number of its creation */
    struct gn_place_tenant *tenant;
    uint32_t weight; /* among its tenant's vGPUs */
    /* S_i and P_i of DymGPU III.B. P_i is GN_PLACE_NOWHERE if slots are taken by number. */
    uint32_t n_chunks, first_slot;
    uint32_t candidate_slot; /* P_i of an arrangement that is compared with the present one */
    uint32_t n_occupied, n_pinned;
    struct gn_chunk_set occupied; /* has a slot */
    struct gn_chunk_set needs;    /* its next commands name it */
    struct gn_chunk_set joined;   /* belongs to the run of the chunk before it */
    struct gn_chunk_set pinned;   /* never evicted */
    struct gn_chunk_set changed;  /* its contents differ from the copy in host memory */
    struct gn_chunk_set leaving;  /* the plan with this number takes its slot */
    uint64_t plan_number;
    uint64_t swapped_in_ns;
    uint64_t ready_ns; /* since when it has had work */
    uint64_t used_ns;  /* the end of its last turn, or its creation */
    uint64_t n_turns;
    uint64_t gap_ns; /* mean time from the end of a turn to the next one; 0: unknown */
    uint64_t busy_ns[GN_PLACE_SAMPLES], busy_second; /* device time of each of the last seconds */
    uint64_t period_tag;                             /* device time by weight */
    uint64_t owed_tag; /* what its swaps have cost, in the same unit, and it has not used yet */
    bool ready;        /* has work, or holds the grant */
    bool granted;      /* holds the grant */
    bool ran;          /* has had a turn since it was swapped in */
    bool idle;         /* unused for gn_place.idle_ns */
    bool wants;        /* in gn_place.wanting */
    bool moves;        /* gn_place_set_moves */
    uint64_t kept_until_ns; /* the caller's: no plan takes its slots before */
};

/*
 * What to do for one vGPU. The victims are in no order that matters. Valid until the next plan, and
 * until a vGPU in it goes; it must not be copied, because the victims' list links to it.
 */
struct gn_place_plan {
    struct gn_place_vgpu *vgpu;
    struct gn_chunk_set in; /* chunks that get a slot */
    /* Of `in`: chunks whose address has changed; they leave their present slot. */
    struct gn_chunk_set moved;
    struct gn_list victims; /* struct gn_place_vgpu.victim; their chunks are in `leaving` */
    uint32_t n_in;          /* chunks of `in` */
    uint32_t n_out;         /* chunks of all victims */
    uint32_t n_changed;     /* of n_out, those that must be copied out */
    uint64_t copy_ns;       /* expected time of the copies, C */
};

struct gn_place_policy {
    const char *name;
    const char *about;  /* one line for people */
    bool addressed;     /* chunk k of a vGPU lies in slot first_slot + k */
    uint64_t period_ns; /* of rearrange; 0: only when vGPUs come and go */
    /* Sets first_slot of a vGPU that is new, has another size, or is no longer idle. */
    void (*added)(struct gn_place *p, struct gn_place_vgpu *v);
    /* The vGPU is idle, or goes for good; then it is in gn_place.vgpus no more. */
    void (*removed)(struct gn_place *p, struct gn_place_vgpu *v);
    /* NULL: never. */
    void (*rearrange)(struct gn_place *p);
    /*
     * Chooses slots for the chunks that the vGPU needs and that have none. Changes nothing but the
     * plan. False: not possible now.
     */
    bool (*plan)(struct gn_place *p, struct gn_place_vgpu *v, struct gn_place_plan *ret);
};

/* Of the last copies one way, the time of a slot. */
struct gn_place_copies {
    uint64_t slot_ns[GN_PLACE_COPIES];
    uint64_t n; /* copies so far */
};

struct gn_place {
    const struct gn_place_policy *policy;
    uint32_t n_slots, n_free;
    uint32_t n_withheld; /* until withheld_until_ns: gn_place_withhold */
    uint64_t withheld_until_ns;
    uint64_t slot_bytes;
    uint64_t in_ns, out_ns; /* a slot's time each way: gn_place_note_copy */
    struct gn_place_copies copies_in, copies_out;
    /* The part of device time that copies may take, f, of GN_PLACE_WHOLE. 0: swap at each turn. */
    uint32_t swap_share;
    uint64_t residency_max_ns; /* bounds the length of a period at the price of f */
    uint64_t idle_ns;
    struct gn_list vgpus, tenants, occupying;
    RB_HEAD(gn_place_wanting, gn_place_vgpu) wanting; /* have work, and are not resident */
    uint32_t n_reserved, n_kept; /* sums over tenants: reserves; gn_place_kept */
    uint64_t weights;            /* of tenants with vGPUs */
    uint64_t n_created, plan_number;
    uint64_t period_time; /* the tag of the vGPU that was charged last */
    uint64_t now_ns, arranged_ns, checked_ns;
    uint64_t n_rearranged; /* counter: arrangements in which a vGPU's address has changed */
    /* `size` (DymGPU III.B): P_K, and L. GN_PLACE_NOWHERE: no slot is shared. */
    uint32_t shared_slot, n_shared;
    /* Policies with addresses: whose chunk lies in a slot, and which one. NULL: free. */
    struct gn_place_vgpu *owner[GN_PLACE_MAX_SLOTS];
    uint16_t chunk[GN_PLACE_MAX_SLOTS];
};

/*
 * slot_bytes 0: GN_PLACE_SLOT_BYTES. It is doubled until the memory has at most GN_PLACE_MAX_SLOTS
 * slots. -EINVAL: not one slot.
 */
int gn_place_init(struct gn_place *p, const struct gn_place_policy *policy, uint64_t memory_bytes,
                  uint64_t slot_bytes, uint64_t now_ns);
/* Changes the policy. Chunks stay in their slots until their vGPU's next turn. */
void gn_place_set_policy(struct gn_place *p, const struct gn_place_policy *policy, uint64_t now_ns);

/*
 * A tenant's weight is 1 to GN_PLACE_WEIGHT_MAX. -EINVAL: out of range. -ENOSPC: the reserves
 * exceed the device, or leave some vGPU less than it has (I6). After an error nothing has changed.
 */
int gn_place_tenant_add(struct gn_place *p, struct gn_place_tenant *t, uint32_t weight,
                        uint32_t reserve);
int gn_place_tenant_set_reserve(struct gn_place *p, struct gn_place_tenant *t, uint32_t reserve);
int gn_place_tenant_set_weight(struct gn_place *p, struct gn_place_tenant *t, uint32_t weight);
/* The tenant must have no vGPUs left. */
void gn_place_tenant_remove(struct gn_place *p, struct gn_place_tenant *t);

/*
 * Adds a vGPU whose chunks have no slots, and that needs all of them. -EINVAL: the weight is out of
 * range. -ENOSPC: with the other tenants' reserves and pinned chunks not all of its chunks fit at
 * once (I6).
 */
int gn_place_add(struct gn_place *p, struct gn_place_tenant *t, struct gn_place_vgpu *v,
                 uint32_t weight, uint32_t n_chunks, uint64_t now_ns);
/* Frees its slots. */
void gn_place_remove(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns);
/*
 * Chunks from n_chunks on go; they must have no slots and not be pinned. New chunks have none, and
 * are needed. -ENOSPC as gn_place_add.
 */
int gn_place_resize(struct gn_place *p, struct gn_place_vgpu *v, uint32_t n_chunks,
                    uint64_t now_ns);
/* The next commands name these chunks; whole runs are added. */
void gn_place_set_needs(struct gn_place *p, struct gn_place_vgpu *v,
                        const struct gn_chunk_set *needs);
/*
 * Chunks `first` to first + n - 1 belong to one object and move together. -EBUSY: one of them has a
 * slot, is pinned, or is in a run. -ENOSPC: others cannot take a part of a run, so a reserve rounds
 * up, and some vGPU could not have all it has.
 */
int gn_place_join(struct gn_place *p, struct gn_place_vgpu *v, uint32_t first, uint32_t n);
/*
 * Pins whole runs, which need not have slots yet. -ENOSPC: more than the tenant may pin, which is
 * its reserve and its part of the rest by weight (I5), or some vGPU would have less than it has
 * (I6).
 */
int gn_place_pin(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks);
void gn_place_unpin(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks);
/* A command may have changed the contents of these chunks. */
void gn_place_set_changed(struct gn_place_vgpu *v, const struct gn_chunk_set *chunks);
/* The copy in host memory equals the contents of these chunks. */
void gn_place_set_clean(struct gn_place_vgpu *v, const struct gn_chunk_set *chunks);

/* The vGPU has work; it has none. */
void gn_place_wake(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns);
void gn_place_sleep(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns);
/* A turn of the vGPU begins; it ends after used_ns of device time. */
void gn_place_turn(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns);
void gn_place_yield(struct gn_place *p, struct gn_place_vgpu *v, uint64_t used_ns, bool more_work,
                    uint64_t now_ns);
/*
 * Finds idle vGPUs each second, and rearranges. Returns when to call it again. (DymGPU III.A:
 * monitor)
 */
uint64_t gn_place_tick(struct gn_place *p, uint64_t now_ns);

/* Its contents are being saved or loaded: no plan takes its slots, and it comes in before others
 * and without a period's wait, as an operator waits for it. */
void gn_place_set_moves(struct gn_place *p, struct gn_place_vgpu *v, bool moves);

/*
 * Others than these vGPUs have so much of the device's memory: until then plans leave as many slots
 * free. 0: none. A plan for more than the rest is not possible meanwhile.
 */
void gn_place_withhold(struct gn_place *p, uint32_t n_slots, uint64_t until_ns);

/* True if all that the vGPU needs has a slot. */
bool gn_place_is_resident(const struct gn_place_vgpu *v);
/* Plans for the vGPU's needs. False: not possible now. A resident vGPU gets a plan of nothing. */
bool gn_place_plan(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns,
                   struct gn_place_plan *ret);
/* Victims' chunks give their slots up: all at once, or as the copies out end. */
void gn_place_vacate(struct gn_place *p, struct gn_place_vgpu *v,
                     const struct gn_chunk_set *chunks);
/* Chunks get slots; there must be as many free ones. They are clean. */
void gn_place_occupy(struct gn_place *p, struct gn_place_vgpu *v,
                     const struct gn_chunk_set *chunks);
/* Both, for the whole plan. The vGPU's residency period begins. */
void gn_place_apply(struct gn_place *p, struct gn_place_plan *plan, uint64_t now_ns);
/* A copy of n_slots took ns: in_ns and out_ns are medians of the last GN_PLACE_COPIES ones. */
void gn_place_note_copy(struct gn_place *p, bool in, uint32_t n_slots, uint64_t ns);

/* Returns the device time that the vGPU used in the last 20 seconds. */
uint64_t gn_place_utilization(const struct gn_place_vgpu *v, uint64_t now_ns);
/* Returns the slots that the tenant may pin in all (I5). */
uint32_t gn_place_pin_limit(const struct gn_place *p, const struct gn_place_tenant *t);
/* Returns the slots that others can never take from the tenant: its reserve in whole runs. */
uint32_t gn_place_kept(const struct gn_place_tenant *t);

/* Returns NULL if no policy has that name. */
const struct gn_place_policy *gn_place_policy_find(const char *name);
/* Returns the i-th policy, or NULL after the last one. The first is the default. */
const struct gn_place_policy *gn_place_policy_at(unsigned i);

extern const struct gn_place_policy gn_place_turn_policy, gn_place_first_fit, gn_place_size,
    gn_place_utilization_policy;

#endif
