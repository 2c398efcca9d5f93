/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_STREAM_IN_H
#define GN_LINK_STREAM_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "link/record.h"
#include "link/tcp.h"

/*
 * The receiving half of a tcp session's stream; one thread at a time. It reports records one by
 * one, each when it is complete, and receives bulk data directly in its destination. The peer is
 * hostile: lengths are bounded, and `place` decides where data may go.
 */
struct gn_stream_in;

struct gn_in_ops {
    /* Where the whole payload of a DATA record goes; NULL: a fault. */
    void *(*place)(void *context, const struct gn_stream_record *r);
    /*
     * A complete record. The payload of DATA is in its place already; other payloads are valid
     * during the call. May call gn_in_connect. 0, or -errno: a fault.
     */
    int (*take)(void *context, const struct gn_stream_record *r, const void *payload);
};

#define GN_IN_BUFFER_BYTES (64u << 10)

struct gn_stream_in {
    const struct gn_in_ops *ops;
    void *context;
    struct gn_tcp *tcp;
    uint64_t received; /* bytes of whole records, without ACKs */
    uint64_t small;    /* the part of `received` in records shorter than a piece: these occupy the
                        * sender's ring until they are acknowledged */
    unsigned char *buffer;
    uint32_t have, used;
    struct gn_stream_record record; /* the DATA record that is being received */
    unsigned char *to;
    uint32_t left; /* bytes of it that are missing; 0: no DATA record is in progress */
    bool bulk;     /* the last record was a long one, so the next one probably is, too */
};

int gn_in_init(struct gn_stream_in *in, const struct gn_in_ops *ops, void *context);
void gn_in_fini(struct gn_stream_in *in);
/* Starts on a new connection: drops a partial record, which the peer sends again. */
void gn_in_connect(struct gn_stream_in *in, struct gn_tcp *tcp);

/*
 * Receives once and dispatches the complete records. > 0: received something; -EAGAIN: nothing
 * available; -EPROTO, or an error of `take`: a fault; another -errno: the connection is lost.
 */
int gn_in_read(struct gn_stream_in *in);

#endif
