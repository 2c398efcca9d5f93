/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending half of a tcp session's stream, in programs and in workers. Appended records wait in
 * two queues: small records as bytes in a ring; bulk data, and records that must follow it, as
 * references. The sending thread moves them to the log in stream order, and sends from the log; the
 * log retains them until they are acknowledged. Any thread calls this, and it never blocks on the
 * network. After gn_out_disconnect or gn_out_stop it no longer reads the caller's bulk data.
 */
#include "link/stream_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GATHER 8
#define RUN_BYTES                                                                                  \
    (32u << 10) /* of small records in one log entry, whose room is released when all of it is     \
                 * acknowledged */
#define ACK_BYTES                                                                                  \
    (8u << 10) /* sends an ACK along with other records once this much is                          \
                * unacknowledged */
#define IOVS (2 * GATHER)

static const unsigned char zeros[GN_RECORD_PIECE_BYTES];

int gn_out_init(struct gn_stream_out *o)
{
    memset(o, 0, sizeof *o);
    /* Its pages are allocated as they are used. */
    o->ring =
        mmap(NULL, GN_OUT_RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (o->ring == MAP_FAILED)
        return -ENOMEM;
    o->most_items = GN_OUT_MOST_ITEMS;
    pthread_mutex_init(&o->sending, NULL);
    pthread_mutex_init(&o->queue, NULL);
    return 0;
}

void gn_out_fini(struct gn_stream_out *o)
{
    munmap(o->ring, GN_OUT_RING_BYTES);
    free(o->items);
    free(o->log);
    pthread_mutex_destroy(&o->sending);
    pthread_mutex_destroy(&o->queue);
}

/* ---- appending */

static void put_locked(struct gn_stream_out *o, const void *bytes, size_t n)
{
    size_t at = o->ring_end % GN_OUT_RING_BYTES,
           first = GN_OUT_RING_BYTES - at < n ? GN_OUT_RING_BYTES - at : n;
    if (first)
        memcpy(o->ring + at, bytes, first);
    if (n > first)
        memcpy(o->ring, (const char *)bytes + first, n - first);
    o->ring_end += n;
}

static int append_all_locked(struct gn_stream_out *o, const struct gn_out_part *parts, int n)
{
    uint64_t bytes = 0;
    bool long_one = false;
    for (int i = 0; i < n; i++) {
        bytes += sizeof parts[i].record + parts[i].record.bytes;
        long_one |= parts[i].record.bytes >= GN_RECORD_PIECE_BYTES;
    }
    if (o->stopped)
        return -EPIPE;
    /*
     * The peer counts a record as long as a piece as bulk data, so such a record must not wait in
     * the ring. The peer may leave half of the ring and the rest of a run unacknowledged; the
     * remainder must always suffice for one append.
     */
    if (long_one || bytes > GN_OUT_RING_BYTES / 2 - RUN_BYTES)
        return -EMSGSIZE;
    if (bytes > GN_OUT_RING_BYTES - (o->ring_end - o->ring_freed))
        return -EAGAIN;
    for (int i = 0; i < n; i++) {
        put_locked(o, &parts[i].record, sizeof parts[i].record);
        put_locked(o, parts[i].payload, parts[i].record.bytes);
    }
    atomic_store_explicit(&o->unsent, o->ring_end - o->ring_sent, memory_order_relaxed);
    atomic_store_explicit(&o->unflushed, true, memory_order_seq_cst);
    return 0;
}

int gn_out_append_all(struct gn_stream_out *o, const struct gn_out_part *parts, int n)
{
    pthread_mutex_lock(&o->queue);
    int r = append_all_locked(o, parts, n);
    pthread_mutex_unlock(&o->queue);
    return r;
}

int gn_out_append(struct gn_stream_out *o, const struct gn_stream_record *r, const void *payload)
{
    struct gn_out_part part = {*r, payload};
    return gn_out_append_all(o, &part, 1);
}

/* Doubles the capacity of a circular array; its first element moves to index 0. */
static bool grow(void **ring, uint32_t *capacity, uint32_t *first, uint32_t n, size_t element,
                 uint32_t most)
{
    uint32_t more = *capacity ? *capacity * 2 : 64;
    char *to = more <= most ? malloc(more * element) : NULL;
    if (!to)
        return false;
    for (uint32_t i = 0; i < n; i++)
        memcpy(to + i * element, (char *)*ring + (*first + i) % *capacity * element, element);
    free(*ring);
    *ring = to;
    *capacity = more;
    *first = 0;
    return true;
}

/*
 * 0; -ENOBUFS: the queue is at its limit and accepts more once entries are sent; -ENOMEM: no
 * memory.
 */
static int queue_item_locked(struct gn_stream_out *o, const struct gn_out_item *item)
{
    if (o->n_items == o->items_capacity &&
        !grow((void **)&o->items, &o->items_capacity, &o->first_item, o->n_items, sizeof *o->items,
              o->most_items))
        return o->n_items == o->most_items ? -ENOBUFS : -ENOMEM;
    o->items[(o->first_item + o->n_items++) % o->items_capacity] = *item;
    atomic_store_explicit(&o->unflushed, true, memory_order_seq_cst);
    return 0;
}

int gn_out_bulk(struct gn_stream_out *o, uint16_t segment, uint64_t at, const void *bytes,
                uint64_t n, bool end, uint64_t *ret_batch)
{
    const struct gn_out_item item = {
        .record = {0, GN_RECORD_DATA, segment, at}, .bytes = bytes, .n = n, .end = end};
    pthread_mutex_lock(&o->queue);
    const int r = o->stopped ? -EPIPE : queue_item_locked(o, &item);
    if (!r)
        *ret_batch = end ? ++o->batches : o->batches + 1;
    pthread_mutex_unlock(&o->queue);
    return r;
}

void gn_out_forget(struct gn_stream_out *o, const void *bytes, uint64_t n)
{
    const unsigned char *from = bytes;
    pthread_mutex_lock(&o->sending);
    pthread_mutex_lock(&o->queue);
    for (uint32_t i = 0; i < o->n_items; i++) {
        struct gn_out_item *item = &o->items[(o->first_item + i) % o->items_capacity];
        if (item->bytes && item->bytes >= from && item->bytes < from + n)
            item->n = i ? 0 : o->item_done;
    }
    for (uint32_t i = 0; i < o->n_sent; i++) {
        struct gn_out_sent *s = &o->log[(o->first_sent + i) % o->log_capacity];
        if (s->n_bytes && !s->in_ring && s->bytes >= from && s->bytes < from + n)
            s->bytes = zeros;
    }
    pthread_mutex_unlock(&o->queue);
    pthread_mutex_unlock(&o->sending);
}

static struct gn_out_item small_item(const struct gn_stream_record *record, const void *payload)
{
    struct gn_out_item item = {.record = *record, .n = record->bytes};
    if (record->bytes)
        memcpy(item.small, payload, record->bytes);
    return item;
}

int gn_out_append_ordered(struct gn_stream_out *o, const struct gn_stream_record *record,
                          const void *payload)
{
    const struct gn_out_part part = {*record, payload};
    pthread_mutex_lock(&o->queue);
    int r = o->n_items ? -EAGAIN : append_all_locked(o, &part, 1);
    if (r == -EAGAIN) {
        const struct gn_out_item item = small_item(record, payload);
        r = queue_item_locked(o, &item);
    }
    pthread_mutex_unlock(&o->queue);
    return r;
}

/* ---- from the queues to the log; called by the sending thread, with the queue locked */

static struct gn_out_sent *sent_at(struct gn_stream_out *o, uint32_t i)
{
    return &o->log[(o->first_sent + i) % o->log_capacity];
}

static struct gn_out_sent *sent_new_locked(struct gn_stream_out *o)
{
    if (o->n_sent == o->log_capacity && !grow((void **)&o->log, &o->log_capacity, &o->first_sent,
                                              o->n_sent, sizeof *o->log, o->most_items))
        return NULL;
    struct gn_out_sent *s = sent_at(o, o->n_sent++);
    memset(s, 0, sizeof *s);
    s->position = o->position;
    return s;
}

static bool stage_run_locked(struct gn_stream_out *o)
{
    size_t at = o->ring_sent % GN_OUT_RING_BYTES;
    uint64_t n = o->ring_end - o->ring_sent;
    if (n > GN_OUT_RING_BYTES - at)
        n = GN_OUT_RING_BYTES - at;
    struct gn_out_sent *last = o->n_sent > o->sending_at ? sent_at(o, o->n_sent - 1) : NULL;
    if (!last || !last->in_ring || last->bytes + last->n_bytes != o->ring + at ||
        last->n_bytes >= RUN_BYTES) {
        last = sent_new_locked(o);
        if (!last)
            return false;
        last->bytes = o->ring + at;
        last->in_ring = true;
    }
    if (n > RUN_BYTES - last->n_bytes)
        n = RUN_BYTES - last->n_bytes;
    last->n_bytes += (uint32_t)n;
    last->counted += (uint32_t)n;
    o->position += n;
    o->ring_sent += n;
    return true;
}

/* All small records of the ring. */
static bool stage_ring_locked(struct gn_stream_out *o)
{
    bool good = true;
    while (good && o->ring_sent < o->ring_end)
        good = stage_run_locked(o);
    o->in_run = o->ring_sent < o->ring_end;
    atomic_store_explicit(&o->unsent, o->ring_end - o->ring_sent, memory_order_relaxed);
    return good;
}

static bool stage_ack_locked(struct gn_stream_out *o)
{
    struct gn_stream_record record = {0, GN_RECORD_ACK, 0, o->ack_owed};
    struct gn_out_sent *s = sent_new_locked(o);
    if (!s)
        return false;
    memcpy(s->head, &record, sizeof record);
    s->n_header = sizeof record;
    atomic_store_explicit(&o->ack_sent, o->ack_owed, memory_order_relaxed);
    return true;
}

static bool stage_item_locked(struct gn_stream_out *o)
{
    struct gn_out_sent *s = sent_new_locked(o);
    if (!s)
        return false;
    struct gn_out_item *item = &o->items[o->first_item];
    struct gn_stream_record record = item->record;
    uint64_t n = item->n - o->item_done;
    if (item->bytes) {
        bool last = n <= GN_RECORD_PIECE_BYTES;
        n = last ? n : GN_RECORD_PIECE_BYTES;
        record.bytes = (uint32_t)n;
        record.at += o->item_done;
        if (last && item->end)
            record.type = GN_RECORD_DATA_END;
        s->bytes = item->bytes + o->item_done;
        s->n_bytes = (uint32_t)n;
    } else {
        memcpy(s->head + sizeof record, item->small, n);
        s->n_header = (uint32_t)n;
    }
    memcpy(s->head, &record, sizeof record);
    s->n_header += sizeof record;
    s->counted = s->n_header + s->n_bytes;
    o->position += s->counted;
    o->item_done += n;
    if (o->item_done == item->n) {
        o->item_done = 0;
        o->first_item = (o->first_item + 1) % o->items_capacity;
        o->n_items--;
        atomic_fetch_add_explicit(&o->room, 1, memory_order_seq_cst);
    }
    return true;
}

/*
 * Moves to the log an ACK if due, all small records, and one piece of bulk data. False: out of
 * memory; the rest is staged later.
 */
static bool stage_locked(struct gn_stream_out *o)
{
    bool good = true;
    if (o->held)
        return true;
    if (!o->in_run &&
        o->ack_owed - atomic_load_explicit(&o->ack_sent, memory_order_relaxed) >= ACK_BYTES)
        good = stage_ack_locked(o);
    if (good)
        good = stage_ring_locked(o);
    /*
     * One piece of bulk data in flight is enough: small records appended meanwhile are sent before
     * the next piece.
     */
    uint32_t at = o->n_sent;
    while (at > o->sending_at && !(sent_at(o, at - 1)->n_bytes && !sent_at(o, at - 1)->in_ring))
        at--;
    for (bool bulk = at > o->sending_at;
         good && !bulk && o->n_items && o->n_sent - o->sending_at < GATHER;) {
        good = stage_item_locked(o);
        bulk = good && sent_at(o, o->n_sent - 1)->n_bytes;
    }
    return good;
}

static int gather_locked(struct gn_stream_out *o, struct iovec *iov)
{
    int n = 0;
    uint32_t skip = o->sending_offset;
    for (uint32_t i = o->sending_at; i < o->n_sent && n + 2 <= IOVS; i++, skip = 0) {
        struct gn_out_sent *s = sent_at(o, i);
        if (skip < s->n_header)
            iov[n++] = (struct iovec){s->head + skip, s->n_header - skip};
        uint32_t done = skip > s->n_header ? skip - s->n_header : 0;
        if (done < s->n_bytes)
            iov[n++] = (struct iovec){(void *)(uintptr_t)(s->bytes + done), s->n_bytes - done};
    }
    return n;
}

static void drop_first_locked(struct gn_stream_out *o)
{
    struct gn_out_sent *s = sent_at(o, 0);
    if (s->in_ring)
        o->ring_freed += s->n_bytes;
    o->first_sent = (o->first_sent + 1) % o->log_capacity;
    o->n_sent--;
}

/* Drops log entries that are sent and acknowledged. */
static void trim_locked(struct gn_stream_out *o)
{
    uint64_t freed = o->ring_freed;
    while (o->sending_at && sent_at(o, 0)->position + sent_at(o, 0)->counted <= o->acknowledged) {
        drop_first_locked(o);
        o->sending_at--;
    }
    if (o->ring_freed != freed)
        atomic_fetch_add_explicit(&o->room, 1, memory_order_seq_cst);
}

static void advance_locked(struct gn_stream_out *o, size_t n)
{
    while (n) {
        struct gn_out_sent *s = sent_at(o, o->sending_at);
        uint32_t left = s->n_header + s->n_bytes - o->sending_offset;
        if (n < left) {
            o->sending_offset += (uint32_t)n;
            return;
        }
        n -= left;
        o->sending_offset = 0;
        o->sending_at++;
    }
    /* Skip empty entries: ACKs of the previous connection. */
    while (o->sending_at < o->n_sent && !o->sending_offset &&
           !sent_at(o, o->sending_at)->n_header && !sent_at(o, o->sending_at)->n_bytes)
        o->sending_at++;
    trim_locked(o);
}

/* With `sending` held. */
static int send_all(struct gn_stream_out *o)
{
    for (;;) {
        struct iovec iov[IOVS];
        pthread_mutex_lock(&o->queue);
        bool good = !o->tcp || o->stopped || stage_locked(o);
        int n = o->tcp && !o->stopped ? gather_locked(o, iov) : 0;
        const bool more =
            o->n_items != 0; /* sent by the next iteration, or when the socket has room */
        if (!n && good)
            atomic_store_explicit(&o->unflushed, false, memory_order_seq_cst);
        pthread_mutex_unlock(&o->queue);
        if (!n) {
            bool full = o->tcp && gn_tcp_unsent(o->tcp);
            atomic_store_explicit(&o->blocked, full, memory_order_relaxed);
            return !good ? -ENOMEM : full ? -EAGAIN : 0;
        }
        ssize_t sent = more ? gn_tcp_send_more(o->tcp, iov, n) : gn_tcp_send(o->tcp, iov, n);
        if (sent < 0) {
            atomic_store_explicit(&o->blocked, sent == -EAGAIN, memory_order_relaxed);
            return (int)sent;
        }
        pthread_mutex_lock(&o->queue);
        advance_locked(o, (size_t)sent);
        pthread_mutex_unlock(&o->queue);
    }
}

int gn_out_flush(struct gn_stream_out *o)
{
    do {
        if (pthread_mutex_trylock(&o->sending))
            return 0; /* the sending thread checks `unflushed` again after releasing it */
        int r = send_all(o);
        pthread_mutex_unlock(&o->sending);
        if (r)
            return r;
    } while (atomic_load_explicit(&o->unflushed, memory_order_seq_cst));
    return 0;
}

/* ---- acknowledgements and connections */

int gn_out_acknowledged(struct gn_stream_out *o, uint64_t position)
{
    int r = 0;
    pthread_mutex_lock(&o->queue);
    if (position > o->position) {
        r = -EPROTO;
    } else if (position > o->acknowledged) {
        o->acknowledged = position;
        trim_locked(o);
    }
    pthread_mutex_unlock(&o->queue);
    return r;
}

void gn_out_owe_ack(struct gn_stream_out *o, uint64_t position, uint64_t small)
{
    pthread_mutex_lock(&o->queue);
    o->ack_owed = position;
    o->ack_small = small;
    if (position - atomic_load_explicit(&o->ack_sent, memory_order_relaxed) >= ACK_BYTES)
        atomic_store_explicit(&o->unflushed, true, memory_order_seq_cst);
    pthread_mutex_unlock(&o->queue);
}

/* Makes everything from `received` on due again, except ACKs, which are generated anew. */
static int rewind_locked(struct gn_stream_out *o, uint64_t received)
{
    if (received > o->position || received < o->acknowledged)
        return -EPROTO;
    o->acknowledged = received;
    while (o->n_sent && sent_at(o, 0)->position + sent_at(o, 0)->counted <= received)
        drop_first_locked(o);
    o->sending_at = o->sending_offset = 0;
    for (uint32_t i = 0; i < o->n_sent; i++) {
        struct gn_out_sent *s = sent_at(o, i);
        if (!s->counted)
            s->n_header = 0;
    }
    if (o->n_sent && sent_at(o, 0)->position < received) {
        struct gn_out_sent *s = sent_at(o, 0);
        uint64_t done = received - s->position;
        if (!s->in_ring)
            return -EPROTO; /* inside a record */
        s->position += done;
        s->counted -= (uint32_t)done;
        s->bytes += done;
        s->n_bytes -= (uint32_t)done;
        o->ring_freed += done;
    }
    while (o->sending_at < o->n_sent && !sent_at(o, o->sending_at)->counted)
        o->sending_at++;
    atomic_fetch_add_explicit(&o->room, 1, memory_order_seq_cst);
    return 0;
}

int gn_out_connect(struct gn_stream_out *o, struct gn_tcp *tcp, uint64_t received)
{
    pthread_mutex_lock(&o->sending);
    pthread_mutex_lock(&o->queue);
    int r = rewind_locked(o, received);
    if (!r) {
        o->tcp = tcp;
        atomic_store_explicit(&o->ack_sent, o->ack_owed,
                              memory_order_relaxed); /* the hello has carried it */
        atomic_store_explicit(&o->blocked, false, memory_order_relaxed);
        atomic_store_explicit(&o->unflushed, true, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&o->queue);
    pthread_mutex_unlock(&o->sending);
    return r;
}

void gn_out_disconnect(struct gn_stream_out *o)
{
    pthread_mutex_lock(&o->sending);
    o->tcp = NULL;
    pthread_mutex_unlock(&o->sending);
}

void gn_out_stop(struct gn_stream_out *o)
{
    pthread_mutex_lock(&o->sending);
    pthread_mutex_lock(&o->queue);
    o->stopped = true;
    o->tcp = NULL;
    pthread_mutex_unlock(&o->queue);
    pthread_mutex_unlock(&o->sending);
    atomic_fetch_add_explicit(&o->room, 1, memory_order_seq_cst);
}

/* ---- handing the stream over to another process */

/*
 * Copies the log. Bytes in the ring are copied as well: once acknowledged they may be overwritten.
 */
static int copy_log_locked(struct gn_stream_out *o, struct gn_out_retained *ret)
{
    uint64_t in_ring = 0, at = 0;
    for (uint32_t i = 0; i < o->n_sent; i++)
        in_ring += sent_at(o, i)->in_ring ? sent_at(o, i)->n_bytes : 0;
    ret->all = calloc(o->n_sent ? o->n_sent : 1, sizeof *ret->all);
    ret->copy = malloc(in_ring ? in_ring : 1);
    if (!ret->all || !ret->copy)
        return -ENOMEM;
    for (uint32_t i = 0; i < o->n_sent; i++) {
        struct gn_out_sent *to = &ret->all[ret->n];
        *to = *sent_at(o, i);
        if (!to->counted)
            continue; /* an ACK; the new sender generates its own */
        ret->n++;
        if (!to->in_ring)
            continue;
        memcpy(ret->copy + at, to->bytes, to->n_bytes);
        to->bytes = ret->copy + at;
        at += to->n_bytes;
    }
    ret->first = ret->n ? ret->all[0].position : o->position;
    ret->acknowledged = o->acknowledged;
    return 0;
}

int gn_out_hold(struct gn_stream_out *o, struct gn_out_retained *ret)
{
    memset(ret, 0, sizeof *ret);
    pthread_mutex_lock(&o->sending);
    pthread_mutex_lock(&o->queue);
    bool good = stage_ring_locked(o);
    while (good && o->n_items)
        good = stage_item_locked(o);
    int r = good ? copy_log_locked(o, ret) : -ENOMEM;
    o->held = !r;
    pthread_mutex_unlock(&o->queue);
    pthread_mutex_unlock(&o->sending);
    if (r)
        gn_out_retained_fini(ret);
    return r;
}

void gn_out_release(struct gn_stream_out *o)
{
    pthread_mutex_lock(&o->queue);
    if (o->held)
        atomic_store_explicit(&o->unflushed, true, memory_order_seq_cst);
    o->held = false;
    pthread_mutex_unlock(&o->queue);
}

void gn_out_retained_fini(struct gn_out_retained *k)
{
    free(k->all);
    free(k->copy);
    memset(k, 0, sizeof *k);
}

void gn_out_go_on(struct gn_stream_out *o, uint64_t first)
{
    pthread_mutex_lock(&o->queue);
    o->position = o->acknowledged = first;
    pthread_mutex_unlock(&o->queue);
}

int gn_out_keep_run(struct gn_stream_out *o, const void *bytes, size_t n)
{
    int r = -EPROTO;
    pthread_mutex_lock(&o->queue);
    if (n <= GN_OUT_RING_BYTES - (o->ring_end - o->ring_freed)) {
        put_locked(o, bytes, n);
        for (r = 0; !r && o->ring_sent < o->ring_end;)
            r = stage_run_locked(o) ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&o->queue);
    return r;
}

int gn_out_keep_record(struct gn_stream_out *o, const struct gn_stream_record *record,
                       const void *payload)
{
    const bool bulk = record->type == GN_RECORD_DATA || record->type == GN_RECORD_DATA_END;
    if (record->bytes > (bulk ? GN_RECORD_PIECE_BYTES : GN_OUT_SMALL_BYTES))
        return -EPROTO;
    const struct gn_out_item item =
        bulk ? (struct gn_out_item){.record = *record,
                                    .bytes = payload,
                                    .n = record->bytes,
                                    .end = record->type == GN_RECORD_DATA_END}
             : small_item(record, payload);
    pthread_mutex_lock(&o->queue);
    int r = queue_item_locked(o, &item);
    if (!r && !stage_item_locked(o))
        r = -ENOMEM;
    pthread_mutex_unlock(&o->queue);
    return r;
}

int gn_out_retained_all(struct gn_stream_out *o, uint64_t acknowledged)
{
    int r = -EPROTO;
    pthread_mutex_lock(&o->queue);
    if (acknowledged >= o->acknowledged && acknowledged <= o->position) {
        o->acknowledged = acknowledged;
        r = 0;
    }
    pthread_mutex_unlock(&o->queue);
    return r;
}
