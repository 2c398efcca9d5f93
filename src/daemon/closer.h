/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CLOSER_H
#define GN_DAEMON_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

/*
 * Closes descriptors that others have chosen, on threads of its own: close() may wait for as long
 * as such a descriptor's owner likes. A TCP socket lingers; a file of a FUSE file system asks its
 * server; a Unix socket closes what waits in its queue unread. So gantryd's loop itself closes
 * nothing that came from a program, a worker or a stranger, nor any socket whose other end one of
 * them has.
 *
 * A wait that a signal ends, as lingering is, ends after a millisecond. One that nothing ends keeps
 * its thread. A source (quota.h) has at most GN_CLOSER_A_SOURCE threads of GN_CLOSER_THREADS, so it
 * holds up its own descriptors alone.
 */
#define GN_CLOSER_THREADS  64u
#define GN_CLOSER_A_SOURCE 2u

struct gn_closer;

/* One source's descriptors; zero-initialized there are none. Embedded; its fields are the closer's.
 */
struct gn_closing {
    struct gn_list link; /* among the sources that have work for a thread */
    bool listed;
    int first, last; /* those that wait, by number plus one; 0: none */
    uint32_t n_waiting, n_busy;
};

/* news_fd: an eventfd, the caller's, which gn_closer_await() is about. 0 or -errno. */
int gn_closer_start(int news_fd, struct gn_closer **ret, struct gn_error *err);
/* Waits at most timeout_ms for what is still to be closed. False: something hangs, and is left with
 * what it uses, the gn_closing among it, to the end of the process. */
bool gn_closer_stop(struct gn_closer *c, int timeout_ms);

/* Takes fd. Never waits. The caller's thread is one at a time. */
void gn_closer_add(struct gn_closer *c, struct gn_closing *s, int fd);

/* How many descriptors of the source, or of all sources, are still open here. */
uint32_t gn_closer_pending_of(struct gn_closer *c, const struct gn_closing *s);
uint32_t gn_closer_pending(struct gn_closer *c);
/* The next close() that returns adds to the eventfd, once. */
void gn_closer_await(struct gn_closer *c);

#endif
