/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write tracking: marks which memory has been written and by which kind of writer. Submitting
 * threads and driver callbacks set marks; the saving thread reads them. One lock protects the
 * marks. It is taken for a kernel only when a memory is passed to a kernel for the first time, and
 * for commands of the host only while a memory is followed. Nothing here reads contents.
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
    return w;
}

struct gn_writes *gn_writes_ref(struct gn_writes *w)
{
    atomic_fetch_add_explicit(&w->n_refs, 1, memory_order_relaxed);
    return w;
}

void gn_writes_unref(struct gn_writes *w)
{
    /* Each follower has a reference, so the tables are gone by now. */
    if (w && atomic_fetch_sub_explicit(&w->n_refs, 1, memory_order_acq_rel) == 1)
        free(w);
}

void gn_writes_first_kernel(struct gn_vgpu *v, struct gn_writes *w)
{
    /* Either this store comes first, and a new follower sees it; or there is a table to mark. */
    pthread_mutex_lock(&v->writes_lock);
    if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_NOT_YET)
        atomic_store_explicit(&w->by_kernels, GN_KERNELS_DO, memory_order_relaxed);
    for (int who = 0; who < GN_FOLLOWERS; who++)
        if (w->tables[who])
            gn_page_table_kernel_writes(w->tables[who], 0, UINT64_MAX);
    pthread_mutex_unlock(&v->writes_lock);
}

void gn_writes_by_cpu(struct gn_vgpu *v, struct gn_writes *w, uint64_t offset, uint64_t n)
{
    pthread_mutex_lock(&v->writes_lock);
    for (int who = 0; who < GN_FOLLOWERS; who++)
        if (w->tables[who])
            gn_page_table_cpu_wrote(w->tables[who], offset, n);
    pthread_mutex_unlock(&v->writes_lock);
}

int gn_writes_follow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who,
                     const struct gn_page_hasher *hasher, uint64_t bytes,
                     struct gn_page_table **ret)
{
    struct gn_page_table *t = NULL;
    int rc = gn_page_table_create(hasher, bytes, false, 4, &t);
    if (rc)
        return rc;
    pthread_mutex_lock(&v->writes_lock);
    if (w->tables[who]) {
        rc = -EBUSY;
    } else {
        w->tables[who] = t;
        if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_DO)
            gn_page_table_kernel_writes(t, 0, UINT64_MAX);
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

void gn_writes_unfollow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who)
{
    pthread_mutex_lock(&v->writes_lock);
    struct gn_page_table *t = w->tables[who];
    w->tables[who] = NULL;
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
    w->tables[GN_FOLLOWED_BACK] = NULL;
    pthread_mutex_unlock(&v->writes_lock);
    gn_page_table_destroy(fresh);
    gn_writes_unref(w);
    return t;
}

int gn_vgpu_follow_writes(struct gn_vgpu *v, uint64_t timeout_ns)
{
    const uint64_t at_ns = gn_now_ns() + timeout_ns;
    const struct timespec until = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
    atomic_fetch_add_explicit(&v->follow_writes, 1, memory_order_seq_cst);
    /*
     * Acquire each device once: the previous holder of its role has then passed its command to the
     * driver, and the next holder sees follow_writes.
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
