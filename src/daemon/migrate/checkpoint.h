/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_CHECKPOINT_H
#define GN_DAEMON_MIGRATE_CHECKPOINT_H

#include "daemon/migrate/migration.h"

/* A vGPU into a file, and out of one. gantryd's thread. Each `int` is 0 or -errno. */
struct gn_control_restore;

/* Saves v into a file. The socket to write to came with the request; the answer to `c` comes when
 * all is written. With `stop` the program waits afterwards: `c` then has to ask for
 * gn_checkpoint_confirm(). */
int gn_checkpoint_start(struct gn_conn *c, struct gn_vgpu_record *v, bool stop,
                        uint32_t drain_timeout_ms, struct gn_error *err);
/* The file of the stop that this connection has asked for is on the disk. The answer comes later.
 */
int gn_checkpoint_confirm(struct gn_conn *c, struct gn_error *err);
/* A program over tcp is back that may not have heard that its vGPU is in a file. */
void gn_checkpoint_returned(struct gn_vgpu_record *v);

/* The vGPU that waits for this file. NULL, and a sentence: there is none. */
struct gn_vgpu_record *gn_restore_awaits(struct gn_daemon *d, const struct gn_control_restore *wish,
                                         struct gn_error *err);
/* Restores it from a file that came with the request. The answer comes later, or at once
 * (*ret_absent) when no program waits for it. */
int gn_restore_start(struct gn_conn *c, const struct gn_control_restore *wish, bool *ret_absent,
                     struct gn_error *err);

/* A program waits for its vGPU. Takes the descriptors that it keeps out of fds. */
int gn_program_waits(struct gn_conn *c, uint32_t seq, const struct gn_link_wait *w,
                     int fds[static GN_LINK_WAIT_FDS], struct gn_error *err);
/* The same of a program over tcp. It is told so when its vGPU has a worker. */
int gn_program_waits_tcp(struct gn_conn *c, uint32_t seq, const struct gn_link_wait_tcp *w,
                         struct gn_error *err);

#endif
