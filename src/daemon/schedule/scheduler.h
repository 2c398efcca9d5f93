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
 * Who may use which device, and when: src/sched in gantryd. It runs on a thread of its own, so that
 * a long listing or an attach delays no grant; everything here takes its lock, and gantryd's thread
 * calls all of it. A worker tells by an eventfd that its grant page has news; what the page says is
 * a claim (shm/grant.h), the time is this process's clock. The eventfd is never read: it is the
 * worker's, too, who could have the read wait. One who tells more often than anybody needs to is
 * not listened to for some milliseconds.
 */
struct gn_scheduler;

/* A tenant's part in each device; made with its first vGPU. */
struct gn_tenant_shares {
    uint32_t weight;
    struct gn_sched_tenant of_device[];
};

/* What is charged to a share, how often it came to hold the device, and its device time by the
 * worker's word, so far. */
struct gn_share_count {
    uint64_t used_ns, n_grants, device_ns;
};

struct gn_share_figures {
    uint64_t used_ns;   /* charged: the device was its, and others waited */
    uint64_t waited_ns; /* it had work, and another one the device */
    uint64_t n_grants;
    uint64_t device_ns;        /* by the worker's word */
    uint64_t lately_ns;        /* of used_ns, what the last second or two have added */
    uint64_t lately_device_ns; /* of device_ns, the same */
    bool busy;                 /* it had work in that time */
    bool holds;                /* and has the device now */
    bool interactive;          /* its program waits for its commands as it goes */
    uint32_t weight, tenant_weight;
};

/* What gantryd's thread is to hear of a holder that others wait for. */
enum gn_share_news {
    GN_SHARE_NO_NEWS,
    GN_SHARE_LATE,       /* it does not answer: to be looked at */
    GN_SHARE_OVER_LIMIT, /* it has kept others waiting for longer than the limit */
    GN_SHARE_OVER_TOLD,
};

/* A vGPU's part in one device. */
struct gn_share {
    struct gn_sched_entity entity;
    struct gn_shares *of;
    struct gn_grant_slot *slot;
    uint32_t device;
    /* While it holds the grant. */
    uint64_t granted_ns,
        preempted_ns; /* since when; since when somebody else waits, 0: nobody does */
    uint64_t look_ns; /* when gantryd's thread is to look at a holder that does not answer */
    enum gn_share_news news;
    uint64_t owed_ns; /* to be charged for earlier waiters of this grant, who are gone */
    struct gn_share_count before, last; /* as counted twice, a second between */
    /* gantryd's thread, for a listing (shares.c). */
    struct gn_share_figures figures;
    double part, entitled; /* of the device */
};

struct gn_shares {
    struct gn_segment page;
    int tell_fd;
    uint32_t vgpu, index, n;
    bool joined;
    bool deaf; /* it is not listened to until its window is over */
    uint32_t n_tells;
    uint64_t window_ns; /* since when they are counted */
    struct gn_list deaf_link;
    struct gn_tenant_shares *tenant;
    struct gn_share all[GN_GRANT_DEVICES];
};

/* slices_ns: each device's, not kept. late_fd: told on this descriptor (an eventfd of the caller's)
 * that gn_scheduler_next_late has something to say. */
int gn_scheduler_start(struct gn_scheduler **ret, const struct gn_sched_policy *policy,
                       const uint64_t *slices_ns, uint32_t n_devices, uint64_t limit_ns,
                       int late_fd, struct gn_error *err);
void gn_scheduler_stop(struct gn_scheduler *s);

/* Zeroes *sh, makes the page and the eventfd. 0 or -errno. */
int gn_shares_init(struct gn_shares *sh, uint32_t vgpu);
void gn_shares_fini(struct gn_shares *sh);
/* devices: n numbers below n_devices. *tenant is made when it is NULL. 0 or -errno. */
int gn_scheduler_join(struct gn_scheduler *s, struct gn_shares *sh,
                      struct gn_tenant_shares **tenant, uint32_t tenant_weight, uint32_t weight,
                      const uint32_t *devices, uint32_t n);
/* Whatever it holds is free. Does nothing when it never joined. */
void gn_scheduler_leave(struct gn_scheduler *s, struct gn_shares *sh);

void gn_scheduler_weigh(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t weight);
/* Parts of each device, in millionths; 0: none. floors: for each device, whether the floor holds
 * there. At once. A floor that does not fit beside the others is left out there: who calls has
 * checked. NULL is fine. */
void gn_scheduler_bound(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t cap,
                        uint32_t floor, const bool *floors);
/* It has no vGPUs. NULL is fine. */
void gn_scheduler_forget(struct gn_scheduler *s, struct gn_tenant_shares *tenant);

const struct gn_sched_policy *gn_scheduler_policy(struct gn_scheduler *s);
void gn_scheduler_set_policy(struct gn_scheduler *s, const struct gn_sched_policy *policy);
void gn_scheduler_figures(struct gn_scheduler *s, const struct gn_shares *sh, uint32_t i,
                          struct gn_share_figures *ret);

/* Trace points go there from now on, those of one vGPU or (0) of all; first, how things stand.
 * NULL: nowhere; the ring may be freed. */
struct gn_trace_ring;
void gn_scheduler_trace(struct gn_scheduler *s, struct gn_trace_ring *ring, uint32_t vgpu);

/* Is it not listened to for now? */
bool gn_scheduler_is_paused(struct gn_scheduler *s, const struct gn_shares *sh);

/*
 * The next vGPU that holds a device, was asked for it by GN_SCHEDULER_LOOK_NS ago or more, and has
 * not given it back; 0: no further one. It is named again as long as that lasts, once per
 * GN_SCHEDULER_LOOK_NS; with *ret_over_limit, once and no more.
 */
#define GN_SCHEDULER_LOOK_NS UINT64_C(100000000)
uint32_t gn_scheduler_next_late(struct gn_scheduler *s, bool *ret_over_limit);

#endif
