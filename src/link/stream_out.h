/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_STREAM_OUT_H
#define GN_LINK_STREAM_OUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/record.h"
#include "link/tcp.h"

/*
 * The sending half of a session's stream. Any thread appends records and any thread flushes;
 * neither ever waits for the network. Small records are copied and go first; bulk data is named
 * where it lies and goes in pieces between them. What the other side has not acknowledged is kept,
 * so that a new connection goes on where the old one broke.
 *
 * Lock order: sending, then queue.
 */
#define GN_OUT_SMALL_BYTES 48u

struct gn_out_item { /* of the ordered queue */
    struct gn_stream_record record;
    unsigned char small[GN_OUT_SMALL_BYTES]; /* a small record's payload, when `bytes` is NULL */
    const unsigned char *bytes;
    uint64_t n; /* bulk: of all its pieces; in small ones as in the record */
    bool end;   /* its last piece completes a batch */
};

struct gn_out_sent {   /* what was handed to the connection, in that order */
    uint64_t position; /* in the stream */
    uint32_t counted;  /* bytes of the stream; 0: an ACK */
    uint32_t n_header; /* of head */
    const unsigned char *bytes;
    uint32_t n_bytes;
    bool in_ring; /* bytes lie in the ring, and free it when acknowledged */
    unsigned char head[sizeof(struct gn_stream_record) + GN_OUT_SMALL_BYTES];
};

struct gn_stream_out {
    pthread_mutex_t sending; /* whoever holds it sends */
    struct gn_tcp *tcp;      /* sending; NULL: not connected */
    pthread_mutex_t queue;   /* all below */
    unsigned char *ring;     /* small records, whole, wrapping */
    uint64_t ring_freed, ring_sent, ring_end;
    struct gn_out_item *items; /* a ring */
    uint32_t items_capacity, first_item, n_items, most_items;
    uint64_t item_done;      /* bytes of the first item that have become pieces */
    struct gn_out_sent *log; /* a ring */
    uint32_t log_capacity, first_sent, n_sent;
    uint32_t sending_at;     /* index from first_sent of the entry that goes out now */
    uint32_t sending_offset; /* bytes of it that are out */
    uint64_t position, acknowledged;
    uint64_t batches;  /* of bulk data, complete in the queue */
    uint64_t ack_owed; /* of what we have taken */
    uint64_t
        ack_small; /* of it, small records; who takes: when the last acknowledgement was owed */
    bool stopped;
    bool in_run; /* part of the ring is staged: no record may come before the rest */
    bool held;   /* what is appended gets no place in the stream */
    /* any thread */
    _Atomic uint64_t ack_sent;
    _Atomic uint32_t
        room; /* goes up when an acknowledgement makes room, or one of those that wait goes */
    _Atomic uint64_t unsent;  /* bytes of small records not sent yet */
    _Atomic bool unflushed;   /* something is to be sent */
    _Atomic bool blocked;     /* the socket was full at the last try */
    _Atomic uint64_t n_sends; /* counter */
};

#define GN_OUT_RING_BYTES (1u << 21)
#define GN_OUT_MOST_ITEMS                                                                          \
    (1u << 21) /* that wait, and as many that are sent and not acknowledged                        \
                */
/* An acknowledgement costs its sender as much as tens of kilobytes do; half a ring is left
 * meanwhile. Bulk data take no room but for a note of each piece. */
#define GN_OUT_ACK_DUE_BYTES      (GN_OUT_RING_BYTES / 2)
#define GN_OUT_BULK_ACK_DUE_BYTES (16u << 20)

int gn_out_init(struct gn_stream_out *o);
void gn_out_fini(struct gn_stream_out *o);

/*
 * Appends a small record: 0, -EAGAIN when there is no room until the other side acknowledges more,
 * -EMSGSIZE, -EPIPE after gn_out_stop.
 */
int gn_out_append(struct gn_stream_out *o, const struct gn_stream_record *r, const void *payload);
/* Several records, or none of them. */
struct gn_out_part {
    struct gn_stream_record record;
    const void *payload;
};
int gn_out_append_all(struct gn_stream_out *o, const struct gn_out_part *parts, int n);

