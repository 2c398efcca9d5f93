/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TRANSFER_INTERNAL_H
#define GN_VGPU_MIGRATE_TRANSFER_INTERNAL_H

#include "link/tcp.h"
#include "stream/stream.h"
#include "vgpu/migrate/transfer.h"

/* What the two ends of a migration, transfer_source.c and transfer_destination.c, share. */

/* limit while the other worker does not read: it hangs. It may have programs to build */
#define GN_TRANSFER_STALL_MS 60000u
#define GN_TRANSFER_HAND_MS  10000

struct gn_worker_moved;

/*
 * Sends gantryd the outcome, SAVED or LOADED; rc and err as of the failed step, rc 0: none. fd:
 * sent with it, -1: none.
 */
void gn_transfer_report(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *moved, int rc,
                        const struct gn_error *err, int fd);
/*
 * Starts TLS, with a key that both workers have. The deadline is GN_TRANSFER_* from now. 0, or
 * -errno and a sentence.
 */
int gn_transfer_start_tls(struct gn_tcp *tcp, bool server, const void *name, const void *key,
                          uint32_t timeout_ms, struct gn_error *err);
/* The stream's end at a connection, which stays the caller's. */
struct gn_stream_fd gn_transfer_stream(struct gn_tcp *tcp, uint32_t stall_ms);
/* gantryd commits: the destination continues. The control thread. */
void gn_transfer_resume_as_owner(struct gn_vgpu *v);

#endif
