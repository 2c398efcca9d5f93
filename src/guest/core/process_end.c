/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds exit() back until Gantry's threads are out of a driver. Two handlers see to it: one that is
 * registered ahead of the first load, one behind each load that has registered handlers, so that it
 * runs ahead of those. While a load goes on its own handlers are wrapped (exit_handlers.h). Entered
 * by threads that load a driver, and by whichever thread calls exit(), also from a signal's
 * handler: each wait has a deadline.
 */
#include "guest/core/process_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "guest/core/exit_handlers.h"
#include "guest/session/session_in_process.h"

/*
 * How long exit() waits for Gantry's threads. A driver comes up within a second; one that hangs
 * must not keep the process.
 */
#define LEAVE_NS UINT64_C(10000000000)
#define LOOK_NS  200000

/* One load. Retained when it registered handlers, which point to it until they have run. */
struct load {
    struct load *next; /* lock: of the retained ones */
    _Atomic bool over, unloads;
    bool opens;   /* lock: the driver is not up yet */
    bool wrapped; /* its handlers are */
};

static struct {
    pthread_mutex_t lock;
    bool registered;                /* lock: the first handler is */
    struct load *retained;          /* lock */
    _Atomic uint32_t n_in, n_opens; /* loads that go on; of those, whose driver is not up yet */
    _Atomic bool ending;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct load *mine;

static void wait_until_zero(const _Atomic uint32_t *n, uint64_t until_ns)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    while (atomic_load_explicit(n, memory_order_seq_cst) && gn_now_ns() < until_ns)
        nanosleep(&look, NULL);
}

/* exit() has begun. A driver that calls it while it is being loaded does not wait for itself. */
static void process_ends(void *ignored)
{
    const uint64_t until_ns = gn_now_ns() + LEAVE_NS;
    (void)ignored;
    atomic_store_explicit(&process.ending, true, memory_order_seq_cst);
    if (mine)
        return;
    gn_in_process_process_ends(until_ns);
    wait_until_zero(&process.n_in, until_ns);
}

/* A library that unloads in the middle of its load is no end of the process. */
static bool before_handler(void *ctx)
{
    const struct load *l = ctx;
    if (l == mine || atomic_load_explicit(&l->over, memory_order_seq_cst))
        return true;
    process_ends(NULL);
    /*
     * While we waited its library may have gone, and all handlers with it but this one, which
     * exit() had in hand.
     */
    return !atomic_load_explicit(&l->unloads, memory_order_seq_cst);
}

bool gn_driver_enter(bool unless_ending)
{
    struct load *l = calloc(1, sizeof *l);
    if (!l)
        return false;
    pthread_mutex_lock(&process.lock);
    if (!process.registered)
        process.registered = !gn_exit_handlers_add(process_ends);
    atomic_fetch_add_explicit(&process.n_in, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&process.n_opens, 1, memory_order_seq_cst);
    pthread_mutex_unlock(&process.lock);
    l->opens = true;
    mine = l;
    /* Either we see that it ends, or the ending process sees us. */
    if (unless_ending && atomic_load_explicit(&process.ending, memory_order_seq_cst)) {
        gn_driver_left();
        return false;
    }
    l->wrapped = gn_exit_handlers_wrap(before_handler, l);
    return true;
}

void gn_driver_is_up(void)
{
    if (!mine->opens)
        return;
    mine->opens = false;
    atomic_fetch_sub_explicit(&process.n_opens, 1, memory_order_seq_cst);
}

void gn_driver_unloads(void)
{
    atomic_store_explicit(&mine->unloads, true, memory_order_seq_cst);
}

/* The handlers' own pointers to it are gone when they have run: leak checks look for it here. */
static void retain(struct load *l)
{
    pthread_mutex_lock(&process.lock);
    l->next = process.retained;
    process.retained = l;
    pthread_mutex_unlock(&process.lock);
}

void gn_driver_left(void)
{
    struct load *l = mine;
    const bool has_handlers = gn_exit_handlers_release() || !l->wrapped;
    gn_driver_is_up();
    /* Ahead of `over`: from then on this handler alone holds exit() back. */
    if (has_handlers)
        (void)gn_exit_handlers_add(process_ends);
    atomic_store_explicit(&l->over, true, memory_order_seq_cst);
    mine = NULL;
    if (has_handlers)
        retain(l);
    else
        free(l);
    atomic_fetch_sub_explicit(&process.n_in, 1, memory_order_seq_cst);
}

void gn_process_before_fork(void)
{
    /* A child that inherits half a load can neither load anything itself nor end as it should. */
    if (!mine)
        wait_until_zero(&process.n_opens, gn_now_ns() + LEAVE_NS);
    pthread_mutex_lock(&process.lock);
    gn_exit_handlers_before_fork();
}

void gn_process_after_fork(void)
{
    gn_exit_handlers_after_fork();
    pthread_mutex_unlock(&process.lock);
}

void gn_process_after_fork_child(void)
{
    atomic_store_explicit(&process.n_in, 0, memory_order_seq_cst);
    atomic_store_explicit(&process.n_opens, 0, memory_order_seq_cst);
    gn_process_after_fork();
}
