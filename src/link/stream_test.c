/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of both halves of a tcp session's stream, in one thread, over socket pairs that break
 * after any byte: records arrive exactly once, complete and in order.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "link/stream_in.h"
#include "link/stream_out.h"

#define AREA_BYTES (1u << 20)

struct end {
    struct gn_stream_out out;
    struct gn_stream_in in;
    struct gn_tcp tcp;
    unsigned char area[AREA_BYTES];
    uint64_t n_small, n_ordered, n_batches; /* received */
    uint32_t broken;                        /* records received that differ from those sent */
};

static void *place(void *context, const struct gn_stream_record *r)
{
    struct end *e = context;
    return r->part == 0 && r->at + r->bytes <= AREA_BYTES ? e->area + r->at : NULL;
}

static int take(void *context, const struct gn_stream_record *r, const void *payload)
{
    struct end *e = context;
    switch (r->type) {
    case GN_RECORD_ACK:
        return gn_out_acknowledged(&e->out, r->at);
    case GN_RECORD_DATA:
        return 0;
    case GN_RECORD_DATA_END:
        e->n_batches++;
        return 0;
    case GN_RECORD_MESSAGE: /* small records are numbered, and so are their bytes */
        e->broken += r->at != e->n_small++;
        for (uint32_t i = 0; i < r->bytes; i++)
            e->broken += ((const unsigned char *)payload)[i] != (unsigned char)(r->at + i);
        return 0;
    case GN_RECORD_EVENT_END: /* `at` is the number of batches that must have arrived before */
        e->broken += r->at != e->n_ordered++ || e->n_batches < r->at;
        return 0;
    default:
        return -EPROTO;
    }
}

static const struct gn_in_ops ops = {place, take};

static void open_end(struct end *e)
{
    memset(e, 0, sizeof *e);
    e->tcp = (struct gn_tcp)GN_TCP_NONE;
    assert_int_equal(gn_out_init(&e->out), 0);
    assert_int_equal(gn_in_init(&e->in, &ops, e), 0);
}

static void close_end(struct end *e)
{
    gn_out_stop(&e->out);
    gn_tcp_close(&e->tcp);
    gn_in_fini(&e->in);
    gn_out_fini(&e->out);
}

static void cut(struct end *a, struct end *b)
{
    gn_out_disconnect(&a->out);
    gn_out_disconnect(&b->out);
    gn_tcp_close(&a->tcp);
    gn_tcp_close(&b->tcp);
}

static void join(struct end *a, struct end *b)
{
    int fds[2], small = 4096;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    a->tcp.fd = fds[0];
    b->tcp.fd = fds[1];
    gn_in_connect(&a->in, &a->tcp);
    gn_in_connect(&b->in, &b->tcp);
    assert_int_equal(gn_out_connect(&a->out, &a->tcp, b->in.received), 0);
    assert_int_equal(gn_out_connect(&b->out, &b->tcp, a->in.received), 0);
}

/* One step of an end: flushes, reads once, owes an ACK of the records read. */
static void step(struct end *e)
{
    int rc = gn_out_flush(&e->out);
    assert_true(rc == 0 || rc == -EAGAIN);
    rc = gn_in_read(&e->in);
    assert_true(rc > 0 || rc == -EAGAIN);
    gn_out_owe_ack(&e->out, e->in.received, e->in.small);
}

static void add_small(struct end *e, uint64_t i)
{
    unsigned char payload[900];
    uint32_t n = (uint32_t)rand() % sizeof payload;
    for (uint32_t k = 0; k < n; k++)
        payload[k] = (unsigned char)(i + k);
    struct gn_stream_record r = {n, GN_RECORD_MESSAGE, 0, i};
    int rc;
    assert_int_equal(rc = gn_out_append(&e->out, &r, payload), 0);
}

