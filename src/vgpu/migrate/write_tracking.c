/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of writers and their ranges. Submitters and the threads that report ends set them; the
 * saving thread's rounds read them. Marks are set under one lock. A kernel takes it only the first
 * time that it is given some memory, a host command only while writes are tracked. Nothing here
 * calls the driver, except through the device's role.
 */
#include "vgpu/migrate/write_tracking.h"

#include "base/clock.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stdlib.h>

struct gn_writes *gn_writes_new(bool never)
{
    struct gn_writes *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    atomic_init(&w->n_refs, 1);
    atomic_init(&w->by_kernels, never ? GN_KERNELS_MAY_NOT : GN_KERNELS_NOT_YET);
    atomic_init(&w->changed, true);
    return w;
}

struct gn_writes *gn_writes_ref(struct gn_writes *w)
{
    atomic_fetch_add_explicit(&w->n_refs, 1, memory_order_relaxed);
    return w;
}

void gn_writes_unref(struct gn_writes *w)
{
    /* The tracking holds a reference, so the table is gone by now. */
    if (w && atomic_fetch_sub_explicit(&w->n_refs, 1, memory_order_acq_rel) == 1)
        free(w);
}

void gn_writes_first_kernel(struct gn_vgpu *v, struct gn_writes *w)
{
    /*
     * Either this comes first, and a later start of tracking sees it; or there is a table to mark.
     */
    pthread_mutex_lock(&v->writes_lock);
    if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_NOT_YET)
        atomic_store_explicit(&w->by_kernels, GN_KERNELS_DO, memory_order_relaxed);
    for (int follower = 0; follower < GN_FOLLOWERS; follower++)
        if (w->tables[follower])
            gn_page_table_kernel_writes(w->tables[follower]);
    pthread_mutex_unlock(&v->writes_lock);
}

void gn_writes_by_cpu(struct gn_vgpu *v, struct gn_writes *w, uint64_t offset, uint64_t n)
{
    pthread_mutex_lock(&v->writes_lock);
    for (int follower = 0; follower < GN_FOLLOWERS; follower++)
        if (w->tables[follower])
            gn_page_table_cpu_wrote(w->tables[follower], offset, n);
    pthread_mutex_unlock(&v->writes_lock);
}

int gn_writes_follow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower follower,
                     const struct gn_page_hasher *hasher, uint64_t bytes,
                     struct gn_page_table **ret)
{
    struct gn_page_table *t = NULL;
    int rc = gn_page_table_create(hasher, bytes, false, 4, &t);
    if (rc)
        return rc;
    pthread_mutex_lock(&v->writes_lock);
    if (w->tables[follower]) {
        rc = -EBUSY;
    } else {
        w->tables[follower] = t;
        if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_DO)
            gn_page_table_kernel_writes(t);
    }
    pthread_mutex_unlock(&v->writes_lock);
    if (rc) {
        gn_page_table_destroy(t);
        return rc;
    }
    gn_writes_ref(w);
    *ret = t;
    return 0;
}

void gn_writes_unfollow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower follower)
{
    pthread_mutex_lock(&v->writes_lock);
    struct gn_page_table *t = w->tables[follower];
    w->tables[follower] = NULL;
    pthread_mutex_unlock(&v->writes_lock);
    if (!t)
        return;
    gn_page_table_destroy(t);
    gn_writes_unref(w);
}

struct gn_page_table *gn_writes_turn_back(struct gn_vgpu *v, struct gn_writes *w)
{
    pthread_mutex_lock(&v->writes_lock);
    struct gn_page_table *fresh = w->tables[GN_FOLLOWED_OUT], *t = w->tables[GN_FOLLOWED_BACK];
    w->tables[GN_FOLLOWED_OUT] = t;
    w->tables[GN_FOLLOWED_BACK] = fresh;
    pthread_mutex_unlock(&v->writes_lock);
    gn_writes_unfollow(v, w, GN_FOLLOWED_BACK);
    return t;
}

int gn_vgpu_follow_writes(struct gn_vgpu *v, uint64_t timeout_ns)
{
    const uint64_t at_ns = gn_now_ns() + timeout_ns;
    const struct timespec until = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
    atomic_fetch_add_explicit(&v->follow_writes, 1, memory_order_seq_cst);
    /*
     * The last holder of the role has given its commands to the driver; the next one sees
     * follow_writes.
     */
    for (uint32_t i = 0; i < v->n_devices; i++) {
        const int rc = gn_device_acquire(&v->devices[i], &until);
        if (rc)
            return rc;
        gn_device_release(&v->devices[i]);
    }
    return 0;
}

void gn_vgpu_follow_writes_no_more(struct gn_vgpu *v)
{
    atomic_fetch_sub_explicit(&v->follow_writes, 1, memory_order_seq_cst);
}