/*
 * Bulk data, which stays where it is until the other side has said that it has used it. A batch is
 * what one message needs; *ret_batch, given to the message's record, is its number. -ENOBUFS: too
 * many are waiting, of which the next goes when it is sent; -ENOMEM.
 */
int gn_out_bulk(struct gn_stream_out *o, uint16_t segment, uint64_t at, const void *bytes,
                uint64_t n, bool end, uint64_t *ret_batch);
/* Nobody looks at these bytes again, and but for the piece that is on its way, the rest of which is
 * zeros, nothing more comes to where they were for: their batch ends there. For what has failed,
 * and so will not be used. */
void gn_out_forget(struct gn_stream_out *o, const void *bytes, uint64_t n);
/* In order behind all bulk data that waits; else as gn_out_append. Never -EAGAIN; -ENOBUFS and
 * -ENOMEM as above. Payloads of at most GN_OUT_SMALL_BYTES. */
int gn_out_append_ordered(struct gn_stream_out *o, const struct gn_stream_record *r,
                          const void *payload);

/*
 * Sends what it can. 0; -EAGAIN: the socket is full (poll it for POLLOUT and flush again); -EPIPE
 * and others: the connection is over. When another thread is sending it takes care of the rest, and
 * this returns 0.
 */
int gn_out_flush(struct gn_stream_out *o);
static inline bool gn_out_pending(struct gn_stream_out *o)
{
    return atomic_load_explicit(&o->unflushed, memory_order_relaxed);
}

/* The other side has taken this much: -EPROTO when that was never sent. */
int gn_out_acknowledged(struct gn_stream_out *o, uint64_t position);
/* We have taken this much, of it so much in small records: told soon, with whatever goes out next,
 * or by the next flush. Who takes. */
void gn_out_owe_ack(struct gn_stream_out *o, uint64_t position, uint64_t small);
static inline bool gn_out_ack_due(struct gn_stream_out *o, uint64_t position, uint64_t small)
{
    return small - o->ack_small >= GN_OUT_ACK_DUE_BYTES ||
           position - atomic_load_explicit(&o->ack_sent, memory_order_relaxed) >=
               GN_OUT_BULK_ACK_DUE_BYTES;
}

/* A new connection whose other end has taken `received`. -EPROTO as above. */
int gn_out_connect(struct gn_stream_out *o, struct gn_tcp *tcp, uint64_t received);
/* Nothing is sent until the next gn_out_connect; nobody touches the old connection, or bulk data,
 * when it returns. */
void gn_out_disconnect(struct gn_stream_out *o);
/* For good. */
void gn_out_stop(struct gn_stream_out *o);

/*
 * Another goes on with the stream in this one's place. All that was appended gets its place in it;
 * what is appended from now on does not, until gn_out_release. What is to be sent goes out
 * meanwhile. *ret: what the other side has not acknowledged, a copy of it but for bulk data, which
 * lie where they did. 0 or -ENOMEM.
 */
struct gn_out_retained {
    uint64_t first,
        acknowledged; /* positions: of the first one kept, which may be acknowledged in part */
    uint32_t n;
    struct gn_out_sent *all;
    unsigned char *copy; /* of the ring */
};
int gn_out_hold(struct gn_stream_out *o, struct gn_out_retained *ret);
void gn_out_release(struct gn_stream_out *o);
void gn_out_retained_fini(struct gn_out_retained *k);
/*
 * The other one, which has said nothing: goes on at `first`; keeps what comes behind that, in its
 * order, whole small records' bytes or one record, of bulk data where they lie now; and then knows
 * what is acknowledged. 0; -EPROTO: there is no such stream; -ENOMEM.
 */
void gn_out_go_on(struct gn_stream_out *o, uint64_t first);
int gn_out_keep_run(struct gn_stream_out *o, const void *bytes, size_t n);
int gn_out_keep_record(struct gn_stream_out *o, const struct gn_stream_record *r,
                       const void *payload);
int gn_out_retained_all(struct gn_stream_out *o, uint64_t acknowledged);

#endif
