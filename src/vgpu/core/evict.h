/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_EVICT_H
#define GN_VGPU_EVICT_H

#include "vgpu/core/resident_budget.h"

#include <stdint.h>

struct gn_command;
struct gn_vgpu;

/* What the vGPU's budget calls; arg is the vGPU. */
extern const struct gn_budget_ops gn_evict_ops;
/* RESIDE has come. The control thread. */
void gn_vgpu_reside(struct gn_vgpu *v, uint32_t seq, uint64_t bytes, bool keeps_copies);
/* DISCARD has come: frees copies of contents that are in the driver, and answers. The control
 * thread; may wait for a copy that another thread makes. */
void gn_vgpu_discard_copies(struct gn_vgpu *v);
/* The control thread, before it sleeps: as gn_budget_check. */
int gn_vgpu_check_budget(struct gn_vgpu *v);

/*
 * Test mode (GANTRY_EVICT=always): waits until the driver has completed everything, then evicts all
 * that can be evicted. Does nothing while another thread may use the driver's objects: a save, the
 * lease thread, a driver that keeps a device's role for ten seconds. The serving thread, between
 * two messages, without locks.
 */
void gn_vgpu_evict_all(struct gn_vgpu *v);
/* The serving thread, without locks: waits until everything may be in the driver. False: the vGPU
 * has ended. */
bool gn_vgpu_await_whole(struct gn_vgpu *v);
/* Waits until all that the command names may be brought in, or the vGPU ends. The serving thread,
 * without locks. */
void gn_command_await_objects(struct gn_command *c);
/*
 * Brings in all that the command names, before the driver or a judge looks at it. The serving
 * thread, or the role. 0, or the API's error: something stays evicted.
 */
int32_t gn_command_bring_in(struct gn_command *c);

#endif
