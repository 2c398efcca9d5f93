/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of memory objects: an evicted one is answered from the driver's answers of before its
 * eviction. Called by the serving thread, which alone evicts. Never brings an object in, except for
 * a question about images that is asked of a buffer.
 */
#include "residency_internal.h"

#include <string.h>

/* A fact of an evicted object, with its bytes, or NULL. */
static const void *memory_fact(const struct gn_resident *m, cl_mem_info name, size_t *ret_bytes)
{
    switch (name) {
    case CL_MEM_TYPE:
        *ret_bytes = sizeof m->copied.type;
        return &m->copied.type;
    case CL_MEM_FLAGS:
        *ret_bytes = sizeof m->copied.flags;
        return &m->copied.flags;
    case CL_MEM_SIZE:
        *ret_bytes = sizeof m->size;
        return &m->size;
    case CL_MEM_OFFSET:
        *ret_bytes = sizeof m->offset;
        return &m->offset;
    default:
        return NULL;
    }
}

/* As a driver answers. fact: NULL: there is none of this name. */
static cl_int answer(const void *fact, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (!fact || (value && size < n))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, fact, n);
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

/* The object, if it is evicted, under the residency's lock; otherwise NULL, without it. */
static const struct gn_resident *lock_if_evicted(struct gn_vgpu *v, const struct gn_vobject *o)
{
    struct gn_residency *x = gn_residency_of(v);
    const struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return NULL;
    pthread_mutex_lock(&x->lock);
    if (gn_swap_state(&m->root->swap) == GN_SWAP_EVICTED)
        return m;
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* An object that is not evicted may have been brought in since the message was decoded; this thread
 * alone evicts. */

cl_int gn_host_clGetMemObjectInfo(struct gn_vgpu *v, struct gn_request *r,
                                  const struct gn_args_clGetMemObjectInfo *a)
{
    const struct gn_resident *m = lock_if_evicted(v, a->memobj_object);
    size_t n = 0;
    (void)r;
    if (!m)
        return gn_cl(v)->clGetMemObjectInfo(gn_driver_of(a->memobj_object), a->param_name,
                                            a->param_value_size, a->param_value,
                                            a->param_value_size_ret);
    const void *fact = memory_fact(m, a->param_name, &n);
    const cl_int result =
        answer(fact, n, a->param_value_size, a->param_value, a->param_value_size_ret);
    pthread_mutex_unlock(&gn_residency_of(v)->lock);
    return result;
}

cl_int gn_host_clGetImageInfo(struct gn_vgpu *v, struct gn_request *r,
                              const struct gn_args_clGetImageInfo *a)
{
    struct gn_vobject *o = a->image_object;
    const struct gn_resident *m = gn_resident_of(o);
    size_t n = 0;
    /* Only the driver knows its answer of a buffer. */
    if (m && !gn_resident_is_image(m) && !gn_request_bring_in(r, o))
        return CL_OUT_OF_RESOURCES;
    if (!(m = lock_if_evicted(v, o)))
        return gn_cl(v)->clGetImageInfo(gn_driver_of(o), a->param_name, a->param_value_size,
                                        a->param_value, a->param_value_size_ret);
    const void *fact = gn_image_facts_find(&m->facts, a->param_name, &n);
    const cl_int result =
        answer(fact, n, a->param_value_size, a->param_value, a->param_value_size_ret);
    pthread_mutex_unlock(&gn_residency_of(v)->lock);
    return result;
}
