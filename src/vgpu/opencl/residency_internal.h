/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_RESIDENCY_INTERNAL_H
#define GN_OPENCL_RESIDENCY_INTERNAL_H

#include "backing.h"
#include "image_facts.h"
#include "memory_copy.h"
#include "opencl_host.h"
#include "residency.h"

#include "vgpu/residency/swap_state.h"

#include <pthread.h>

/* The data of residency.c, which residency_queries.c reads. */

struct gn_residency {
    pthread_mutex_t lock; /* after the role, before vgpu->lock; held over calls into the driver */
    /* lock */
    struct gn_list roots; /* struct gn_resident.link */
    bool keeps_copies;    /* of what comes in */
    struct gn_backing_devices devices;
};

/* A memory object. residency.lock, except what is set once. */
struct gn_resident {
    struct gn_list link; /* in gn_residency.roots, or in its root's views in order of creation */
    struct gn_list views;
    /* set once */
    struct gn_vobject *object;
    struct gn_resident *root, *parent; /* parent: NULL of a root */
    /* of a root */
    struct gn_swap swap;
    /* of copied.bytes; none: not evicted, and no copy has stayed */
    struct gn_backing backing;
    struct gn_backing_device *hashes; /* NULL: its pages are not hashed, as far as is known */
    cl_context context;               /* retained while it is evicted */
    /* while it is evicted: what to make it from */
    struct gn_copied copied; /* .mem is not used */
    size_t size, offset;     /* as the driver tells them */
    cl_image_format format;
    cl_image_desc desc;
    size_t row_pitch, slice_pitch; /* of an image, as the driver tells them */
    struct gn_image_facts facts;   /* of an image */
};

static inline struct gn_residency *gn_residency_of(const struct gn_vgpu *v)
{
    return ((const struct gn_opencl_vgpu *)v->detail)->residency;
}

static inline struct gn_resident *gn_resident_of(const struct gn_vobject *o)
{
    const struct gn_mem_detail *detail = o && o->kind == GN_KIND_MEM ? o->detail : NULL;
    return detail ? detail->resident : NULL;
}

static inline bool gn_resident_is_image(const struct gn_resident *m)
{
    return ((const struct gn_mem_detail *)m->object->detail)->element_bytes != 0;
}

#endif
