/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The point in time at which objects may be evicted: nothing of the vGPU is in the driver, and no
 * thread but the caller uses the driver's objects. The API evicts and brings in (struct
 * gn_vgpu_api). Called by the serving thread between two messages, and before a command is judged
 * or submitted. Never decides which objects are evicted.
 */
#include "vgpu/core/evict.h"

#include "vgpu/core/vgpu_core.h"

#include "base/clock.h"

#include <stdlib.h>

#define ACQUIRE_NS UINT64_C(10000000000)

/* The thread of a slow request may use any object. */
static bool is_helping(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->helper_lock);
    const bool helping = v->n_helped || v->n_helping;
    pthread_mutex_unlock(&v->helper_lock);
    return helping;
}

/* Takes the roles of the first *ret_n devices. False: not of all. */
static bool acquire_all(struct gn_vgpu *v, uint32_t *ret_n)
{
    const uint64_t until_ns = gn_now_ns() + ACQUIRE_NS;
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

void gn_vgpu_evict_all(struct gn_vgpu *v)
{
    uint32_t n = 0;
    if (!v->api->has_resident(v) || atomic_load_explicit(&v->moving, memory_order_seq_cst) ||
        is_helping(v))
        return;
    if (acquire_all(v, &n) && empty_driver(v))
        v->api->evict_all(v);
    while (n)
        gn_device_release(&v->devices[--n]);
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
