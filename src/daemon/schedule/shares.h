/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_SHARES_H
#define GN_DAEMON_SCHEDULE_SHARES_H

#include "daemon/vgpu/vgpu_record.h"

/* Parts of devices as `gantry` shows them (shares.c). gantryd's thread. */

/* Figures, part and entitled of every vGPU, as of now. */
void gn_shares_reckon(struct gn_daemon *d);
/* Adds v's use of its devices to their sums: before v leaves them. */
void gn_shares_leave(struct gn_vgpu_record *v);
/* Its part in the device of this number; NULL: none. */
const struct gn_share *gn_shares_on(const struct gn_vgpu_record *v, uint32_t device);

#endif
