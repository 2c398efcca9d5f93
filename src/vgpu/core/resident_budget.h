/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_RESIDENT_BUDGET_H
#define GN_VGPU_RESIDENT_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_lease;

/*
 * How much of the vGPU's device memory may be in the driver: gantryd's order (GN_WORKER_RESIDE),
 * and the threads that wait until everything may be there. One word, with these changes alone:
 *
 *     from      what happens                     to        thread
 *     WHOLE,    RESIDE with a number of bytes    EVICT     control thread
 *     PARTIAL,
 *     WANTED
 *     EVICT     a thread begins to evict         EVICTING  serving thread; control thread, late
 *     EVICTING  RESIDES is sent                  PARTIAL   the same
 *     PARTIAL   a request needs evicted memory:  WANTED    the thread that serves it
 *               WANTS_MEMORY is sent
 *     WHOLE,    RESIDE_ALL                       FILL      control thread
 *     PARTIAL,
 *     WANTED
 *     FILL      a thread begins to bring in all  FILLING   any thread that waits, or the above
 *     FILLING   RESIDES is sent                  WHOLE     the same
 *     FILLING   RESIDES is sent: the driver has  PARTIAL   the same
 *               refused memory
 *     any       the vGPU has ended               ENDED     any thread
 *
 * In WHOLE an object is evicted only if the driver has refused it GN_WORKER_REFUSALS times before.
 * From EVICT to FILLING no request brings an object in. Only the test mode (evict.h) goes from
 * WHOLE to EVICTING and back.
 *
 * A thread other than the serving thread uses the driver's memory objects between
 * gn_budget_begin_use and gn_budget_end_use: nothing is evicted meanwhile. The thread waits for
 * nothing of gantryd's there.
 */
enum gn_budget_state {
    GN_BUDGET_WHOLE,
    GN_BUDGET_EVICT,
    GN_BUDGET_EVICTING,
    GN_BUDGET_PARTIAL,
    GN_BUDGET_WANTED,
    GN_BUDGET_FILL,
    GN_BUDGET_FILLING,
    GN_BUDGET_ENDED,
};

/* evict and bring_in are called without locks, and return the bytes that they have copied. */
struct gn_budget_ops {
    /* The serving thread: evicts until at most `bytes` are in the driver, or as far as that is
     * possible until until_ns (CLOCK_MONOTONIC). */
    uint64_t (*evict)(void *arg, uint64_t bytes, uint64_t until_ns);
    /* Any thread: brings everything in that the driver takes. */
    uint64_t (*bring_in)(void *arg);
    /* Any thread: of all memory objects, the bytes of those that are evicted. */
    uint64_t (*evicted_bytes)(void *arg);
    /* The state has changed. Any thread, with the budget's lock held; never waits. NULL: ignored.
     */
    void (*changed)(void *arg);
};

struct gn_resident_budget {
    /* set once */
    struct gn_lease *lease; /* has the bytes, and sends */
    const struct gn_budget_ops *ops;
    void *arg;
    pthread_mutex_t lock; /* before the lease's; not held over ops */
    pthread_cond_t changed;
    _Atomic int state; /* enum gn_budget_state; changed under the lock */
    /* lock */
    uint32_t n_users;    /* threads between begin_use and end_use */
    uint32_t seq;        /* of the last RESIDE */
    uint64_t bytes;      /* its bytes */
    uint64_t ordered_ns; /* when it came; CLOCK_MONOTONIC */
    uint32_t n_refusals; /* RESIDE_ALLs in a row for which the driver had no room */
};

/* All zeros but these: everything may be in the driver. arg is for ops. */
void gn_budget_init(struct gn_resident_budget *b, struct gn_lease *lease,
                    const struct gn_budget_ops *ops, void *arg);

/* Any thread. */
static inline enum gn_budget_state gn_budget_state(const struct gn_resident_budget *b)
{
    return (enum gn_budget_state)atomic_load_explicit(&b->state, memory_order_seq_cst);
}

static inline bool gn_budget_is_whole(const struct gn_resident_budget *b)
{
    return gn_budget_state(b) == GN_BUDGET_WHOLE;
}

/* Is a thread to wait before it adds to the driver's memory? */
static inline bool gn_budget_limits(const struct gn_resident_budget *b)
{
    const enum gn_budget_state state = gn_budget_state(b);
    return state != GN_BUDGET_WHOLE && state != GN_BUDGET_ENDED;
}

/* Is there an order that no thread obeys yet? */
static inline bool gn_budget_has_order(const struct gn_resident_budget *b)
{
    const enum gn_budget_state state = gn_budget_state(b);
    return state == GN_BUDGET_EVICT || state == GN_BUDGET_FILL;
}

/* RESIDE has come; the caller wakes the serving thread. The control thread; may wait for the frame
 * that another thread sends. */
void gn_budget_order(struct gn_resident_budget *b, uint32_t seq, uint64_t bytes);
/* RESIDE has come for a vGPU that never evicts: answers at once, and all stays in the driver. */
void gn_budget_answer_whole(struct gn_resident_budget *b, uint32_t seq);
/* Obeys an order, if there is one, and answers it. The serving thread, between two messages. */
void gn_budget_obey(struct gn_resident_budget *b);
/*
 * The control thread, before it sleeps: answers for a serving thread that does not come to it in
 * time, or at all. may_not_evict: nothing can be evicted now; all_in: no object is evicted. Returns
 * the milliseconds after which to check again; -1: when a frame comes.
 */
int gn_budget_check(struct gn_resident_budget *b, bool may_not_evict, bool all_in);
/*
 * Waits until everything may be in the driver; tells gantryd that a thread waits, once for each
 * RESIDE. `serving`: this is the serving thread, which obeys meanwhile. Minutes, as gantryd places
 * memory. False: the vGPU has ended. Not during a use.
 */
bool gn_budget_await_whole(struct gn_resident_budget *b, bool serving);
/*
 * A look of a wait as gn_budget_await_whole's, of a serving thread that sleeps in its own way until
 * ops->changed. False: wait on. True: the wait is over, and *ret_whole is its result.
 */
bool gn_budget_look_whole(struct gn_resident_budget *b, bool *ret_whole);
/* As gn_budget_await_whole, and nothing is evicted until gn_budget_end_use. Not the serving thread.
 * False: the vGPU has ended, and gn_budget_end_use is not to be called. */
bool gn_budget_begin_use(struct gn_resident_budget *b);
void gn_budget_end_use(struct gn_resident_budget *b);
/* The test mode: from WHOLE to EVICTING, if no other thread uses objects; and back. The serving
 * thread. */
bool gn_budget_begin_test(struct gn_resident_budget *b);
void gn_budget_end_test(struct gn_resident_budget *b);
/* The vGPU has ended: all waits end. Any thread; never waits for gantryd. */
void gn_budget_end(struct gn_resident_budget *b);

#endif
