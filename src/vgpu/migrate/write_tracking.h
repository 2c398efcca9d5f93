/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_WRITE_TRACKING_H
#define GN_VGPU_MIGRATE_WRITE_TRACKING_H

#include "migrate/page_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;

/*
 * Tracks the writers of a memory object, so that its contents can be sent while the program runs
 * (gMig 3.3.1; Crane 4.1.2). Two things are recorded:
 *
 * - whether a kernel has ever been given the memory for writing. Always known, without cost after
 * the first time. Pages that kernels have written are found by hash, because no interface reports
 * them;
 * - while the memory is tracked, a page table with marks: of kernels, and of the host's writes,
 * copies and fills with their ranges. There is one table for the present save, and one for the
 * return (delta_base.h), from when the contents came.
 *
 * A third thing serves evictions (docs/memory.md): whether anything may have written the memory
 * since its contents came in from host memory.
 *
 * A gn_writes belongs to memory, not to a handle: sub-buffers and images over a buffer share that
 * buffer's. Counted; a handle's detail holds a reference.
 */
enum gn_follower { GN_FOLLOWED_OUT, GN_FOLLOWED_BACK, GN_FOLLOWERS };
enum gn_kernels_write { GN_KERNELS_NOT_YET, GN_KERNELS_DO, GN_KERNELS_MAY_NOT };

struct gn_writes {
    _Atomic uint32_t n_refs;
    _Atomic int by_kernels; /* enum gn_kernels_write; goes from NOT_YET to DO once */
    /* Something may have written it since gn_writes_came_in(), or since it was made. */
    _Atomic bool changed;
    struct gn_page_table
        *tables[GN_FOLLOWERS]; /* vgpu->writes_lock; NULL: not tracked for this purpose */
};

/* never: the object's flags forbid kernels to write it. NULL: no memory. */
struct gn_writes *gn_writes_new(bool never);
struct gn_writes *gn_writes_ref(struct gn_writes *w);
void gn_writes_unref(struct gn_writes *w); /* NULL: no effect */

/*
 * The memory equals its copy in host memory. The caller keeps every writer out meanwhile: the
 * driver's object is new, and no command or kernel has been given it.
 */
static inline void gn_writes_came_in(struct gn_writes *w)
{
    atomic_store_explicit(&w->changed, false, memory_order_relaxed);
}

/*
 * Call it before the driver is given anything that may write the memory. Any thread that keeps
 * evictions out: so it needs no order, and is seen by the thread that evicts after it.
 */
static inline void gn_writes_may_change(struct gn_writes *w)
{
    if (!atomic_load_explicit(&w->changed, memory_order_relaxed))
        atomic_store_explicit(&w->changed, true, memory_order_relaxed);
}

static inline bool gn_writes_has_changed(const struct gn_writes *w)
{
    return atomic_load_explicit(&w->changed, memory_order_relaxed);
}

/* The slow path of gn_writes_by_kernel. */
void gn_writes_first_kernel(struct gn_vgpu *v, struct gn_writes *w);

/* Call it before a kernel that may write the memory is given to the driver. As
 * gn_writes_may_change. */
static inline void gn_writes_by_kernel(struct gn_vgpu *v, struct gn_writes *w)
{
    const int by_kernels = atomic_load_explicit(&w->by_kernels, memory_order_relaxed);
    if (by_kernels == GN_KERNELS_NOT_YET)
        gn_writes_first_kernel(v, w);
    if (by_kernels != GN_KERNELS_MAY_NOT)
        gn_writes_may_change(w);
}

/* A host command that wrote [offset, offset + n) is over, successfully or not. Any thread. */
void gn_writes_by_cpu(struct gn_vgpu *v, struct gn_writes *w, uint64_t offset, uint64_t n);

/*
 * Starts tracking, for one user of each purpose at a time. Writes of commands that are over count
 * as contents, not as marks; the caller waits for those that the driver has already
 * (gn_vgpu_follow_writes). The caller may use the table until unfollow, which frees it. Returns 0,
 * -EBUSY, or gn_page_table_create's error.
 */
int gn_writes_follow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower follower,
                     const struct gn_page_hasher *hasher, uint64_t bytes,
                     struct gn_page_table **ret);
void gn_writes_unfollow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower follower);
/*
 * The vGPU returns: replaces the fresh table for the save with the one for the return, and gives
 * that.
 */
struct gn_page_table *gn_writes_turn_back(struct gn_vgpu *v, struct gn_writes *w);

/*
 * While writes are tracked, every host command that writes is followed to its end. After this call,
 * that holds for each command given to the driver; it may not hold for those that the driver has
 * already. Any thread that has no device's role. Returns 0, or -ETIMEDOUT: a driver's call has not
 * returned in that time; tracking is on nevertheless.
 */
int gn_vgpu_follow_writes(struct gn_vgpu *v, uint64_t timeout_ns);
void gn_vgpu_follow_writes_no_more(struct gn_vgpu *v);

#endif
