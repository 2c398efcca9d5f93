/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_LOCAL_H
#define GN_DAEMON_MIGRATE_LOCAL_H

#include "daemon/migrate/migration.h"

/* Migrates a vGPU to a new worker of this gantryd, into its program or out of it. The answer to `c`
 * comes when that is over. 0 or -errno, and then nothing was begun. gantryd's thread. */
struct gn_control_wish;
int gn_migrate_local(struct gn_conn *c, struct gn_vgpu_record *v, enum gn_migrate_to to,
                     const struct gn_control_wish *wish, struct gn_error *err);

#endif
