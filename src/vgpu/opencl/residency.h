/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_RESIDENCY_H
#define GN_OPENCL_RESIDENCY_H

#include <CL/cl_icd.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_request;
struct gn_resident;
struct gn_vgpu;
struct gn_vobject;

/*
 * Which memory objects have a driver's object. A buffer with its own memory is evicted and brought
 * in together with its views: sub-buffers, and images over it. So is an image of one level without
 * views. Everything else is pinned.
 */

/* At the start: reads GANTRY_EVICT. Nonzero: no memory. */
int gn_residency_start(struct gn_vgpu *v);
/* Are objects of this vGPU ever evicted? Any thread. */
bool gn_residency_is_on(const struct gn_vgpu *v);
/* After the creation of a memory object and its detail. Without memory it is never evicted. */
void gn_residency_made(struct gn_vobject *o, const struct gn_request *r);
/* Before the release of its driver's object, which there is none of if it is evicted. */
void gn_residency_gone(struct gn_vobject *o);
/* The object gets a driver's object, if it has none. 0, or CL_MEM_OBJECT_ALLOCATION_FAILURE. Any
 * thread that holds no lock but `serving` and a role. */
int32_t gn_residency_bring_in(struct gn_vobject *o);
/* The same for all objects: before a save, which sets `moving` first. */
int32_t gn_residency_bring_in_all(struct gn_vgpu *v);
/* Brings it in, and never evicts it: the driver keeps its object. */
int32_t gn_residency_pin(struct gn_vobject *o);
/* Parts of struct gn_vgpu_api. */
bool gn_residency_has_resident(struct gn_vgpu *v);
void gn_residency_evict_all(struct gn_vgpu *v);

#endif
