/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WORKER_HAND_H
#define GN_LINK_WORKER_HAND_H

#include "link/worker_wire.h"

/*
 * Hands a session in shared memory to the worker that is to serve it, over a Unix socket: by the
 * worker that serves it now, or by its program (docs/moves.md). Both give the stdout and stderr of
 * their process, or /dev/null in place of one that is closed. Descriptors stay the caller's. Each
 * function waits at most 10 s for a worker that does not read. Any thread; 0 or -errno.
 */

/* segment: the descriptor and the size of a data segment, by its index, below hand->n_segments. */
int gn_worker_hand_session(int to, const struct gn_worker_hand *hand, int session_fd, int events_fd,
                           int (*segment)(void *ctx, uint32_t index, uint64_t *ret_bytes),
                           void *ctx);
/* Afterwards, when nothing reads the request ring any more: the position in it. */
int gn_worker_hand_position(int to, uint64_t ring_at);

#endif
