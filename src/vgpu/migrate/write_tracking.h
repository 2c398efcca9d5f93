/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_WRITE_TRACKING_H
#define GN_VGPU_MIGRATE_WRITE_TRACKING_H

#include "migrate/page_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;

/*
 * Who writes a memory object, so that its contents can be sent while the program runs (gMig 3.3.1;
 * Crane 4.1.2). Two things are kept:
 *
 * - whether a kernel has ever been given it to write. Always known, at no cost once it is so: what
 * kernels have written is found by hash, for nobody says which pages that was;
 * - while it is followed, a page table with marks: of kernels, and of the writes, copies and fills
 * of the host's, where they were. One for who sends it now, and one for the way back
 * (delta_base.h), from when it came.
 *
 * One of these belongs to memory, not to a handle: sub-buffers and images over a buffer share that
 * buffer's. Counted; a handle's detail holds a reference.
 */
enum gn_follower { GN_FOLLOWED_OUT, GN_FOLLOWED_BACK, GN_FOLLOWERS };
enum gn_kernels_write { GN_KERNELS_NOT_YET, GN_KERNELS_DO, GN_KERNELS_MAY_NOT };

struct gn_writes {
    _Atomic uint32_t n_refs;
    _Atomic int by_kernels; /* enum gn_kernels_write; goes from NOT_YET to DO once */
    struct gn_page_table
        *tables[GN_FOLLOWERS]; /* vgpu->writes_lock; NULL: that one does not follow it */
};

/* never: its flags forbid kernels to write it. NULL: no memory. */
struct gn_writes *gn_writes_new(bool never);
struct gn_writes *gn_writes_ref(struct gn_writes *w);
void gn_writes_unref(struct gn_writes *w); /* NULL does nothing */

/* Not by_kernels' common case. */
void gn_writes_first_kernel(struct gn_vgpu *v, struct gn_writes *w);

/* A kernel that may write it is about to be given to the driver, or may be from now on. Any thread.
 */
static inline void gn_writes_by_kernel(struct gn_vgpu *v, struct gn_writes *w)
{
    if (atomic_load_explicit(&w->by_kernels, memory_order_relaxed) == GN_KERNELS_NOT_YET)
        gn_writes_first_kernel(v, w);
}

/* The host's command that wrote [offset, offset + n) is over, well or not. Any thread. */
void gn_writes_by_cpu(struct gn_vgpu *v, struct gn_writes *w, uint64_t offset, uint64_t n);

/*
 * From now on it is followed, for each purpose by one at a time. What is written by commands that
 * are over counts as contents, not as marks; those that the driver has already are the caller's to
 * wait for (gn_vgpu_follow_writes). The table is the caller's until unfollow, which frees it. 0,
 * -EBUSY, or what gn_page_table_create says.
 */
int gn_writes_follow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who,
                     const struct gn_page_hasher *hasher, uint64_t bytes,
                     struct gn_page_table **ret);
void gn_writes_unfollow(struct gn_vgpu *v, struct gn_writes *w, enum gn_follower who);
/* It is sent the way back: the table of that is the one to send by, instead of the fresh one. */
struct gn_page_table *gn_writes_turn_back(struct gn_vgpu *v, struct gn_writes *w);

/*
 * While anybody follows writes, every command of the host's that writes is followed to its end.
 * When this returns, each one that is given to the driver from then on is; what the driver has
 * already may not be. Any thread that has no device's role. 0, or -ETIMEDOUT: a driver has not
 * returned from what it was given in that time; they are followed all the same.
 */
int gn_vgpu_follow_writes(struct gn_vgpu *v, uint64_t timeout_ns);
void gn_vgpu_follow_writes_no_more(struct gn_vgpu *v);

#endif