static void everything_arrives_once_and_in_order(void **state)
{
    (void)state;
    static struct end a, b;
    static unsigned char bulk[AREA_BYTES];
    open_end(&a);
    open_end(&b);
    srand(7);
    for (uint32_t i = 0; i < AREA_BYTES; i++)
        bulk[i] = (unsigned char)(i * 7 + i / 251);
    join(&a, &b);
    uint64_t n_small = 0, n_batches = 0, batch;
    for (int round = 0; round < 3000; round++) {
        int what = rand() % 100;
        if (what < 40 && n_small - b.n_small < 500)
            add_small(&a, n_small++);
        if (what < 6 && n_batches - b.n_batches < 4) {
            uint64_t at = n_batches % 4 * (AREA_BYTES / 4),
                     n = 1 + (uint64_t)rand() % (AREA_BYTES / 4);
            assert_int_equal(gn_out_bulk(&a.out, 0, at, bulk + at, n, true, &batch), 0);
            assert_int_equal(batch, ++n_batches);
            struct gn_stream_record r = {0, GN_RECORD_EVENT_END, 0, n_batches - 1};
            assert_int_equal(gn_out_append_ordered(&a.out, &r, NULL), 0);
        }
        if (what >= 99) {
            cut(&a, &b);
            join(&a, &b);
        }
        step(&a);
        step(&b);
        step(&b);
    }
    for (int i = 0; i < 200000 && (b.n_small < n_small || b.n_ordered < n_batches); i++) {
        step(&a);
        step(&b);
    }
    assert_int_equal(b.n_small, n_small);
    assert_int_equal(b.n_ordered, n_batches);
    assert_int_equal(b.n_batches, n_batches);
    assert_int_equal(b.broken, 0);
    assert_true(n_small > 300 && n_batches > 20);
    for (uint32_t i = 0; i < AREA_BYTES / 4;
         i++) /* the last batch of the first quarter covers its beginning */
        if (b.area[i] && b.area[i] != bulk[i])
            fail_msg("byte %u of the bulk data is wrong", i);
    assert_memory_equal(b.area, bulk, 64);
    close_end(&a);
    close_end(&b);
}

static void small_records_go_ahead_of_bulk(void **state)
{
    (void)state;
    static struct end a, b;
    static unsigned char bulk[AREA_BYTES];
    uint64_t batch;
    open_end(&a);
    open_end(&b);
    join(&a, &b);
    assert_int_equal(gn_out_bulk(&a.out, 0, 0, bulk, AREA_BYTES, true, &batch), 0);
    step(&a); /* bulk data fills the socket */
    add_small(&a, 0);
    while (!b.n_small) {
        step(&a);
        step(&b);
    }
    /* One of the eight pieces had been sent. */
    assert_true(b.in.received < 2 * GN_RECORD_PIECE_BYTES);
    close_end(&a);
    close_end(&b);
}

static void what_is_not_acknowledged_fills_up(void **state)
{
    (void)state;
    static struct end a, b;
    unsigned char payload[512] = {0};
    struct gn_stream_record r = {sizeof payload, GN_RECORD_MESSAGE, 0, 0};
    open_end(&a);
    open_end(&b);
    join(&a, &b);
    uint64_t n = 0;
    int rc;
    while ((rc = gn_out_append(&a.out, &r, payload)) == 0) {
        n += sizeof r + sizeof payload;
        (void)gn_out_flush(&a.out);
    }
    assert_int_equal(rc, -EAGAIN);
    assert_true(n <= GN_OUT_RING_BYTES && n > GN_OUT_RING_BYTES - 2048);
    assert_int_equal(gn_out_acknowledged(&a.out, a.out.position + 1), -EPROTO);
    assert_int_equal(gn_out_acknowledged(&a.out, sizeof r + sizeof payload), 0);
    for (int i = 0; i < 4000 && rc; i++) {
        step(&b);
        step(&a);
        rc = gn_out_append(&a.out, &r, payload);
    }
    assert_int_equal(rc, 0);
    gn_out_stop(&a.out);
    assert_int_equal(gn_out_append(&a.out, &r, payload), -EPIPE);
    close_end(&a);
    close_end(&b);
}

