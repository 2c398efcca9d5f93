/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_ORPHANS_H
#define GN_DAEMON_VGPU_ORPHANS_H

/* Processes that workers leave behind (orphans.c). gantryd's thread. */
struct gn_daemon;

/* Before anything is started. */
void gn_orphans_adopt(void);
/* After a worker's death. */
void gn_orphans_kill(struct gn_daemon *d);

#endif
