/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_MIGRATE_STOPPED_H
#define GN_GUEST_MIGRATE_STOPPED_H

#include <stdbool.h>
#include <stdint.h>

struct gn_link_stopped;
struct gn_session;

/* struct gn_session_migration_ops. */
bool gn_session_await_restored(struct gn_session *s, const struct gn_link_stopped *stop,
                               int worker_end);
/*
 * Hands the session to a worker that is to share memory, over the socket `hand`: with worker_end,
 * its end of the session's socket, and so many data segments. The descriptors stay the caller's. 0
 * or -errno.
 */
int gn_session_hand_over(struct gn_session *s, int hand, int worker_end, uint32_t n_segments);

#endif
