/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the vGPU's device memory may be in the driver: see resident_budget.h. The control
 * thread delivers gantryd's orders; the serving thread obeys between two messages, and while it
 * waits itself. Frames are sent under the lock, so the answer to an order precedes every frame that
 * follows from it. Never calls the driver itself.
 */
#include "vgpu/core/resident_budget.h"

#include "base/clock.h"
#include "base/fault.h"
#include "link/worker_wire.h"
#include "vgpu/core/lease.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* gantryd waits for the answer, and with it the vGPUs that want the memory. */
#define ANSWER_NS UINT64_C(10000000000)

void gn_budget_init(struct gn_resident_budget *b, struct gn_lease *lease,
                    const struct gn_budget_ops *ops, void *arg)
{
    memset(b, 0, sizeof *b);
    b->lease = lease;
    b->ops = ops;
    b->arg = arg;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
}

/* The end is for good. */
static void change_locked(struct gn_resident_budget *b, enum gn_budget_state to)
{
    if (gn_budget_state(b) != GN_BUDGET_ENDED)
        atomic_store_explicit(&b->state, to, memory_order_seq_cst);
    pthread_cond_broadcast(&b->changed);
    if (b->ops->changed)
        b->ops->changed(b->arg);
}

/* If gantryd is gone, the control thread is about to notice. */
static void answer_locked(struct gn_resident_budget *b, uint32_t seq, uint64_t copied_bytes,
                          uint64_t refused_bytes)
{
    struct gn_worker_resides r = {.copied_bytes = copied_bytes, .refused_bytes = refused_bytes};
    gn_lease_figures(b->lease, &r.resident_bytes, &r.pinned_bytes);
    (void)gn_lease_answer(b->lease, GN_WORKER_RESIDES, seq, &r, sizeof r);
}

void gn_budget_order(struct gn_resident_budget *b, uint32_t seq, uint64_t bytes)
{
    pthread_mutex_lock(&b->lock);
    b->seq = seq;
    b->bytes = bytes;
    b->ordered_ns = gn_now_ns();
    change_locked(b, bytes == GN_WORKER_RESIDE_ALL ? GN_BUDGET_FILL : GN_BUDGET_EVICT);
    pthread_mutex_unlock(&b->lock);
}

void gn_budget_answer_whole(struct gn_resident_budget *b, uint32_t seq)
{
    pthread_mutex_lock(&b->lock);
    answer_locked(b, seq, 0, 0);
    pthread_mutex_unlock(&b->lock);
}

