/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the frames by which a session in shared memory changes its worker. Called by the saving
 * thread of a source, and by the threads of a program that follow a migration or wait for a
 * restore. It never receives anything.
 */
#include "link/worker_hand.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "link/frame.h"

#define TIMEOUT_MS 10000

/* *ret_opened: what has to be closed afterwards, or -1. */
static int stdio_or_null(int fd, int *ret_opened)
{
    *ret_opened = -1;
    return gn_fd_is_open(fd) ? fd : (*ret_opened = gn_fd_open("/dev/null", O_WRONLY));
}

/* Sends a frame with the process's output, as the last two of n_fds descriptors. */
static int send_with_output(int to, uint16_t op, const void *payload, size_t n, int *fds, int n_fds)
{
    int opened[2];
    fds[n_fds - 2] = stdio_or_null(STDOUT_FILENO, &opened[0]);
    fds[n_fds - 1] = stdio_or_null(STDERR_FILENO, &opened[1]);
    const int rc = gn_frame_send(to, TIMEOUT_MS, op, 0, 0, payload, n, fds, n_fds);
    gn_fd_close(opened[0]);
    gn_fd_close(opened[1]);
    return rc;
}

_Static_assert(GN_WORKER_HAND_STDOUT == GN_WORKER_HAND_FDS - 2 &&
                   GN_WORKER_HAND_STDERR == GN_WORKER_HAND_FDS - 1,
               "the output is last");

int gn_worker_hand_session(int to, const struct gn_worker_hand *hand, int session_fd, int events_fd,
                           int (*segment)(void *ctx, uint32_t index, uint64_t *ret_bytes),
                           void *ctx)
{
    struct gn_link_segment_made made;
    int fds[GN_WORKER_HAND_FDS] = {[GN_WORKER_HAND_SESSION] = session_fd,
                                   [GN_WORKER_HAND_EVENTS] = events_fd,
                                   [GN_WORKER_HAND_DATA] = segment(ctx, 0, &made.bytes)};
    int rc = send_with_output(to, GN_WORKER_HAND, hand, sizeof *hand, fds, GN_WORKER_HAND_FDS);
    for (uint32_t i = 1; !rc && i < hand->n_segments; i++) {
        made = (struct gn_link_segment_made){.index = i};
        const int fd = segment(ctx, i, &made.bytes);
        rc =
            gn_frame_send(to, TIMEOUT_MS, GN_WORKER_HAND_SEGMENT, 0, 0, &made, sizeof made, &fd, 1);
    }
    return rc;
}

int gn_worker_hand_position(int to, uint64_t ring_at)
{
    const struct gn_worker_hand_last last = {.ring_at = ring_at};
    int fds[2];
    return send_with_output(to, GN_WORKER_HAND_LAST, &last, sizeof last, fds, 2);
}
