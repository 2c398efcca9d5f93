/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_LEASE_H
#define GN_VGPU_LEASE_H

#include "shm/counters.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The device memory that this vGPU may hand out. gantryd leases it; what is allocated is taken from
 * the lease, here, and goes back to it when the driver has freed it. Only an allocation that the
 * lease does not cover costs a question to gantryd, and that brings some slack along, so most
 * allocations ask nobody.
 *
 * What gantryd has said is believed; it believes nothing in return but what comes back
 * (daemon/tenants/leases.h).
 */
struct gn_lease_asker;

struct gn_lease {
    /* set once */
    int control_fd; /* gantryd's socket; not owned */
    int wake_fd; /* an eventfd, readable when the control thread has something to give back; owned
                  */
    struct gn_counters *counters;
    pthread_mutex_t send_lock; /* one frame at a time; never taken under `lock` */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    _Atomic bool recall; /* one is to be obeyed; set under the lock */
    /* lock */
    uint64_t leased_bytes;
    uint64_t used_bytes;          /* <= leased_bytes */
    uint64_t returning_bytes;     /* out of the lease, and gantryd not told yet */
    bool tight;                   /* nothing stays here unused */
    bool owed;                    /* an answer to a recall that was obeyed */
    bool asking;                  /* an answer is owed; one question at a time */
    uint32_t seq;                 /* of the last question */
    struct gn_lease_asker *asker; /* who waits for the answer; NULL: he has gone */
};

/* 0 or -errno. control_fd -1: nobody to ask, nothing is leased. */
int gn_lease_init(struct gn_lease *l, int control_fd, struct gn_counters *counters);

/*
 * 0: taken. -ENOMEM: refused. -EAGAIN: the lease does not cover it and may_wait is false: call
 * again from a thread that may be kept waiting (for gantryd, and for those of the same tenant that
 * it recalls slack from: microseconds as a rule, seconds at worst). Any thread.
 */
int gn_lease_charge(struct gn_lease *l, uint64_t bytes, bool may_wait);

/* What was taken is free. Any thread, a driver's too: never waits for anybody, calls nothing but a
 * write to an eventfd. */
void gn_lease_refund(struct gn_lease *l, uint64_t bytes);

/* gantryd's words, from the control thread. */
void gn_lease_answered(struct gn_lease *l, uint32_t seq, uint64_t granted_bytes);
void gn_lease_recalled(struct gn_lease *l, bool tight);

/*
 * What the program released before the recall may still lie unread in its ring, so the recall is
 * obeyed by the ring thread when it finds the ring empty, or, should that take too long, by whoever
 * loses patience. Any thread.
 */
static inline bool gn_lease_is_recalled(const struct gn_lease *l)
{
    return atomic_load_explicit(&l->recall, memory_order_relaxed);
}
void gn_lease_shed(struct gn_lease *l);

/* One frame to gantryd, whole; fd stays the caller's, -1: none. Any thread. 0 or -errno. */
int gn_lease_report(struct gn_lease *l, uint16_t op, const void *payload, size_t n, int fd);
/* gantryd and the control thread are another host's: what is given back from now on is counted
 * there, and nobody is woken. */
void gn_lease_leave(struct gn_lease *l, struct gn_counters *counters);
/* Wakes the control thread, which sees to what it may owe. Any thread. */
void gn_lease_wake(struct gn_lease *l);
/* The control thread, when wake_fd is readable: sends what is owed. 0, or -errno: gantryd is gone.
 */
int gn_lease_settle(struct gn_lease *l);

#endif
