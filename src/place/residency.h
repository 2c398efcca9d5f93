/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_PLACE_RESIDENCY_H
#define GN_PLACE_RESIDENCY_H

#include "place/place.h"

/*
 * Residency periods: a vGPU's time from its swap in to its eviction. A swap costs much more than a
 * turn's slice, so memory changes hands on a time scale of its own. A period lasts until its vGPU
 * has used so much of the device that the copies are at most the part f of all device time, and
 * vGPUs have periods in proportion to their weights.
 *
 * The caller tells a vGPU that gn_residency_next returns apart from one that may work: with
 * gn_sched_set_evicted.
 */

/*
 * Returns the vGPU to swap in now, and the plan for it, or NULL: none. Then *ret_again_ns is the
 * time at which to ask again even if nothing happens, or 0. Ask after each turn, wake and swap. One
 * swap a device at a time: the caller applies the plan (gn_place_apply) before it asks again.
 */
struct gn_place_vgpu *gn_residency_next(struct gn_place *p, uint64_t now_ns,
                                        struct gn_place_plan *ret_plan, uint64_t *ret_again_ns);

/*
 * Returns the wait bound of a vGPU: the most periods of other vGPUs between two of its own. Seen in
 * all simulations, not proven.
 */
uint64_t gn_residency_wait_bound(const struct gn_place *p, const struct gn_place_vgpu *v);

/* f, of GN_PLACE_WHOLE; 0: no periods, the caller swaps at each turn. */
void gn_residency_set_share(struct gn_place *p, uint32_t swap_share);

#endif
