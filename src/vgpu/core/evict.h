/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_EVICT_H
#define GN_VGPU_EVICT_H

#include <stdint.h>

struct gn_command;
struct gn_vgpu;

/*
 * Test mode (GANTRY_EVICT=always): waits until the driver has completed everything, then evicts all
 * that can be evicted. Does nothing while another thread may use the driver's objects: a save, a
 * slow request, a driver that keeps a device's role for ten seconds. The serving thread, between
 * two messages, without locks.
 */
void gn_vgpu_evict_all(struct gn_vgpu *v);
/*
 * Brings in all that the command names, before the driver or a judge looks at it. The serving
 * thread, or the role. 0, or the API's error: something stays evicted.
 */
int32_t gn_command_bring_in(struct gn_command *c);

#endif
