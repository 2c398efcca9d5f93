/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of a tcp session's stream, in programs and in workers. Runs on the thread that
 * reads the connection at the moment, and never blocks. The peer is hostile: lengths are bounded,
 * and every place in memory comes from the caller's `place`. A malformed record is a fault, which
 * ends the session.
 */
#include "link/stream_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gn_in_init(struct gn_stream_in *in, const struct gn_in_ops *ops, void *context)
{
    memset(in, 0, sizeof *in);
    in->ops = ops;
    in->context = context;
    in->buffer = malloc(GN_IN_BUFFER_BYTES);
    return in->buffer ? 0 : -ENOMEM;
}

void gn_in_fini(struct gn_stream_in *in)
{
    free(in->buffer);
}

void gn_in_connect(struct gn_stream_in *in, struct gn_tcp *tcp)
{
    in->tcp = tcp;
    in->have = in->used = in->left = 0;
}

#define BULK_AHEAD 512u /* room for a header and some small records */

static int take(struct gn_stream_in *in, const struct gn_stream_record *r, const void *payload)
{
    if (r->type != GN_RECORD_ACK)
        in->received += sizeof *r + r->bytes;
    /*
     * Counts conservatively: a short DATA record may be the end of bulk data, or may lie in the
     * sender's ring.
     */
    if (r->type != GN_RECORD_ACK && r->bytes < GN_RECORD_PIECE_BYTES)
        in->small += sizeof *r + r->bytes;
    return in->ops->take(in->context, r, payload);
}

/* Dispatches all whole records in the buffer. */
static int parse(struct gn_stream_in *in)
{
    while (!in->left && in->have - in->used >= sizeof in->record) {
        struct gn_stream_record r;
        memcpy(&r, in->buffer + in->used, sizeof r);
        bool data = r.type == GN_RECORD_DATA || r.type == GN_RECORD_DATA_END;
        uint32_t there = in->have - in->used - (uint32_t)sizeof r;
        if (r.bytes > (data ? GN_RECORD_MAX_BYTES : GN_IN_BUFFER_BYTES - sizeof r))
            return -EPROTO;
        const uint32_t n = there < r.bytes ? there : r.bytes;
        unsigned char *to = NULL;
        if (data) {
            to = in->ops->place(in->context, &r);
            if (!to && r.bytes)
                return -EPROTO;
            in->bulk = r.bytes >= GN_IN_BUFFER_BYTES / 4;
            if (n)
                memcpy(to, in->buffer + in->used + sizeof r, n);
        } else if (n < r.bytes) {
            in->bulk = false;
            return 0;
        }
        in->used += (uint32_t)sizeof r + n;
        if (n < r.bytes) {
            in->record = r;
            in->to = to + n;
            in->left = r.bytes - n;
            return 0;
        }
        int rc = take(in, &r, data ? NULL : in->buffer + in->used - r.bytes);
        if (rc)
            return rc;
    }
    return 0;
}

int gn_in_read(struct gn_stream_in *in)
{
    if (in->used) {
        memmove(in->buffer, in->buffer + in->used, in->have - in->used);
        in->have -= in->used;
        in->used = 0;
    }
    /*
     * Receive the rest of the current DATA record directly into its place, and the records after it
     * into the buffer, which is empty then. Within bulk data read little beyond the record: bytes
     * read into the buffer have to be copied.
     */
    uint32_t ahead = GN_IN_BUFFER_BYTES - in->have;
    if (in->bulk && in->have < BULK_AHEAD)
        ahead = BULK_AHEAD - in->have;
    struct iovec iov[2] = {{in->to, in->left}, {in->buffer + in->have, ahead}};
    ssize_t got = in->left ? gn_tcp_recv(in->tcp, iov, 2) : gn_tcp_recv(in->tcp, iov + 1, 1);
    if (got < 0)
        return (int)got;
    size_t n = (size_t)got, direct = 0;
    if (in->left) {
        direct = n < in->left ? n : in->left;
        in->to += direct;
        in->left -= (uint32_t)direct;
        n -= direct;
    }
    const bool whole = direct && !in->left;
    /* Before `take`, which may start on a new connection. */
    in->have += (uint32_t)n;
    int rc = whole ? take(in, &in->record, NULL) : 0;
    if (!rc)
        rc = parse(in);
    return rc ? rc : 1;
}
