/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's part in checkpoints: the descriptor of a control request, and the program of a stopped
 * vGPU that waits for it to be restored. Called by `gantry` and the front end, on one thread at a
 * time per link. Only gn_link_wait_accepted blocks without limit.
 */
#include "link/link.h"

#include <errno.h>

#include "link/link_internal.h"

#define SEND_TIMEOUT_MS 10000

void gn_link_set_patience(struct gn_link *l, int timeout_ms)
{
    gn_link_end_of(l)->patience_ms = timeout_ms;
}

int gn_link_send_file(struct gn_link *l, int fd, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    if (u->tcp)
        return gn_fail(err, EOPNOTSUPP, "run gantry on gantryd's machine",
                       "a file cannot be handed to a gantryd on another machine");
    int rc =
        gn_frame_send(u->socket.fd, SEND_TIMEOUT_MS, GN_LINK_FILE, 0, ++u->seq, NULL, 0, &fd, 1);
    return rc ? gn_link_lost(err, rc == -ETIMEDOUT ? rc : -EPIPE) : 0;
}

int gn_link_wait(struct gn_link *l, const struct gn_link_wait *wait,
                 const int fds[static GN_LINK_WAIT_FDS], struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    if (u->tcp)
        return gn_fail(err, EOPNOTSUPP, NULL, "a stopped vGPU is waited for on its own machine");
    int rc = gn_frame_send(u->socket.fd, SEND_TIMEOUT_MS, GN_LINK_WAIT, 0, ++u->seq, wait,
                           sizeof *wait, fds, GN_LINK_WAIT_FDS);
    return rc ? gn_link_lost(err, rc == -ETIMEDOUT ? rc : -EPIPE) : 0;
}

int gn_link_wait_accepted(struct gn_link *l, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    struct gn_frame f;
    int rc = gn_frame_wait(&u->reader, -1, &f);
    if (rc < 0)
        return gn_link_lost(err, rc);
    if (f.seq != u->seq)
        return gn_link_lost(err, -EPROTO);
    if (f.op == GN_LINK_ERROR)
        return gn_link_refused(&f, err);
    return f.op == GN_LINK_HAND || f.op == GN_LINK_RESTORED ? f.op : gn_link_lost(err, -EPROTO);
}
