/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_SCHEDULER_INTERNAL_H
#define GN_DAEMON_SCHEDULE_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "daemon/schedule/scheduler.h"
#include "shm/trace_ring.h"

/* What scheduler.c and figures.c, and nobody else, know of the scheduler. */
struct device {
    struct gn_sched sched;
    uint64_t retry_ns;   /* 0: nothing to come back for */
    uint64_t counted_ns; /* its shares were, last */
    bool count_now, count_anew;
    struct gn_trace_ring *trace; /* NULL: nobody wants to know */
    uint32_t traced;             /* this vGPU alone; 0: all */
};

struct gn_scheduler {
    pthread_t thread;
    int epoll_fd, timer_fd, wake_fd, late_fd;
    uint64_t limit_ns; /* 0: none */
    /* lock */
    pthread_mutex_t lock;
    bool stop;
    const struct gn_sched_policy *policy;
    struct gn_shares *
        *table; /* by index: an event names an index, and may come after its vGPU is gone */
    uint32_t n_table;
    struct gn_list deaf; /* gn_shares, in the order in which their windows end */
    uint32_t n_devices;
    struct device devices[];
};

/* What it held counts from when it cost somebody else something. */
static inline uint64_t gn_share_used(const struct gn_share *sh, uint64_t now)
{
    return sh->owed_ns + (sh->preempted_ns ? now - sh->preempted_ns : 0);
}

/* trace_points.c: as gn_scheduler_note, somebody wants to know. */
void gn_scheduler_note_locked(const struct device *d, const struct gn_share *sh,
                              enum gn_trace_kind kind, uint64_t a, uint64_t b, uint64_t now);

/* A trace point. The lock is held. */
static inline void gn_scheduler_note(const struct device *d, const struct gn_share *sh,
                                     enum gn_trace_kind kind, uint64_t a, uint64_t b, uint64_t now)
{
    if (__builtin_expect(d->trace != NULL, 0))
        gn_scheduler_note_locked(d, sh, kind, a, b, now);
}

/* figures.c: once a second what is charged is counted, for the share of late. The lock is held. */
void gn_scheduler_count_locked(struct gn_scheduler *s, uint64_t now);

#endif
