/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CLOSER_H
#define GN_DAEMON_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

/*
 * Closes descriptors that other processes have chosen, on threads of its own, since close() may
 * block for as long as the other process likes: a TCP socket lingers, a FUSE file system asks its
 * server, a Unix socket closes the descriptors in its queue. So gantryd's event loop closes no
 * descriptor that came from a program, a worker or a stranger, and no socket that is connected to
 * one of them.
 *
 * A close() that a signal can interrupt, such as lingering, ends after a millisecond. One that no
 * signal interrupts occupies its thread. A source (quota.h) gets at most GN_CLOSER_A_SOURCE of the
 * GN_CLOSER_THREADS threads, so it delays only its own descriptors.
 */
#define GN_CLOSER_THREADS  64u
#define GN_CLOSER_A_SOURCE 2u

struct gn_closer;

/* The descriptors of one source; zero-initialized it has none. Embedded by the caller; only
 * closer.c uses the fields. */
struct gn_closing {
    struct gn_list link; /* in the list of sources with work for a thread */
    bool listed;
    int first, last; /* waiting descriptors, as number plus one; 0: none */
    uint32_t n_waiting, n_busy;
};

/* news_fd: the eventfd that gn_closer_await() makes readable; it stays the caller's. 0 or
 * -errno. */
int gn_closer_start(int news_fd, struct gn_closer **ret, struct gn_error *err);
/* Waits at most timeout_ms until all descriptors are closed. False: a close() hangs; the closer and
 * the gn_closing structs stay in use until the process ends. */
bool gn_closer_stop(struct gn_closer *c, int timeout_ms);

/* Takes fd and never blocks. Only one thread at a time may call it. */
void gn_closer_add(struct gn_closer *c, struct gn_closing *s, int fd);

/* The number of descriptors of the source, or of all sources, that are not closed yet. */
uint32_t gn_closer_pending_of(struct gn_closer *c, const struct gn_closing *s);
uint32_t gn_closer_pending(struct gn_closer *c);
/* Adds to the eventfd once, when the next close() has returned. */
void gn_closer_await(struct gn_closer *c);

#endif