/* Like a worker: owes an ACK only when one is due. */
static void take_all(struct end *e)
{
    while (gn_in_read(&e->in) > 0)
        if (gn_out_ack_due(&e->out, e->in.received, e->in.small))
            gn_out_owe_ack(&e->out, e->in.received, e->in.small);
    (void)gn_out_flush(&e->out);
}

static void a_ring_that_was_filled_before_it_was_sent_gets_room(void **state)
{
    (void)state;
    static const unsigned char payload[GN_OUT_RING_BYTES / 2];
    static const uint32_t sizes[] = {100, 4096, 65536};
    for (size_t i = 0; i < GN_ARRAY_SIZE(sizes); i++) {
        static struct end a, b;
        struct gn_stream_record r = {sizes[i], GN_RECORD_DATA, 0, 0};
        open_end(&a);
        open_end(&b);
        while (!gn_out_append(&a.out, &r, payload))
            ;
        join(&a, &b);
        for (int n = 0; n < 4000; n++) {
            const int rc = gn_out_flush(&a.out);
            assert_true(rc == 0 || rc == -EAGAIN);
            take_all(&b);
            take_all(&a);
        }
        /* Everything has arrived, and the largest possible append succeeds. */
        assert_int_equal(b.in.received, a.out.position);
        const struct gn_out_part parts[] = {
            {{200000, GN_RECORD_DATA, 0, 0}, payload}, {{200000, GN_RECORD_DATA, 0, 0}, payload},
            {{200000, GN_RECORD_DATA, 0, 0}, payload}, {{200000, GN_RECORD_DATA, 0, 0}, payload},
            {{200000, GN_RECORD_DATA, 0, 0}, payload}, {{200000, GN_RECORD_DATA, 0, 0}, payload}};
        int rc = -EMSGSIZE;
        for (int n = GN_ARRAY_SIZE(parts); n && rc == -EMSGSIZE; n--)
            rc = gn_out_append_all(&a.out, parts, n);
        assert_int_equal(rc, 0);
        close_end(&a);
        close_end(&b);
    }
}

/* How many ACKs become due while `bytes` arrive, with all or none of them in the sender's ring. */
static unsigned acknowledgements(bool in_ring, uint64_t bytes)
{
    static struct gn_stream_out o;
    uint64_t position = 0, small = 0;
    unsigned n = 0;
    assert_int_equal(gn_out_init(&o), 0);
    for (uint64_t at = 0; at < bytes; at += 4096) {
        position += 4096;
        small += in_ring ? 4096 : 0;
        if (gn_out_ack_due(&o, position, small)) {
            gn_out_owe_ack(&o, position, small);
            atomic_store(&o.ack_sent, position);
            n++;
        }
    }
    gn_out_fini(&o);
    return n;
}

static void bulk_is_acknowledged_seldom(void **state)
{
    (void)state;
    assert_int_equal(acknowledgements(true, 64 << 20), 64);
    assert_int_equal(acknowledgements(false, 64 << 20), 4);
}

static void only_small_records_count_as_small(void **state)
{
    (void)state;
    static struct end a, b;
    static const unsigned char bulk[AREA_BYTES];
    struct gn_stream_record r = {8, GN_RECORD_MESSAGE, 0, 0};
    uint64_t batch;
    open_end(&a);
    open_end(&b);
    join(&a, &b);
    assert_int_equal(gn_out_append(&a.out, &r, "\0\1\2\3\4\5\6\7"), 0);
    assert_int_equal(gn_out_bulk(&a.out, 0, 0, bulk, sizeof bulk, true, &batch), 0);
    for (int i = 0; i < 100000 && !b.n_batches; i++) {
        step(&a);
        step(&b);
    }
    assert_int_equal(b.n_batches, 1);
    assert_int_equal(b.in.small, sizeof r + 8);
    assert_true(b.in.received > sizeof bulk);
    /* DATA in the ring counts as small, too. */
    r = (struct gn_stream_record){sizeof bulk / 16, GN_RECORD_DATA, 0, 0};
    assert_int_equal(gn_out_append(&a.out, &r, bulk), 0);
    const uint64_t before = b.in.small, all = b.in.received + sizeof r + r.bytes;
    for (int i = 0; i < 100000 && b.in.received < all; i++) {
        step(&a);
        step(&b);
    }
    assert_int_equal(b.in.small - before, sizeof r + r.bytes);
    r.bytes = GN_RECORD_PIECE_BYTES;
    assert_int_equal(gn_out_append(&a.out, &r, bulk), -EMSGSIZE);
    close_end(&a);
    close_end(&b);
}

