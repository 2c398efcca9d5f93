/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The point in time at which objects may be evicted: nothing of the vGPU is in the driver, and no
 * thread but the caller uses the driver's objects. resident_budget.c says when; the API evicts and
 * brings in (struct gn_vgpu_api). Called by the serving thread between two messages, and before a
 * command is judged or submitted. Never decides which objects are evicted.
 */
#include "vgpu/core/evict.h"

#include "vgpu/core/vgpu_core.h"

#include "base/clock.h"
#include "base/fault.h"
#include "link/worker_wire.h"

#include <stdlib.h>

#define ACQUIRE_NS UINT64_C(10000000000)

/* Takes the roles of the first *ret_n devices. False: not of all. */
static bool acquire_all(struct gn_vgpu *v, uint64_t until_ns, uint32_t *ret_n)
{
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    for (*ret_n = 0; *ret_n < v->n_devices; ++*ret_n)
        if (gn_device_acquire(&v->devices[*ret_n], &until))
            return false;
    return true;
}

/* The queues, with a reference each. NULL: no memory. */
static struct gn_vobject **hold_queues(struct gn_vgpu *v, uint32_t *ret_n)
{
    uint32_t most = 0, n = 0;
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->n_devices; i++)
        most += atomic_load_explicit(&v->devices[i].n_queues, memory_order_relaxed);
    struct gn_vobject **queues = calloc(most ? most : 1, sizeof *queues);
    for (uint32_t i = 0; queues && i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
        {
            if (gn_object_ref_if_held(q->object))
                queues[n++] = q->object;
        }
    pthread_mutex_unlock(&v->lock);
    *ret_n = n;
    return queues;
}

/* All roles are held. False: the driver may still have commands. */
static bool empty_driver(struct gn_vgpu *v)
{
    uint32_t n = 0;
    struct gn_vobject **queues = hold_queues(v, &n);
    /* All are flushed before one is finished: a queue may wait for another. */
    for (uint32_t i = 0; queues && i < n; i++)
        v->api->flush(v, queues[i]->driver);
    for (uint32_t i = 0; queues && i < n; i++) {
        v->api->finish(v, queues[i]->driver);
        gn_object_unref(queues[i]);
    }
    free(queues);
    /* Released queues are in no list. */
    return queues && !atomic_load_explicit(&v->n_left, memory_order_seq_cst);
}

/* A save reads the driver's objects; a vGPU that is loaded makes them. */
static bool is_moving(struct gn_vgpu *v)
{
    return atomic_load_explicit(&v->moving, memory_order_seq_cst) ||
           gn_vgpu_state(&v->life) != GN_VGPU_OWNED;
}

/* Returns the bytes that were copied. */
static uint64_t evict(struct gn_vgpu *v, uint64_t most_bytes, uint64_t until_ns)
{
    uint64_t copied = 0;
    uint32_t n = 0;
    if (!v->api->has_resident(v) || is_moving(v))
        return 0;
    if (acquire_all(v, until_ns, &n) && empty_driver(v))
        copied = v->api->evict(v, most_bytes);
    while (n)
        gn_device_release(&v->devices[--n]);
    return copied;
}

void gn_vgpu_evict_all(struct gn_vgpu *v)
{
    if (!gn_budget_begin_test(&v->budget))
        return;
    (void)evict(v, 0, gn_now_ns() + ACQUIRE_NS);
    gn_budget_end_test(&v->budget);
}

/* ---- what gantryd says */

static uint64_t evict_down_to(void *arg, uint64_t bytes, uint64_t until_ns)
{
    struct gn_vgpu *v = arg;
    uint64_t resident, pinned;
    gn_lease_figures(&v->lease, &resident, &pinned);
    return resident <= bytes ? 0 : evict(v, bytes, until_ns);
}

static uint64_t bring_in_all(void *arg)
{
    struct gn_vgpu *v = arg;
    uint64_t copied = 0;
    (void)v->api->bring_in_all(v, &copied);
    return copied;
}

static uint64_t evicted_bytes(void *arg)
{
    struct gn_vgpu *v = arg;
    return gn_vgpu_has_evicted(v) ? v->api->evicted_bytes(v) : 0;
}

/* A session's thread that sleeps by itself is woken; any other one waits for the budget. */
static void changed(void *arg)
{
    struct gn_vgpu *v = arg;
    if (v->session->await_memory)
        v->session->wake(v);
}

const struct gn_budget_ops gn_evict_ops = {evict_down_to, bring_in_all, evicted_bytes, changed};

void gn_vgpu_reside(struct gn_vgpu *v, uint32_t seq, uint64_t bytes, bool keeps_copies)
{
    if (!v->evicts) {
        gn_budget_answer_whole(&v->budget, seq);
        return;
    }
    v->api->keep_copies(v, keeps_copies);
    if (bytes == GN_WORKER_RESIDE_ALL)
        GN_FAULT("residency-told-in");
    else
        GN_FAULT("residency-told-out");
    gn_budget_order(&v->budget, seq, bytes);
    v->session->wake(v);
}

void gn_vgpu_discard_copies(struct gn_vgpu *v)
{
    if (v->evicts)
        v->api->keep_copies(v, false);
    /* If gantryd is gone, the control thread is about to notice. */
    (void)gn_lease_answer(&v->lease, GN_WORKER_DISCARD, 0, NULL, 0);
}

int gn_vgpu_check_budget(struct gn_vgpu *v)
{
    if (!gn_budget_has_order(&v->budget))
        return -1;
    return gn_budget_check(&v->budget, is_moving(v), !gn_vgpu_has_evicted(v));
}

/* ---- for requests and commands */

bool gn_vgpu_await_whole(struct gn_vgpu *v)
{
    if (v->session->send_pending)
        v->session->send_pending(v);
    if (!v->session->await_memory)
        return gn_budget_await_whole(&v->budget, true);
    bool whole;
    while (!gn_budget_look_whole(&v->budget, &whole))
        v->session->await_memory(v);
    return whole;
}

static bool is_absent(struct gn_vobject *o)
{
    return o && !o->vgpu->api->is_resident(o);
}

void gn_command_await_objects(struct gn_command *c)
{
    struct gn_resident_budget *b = &c->vgpu->budget;
    bool absent = false;
    if (gn_budget_is_whole(b))
        return;
    for (uint32_t i = 0; i < GN_MAX_REFS; i++)
        absent = absent || is_absent(c->refs[i]);
    for (uint32_t i = 0; i < c->n_objects; i++)
        absent = absent || is_absent(c->object_refs[i]);
    if (absent)
        (void)gn_vgpu_await_whole(c->vgpu);
}

int32_t gn_command_bring_in(struct gn_command *c)
{
    const struct gn_vgpu_api *api = c->vgpu->api;
    int32_t result = 0;
    for (uint32_t i = 0; !result && i < GN_MAX_REFS; i++)
        result = c->refs[i] ? api->bring_in(c->refs[i]) : 0;
    for (uint32_t i = 0; !result && i < c->n_objects; i++)
        result = c->object_refs[i] ? api->bring_in(c->object_refs[i]) : 0;
    return result;
}
