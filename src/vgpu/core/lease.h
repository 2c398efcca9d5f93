/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_LEASE_H
#define GN_VGPU_LEASE_H

#include "shm/counters.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The device memory that this vGPU may allocate. gantryd leases it. An allocation is charged to the
 * lease here, and refunded when the driver has freed it. Only an allocation that exceeds the lease
 * needs a request to gantryd, which grants some slack with it, so most allocations need none.
 *
 * The worker trusts gantryd's figures. gantryd trusts only the bytes that the worker returns
 * (daemon/tenants/leases.h).
 */
struct gn_lease_asker;

/*
 * Where charged bytes are. PINNED is what neither of the others is: bytes that can never be
 * evicted, and those of an object that is being made or is gone but not freed yet.
 */
enum gn_lease_part {
    GN_LEASE_PINNED,
    GN_LEASE_EVICTABLE, /* in the driver, of an object that can be evicted */
    GN_LEASE_EVICTED,   /* not in the driver */
};

struct gn_lease {
    /* set once */
    int control_fd; /* gantryd's socket; not owned */
    int wake_fd;    /* eventfd, owned: readable when the control thread has something to send */
    struct gn_counters *counters;
    bool patient;   /* gantryd answers an ask only when it has placed the memory: minutes */
    bool asks_pins; /* gantryd is asked before more bytes are pinned, also within the lease */
    pthread_mutex_t send_lock; /* one frame at a time; never taken under `lock` */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    _Atomic bool recall; /* a recall waits to be obeyed; set under the lock */
    /* lock */
    uint64_t leased_bytes;
    uint64_t used_bytes; /* <= leased_bytes */
    uint64_t home_bytes; /* of used_bytes: in the data area, which a destination may share */
    uint64_t part_bytes[GN_LEASE_EVICTED + 1]; /* of used_bytes; PINNED: not used */
    uint64_t returning_bytes;                  /* out of the lease, not yet reported to gantryd */
    bool tight;                                /* unused memory goes back at once */
    bool owed;                                 /* gantryd expects the answer to a recall */
    bool ended;                                /* the vGPU has ended: nothing waits */
    bool asking;                               /* a request is open; one at a time */
    uint32_t seq;                              /* of the last request */
    uint64_t told_pinned_bytes;                /* as gantryd counts them */
    uint64_t pins_ahead_bytes;                 /* of these, granted and not pinned yet */
    bool owes_pinned;                          /* gantryd counts another number */
    struct gn_lease_asker *asker;              /* waits for the answer; NULL: has given up */
};

/* 0 or -errno. control_fd -1: no gantryd, nothing is leased. */
int gn_lease_init(struct gn_lease *l, int control_fd, struct gn_counters *counters);

/*
 * 0: charged. -ENOMEM: refused. -EAGAIN: the lease does not cover it and may_wait is false: call
 * again from a thread that may wait for gantryd, which may have to recall slack from the tenant's
 * other vGPUs (microseconds as a rule, seconds at worst; minutes if gantryd places memory). Any
 * thread. pinned: these bytes will be pinned, which gantryd may refuse, also within the lease.
 */
int gn_lease_charge(struct gn_lease *l, uint64_t bytes, bool may_wait, bool pinned);
/*
 * As gn_lease_charge with may_wait, for an object that is made later: until gn_lease_move its bytes
 * are EVICTED. pinned: it will be pinned; gantryd counts it so until gn_lease_end_pins.
 */
int gn_lease_charge_ahead(struct gn_lease *l, uint64_t bytes, bool pinned);
/* As gn_lease_charge_ahead with pinned; pin_bytes of charged ones will be pinned, too. */
int gn_lease_charge_pins(struct gn_lease *l, uint64_t bytes, uint64_t pin_bytes);
/* After a charge ahead of pinned bytes: they are PINNED now, or will not be. bytes: with the
 * pin_bytes. Any thread; never waits. */
void gn_lease_end_pins(struct gn_lease *l, uint64_t bytes);
/* Does gantryd know of so many pinned bytes more? Otherwise it is to be asked first. Any thread;
 * never waits. */
bool gn_lease_may_pin(struct gn_lease *l, uint64_t bytes);
/* Charged bytes change from one part to another. Any thread; never waits. */
void gn_lease_move(struct gn_lease *l, uint64_t bytes, enum gn_lease_part from,
                   enum gn_lease_part to);
/* The charged bytes in the driver, and those that gantryd is to count as PINNED: with those that it
 * has granted ahead. Any thread; never waits. */
void gn_lease_figures(struct gn_lease *l, uint64_t *ret_resident_bytes, uint64_t *ret_pinned_bytes);

/*
 * Returns charged bytes to the lease. Any thread, the driver's included: never waits, writes at
 * most to an eventfd.
 */
void gn_lease_refund(struct gn_lease *l, uint64_t bytes);

/*
 * Charged bytes, of a buffer in the data area: the buffer has been made there, and has ended. Any
 * thread; never waits.
 */
void gn_lease_add_home(struct gn_lease *l, uint64_t bytes);
void gn_lease_remove_home(struct gn_lease *l, uint64_t bytes);
uint64_t gn_lease_home_bytes(struct gn_lease *l);

/* An answer, and a recall, from gantryd. The control thread. */
void gn_lease_answered(struct gn_lease *l, uint32_t seq, uint64_t granted_bytes);
void gn_lease_recalled(struct gn_lease *l, bool tight);

/*
 * The program's last releases before a recall may still lie unread in its ring. So the ring thread
 * obeys the recall when it finds the ring empty; if that takes too long, another thread does. Any
 * thread.
 */
static inline bool gn_lease_is_recalled(const struct gn_lease *l)
{
    return atomic_load_explicit(&l->recall, memory_order_relaxed);
}
void gn_lease_shed(struct gn_lease *l);

/* Sends one frame to gantryd; fd stays the caller's, -1: none. Any thread. 0 or -errno. */
int gn_lease_report(struct gn_lease *l, uint16_t op, const void *payload, size_t n, int fd);
/* As gn_lease_report, of the frame with this number. */
int gn_lease_answer(struct gn_lease *l, uint16_t op, uint32_t seq, const void *payload, size_t n);
/* The vGPU has ended: waits for gantryd's answer end, refused. Any thread. */
void gn_lease_end(struct gn_lease *l);
/*
 * The vGPU has left this process, with its socket to gantryd and its control thread. Later refunds
 * are counted in `counters` and wake nobody.
 */
void gn_lease_leave(struct gn_lease *l, struct gn_counters *counters);
/* Wakes the control thread, which sends all that is owed. Any thread. */
void gn_lease_wake(struct gn_lease *l);
/*
 * The control thread, when wake_fd is readable: returns bytes and answers a recall. 0, or -errno:
 * gantryd is gone.
 */
int gn_lease_settle(struct gn_lease *l);

#endif
