/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_OUTBOUND_H
#define GN_DAEMON_MIGRATE_OUTBOUND_H

#include "daemon/migrate/migration.h"

/* Migrates a vGPU to another gantryd. The wish has that gantryd's address and ticket; the socket
 * that the source is to write to came with the request. The answer to `c` comes when that is over.
 * 0 or -errno, and then nothing was begun. gantryd's thread. */
int gn_migrate_outbound(struct gn_conn *c, struct gn_vgpu_record *v,
                        const struct gn_control_wish *wish, struct gn_error *err);
/* Whether v can be migrated to another gantryd now. 0 or -errno: -ENOENT: its program has ended. */
int gn_outbound_may_begin(const struct gn_vgpu_record *v, struct gn_error *err);
/* Describes v for another gantryd. The texts are v's. */
struct gn_control_about;
void gn_outbound_describe(const struct gn_vgpu_record *v, struct gn_control_about *ret);
/* COMES, COMES_NEAR, STAY or LEFT, of a program's. False: malformed, or out of place. */
bool gn_outbound_frame(struct gn_conn *c, const struct gn_frame *f);

#endif
