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
 * The sending half of a tcp session's stream. Any thread may append records, and any thread may
 * flush; neither waits for the network. Small records are copied and sent first; bulk data is sent
 * from the caller's memory, in pieces between them. Unacknowledged records are retained, so that a
 * new connection can resume the stream.
 *
 * Lock order: sending, then queue.
 */
#define GN_OUT_SMALL_BYTES 48u

struct gn_out_item { /* an entry of the ordered queue */
    struct gn_stream_record record;
    unsigned char small[GN_OUT_SMALL_BYTES]; /* the payload of a small record, when `bytes` is
                                              * NULL */
    const unsigned char *bytes;
    uint64_t n; /* bulk data: total bytes; a small record: its payload */
    bool end;   /* the last piece completes a batch */
};

struct gn_out_sent {   /* a log entry: bytes given to the connection, in stream order */
    uint64_t position; /* in the stream */
    uint32_t counted;  /* bytes of the stream; 0: an ACK */
    uint32_t n_header; /* of head */
    const unsigned char *bytes;
    uint32_t n_bytes;
    bool in_ring; /* the bytes are in the ring, and release its room when acknowledged */
    unsigned char head[sizeof(struct gn_stream_record) + GN_OUT_SMALL_BYTES];
};

struct gn_stream_out {
    pthread_mutex_t sending; /* held by the thread that sends */
    struct gn_tcp *tcp;      /* under `sending`; NULL: not connected */
    pthread_mutex_t queue;   /* protects all fields below */
    unsigned char *ring;     /* whole small records, wrapping */
    uint64_t ring_freed, ring_sent, ring_end;
    struct gn_out_item *items; /* circular */
    uint32_t items_capacity, first_item, n_items, most_items;
    uint64_t item_done;      /* bytes of the first item that are in the log */
    struct gn_out_sent *log; /* circular */
    uint32_t log_capacity, first_sent, n_sent;
    uint32_t sending_at;     /* index, from first_sent, of the entry that is being sent */
    uint32_t sending_offset; /* bytes of it that are sent */
    uint64_t position, acknowledged;
    uint64_t batches;   /* of bulk data, completely queued */
    uint64_t ack_owed;  /* bytes received from the peer */
    uint64_t ack_small; /* small records among those received when the last ACK became due; owned by
                         * the receiving thread */
    bool stopped;
    bool in_run; /* part of the ring is in the log: the rest must follow before any other record */
    bool held;   /* appended records are not assigned a place in the stream */
    /* any thread */
    _Atomic uint64_t ack_sent;
    _Atomic uint32_t
        room; /* incremented when an acknowledgement frees room, or a queue entry is sent */
    _Atomic uint64_t unsent; /* bytes of small records that are not sent yet */
    _Atomic bool unflushed;  /* there is something to send */
    _Atomic bool blocked;    /* the socket was full at the last attempt */
};

#define GN_OUT_RING_BYTES (1u << 21)
#define GN_OUT_MOST_ITEMS                                                                          \
    (1u << 21) /* limit of queued entries; the same number may be sent and unacknowledged */
/*
 * When the receiver must send an ACK. Sending one costs as much as tens of KiB of data, and the
 * sender still has half of its ring meanwhile. Bulk data occupies only a log entry per piece, so
 * its limit is larger.
 */
#define GN_OUT_ACK_DUE_BYTES      (GN_OUT_RING_BYTES / 2)
#define GN_OUT_BULK_ACK_DUE_BYTES (16u << 20)

int gn_out_init(struct gn_stream_out *o);
void gn_out_fini(struct gn_stream_out *o);

/*
 * Appends a small record, copying it. 0; -EAGAIN: no room until the peer acknowledges more;
 * -EMSGSIZE; -EPIPE: after gn_out_stop.
 */
int gn_out_append(struct gn_stream_out *o, const struct gn_stream_record *r, const void *payload);
/* Several records, all or none. */
struct gn_out_part {
    struct gn_stream_record record;
    const void *payload;
};
int gn_out_append_all(struct gn_stream_out *o, const struct gn_out_part *parts, int n);

/*
 * Queues bulk data. The bytes must stay valid and unchanged until the peer has used them. A batch
 * is the bulk data of one message; *ret_batch is its number, for that message's record. -ENOBUFS:
 * the queue is full until entries are sent; -ENOMEM; -EPIPE.
 */
