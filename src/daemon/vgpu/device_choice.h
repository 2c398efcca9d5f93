/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_DEVICE_CHOICE_H
#define GN_DAEMON_VGPU_DEVICE_CHOICE_H

#include "daemon/daemon.h"

/* Which of a platform's devices a vGPU has, and which of them stands for which of those that its
 * program knows. gantryd's thread. */

/* From now on v has these, the i-th being order[i]; NULL: in the platform's order. */
void gn_vgpus_set_devices(struct gn_vgpu_record *v, uint64_t devices, const uint8_t *order);
uint32_t gn_vgpus_n_devices(const struct gn_vgpu_record *v);
/* "NAME-PART[:INDEX]", or "FROM=TO" of two such: n, which is as v, gets another device in the place
 * of one that v has. The device that it uses, where the text names one alone. 0, or -errno and a
 * sentence. */
int gn_vgpus_choose_device(const struct gn_vgpu_record *v, const char *text,
                           struct gn_vgpu_record *n, struct gn_error *err);

#endif
