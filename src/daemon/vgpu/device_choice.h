/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_DEVICE_CHOICE_H
#define GN_DAEMON_VGPU_DEVICE_CHOICE_H

#include "daemon/daemon.h"

/* The devices that a vGPU has, in the order that its program knows them by. gantryd's thread. */

/* Gives v these devices; the i-th is order[i], and NULL is the platform's order. */
void gn_vgpus_set_devices(struct gn_vgpu_record *v, uint64_t devices, const uint8_t *order);
/* Enters v, which is in no account, in the accounts of its tenant and of its devices; limit_bytes:
 * of v alone, 0: none. */
void gn_vgpus_join_memory(struct gn_vgpu_record *v, uint64_t limit_bytes);
uint32_t gn_vgpus_n_devices(const struct gn_vgpu_record *v);
/* Gives n, a copy of v, another device in the place of one of v's. text: "FROM=TO", each
 * "NAME-PART[:INDEX]"; or TO alone, in the place of the device that v uses. 0, or -errno and a
 * sentence. */
int gn_vgpus_choose_device(const struct gn_vgpu_record *v, const char *text,
                           struct gn_vgpu_record *n, struct gn_error *err);

#endif
