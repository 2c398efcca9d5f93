/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_RETAINED_H
#define GN_VGPU_MIGRATE_RETAINED_H

#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;
struct gn_vobject;
struct gn_retained;

/*
 * The contents that a program retains of a vGPU that leaves it (passthrough): copies of memory
 * objects, in the program's own memory, so that only the pages changed since must come back with
 * the vGPU (Crane 4.1.1 preserves them in DRAM; delta_base.h is the other half). They belong to the
 * process and have random numbers, because a vGPU that comes back is a new one. They are copied
 * after the destination has taken over, object by object just before each is released, so they do
 * not prolong the stop.
 *
 * Nothing is retained unless there is room for twice as much. Objects that cannot be copied for
 * lack of memory are skipped.
 */

/*
 * Reserves a number for the contents that the vGPU being saved may leave. 0: no number is
 * available, and nothing is retained.
 */
uint64_t gn_retained_promise(void);

/*
 * Called by the keeper of a vGPU that leaves, before objects are released. NULL: nothing is
 * retained.
 */
struct gn_retained *gn_retained_begin(struct gn_vgpu *v);
/* For each object, before it is released. NULL does nothing. */
void gn_retained_keep(struct gn_retained *r, struct gn_vgpu *v, struct gn_vobject *o);
void gn_retained_done(struct gn_retained *r, struct gn_vgpu *v);

/*
 * Called for a vGPU that comes back: the ids of the retained memories, which the caller frees.
 * Waits for a vGPU that is still leaving, 20 s at most. 0: none, or no memory for the list.
 */
uint32_t gn_retained_list(uint64_t number, uint64_t **ret_ids);
/* The contents of this memory, valid until dropped. NULL: not retained, or of another size. */
const void *gn_retained_find(uint64_t number, uint64_t id, uint64_t bytes);
void gn_retained_drop_one(uint64_t number, uint64_t id);

/*
 * Drops all contents of the number, also a reservation: the migration was aborted, or the contents
 * have been used. An unknown number does nothing.
 */
void gn_retained_drop(uint64_t number);

#endif
