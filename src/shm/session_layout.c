/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a session's ring segment. gantryd creates the segment; the guest and the worker
 * each locate its parts once, at attach. Nothing here runs afterwards.
 */
#include "shm/session_layout.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int gn_session_create(const char *name, struct gn_segment *ret)
{
    const struct gn_session_header header = {.magic = GN_SESSION_MAGIC,
                                             .version = GN_SESSION_VERSION};
    struct gn_segment s;
    int r = gn_segment_create(name, GN_SESSION_BYTES, &s);
    if (r < 0)
        return r;
    ssize_t n = pwrite(s.fd, &header, sizeof header, 0);
    if (n != (ssize_t)sizeof header) {
        r = n < 0 ? -errno : -EIO;
        gn_segment_fini(&s);
        return r;
    }
    *ret = s;
    return 0;
}

int gn_session_map(void *base, uint64_t bytes, struct gn_session_view *ret)
{
    struct gn_session_header header;
    if (bytes != GN_SESSION_BYTES || (uintptr_t)base % GN_SESSION_PAGE != 0)
        return -EINVAL;
    memcpy(&header, base, sizeof header);
    __asm__ volatile("" ::: "memory"); /* check the copy, never the shared bytes */
    if (header.magic != GN_SESSION_MAGIC || header.version != GN_SESSION_VERSION ||
        header.zero != 0)
        return -EINVAL;
    unsigned char *at = base;
    *ret = (struct gn_session_view){
        .counts = (struct gn_session_counts *)(at + GN_SESSION_COUNTS_AT),
        .turn = (struct gn_session_turn *)(at + GN_SESSION_TURN_AT),
        .requests = (struct gn_ring *)(at + GN_SESSION_REQUESTS_AT),
        .notices = (struct gn_ring *)(at + GN_SESSION_NOTICES_AT),
        .replies = (struct gn_reply_slot *)(at + GN_SESSION_REPLIES_AT),
    };
    return 0;
}
