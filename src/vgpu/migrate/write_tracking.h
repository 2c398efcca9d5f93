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
 * (gMig 3.3.1; Crane 4.1.2). It records:
 *
 * - whether a kernel has ever got the memory for writing. This is always known, and costs nothing
 * once it is set. Hashes find the pages that kernels have written, because nothing reports them; -
 * while the memory is followed, a page table with marks: of kernels, and of the host's writes,
 * copies and fills with their ranges. One table is for the save in progress, one for the delta base
 * (delta_base.h), from the arrival of the contents on.
 *
 * A gn_writes belongs to memory, not to a handle: sub-buffers and images over a buffer share the
 * buffer's. Reference counted; each handle's detail has a reference.
 */
enum gn_follower { GN_FOLLOWED_OUT, GN_FOLLOWED_BACK, GN_FOLLOWERS };
enum gn_kernels_write { GN_KERNELS_NOT_YET, GN_KERNELS_DO, GN_KERNELS_MAY_NOT };

struct gn_writes {
    _Atomic uint32_t n_refs;
    _Atomic int by_kernels; /* enum gn_kernels_write; changes from NOT_YET to DO once */
    /* Under vgpu->writes_lock; NULL: this follower does not follow the memory. */
    struct gn_page_table *tables[GN_FOLLOWERS];
};

/* never: the memory's flags forbid kernels to write it. NULL: no memory. */
struct gn_writes *gn_writes_new(bool never);
struct gn_writes *gn_writes_ref(struct gn_writes *w);
void gn_writes_unref(struct gn_writes *w); /* NULL does nothing */

/* The slow path of gn_writes_by_kernel. */
void gn_writes_first_kernel(struct gn_vgpu *v, struct gn_writes *w);

/*
 * A kernel that may write the memory is about to be passed to the driver, now or at any later time.
 * Any thread.
 */
static inline void gn_writes_by_kernel(struct gn_vgpu *v, struct gn_writes *w)
{
    if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_NOT_YET)
        gn_writes_first_kernel(v, w);
}

/* The host's command that wrote [offset, offset + n) has ended, successfully or not. Any thread. */
void gn_writes_by_cpu(struct gn_vgpu *v, struct gn_writes *w, uint64_t offset, uint64_t n);

/*
 * Begins to follow the memory, for each purpose by one follower at a time. Writes of completed
 * commands count as contents, not as marks. The caller must wait for commands that the driver
 * already has (gn_vgpu_follow_writes). The caller owns the table until gn_writes_unfollow, which
 * frees it. Returns 0, -EBUSY, or the error of gn_page_table_create.
 */
int gn_writes_follow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who,
                     const struct gn_page_hasher *hasher, uint64_t bytes,
                     struct gn_page_table **ret);
void gn_writes_unfollow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who);
/* The memory migrates back: its delta base table replaces the fresh table of the save. */
struct gn_page_table *gn_writes_turn_back(struct gn_vgpu *v, struct gn_writes *w);

/*
 * While there is a follower, every writing command of the host is tracked to its end. When this
 * returns, every command that is passed to the driver from then on is tracked; commands that the
 * driver already has may not be. Any thread that does not hold a device's role. Returns 0, or
 * -ETIMEDOUT: a driver call has not returned in that time; commands are tracked all the same.
 */
int gn_vgpu_follow_writes(struct gn_vgpu *v, uint64_t timeout_ns);
void gn_vgpu_follow_writes_no_more(struct gn_vgpu *v);

#endif
