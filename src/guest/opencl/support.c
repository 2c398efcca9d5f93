/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers that all families of calls use: answers, lists, destructors, the release of objects.
 * Called on the program's threads.
 */
#include "home.h"
#include "guest/opencl/callback.h"
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>

cl_int gn_answer(const void *value, size_t bytes, size_t param_value_size, void *param_value,
                 size_t *param_value_size_ret)
{
    if (param_value && param_value_size < bytes)
        return CL_INVALID_VALUE;
    if (param_value && bytes)
        memcpy(param_value, value, bytes);
    if (param_value_size_ret)
        *param_value_size_ret = bytes;
    return CL_SUCCESS;
}

uint64_t *gn_copy_list(const void *list, cl_uint *ret_n)
{
    const uint64_t *l = list;
    cl_uint n = 0;
    *ret_n = 0;
    if (!l)
        return NULL;
    while (l[n])
        n += 2;
    uint64_t *copy = malloc((n + 1) * sizeof *copy);
    if (copy) {
        memcpy(copy, l, (n + 1) * sizeof *copy);
        *ret_n = n + 1;
    }
    return copy;
}

bool gn_objects_of_session(const struct gn_object *beside, const void *handles, size_t n,
                           uint16_t kind)
{
    void *const *h = handles;
    for (size_t i = 0; i < n; i++)
        if (!gn_object_of_session(beside, h[i], kind))
            return false;
    return true;
}

int gn_add_destructor(struct gn_destructor *_Atomic *list, void *notify, void *user_data)
{
    struct gn_destructor *d = malloc(sizeof *d);
    if (!d)
        return CL_OUT_OF_HOST_MEMORY;
    d->notify = (void(CL_CALLBACK *)(void *, void *))notify;
    d->user_data = user_data;
    d->next = atomic_load_explicit(list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(list, &d->next, d, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return CL_SUCCESS;
}

void gn_run_destructors(struct gn_destructor *_Atomic *list, void *handle)
{
    struct gn_destructor *d = atomic_exchange_explicit(list, NULL, memory_order_acquire);
    while (d) {
        struct gn_destructor *next = d->next;
        d->notify(handle, d->user_data);
        free(d);
        d = next;
    }
}

/* ---- release of objects */

static void put_devices(struct gn_cl_device **devices, cl_uint n)
{
    for (cl_uint i = 0; devices && i < n; i++)
        gn_object_unref(&devices[i]->o);
    free(devices);
}

static void gone(struct gn_object *o)
{
    switch (o->kind) {
    case GN_KIND_CONTEXT: {
        struct gn_cl_context *c = (void *)o;
        gn_context_deaf(c);
        gn_run_destructors(&c->destructors, c);
        put_devices(c->devices, c->n_devices);
        free(c->properties);
        break;
    }
    case GN_KIND_QUEUE: {
        struct gn_cl_queue *q = (void *)o;
        if (q->device)
            gn_object_unref(&q->device->o);
        pthread_mutex_destroy(&q->user_lock);
        free(q->given);
        break;
    }
    case GN_KIND_MEM: {
        struct gn_cl_mem *m = (void *)o;
        gn_run_destructors(&m->destructors, m);
        while (m->maps) {
            struct gn_cl_map *next = m->maps->next;
            gn_mapping_put(o->session, m->maps->mapping);
            free(m->maps);
            m->maps = next;
        }
        gn_mapping_put(o->session, m->mapping);
        if ((m->home || m->far) && !m->source)
            gn_home_release(m);
        pthread_mutex_destroy(&m->lock);
        free(m->given);
        break;
    }
    case GN_KIND_PROGRAM: {
        struct gn_cl_program *p = (void *)o;
        gn_run_destructors(&p->destructors, p);
        put_devices(p->devices, p->n_devices);
        gn_binaries_free(p->binaries);
        gn_build_logs_free(p->build_logs);
        break;
    }
    case GN_KIND_KERNEL: {
        struct gn_cl_kernel *k = (void *)o;
        for (cl_uint i = 0; i < k->n_args; i++)
            free(k->args[i].tail);
        free(k->args);
        break;
    }
    case GN_KIND_CMDBUF:
        gn_cmdbuf_gone((void *)o);
        break;
    default:
        break;
    }
}

static void destroy(struct gn_session *s, uint64_t id, uint16_t kind)
{
    gn_send_DestroyObject(s, id, kind);
}

static void settle(struct gn_session *s)
{
    if (s->detail)
        gn_settle(s->detail);
}

const struct gn_guest_api gn_opencl_api = {
    .name = "opencl",
    .n_kinds = GN_KIND_MAX,
    .object_bytes =
        {
            [GN_KIND_PLATFORM] = sizeof(struct gn_cl_root),
            [GN_KIND_DEVICE] = sizeof(struct gn_cl_device),
            [GN_KIND_CONTEXT] = sizeof(struct gn_cl_context),
            [GN_KIND_QUEUE] = sizeof(struct gn_cl_queue),
            [GN_KIND_MEM] = sizeof(struct gn_cl_mem),
            [GN_KIND_SAMPLER] = sizeof(struct gn_cl_sampler),
            [GN_KIND_PROGRAM] = sizeof(struct gn_cl_program),
            [GN_KIND_KERNEL] = sizeof(struct gn_cl_kernel),
            [GN_KIND_EVENT] = sizeof(struct gn_cl_event),
            [GN_KIND_SVM] = sizeof(struct gn_cl_svm),
            [GN_KIND_CMDBUF] = sizeof(struct gn_cl_cmdbuf),
        },
    .destroy_op_kind_event = GN_KIND_EVENT,
    .gone = gone,
    .destroy = destroy,
    .on_frame = gn_callback_frame,
    .settle = settle,
    .inputs = gn_opencl_inputs,
    .brings = gn_opencl_brings,
    .result_lost = CL_OUT_OF_RESOURCES,
    .result_no_memory = CL_OUT_OF_HOST_MEMORY,
};
