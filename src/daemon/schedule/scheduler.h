/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_SCHEDULER_H
#define GN_DAEMON_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "sched/sched.h"
#include "shm/grant.h"
#include "shm/segment.h"

/*
 * Grants devices to vGPUs: src/sched inside gantryd. It runs on a thread of its own, so that a long
 * listing or an attach delays no grant. All functions here are called on gantryd's thread and take
 * the scheduler's lock.
 *
 * A worker writes to an eventfd when it has changed its grant page. The page is only a claim
 * (shm/grant.h); times come from this process's clock. The scheduler never reads the eventfd: the
 * worker has it too, and could make a read block. A worker that writes too often is ignored for
 * some milliseconds.
 */
struct gn_placed;
struct gn_scheduler;

/* A tenant's part in each device; created with the tenant's first vGPU. */
struct gn_place_tenant;
struct gn_tenant_shares {
    uint32_t weight;
    struct gn_place_tenant *places; /* of each device; owned; NULL: no memory is placed */
    struct gn_sched_tenant of_device[];
};

/* Totals of a share: time charged, number of grants, and device time as the worker reports it. */
struct gn_share_count {
    uint64_t used_ns, n_grants, device_ns;
};

struct gn_share_figures {
    uint64_t used_ns;   /* charged: time with the device while others waited for it */
    uint64_t waited_ns; /* time with work ready while another vGPU had the device */
    uint64_t n_grants;
    uint64_t device_ns;        /* as the worker reports it */
    uint64_t lately_ns;        /* the part of used_ns from the last second or two */
    uint64_t lately_device_ns; /* the same part of device_ns */
    bool busy;                 /* it had work in that time */
    bool holds;                /* it has the device now */
    bool interactive;          /* its program often waits for its commands */
    uint32_t weight, tenant_weight;
};

/* States of a preempted holder that gantryd's thread must know of. */
enum gn_share_news {
    GN_SHARE_NO_NEWS,
    GN_SHARE_LATE,       /* it does not answer: gantryd should look at it */
    GN_SHARE_OVER_LIMIT, /* it has kept others waiting for longer than the limit */
    GN_SHARE_OVER_REPORTED,
};

/* A vGPU's share of one device. */
struct gn_share {
    struct gn_sched_entity entity;
    struct gn_placed *placed; /* the memory of the worker that works under it; NULL: not placed */
    struct gn_shares *of;
    struct gn_grant_slot *slot;
    uint32_t device;
    /* Set while it holds the grant. */
    uint64_t granted_ns,
        preempted_ns; /* since when it holds it; since when another vGPU waits, 0: none does */
    uint64_t look_ns; /* when gantryd's thread is next to look at a holder that does not answer */
    enum gn_share_news news;
    uint64_t owed_ns; /* to charge for waiting vGPUs that left during this grant */
    struct gn_share_count before, last; /* two samples, a second apart */
    /* Used by gantryd's thread for listings (shares.c). */
    struct gn_share_figures figures;
    double part, entitled; /* fractions of the device */
};

struct gn_shares {
    struct gn_segment page;
    int tell_fd;
    uint32_t vgpu, index, n;
    bool joined;
    bool paused; /* notifications are ignored until the end of the window */
    uint32_t n_tells;
    uint64_t window_ns; /* start of the window in which n_tells counts notifications */
    struct gn_list paused_link;
    struct gn_tenant_shares *tenant;
    struct gn_share all[GN_GRANT_DEVICES];
};

/* slices_ns: the slice of each device; copied. limit_ns: the kernel limit; 0: none. late_fd: an
 * eventfd of the caller's, written to when gn_scheduler_next_late() has a result. */
int gn_scheduler_start(struct gn_scheduler **ret, const struct gn_sched_policy *policy,
                       const uint64_t *slices_ns, uint32_t n_devices, uint64_t limit_ns,
                       int late_fd, struct gn_error *err);
void gn_scheduler_stop(struct gn_scheduler *s);

/* Zeroes *sh and creates the page and the eventfd. 0 or -errno. */
int gn_shares_init(struct gn_shares *sh, uint32_t vgpu);
void gn_shares_fini(struct gn_shares *sh);
/* devices: n device numbers. *tenant is created if it is NULL. 0 or -errno. */
int gn_scheduler_join(struct gn_scheduler *s, struct gn_shares *sh,
                      struct gn_tenant_shares **tenant, uint32_t tenant_weight, uint32_t weight,
                      const uint32_t *devices, uint32_t n);
/* Removes the vGPU; a device that it holds becomes free. Does nothing if it never joined. */
void gn_scheduler_leave(struct gn_scheduler *s, struct gn_shares *sh);

void gn_scheduler_weigh(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t weight);
/* Sets cap and floor, in millionths of each device; 0: none. floors: for each device, whether the
 * floor applies. Takes effect at once. A floor that does not fit beside the others is ignored on
 * that device: callers check first. tenant NULL: ignored. */
void gn_scheduler_bound(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t cap,
                        uint32_t floor, const bool *floors);
/* Frees the tenant's shares. It must have no vGPUs. NULL: ignored. */
void gn_scheduler_forget(struct gn_scheduler *s, struct gn_tenant_shares *tenant);

const struct gn_sched_policy *gn_scheduler_policy(struct gn_scheduler *s);
void gn_scheduler_set_policy(struct gn_scheduler *s, const struct gn_sched_policy *policy);
void gn_scheduler_figures(struct gn_scheduler *s, const struct gn_shares *sh, uint32_t i,
                          struct gn_share_figures *ret);

/* Writes trace points to the ring from now on, of one vGPU or (0) of all, starting with the present
 * state. NULL: stops; the ring may then be freed. */
struct gn_trace_ring;
void gn_scheduler_trace(struct gn_scheduler *s, struct gn_trace_ring *ring, uint32_t vgpu);

/* Whether its notifications are ignored at the moment. */
bool gn_scheduler_is_paused(struct gn_scheduler *s, const struct gn_shares *sh);

/* The next vGPU that has held a device for GN_SCHEDULER_LOOK_NS or longer since it was preempted;
 * 0: none. It is returned again every GN_SCHEDULER_LOOK_NS for as long as that lasts; with
 * *ret_over_limit set, only once. */
#define GN_SCHEDULER_LOOK_NS UINT64_C(100000000)
uint32_t gn_scheduler_next_late(struct gn_scheduler *s, bool *ret_over_limit);

#endif