static void await_users_locked(struct gn_resident_budget *b, uint64_t until_ns)
{
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    while (b->n_users && gn_budget_state(b) != GN_BUDGET_ENDED)
        if (pthread_cond_clockwait(&b->changed, &b->lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
            return;
}

/* evicts: false: answers with what is in the driver as it is. */
static void evict_locked(struct gn_resident_budget *b, bool evicts)
{
    const uint32_t seq = b->seq;
    const uint64_t bytes = b->bytes, until_ns = b->ordered_ns + ANSWER_NS;
    uint64_t copied = 0;
    change_locked(b, GN_BUDGET_EVICTING);
    if (evicts)
        await_users_locked(b, until_ns);
    if (evicts && !b->n_users && gn_budget_state(b) != GN_BUDGET_ENDED) {
        pthread_mutex_unlock(&b->lock);
        copied = b->ops->evict(b->arg, bytes, until_ns);
        pthread_mutex_lock(&b->lock);
    }
    GN_FAULT("residency-evicted");
    answer_locked(b, seq, copied, 0);
    change_locked(b, GN_BUDGET_PARTIAL);
    GN_FAULT("residency-left");
}

static void fill_locked(struct gn_resident_budget *b)
{
    const uint32_t seq = b->seq;
    change_locked(b, GN_BUDGET_FILLING);
    pthread_mutex_unlock(&b->lock);
    const uint64_t copied = b->ops->bring_in(b->arg);
    const uint64_t refused = b->ops->evicted_bytes(b->arg);
    pthread_mutex_lock(&b->lock);
    if (copied)
        GN_FAULT("residency-filled");
    /* gantryd makes room and orders again. In the end the program gets the driver's refusal. */
    const bool again = refused && b->n_refusals < GN_WORKER_REFUSALS;
    b->n_refusals = again ? b->n_refusals + 1 : 0;
    answer_locked(b, seq, copied, again ? refused : 0);
    change_locked(b, again ? GN_BUDGET_PARTIAL : GN_BUDGET_WHOLE);
    if (copied)
        GN_FAULT("residency-in");
}

/* True: there was something to obey. */
static bool obey_locked(struct gn_resident_budget *b, bool serving)
{
    const enum gn_budget_state state = gn_budget_state(b);
    if (state == GN_BUDGET_FILL)
        fill_locked(b);
    else if (state == GN_BUDGET_EVICT && serving)
        evict_locked(b, true);
    else
        return false;
    return true;
}

void gn_budget_obey(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    (void)obey_locked(b, true);
    pthread_mutex_unlock(&b->lock);
}

int gn_budget_check(struct gn_resident_budget *b, bool may_not_evict, bool all_in)
{
    int ms = -1;
    pthread_mutex_lock(&b->lock);
    if (gn_budget_has_order(b)) {
        const enum gn_budget_state state = gn_budget_state(b);
        const uint64_t at_ns = b->ordered_ns + ANSWER_NS, now_ns = gn_now_ns();
        const bool late = now_ns >= at_ns;
        if (state == GN_BUDGET_EVICT && (may_not_evict || late))
            evict_locked(b, false);
        else if (state == GN_BUDGET_FILL && (all_in || late))
            fill_locked(b);
        else
            ms = (int)((at_ns - now_ns) / 1000000u) + 1;
    }
    pthread_mutex_unlock(&b->lock);
    return ms;
}

/* As gn_budget_look_whole. */
static bool look_locked(struct gn_resident_budget *b, bool serving, bool *ret_whole)
{
    enum gn_budget_state state;
    while ((state = gn_budget_state(b)) != GN_BUDGET_WHOLE && state != GN_BUDGET_ENDED) {
        if (obey_locked(b, serving))
            continue;
        if (state == GN_BUDGET_PARTIAL) {
            (void)gn_lease_answer(b->lease, GN_WORKER_WANTS_MEMORY, 0, NULL, 0);
            change_locked(b, GN_BUDGET_WANTED);
            GN_FAULT("residency-wanted");
        }
        return false;
    }
    *ret_whole = state == GN_BUDGET_WHOLE;
    return true;
}

static bool await_whole_locked(struct gn_resident_budget *b, bool serving)
{
    bool whole;
    while (!look_locked(b, serving, &whole))
        pthread_cond_wait(&b->changed, &b->lock);
    return whole;
}

bool gn_budget_look_whole(struct gn_resident_budget *b, bool *ret_whole)
{
    pthread_mutex_lock(&b->lock);
    const bool over = look_locked(b, true, ret_whole);
    pthread_mutex_unlock(&b->lock);
    return over;
}

bool gn_budget_await_whole(struct gn_resident_budget *b, bool serving)
{
    pthread_mutex_lock(&b->lock);
    const bool whole = await_whole_locked(b, serving);
    pthread_mutex_unlock(&b->lock);
    return whole;
}

bool gn_budget_begin_use(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    const bool whole = await_whole_locked(b, false);
    b->n_users += whole;
    pthread_mutex_unlock(&b->lock);
    return whole;
}

void gn_budget_end_use(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    if (!--b->n_users)
        pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

bool gn_budget_begin_test(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    const bool begins = gn_budget_is_whole(b) && !b->n_users;
    if (begins)
        change_locked(b, GN_BUDGET_EVICTING);
    pthread_mutex_unlock(&b->lock);
    return begins;
}

void gn_budget_end_test(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    change_locked(b, GN_BUDGET_WHOLE);
    pthread_mutex_unlock(&b->lock);
}

void gn_budget_end(struct gn_resident_budget *b)
{
    pthread_mutex_lock(&b->lock);
    change_locked(b, GN_BUDGET_ENDED);
    pthread_mutex_unlock(&b->lock);
}
