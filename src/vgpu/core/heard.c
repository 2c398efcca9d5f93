/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says to the one whose vGPU it takes over; see heard.h. It may be on another machine: it is believed nothing. */
#include "vgpu/core/heard.h"

#include "link/worker_wire.h"

#include <errno.h>

int gn_heard_word(struct gn_frame_reader *from, int timeout_ms, uint16_t op, uint32_t *ret_seq, struct gn_error *err)
{
    struct gn_frame f;
    const int rc = gn_frame_wait(from, timeout_ms, &f);
    if (rc == 1 && f.op == op && !f.n_payload && !f.n_fds) {
        *ret_seq = f.seq;
        return 0;
    }
    return gn_fail(err, rc == -ETIMEDOUT ? ETIMEDOUT : EPIPE, NULL,
                   rc == -ETIMEDOUT ? "the other worker took too long" : "the other worker has ended");
}

int gn_heard_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made, struct gn_error *err)
{
    while (*made < step) {
        const uint32_t before = *made;
        const int rc = gn_heard_word(from, timeout_ms, GN_WORKER_HAND_MADE, made, err);
        if (rc)
            return rc;
        if (*made <= before)
            return gn_fail(err, EPROTO, NULL, "the other worker says again what it has said");
    }
    return 0;
}
