/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the destination worker to the source; see transfer_internal.h. The saving thread
 * reads them. The destination may be on another machine: nothing in a message is trusted.
 */
#include "vgpu/migrate/transfer_internal.h"

#include "base/clock.h"
#include "link/worker_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int fail_no_answer(int rc, struct gn_error *err)
{
    return gn_fail(err, rc == -ETIMEDOUT ? ETIMEDOUT : EPIPE, NULL,
                   rc == -ETIMEDOUT ? "the destination worker did not answer in time"
                                    : "the destination worker has ended");
}

/* Appends a frame's ids to *ids. */
static int append_ids(const struct gn_frame *f, uint64_t **ids, uint32_t *n, struct gn_error *err)
{
    const uint32_t more = f->n_payload / (uint32_t)sizeof **ids;
    if (!more || f->n_payload % sizeof **ids || more > GN_ACKS_MOST - *n)
        return gn_fail(err, EPROTO, NULL,
                       "protocol error: invalid list of retained contents from the destination");
    uint64_t *all = realloc(*ids, (*n + more) * sizeof **ids);
    if (!all)
        return gn_fail(err, ENOMEM, NULL, "no memory left for the list of retained contents");
    memcpy(all + *n, f->payload, f->n_payload);
    *ids = all;
    *n += more;
    return 0;
}

int gn_acks_fits(struct gn_frame_reader *from, uint32_t timeout_ms, uint32_t *ret_others,
                 uint64_t **ret_ids, uint32_t *ret_n, struct gn_error *err)
{
    const uint64_t until_ns = gn_now_ns() + timeout_ms * UINT64_C(1000000);
    uint64_t *ids = NULL;
    uint32_t n = 0;
    int rc = 0;
    while (!rc) {
        const uint64_t now_ns = gn_now_ns();
        struct gn_frame f;
        const int received =
            gn_frame_wait(from, until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000) : 0, &f);
        if (received == 1 && !f.n_fds && f.op == GN_WORKER_HAND_FITS && !f.n_payload) {
            *ret_others = f.seq;
            break;
        }
        rc = received == 1 && !f.n_fds && f.op == GN_WORKER_HAND_RETAINED && ret_ids
                 ? append_ids(&f, &ids, &n, err)
                 : fail_no_answer(received, err);
    }
    if (rc || !ret_ids) {
        free(ids);
        return rc;
    }
    *ret_ids = ids;
    *ret_n = n;
    return 0;
}

int gn_acks_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made,
                 struct gn_error *err)
{
    while (*made < step) {
        struct gn_frame f;
        const int received = gn_frame_wait(from, timeout_ms, &f);
        if (received != 1 || f.op != GN_WORKER_HAND_MADE || f.n_payload || f.n_fds)
            return fail_no_answer(received, err);
        const uint32_t before = *made;
        *made = f.seq;
        if (*made <= before)
            return gn_fail(err, EPROTO, NULL,
                           "protocol error: duplicate step from the destination");
    }
    return 0;
}
