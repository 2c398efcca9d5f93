/* SPDX-License-Identifier: Apache-2.0 */
/* A session's stream over tcp: the other end writes any bytes in any pieces, reads when it likes,
 * and comes back saying that it has taken any number of them. */
#include "link/stream_in.h"
#include "link/stream_out.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define AREA_BYTES 8192u

struct end {
    struct gn_stream_out out;
    struct gn_stream_in in;
    struct gn_tcp tcp;
    int peer;
    uint8_t *area; /* of its own, so that a byte too far is seen */
    uint8_t sum;
};

static void *place(void *context, const struct gn_stream_record *r)
{
    struct end *e = context;
    FUZZ_CHECK(r->type == GN_RECORD_DATA || r->type == GN_RECORD_DATA_END);
    FUZZ_CHECK(r->bytes <= GN_RECORD_MAX_BYTES);
    return r->part == 0 && r->at <= AREA_BYTES && r->bytes <= AREA_BYTES - r->at ? e->area + r->at
                                                                                 : NULL;
}

static int take(void *context, const struct gn_stream_record *r, const void *payload)
{
    struct end *e = context;
    if (r->type == GN_RECORD_ACK)
        return gn_out_acknowledged(&e->out, r->at);
    for (uint32_t i = 0; payload && i < r->bytes; i++)
        e->sum += ((const uint8_t *)payload)[i];
    return r->type > GN_RECORD_PRINT ? -EPROTO : 0;
}

static const struct gn_in_ops ops = {place, take};

static bool join(struct end *e, uint64_t received)
{
    int fds[2], small = 4096;
    gn_out_disconnect(&e->out);
    gn_tcp_close(&e->tcp);
    if (e->peer >= 0)
        close(e->peer);
    e->peer = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return false;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    e->tcp.fd = fds[0];
    e->peer = fds[1];
    gn_in_connect(&e->in, &e->tcp);
    return gn_out_connect(&e->out, &e->tcp, received) == 0;
}

static void put(struct end *e, const void *bytes, size_t n)
{
    (void)!send(e->peer, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* False: the connection is over. */
static bool step(struct end *e, struct fuzz *f)
{
    struct gn_stream_record r = {0};
    uint8_t what = fuzz_u8(f), payload[256] = {0}, got[4096];
    uint64_t batch;
    size_t n;
    int rc;
    switch (what % 8) {
    case 0:
        n = fuzz_u8(f);
        const uint8_t *raw = fuzz_bytes(f, &n);
        put(e, raw, n);
        return true;
    case 1: /* a record whose header is one */
        r = (struct gn_stream_record){fuzz_u8(f), fuzz_u8(f) % 32u, fuzz_u8(f) % 4u, fuzz_u32(f)};
        if (what & 64)
            r.bytes <<= 12;
        put(e, &r, sizeof r);
        fuzz_take(f, payload, r.bytes < 16 ? r.bytes : 16);
        put(e, payload, r.bytes < sizeof payload ? r.bytes : sizeof payload);
        return true;
    case 2:
        rc = gn_in_read(&e->in);
        FUZZ_CHECK(rc != 0);
        gn_out_owe_ack(&e->out, e->in.received, e->in.small);
        return rc > 0 || rc == -EAGAIN;
    case 3:
        r = (struct gn_stream_record){fuzz_u8(f), GN_RECORD_MESSAGE, 0, 0};
        rc = gn_out_append(&e->out, &r, payload);
        FUZZ_CHECK(rc == 0 || rc == -EAGAIN);
        return true;
    case 4:
        rc = gn_out_bulk(&e->out, 0, 0, e->area, fuzz_u16(f) % AREA_BYTES + 1, what & 64, &batch);
        FUZZ_CHECK(rc == 0);
        r = (struct gn_stream_record){fuzz_u8(f) % GN_OUT_SMALL_BYTES, GN_RECORD_REPLY, 0, 0};
        FUZZ_CHECK(gn_out_append_ordered(&e->out, &r, payload) == 0);
        return true;
    case 5:
        rc = gn_out_flush(&e->out);
        FUZZ_CHECK(rc == 0 || rc == -EAGAIN || rc == -EPIPE);
        return rc != -EPIPE;
    case 6:
        (void)!recv(e->peer, got, sizeof got, MSG_DONTWAIT);
        return true;
    default:
        /* What it claims to have taken: near what was sent, or anything. */
        return join(e, what & 64 ? fuzz_u32(f)
                                 : e->out.position -
                                       fuzz_u8(f) % (e->out.position - e->out.acknowledged + 1));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    struct end e = {.tcp = GN_TCP_NONE, .peer = -1, .area = calloc(1, AREA_BYTES)};
    if (!e.area || gn_out_init(&e.out) || gn_in_init(&e.in, &ops, &e))
        abort();
    bool on = join(&e, 0);
    while (f.left && on)
        on = step(&e, &f);
    gn_out_forget(&e.out, e.area, AREA_BYTES);
    gn_out_stop(&e.out);
    gn_tcp_close(&e.tcp);
    if (e.peer >= 0)
        close(e.peer);
    gn_in_fini(&e.in);
    gn_out_fini(&e.out);
    free(e.area);
    return 0;
}
