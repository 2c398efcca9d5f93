/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_WORKER_LOG_H
#define GN_DAEMON_VGPU_WORKER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/bucket.h"
#include "daemon/loop.h"

/*
 * A worker's lines in gantryd's log. The worker writes into a pipe of its own, and gantryd copies
 * whole lines, a bounded number. A worker does not get gantryd's own descriptor, with which it
 * could truncate the file or write in gantryd's name.
 */
struct gn_worker_log {
    struct gn_loop *loop;
    struct gn_source source;     /* the pipe's end here; -1: none */
    struct gn_line_limit *limit; /* of all workers of its user */
    bool cut;                    /* the rest of a line that is too long is skipped */
    size_t n;
    char line[768];
};

/* limit outlives l. */
void gn_worker_log_init(struct gn_worker_log *l, struct gn_line_limit *limit);
/* 0 and the worker's end, the caller's; or -errno. Neither end ever blocks. */
int gn_worker_log_open(struct gn_worker_log *l, struct gn_loop *loop, int *ret_fd);
/* Copies the lines that are there. */
void gn_worker_log_drain(struct gn_worker_log *l);
/* The same, for the last time. Does nothing when it is not open. */
void gn_worker_log_close(struct gn_worker_log *l);

#endif
