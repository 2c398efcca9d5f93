/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_SCHEDULER_INTERNAL_H
#define GN_DAEMON_SCHEDULE_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "daemon/schedule/scheduler.h"
#include "shm/trace_ring.h"

/* The scheduler's data, shared by scheduler.c, figures.c and trace_points.c and used
 * nowhere else. */
struct device {
    struct gn_sched sched;
    struct gn_placing *placing; /* owned; NULL: its memory is not placed */
    uint64_t retry_ns;          /* when to look for a capped tenant; 0: not needed */
    uint64_t counted_ns;        /* when its shares were last sampled */
    bool count_now, count_anew;
    struct gn_trace_ring *trace; /* NULL: not traced */
    uint32_t traced;             /* only this vGPU; 0: all */
};

struct gn_scheduler {
    pthread_t thread;
    int epoll_fd, timer_fd, wake_fd, late_fd;
    uint64_t limit_ns; /* 0: none */
    /* guarded by the lock */
    pthread_mutex_t lock;
    bool stop;
    const struct gn_sched_policy *policy;
    struct gn_shares *
        /* indexed by the epoll data of events, which may arrive after their vGPU has left */
        *table;
    uint32_t n_table;
    struct gn_list paused; /* gn_shares, in the order in which their windows end */
    struct gn_list orders; /* placement.h: of gn_placed, in the order in which they came */
    int news_fd;           /* not owned */
    uint32_t n_devices;
    struct device devices[];
};

/* Lets the scheduler's thread look at everything. */
void gn_scheduler_wake(struct gn_scheduler *s);
/* NULL: no memory. Call with the lock held. */
struct gn_tenant_shares *gn_scheduler_new_tenant(struct gn_scheduler *s, uint32_t weight);

/* Time to charge to the holder: only time in which other vGPUs waited. */
static inline uint64_t gn_share_used(const struct gn_share *sh, uint64_t now)
{
    return sh->owed_ns + (sh->preempted_ns ? now - sh->preempted_ns : 0);
}

/* trace_points.c: gn_scheduler_note() when tracing is on. */
void gn_scheduler_note_locked(const struct device *d, const struct gn_share *sh,
                              enum gn_trace_kind kind, uint64_t a, uint64_t b, uint64_t now);

/* Writes a trace point. Call with the lock held. */
static inline void gn_scheduler_note(const struct device *d, const struct gn_share *sh,
                                     enum gn_trace_kind kind, uint64_t a, uint64_t b, uint64_t now)
{
    if (__builtin_expect(d->trace != NULL, 0))
        gn_scheduler_note_locked(d, sh, kind, a, b, now);
}

/* figures.c: samples the totals once a second, for the recent shares. Call with the lock held. */
void gn_scheduler_count_locked(struct gn_scheduler *s, uint64_t now);

#endif