int gn_out_bulk(struct gn_stream_out *o, uint16_t segment, uint64_t at, const void *bytes,
                uint64_t n, bool end, uint64_t *ret_batch);
/*
 * Stops reading these bytes, for a message that failed before it was queued: pieces not sent yet
 * are dropped, the rest of the piece that is being sent is replaced by zeros, and the batch ends
 * there.
 */
void gn_out_forget(struct gn_stream_out *o, const void *bytes, uint64_t n);
/*
 * Appends a small record behind all queued bulk data, with a payload of at most GN_OUT_SMALL_BYTES.
 * As gn_out_append, but never -EAGAIN; -ENOBUFS and -ENOMEM as above.
 */
int gn_out_append_ordered(struct gn_stream_out *o, const struct gn_stream_record *r,
                          const void *payload);

/*
 * Sends as much as the socket accepts. 0; -EAGAIN: the socket is full, poll it for POLLOUT and
 * flush again; -ENOMEM: try again; -EPIPE and others: the connection is lost. Returns 0 at once
 * when another thread is sending: that thread sends the rest.
 */
int gn_out_flush(struct gn_stream_out *o);
static inline bool gn_out_pending(struct gn_stream_out *o)
{
    return atomic_load_explicit(&o->unflushed, memory_order_relaxed);
}

/* The peer has acknowledged this position. -EPROTO: it was never sent. */
int gn_out_acknowledged(struct gn_stream_out *o, uint64_t position);
/*
 * This side has received `position` bytes, of these `small` in small records: an ACK goes with the
 * next records or the next flush. Called by the receiving thread.
 */
void gn_out_owe_ack(struct gn_stream_out *o, uint64_t position, uint64_t small);
static inline bool gn_out_ack_due(struct gn_stream_out *o, uint64_t position, uint64_t small)
{
    return small - o->ack_small >= GN_OUT_ACK_DUE_BYTES ||
           position - atomic_load_explicit(&o->ack_sent, memory_order_relaxed) >=
               GN_OUT_BULK_ACK_DUE_BYTES;
}

/*
 * Resumes on a new connection at `received`, which the peer has reported. -EPROTO: not a possible
 * position.
 */
int gn_out_connect(struct gn_stream_out *o, struct gn_tcp *tcp, uint64_t received);
/*
 * Stops sending until the next gn_out_connect. On return no thread uses the old connection or reads
 * bulk data.
 */
void gn_out_disconnect(struct gn_stream_out *o);
/* Stops for good. */
void gn_out_stop(struct gn_stream_out *o);

/*
 * For a migration of this end of the stream to another process. gn_out_hold moves everything
 * appended so far to the log, and returns the unacknowledged part in *ret: a copy, except that bulk
 * data is referenced where it is. Records appended afterwards get no place in the stream until
 * gn_out_release; sending continues. 0 or -ENOMEM.
 */
struct gn_out_retained {
    uint64_t first, acknowledged; /* stream positions: of the first retained entry (which may be
                                   * partly acknowledged), and of the last acknowledgement */
    uint32_t n;
    struct gn_out_sent *all;
    unsigned char *copy; /* of bytes in the ring */
};
int gn_out_hold(struct gn_stream_out *o, struct gn_out_retained *ret);
void gn_out_release(struct gn_stream_out *o);
void gn_out_retained_fini(struct gn_out_retained *k);
/*
 * In the new process, before it sends anything: gn_out_go_on sets the position `first`;
 * gn_out_keep_run (bytes of whole small records) and gn_out_keep_record (one record; bulk data
 * referenced at its present place) rebuild the log in stream order; then gn_out_retained_all sets
 * the acknowledged position. 0; -EPROTO: inconsistent input; -ENOMEM.
 */
void gn_out_go_on(struct gn_stream_out *o, uint64_t first);
int gn_out_keep_run(struct gn_stream_out *o, const void *bytes, size_t n);
int gn_out_keep_record(struct gn_stream_out *o, const struct gn_stream_record *r,
                       const void *payload);
int gn_out_retained_all(struct gn_stream_out *o, uint64_t acknowledged);

#endif