static void malformed_records_are_faults(void **state)
{
    (void)state;
    static const struct gn_stream_record bad[] = {
        {0, 99, 0, 0},
        {UINT32_MAX, GN_RECORD_MESSAGE, 0, 0},
        {GN_RECORD_MAX_BYTES + 1, GN_RECORD_DATA, 0, 0},
        {16, GN_RECORD_DATA, 1, 0},
        {16, GN_RECORD_DATA, 0, AREA_BYTES - 8},
        {0, GN_RECORD_ACK, 0, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static struct end a, b;
        open_end(&a);
        open_end(&b);
        join(&a, &b);
        assert_int_equal(write(a.tcp.fd, &bad[i], sizeof bad[i]), sizeof bad[i]);
        assert_int_equal(gn_in_read(&b.in), -EPROTO);
        close_end(&a);
        close_end(&b);
    }
}

/* Nothing is written to the destination of forgotten bytes, which may be in use again by then. */
static void forgotten_bytes_are_not_looked_at(void **state)
{
    (void)state;
    static struct end a, b;
    static unsigned char bulk[AREA_BYTES];
    uint64_t batch;
    memset(bulk, 1, sizeof bulk);
    open_end(&a);
    open_end(&b);
    assert_int_equal(gn_out_bulk(&a.out, 0, 0, bulk, AREA_BYTES, true, &batch), 0);
    gn_out_forget(&a.out, bulk, sizeof bulk);
    memset(b.area, 2, sizeof b.area);
    join(&a, &b);
    for (int i = 0; i < 4000 && !b.n_batches; i++) {
        step(&a);
        step(&b);
    }
    assert_int_equal(b.n_batches, 1);
    assert_int_equal(b.area[0], 2);
    assert_int_equal(b.area[AREA_BYTES - 1], 2);
    close_end(&a);
    close_end(&b);
}

/*
 * Hands a's stream to c, which must send the records that b has not received. Only bulk data may
 * still be read from a's memory.
 */
static void hand_over(struct end *a, struct end *c)
{
    struct gn_out_retained kept;
    assert_int_equal(gn_out_hold(&a->out, &kept), 0);
    const struct gn_stream_record late = {0, GN_RECORD_BYE, 0, 0};
    assert_int_equal(gn_out_append(&a->out, &late, NULL),
                     0); /* appended after the hold, so b must not receive it */
    for (int i = rand() % 4; i; i--)
        (void)gn_out_flush(&a->out); /* c sends again the records that a sends here */
    open_end(c);
    c->in.received = a->in.received;
    gn_out_go_on(&c->out, kept.first);
    for (uint32_t i = 0; i < kept.n; i++) {
        const struct gn_out_sent *s = &kept.all[i];
        struct gn_stream_record record;
        memcpy(&record, s->head, sizeof record);
        const uint32_t half = s->n_bytes / 2;
        if (!s->in_ring) {
            assert_int_equal(gn_out_keep_record(&c->out, &record,
                                                s->n_bytes ? s->bytes : s->head + sizeof record),
                             0);
            continue;
        }
        assert_int_equal(gn_out_keep_run(&c->out, s->bytes, half), 0);
        assert_int_equal(gn_out_keep_run(&c->out, s->bytes + half, s->n_bytes - half), 0);
    }
    assert_int_equal(gn_out_retained_all(&c->out, kept.acknowledged), 0);
    gn_out_retained_fini(&kept);
}

static void another_goes_on_in_its_place(void **state)
{
    (void)state;
    static struct end all[60], b;
    static unsigned char bulk[AREA_BYTES];
    const uint64_t part = AREA_BYTES / 2; /* several pieces */
    struct end *a = all;
    uint64_t n_small = 0, n_batches = 0, batch;
    open_end(a);
    open_end(&b);
    srand(11);
    for (uint32_t i = 0; i < AREA_BYTES; i++)
        bulk[i] = (unsigned char)(i * 7 + i / 251);
    join(a, &b);
    for (int round = 0; round < 3000; round++) {
        const int what = rand() % 100;
        if (what < 40 && n_small - b.n_small < 500)
            add_small(a, n_small++);
        if (what < 6 && n_batches - b.n_batches < 2) {
            const uint64_t at = n_batches % 2 * part;
            assert_int_equal(gn_out_bulk(&a->out, 0, at, bulk + at, part, true, &batch), 0);
            const struct gn_stream_record r = {0, GN_RECORD_EVENT_END, 0, n_batches++};
            assert_int_equal(gn_out_append_ordered(&a->out, &r, NULL), 0);
        }
        if (what == 98) { /* a hand-over that is aborted */
            struct gn_out_retained kept;
            assert_int_equal(gn_out_hold(&a->out, &kept), 0);
            gn_out_retained_fini(&kept);
            add_small(a, n_small++);
            gn_out_release(&a->out);
        }
        if (what == 99 && a + 1 < all + GN_ARRAY_SIZE(all)) {
            hand_over(a, a + 1);
            cut(a, &b);
            close_end(a);
            join(++a, &b);
        }
        step(a);
        step(&b);
    }
    assert_true(a > all + 10);
    for (int i = 0; i < 200000 && (b.n_small < n_small || b.n_ordered < n_batches); i++) {
        step(a);
        step(&b);
    }
    assert_int_equal(b.n_small, n_small);
    assert_int_equal(b.n_ordered, n_batches);
    assert_int_equal(b.n_batches, n_batches);
    assert_int_equal(b.broken, 0);
    assert_true(n_small > 300 && n_batches > 20);
    assert_memory_equal(b.area, bulk, AREA_BYTES);
    close_end(a);
    close_end(&b);
}

static void what_is_kept_must_be_a_stream(void **state)
{
    (void)state;
    static struct end a;
    const struct gn_stream_record small = {GN_OUT_SMALL_BYTES + 1, GN_RECORD_MESSAGE, 0, 0},
                                  bulk = {GN_RECORD_PIECE_BYTES + 1, GN_RECORD_DATA, 0, 0};
    static unsigned char bytes[GN_OUT_RING_BYTES + 1];
    open_end(&a);
    gn_out_go_on(&a.out, 1000);
    assert_int_equal(gn_out_keep_record(&a.out, &small, bytes), -EPROTO);
    assert_int_equal(gn_out_keep_record(&a.out, &bulk, bytes), -EPROTO);
    assert_int_equal(gn_out_keep_run(&a.out, bytes, sizeof bytes), -EPROTO);
    assert_int_equal(gn_out_keep_run(&a.out, bytes, 16), 0);
    assert_int_equal(gn_out_retained_all(&a.out, 999), -EPROTO);
    assert_int_equal(gn_out_retained_all(&a.out, 1017), -EPROTO);
    assert_int_equal(gn_out_retained_all(&a.out, 1016), 0);
    close_end(&a);
}

/* Sends all that may be sent, to a peer that reads it and sends no ACK. */
static int send_unheard(struct end *a, struct end *b)
{
    int sent, read;
    do {
        sent = gn_out_flush(&a->out);
        read = gn_in_read(&b->in);
    } while (sent == -EAGAIN || read > 0);
    assert_int_equal(read, -EAGAIN);
    return sent;
}

static void fill(struct end *a, uint32_t n)
{
    const struct gn_stream_record small = {0, GN_RECORD_EVENT_END, 0, 0};
    uint64_t batch;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(gn_out_bulk(&a->out, 0, 0, "x", 1, true, &batch), 0);
    assert_int_equal(gn_out_bulk(&a->out, 0, 0, "x", 1, true, &batch), -ENOBUFS);
    assert_int_equal(gn_out_append_ordered(&a->out, &small, NULL), -ENOBUFS);
}

static void what_the_other_side_does_not_take_or_acknowledge_is_bounded(void **state)
{
    (void)state;
    static struct end a, b;
    enum { MOST = 64 };
    open_end(&a);
    open_end(&b);
    a.out.most_items = MOST;
    fill(&a, MOST);
    join(&a, &b);
    assert_int_equal(send_unheard(&a, &b), 0);
    assert_int_equal(b.n_batches, MOST);
    fill(&a, MOST);
    assert_int_equal(send_unheard(&a, &b), -ENOMEM);
    assert_int_equal(b.n_batches, MOST);
    assert_int_equal(gn_out_acknowledged(&a.out, b.in.received), 0);
    assert_int_equal(send_unheard(&a, &b), 0);
    assert_int_equal(b.n_batches, 2 * MOST);
    close_end(&a);
    close_end(&b);
}

static int reconnect(void *context, const struct gn_stream_record *r, const void *payload)
{
    struct end *e = context;
    const int rc = take(e, r, payload);
    if (r->type == GN_RECORD_DATA_END)
        gn_in_connect(&e->in, &e->tcp);
    return rc;
}

/* What had come behind a record is the peer's to send again, if that record's receiver starts on a
 * new connection. */
static void what_came_before_a_new_connection_is_dropped(void **state)
{
    (void)state;
    static const struct gn_in_ops reconnects = {place, reconnect};
    static struct end e;
    static unsigned char sent[sizeof(struct gn_stream_record) + AREA_BYTES / 8];
    const struct gn_stream_record data = {sizeof sent - sizeof data, GN_RECORD_DATA_END, 0, 0},
                                  message = {0, GN_RECORD_MESSAGE, 0, 0};
    const size_t half = sizeof sent / 2;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    open_end(&e);
    e.in.ops = &reconnects;
    e.tcp.fd = fds[0];
    gn_in_connect(&e.in, &e.tcp);
    memcpy(sent, &data, sizeof data);
    assert_int_equal(send(fds[1], sent, half, 0), half);
    while (gn_in_read(&e.in) > 0)
        continue;
    assert_int_equal(e.n_batches, 0);
    assert_int_equal(send(fds[1], sent + half, sizeof sent - half, 0), sizeof sent - half);
    assert_int_equal(send(fds[1], &message, sizeof message, 0), sizeof message);
    assert_true(gn_in_read(&e.in) > 0);
    assert_int_equal(e.n_batches, 1);
    assert_int_equal(e.n_small, 0);
    assert_int_equal(e.in.received, sizeof sent);
    /* It is sent again. */
    assert_int_equal(send(fds[1], &message, sizeof message, 0), sizeof message);
    assert_true(gn_in_read(&e.in) > 0);
    assert_int_equal(e.n_small, 1);
    assert_int_equal(e.broken, 0);
    close(fds[1]);
    close_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives_once_and_in_order),
        cmocka_unit_test(small_records_go_ahead_of_bulk),
        cmocka_unit_test(what_is_not_acknowledged_fills_up),
        cmocka_unit_test(malformed_records_are_faults),
        cmocka_unit_test(bulk_is_acknowledged_seldom),
        cmocka_unit_test(only_small_records_count_as_small),
        cmocka_unit_test(forgotten_bytes_are_not_looked_at),
        cmocka_unit_test(another_goes_on_in_its_place),
        cmocka_unit_test(what_is_kept_must_be_a_stream),
        cmocka_unit_test(a_ring_that_was_filled_before_it_was_sent_gets_room),
        cmocka_unit_test(what_the_other_side_does_not_take_or_acknowledge_is_bounded),
        cmocka_unit_test(what_came_before_a_new_connection_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
