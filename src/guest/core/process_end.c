/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes exit() wait until Gantry's threads have left the driver. Two exit handlers do this: one
 * registered before the first load, and one after each load that has registered handlers, so that
 * it runs before these. While a load is in progress, its own handlers are wrapped
 * (exit_handlers.h). Called by threads that load a driver, and by the thread that calls exit(),
 * possibly in a signal handler. Never waits without a deadline.
 */
#include "guest/core/process_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "guest/core/exit_handlers.h"

/*
 * How long exit() waits for Gantry's threads. A driver starts within a second; a driver that hangs
 * must not keep the process alive.
 */
#define LEAVE_NS UINT64_C(10000000000)
#define LOOK_NS  200000

/*
 * One load of a driver. Retained if it has registered handlers, which point to it until they have
 * run.
 */
struct load {
    struct load *next; /* lock: next in the retained list */
    _Atomic bool over, unloads;
    bool opens;   /* lock: the driver is not initialized yet */
    bool wrapped; /* its handlers are wrapped */
};

static struct {
    pthread_mutex_t lock;
    bool registered;       /* lock: the first handler has been registered */
    struct load *retained; /* lock */
    /* Loads in progress; those that are still initializing their driver. */
    _Atomic uint32_t n_in, n_opens;
    _Atomic bool ending;
    const struct gn_driver_ops *_Atomic ops; /* NULL: no driver has been entered */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct load *mine;

static void wait_until_zero(const _Atomic uint32_t *n, uint64_t until_ns)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    while (atomic_load_explicit(n, memory_order_seq_cst) && gn_now_ns() < until_ns)
        nanosleep(&look, NULL);
}

/*
 * exit() has begun. A driver that calls exit() while it is being loaded does not wait for itself.
 */
static void process_ends(void *ignored)
{
    const uint64_t until_ns = gn_now_ns() + LEAVE_NS;
    (void)ignored;
    atomic_store_explicit(&process.ending, true, memory_order_seq_cst);
    if (mine)
        return;
    atomic_load_explicit(&process.ops, memory_order_acquire)->process_ends(until_ns);
    wait_until_zero(&process.n_in, until_ns);
}

/*
 * A library may run its handlers because it is unloaded during its own load: the process does not
 * end then.
 */
static bool before_handler(void *ctx)
{
    const struct load *l = ctx;
    if (l == mine || atomic_load_explicit(&l->over, memory_order_seq_cst))
        return true;
    process_ends(NULL);
    /*
     * During the wait the library may have been unloaded, with all handlers except this one, which
     * exit() had already taken.
     */
    return !atomic_load_explicit(&l->unloads, memory_order_seq_cst);
}

bool gn_driver_enter(const struct gn_driver_ops *ops, bool unless_ending)
{
    struct load *l = calloc(1, sizeof *l);
    if (!l)
        return false;
    /* Before a handler is registered that calls them. */
    atomic_store_explicit(&process.ops, ops, memory_order_release);
    pthread_mutex_lock(&process.lock);
    if (!process.registered)
        process.registered = !gn_exit_handlers_add(process_ends);
    atomic_fetch_add_explicit(&process.n_in, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&process.n_opens, 1, memory_order_seq_cst);
    pthread_mutex_unlock(&process.lock);
    l->opens = true;
    mine = l;
    /* Either this thread sees `ending`, or the ending process sees n_in. */
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

/*
 * Keeps the load reachable for leak checkers: the pointers in the handlers are gone once they have
 * run.
 */
static void retain_load(struct load *l)
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
    /* Before `over` is set: from then on only this handler makes exit() wait. */
    if (has_handlers)
        (void)gn_exit_handlers_add(process_ends);
    atomic_store_explicit(&l->over, true, memory_order_seq_cst);
    mine = NULL;
    if (has_handlers)
        retain_load(l);
    else
        free(l);
    atomic_fetch_sub_explicit(&process.n_in, 1, memory_order_seq_cst);
}

void gn_process_before_fork(void)
{
    /* A child forked in the middle of a load could neither load a driver nor end normally. */
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
    const struct gn_driver_ops *ops = atomic_load_explicit(&process.ops, memory_order_acquire);
    if (ops)
        ops->forked();
    gn_process_after_fork();
}
