/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_RETAINED_H
#define GN_VGPU_MIGRATE_RETAINED_H

#include <stdint.h>

struct gn_vgpu;
struct gn_vobject;
struct gn_retained;

/*
 * Contents that a program retains of a vGPU that leaves it (passthrough): copies of memory objects
 * in the program's own memory, so that only changed pages have to come when the vGPU returns (Crane
 * 4.1.1 preserves them in DRAM; delta_base.h is the other half). They belong to the process and are
 * found by random numbers, because a returning vGPU is a new one to it. They are copied after the
 * other worker has taken over, object by object as these are released, so they lengthen no stop;
 * and once only.
 *
 * Nothing is retained when free memory is less than twice the contents, or when an allocation
 * fails.
 */

/*
 * Draws a number under which the vGPU being saved may leave contents. 0: no number available,
 * nothing is retained.
 */
uint64_t gn_retained_promise(void);

/* By the leaving vGPU, before it releases objects. NULL: nothing is retained. */
struct gn_retained *gn_retained_begin(struct gn_vgpu *v);
/* For each object before its release. NULL: no effect. */
void gn_retained_keep(struct gn_retained *r, struct gn_vgpu *v, struct gn_vobject *o);
void gn_retained_done(struct gn_retained *r, struct gn_vgpu *v);
/* All of these: struct gn_vgpu_migration_ops. */
void gn_retained_remove_objects(struct gn_vgpu *v);

/*
 * By the returning vGPU. Lists the retained memories; the caller frees the list. Waits, at most 20
 * s, for a vGPU that is still leaving. 0: none, or no memory for the list.
 */
uint32_t gn_retained_list(uint64_t number, uint64_t **ret_ids);
/*
 * The retained content of a memory, valid until it is dropped. NULL: it is not retained, or had
 * another size.
 */
const void *gn_retained_find(uint64_t number, uint64_t id, uint64_t bytes);
void gn_retained_drop_one(uint64_t number, uint64_t id);

/*
 * Drops all contents of a number, also of one without contents: the migration failed, or they have
 * been used. An unknown number has no effect.
 */
void gn_retained_drop(uint64_t number);

#endif
