/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_RETAINED_H
#define GN_VGPU_MIGRATE_RETAINED_H

#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;
struct gn_vobject;
struct gn_retained;

/*
 * What a program keeps of a vGPU that leaves it (passthrough): the contents of memory objects, in
 * memory of its own, so that when it comes back only what has changed since need come (Crane 4.1.1
 * preserves them in DRAM; delta_base.h is the other half). The process's, by numbers that are
 * drawn: a vGPU that comes back is another one to it. They are taken when the other host has taken
 * over, object by object as these are released, so they lengthen no stop, and once only.
 *
 * Nothing is kept where there is no room for twice as much, and nothing that there is no memory
 * for.
 */

/* What is being written may leave something under this number. 0: no number is to be had, and
 * nothing is kept. */
uint64_t gn_retained_promise(void);

/* By who leaves, before objects are released. NULL: nothing is kept. */
struct gn_retained *gn_retained_begin(struct gn_vgpu *v);
/* Of each object before it is released. NULL does nothing. */
void gn_retained_keep(struct gn_retained *r, struct gn_vgpu *v, struct gn_vobject *o);
void gn_retained_done(struct gn_retained *r, struct gn_vgpu *v);

/* By who comes back. Those that there are, for the caller to free; waits for who is still leaving,
 * 20 s at most. 0: none, or no memory to say so. */
uint32_t gn_retained_list(uint64_t number, uint64_t **ret_ids);
/* What that memory held. NULL: it is not kept, or had another size. Until it is dropped. */
const void *gn_retained_find(uint64_t number, uint64_t id, uint64_t bytes);
void gn_retained_drop_one(uint64_t number, uint64_t id);

/* All of them, also of a promise: nothing comes of it, or they have served. A number that is not
 * known does nothing. */
void gn_retained_drop(uint64_t number);

#endif
