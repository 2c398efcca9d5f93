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

/* At the start: on if gantryd places the memory, or by GANTRY_EVICT. Nonzero: no memory. */
int gn_residency_start(struct gn_vgpu *v);
/* Are objects of this vGPU ever evicted? Any thread. */
bool gn_residency_is_on(const struct gn_vgpu *v);
/* Before a creation is charged: will the object be pinned, by what is known of it? */
bool gn_residency_will_pin(struct gn_vgpu *v, const struct gn_request *r, cl_context context,
                           cl_uint n_levels);
/* After the creation of a memory object and its detail. Without memory it is never evicted. */
void gn_residency_made(struct gn_vobject *o, const struct gn_request *r);
/* Before the release of its driver's object, which there is none of if it is evicted. */
void gn_residency_gone(struct gn_vobject *o);
/* The object gets a driver's object, if it has none. 0, or CL_MEM_OBJECT_ALLOCATION_FAILURE. Any
 * thread that holds no lock but `serving` and a role. */
int32_t gn_residency_bring_in(struct gn_vobject *o);
/*
 * The same for all objects; those that the driver refuses stay evicted. 0, or the first error. Adds
 * the bytes that are copied. A save calls it, too, and sets `moving` first.
 */
int32_t gn_residency_bring_in_all(struct gn_vgpu *v, uint64_t *copied_bytes);
/* Brings it in, and never evicts it: the driver keeps its object. */
int32_t gn_residency_pin(struct gn_vobject *o);
/* The same for a request, which asks gantryd first: it may be served again (gn_request_may_pin). */
int32_t gn_residency_pin_for(struct gn_request *r, struct gn_vobject *o);
/* Parts of struct gn_vgpu_api. */
bool gn_residency_is_resident(struct gn_vobject *o);
uint64_t gn_residency_evicted_bytes(struct gn_vgpu *v);
bool gn_residency_has_resident(struct gn_vgpu *v);
void gn_residency_keep_copies(struct gn_vgpu *v, bool keep);
uint64_t gn_residency_evict(struct gn_vgpu *v, uint64_t most_bytes);

#endif
