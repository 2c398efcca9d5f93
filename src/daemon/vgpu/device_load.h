/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_DEVICE_LOAD_H
#define GN_DAEMON_VGPU_DEVICE_LOAD_H

#include "daemon/vgpu/vgpu_record.h"

/* How busy devices are (device_load.c). gantryd's thread. */

/* The devices of the platform, as bits, that v has made a queue for, by its worker's word. */
uint64_t gn_loads_of(const struct gn_vgpu_record *v);
/* In which order these devices, given as bits, are offered to a vGPU that is about to start. */
void gn_loads_rank(struct gn_daemon *d, uint32_t platform, uint64_t devices,
                   uint8_t ranks[static GN_WORKER_MAX_DEVICES]);

#endif
