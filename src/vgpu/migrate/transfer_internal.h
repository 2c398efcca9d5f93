/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TRANSFER_INTERNAL_H
#define GN_VGPU_MIGRATE_TRANSFER_INTERNAL_H

#include "link/frame.h"
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
 * Starts TLS, with a key that both workers have and its name, waiting at most timeout_ms. 0, or
 * -errno and a sentence.
 */
int gn_transfer_start_tls(struct gn_tcp *tcp, bool server, const void *name, const void *key,
                          uint32_t timeout_ms, struct gn_error *err);
/* The stream's end at a connection, which stays the caller's. */
struct gn_stream_fd gn_transfer_stream(struct gn_tcp *tcp, uint32_t stall_ms);
/* gantryd commits: the destination continues. The control thread. */
void gn_transfer_resume_as_owner(struct gn_vgpu *v);

/* ---- acks.c */

/*
 * Messages of the destination worker while the source writes a vGPU. The saving thread waits for
 * them. Errors: -ETIMEDOUT; -EPIPE: the destination has ended, and has reported the reason
 * elsewhere; -EPROTO: an impossible message.
 */

/*
 * Waits, at most timeout_ms, for the destination's first answer: its devices are compatible;
 * *ret_others: they differ from the source's. *ret_ids: the ids of the memories that the
 * destination retains; the caller frees it; NULL for none; they are unverified. ret_ids NULL: it
 * cannot have any. Returns 0, an error as above, or -ENOMEM.
 */
#define GN_ACKS_MOST (1u << 20)
int gn_acks_fits(struct gn_frame_reader *from, uint32_t timeout_ms, uint32_t *ret_others,
                 uint64_t **ret_ids, uint32_t *ret_n, struct gn_error *err);

/*
 * Waits until the destination has made this step (counted from 1); *made is the last step that it
 * has reported. Each message has to report a later step, so the wait takes at most timeout_ms for
 * each step, whichever messages come. Returns 0 or an error as above.
 */
int gn_acks_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made,
                 struct gn_error *err);

#endif
