/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_STREAM_IN_H
#define GN_LINK_STREAM_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "link/record.h"
#include "link/tcp.h"

/*
 * The receiving half of a session's stream: one thread at a time. Records are told one by one,
 * whole; bulk data is received where it belongs, without a copy on the way. The other side is
 * hostile: lengths are bounded, places asked for.
 */
struct gn_stream_in;

struct gn_in_ops {
    /* Where a DATA record's payload goes, all of it; NULL: a fault. */
    void *(*place)(void *context, const struct gn_stream_record *r);
    /* A record; DATA is in its place, others' payload holds during the call. 0, or -errno: a fault.
     */
    int (*take)(void *context, const struct gn_stream_record *r, const void *payload);
};

#define GN_IN_BUFFER_BYTES (64u << 10)

struct gn_stream_in {
    const struct gn_in_ops *ops;
    void *context;
    struct gn_tcp *tcp;
    uint64_t received; /* bytes of whole records, ACKs not counted */
    uint64_t small; /* of these, records shorter than a piece: they take room in the sender's ring
                       until they are acknowledged */
    unsigned char *buffer;
    uint32_t have, used;
    struct gn_stream_record record; /* DATA that is on its way to its place */
    unsigned char *to;
    uint32_t left; /* 0: none is */
    bool bulk;     /* the last record was a long one: the next is likely to be, too */
};

int gn_in_init(struct gn_stream_in *in, const struct gn_in_ops *ops, void *context);
void gn_in_fini(struct gn_stream_in *in);
/* A new connection: what came of an unfinished record is forgotten, and comes again. */
void gn_in_connect(struct gn_stream_in *in, struct gn_tcp *tcp);

/* Receives once and tells what is whole. > 0: something came; -EAGAIN; -EPROTO, and what `take`
 * returned: a fault; other -errno: the connection is over. */
int gn_in_read(struct gn_stream_in *in);

#endif
