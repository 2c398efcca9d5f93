/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a tcp session from one worker to another (docs/moves.md): the source's half, which the
 * saving thread runs while the socket thread is quiesced. session/session_tcp_load.c is the
 * destination's half.
 *
 * Program to worker: the destination continues where the source stopped reading. The program keeps
 * records that are not acknowledged, and sends again those that the destination has not received.
 *
 * Worker to program: to a worker of another gantryd, the handover begins when everything that the
 * source has sent has reached the program. To a worker of the same gantryd, or into a file, records
 * that the program may not have received are handed over, too.
 *
 * The data area holds data of messages that are not complete yet. Only the program knows which, so
 * every page that has come and is not zero is sent, except objects' memory, which the stream has.
 * If the program shared its memory with the source, no records are in transit, and any used page of
 * the data area may be needed.
 *
 * Everything consists of frames, which go through a connection between the workers or become
 * entries of a file.
 */
#include "vgpu/migrate/tcp_session_handover.h"
#include "vgpu/migrate/route.h"

#include "base/array.h"
#include "vgpu/session/session_tcp_internal.h"

#include "link/frame.h"
#include "link/worker_wire.h"
#include "stream/hash.h"
#include "vgpu/migrate/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define RUN_BYTES  (12u * PAGE_BYTES) /* in one frame */
_Static_assert(GN_MSG_MAX_BYTES <= RUN_BYTES, "a held message is one frame");

struct home {
    const unsigned char *base;
    uint64_t bytes;
};

static uint32_t run_bytes(uint32_t left)
{
    return left < RUN_BYTES ? left : RUN_BYTES;
}

/* A frame to be sent: its head, and bytes that stay in their place. */
struct part {
    uint16_t op;
    uint32_t seq, n_head, n_bytes;
    union {
        uint64_t batch;
        struct gn_worker_hand_area area;
    } head;
    const void *bytes;
};

/* The parts are found first and sent later, because the program may write there meanwhile. */
struct gn_tcp_handover {
    struct gn_vgpu *v;
    struct gn_worker_hand_tcp far;
    struct gn_out_retained said;
    struct home *homes; /* sorted by address */
    uint32_t n_homes, homes_capacity;
    struct part *parts;
    uint32_t n, capacity;
};

static int by_base(const void *a, const void *b)
{
    const struct home *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

static int find_homes(struct gn_tcp_handover *h)
{
    struct gn_vobject *o;
    for (uint32_t at = 0; (o = gn_object_next(h->v, &at)); at++) {
        struct home home = {0};
        home.base = h->v->api->contents->home(h->v, o, &home.bytes);
        if (!home.base)
            continue;
        struct home *all = gn_array_reserve(h->homes, h->n_homes, &h->homes_capacity, sizeof *all);
        if (!all)
            return -ENOMEM;
        h->homes = all;
        h->homes[h->n_homes++] = home;
    }
    if (h->n_homes)
        qsort(h->homes, h->n_homes, sizeof *h->homes, by_base);
    return 0;
}

static int by_place(const void *page, const void *home)
{
    const unsigned char *at = page;
    const struct home *h = home;
    return at < h->base ? -1 : at >= h->base + h->bytes;
}

/* The number of bytes from this page on, in whole pages, that belong to an object. */
static uint64_t home_bytes(const struct gn_tcp_handover *h, const unsigned char *page)
{
    const struct home *home =
        h->n_homes ? bsearch(page, h->homes, h->n_homes, sizeof *home, by_place) : NULL;
    return home ? (uint64_t)(home->base + home->bytes - page) / PAGE_BYTES * PAGE_BYTES : 0;
}

static int add_part(struct gn_tcp_handover *h, const struct part *part)
{
    struct part *parts = h->n < GN_REMOTE_MAX_AREAS
                             ? gn_array_reserve(h->parts, h->n, &h->capacity, sizeof *parts)
                             : NULL;
    if (!parts)
        return -ENOMEM;
    h->parts = parts;
    h->parts[h->n++] = *part;
    return 0;
}

static int add_area(struct gn_tcp_handover *h, uint32_t segment, uint64_t at, uint32_t n)
{
    return add_part(h, &(struct part){.op = GN_WORKER_HAND_AREA,
                                      .n_head = sizeof(struct gn_worker_hand_area),
                                      .head.area = {.segment = segment, .at = at},
                                      .bytes = (const char *)h->v->segments[segment].base + at,
                                      .n_bytes = n});
}

static int add_held(struct gn_tcp_handover *h)
{
    int rc = 0;
    gn_list_for_each(held, &h->v->tcp->held, struct gn_session_tcp_held, link)
    {
        rc = rc ? rc
                : add_part(h, &(struct part){.op = GN_WORKER_HAND_HELD,
                                             .n_head = sizeof held->batch,
                                             .head.batch = held->batch,
                                             .bytes = held->bytes,
                                             .n_bytes = held->n_bytes});
    }
    return rc;
}

/* Adds every run of pages in [at, end). */
static int find_runs(struct gn_tcp_handover *h, uint32_t segment, uint64_t at, uint64_t end)
{
    const unsigned char *base = h->v->segments[segment].base;
    int rc = 0;
    while (at < end && !rc) {
        const uint64_t skip = home_bytes(h, base + at);
        uint64_t n = 0;
        while (!skip && n < RUN_BYTES && at + n < end &&
               !gn_stream_all_zero(base + at + n, PAGE_BYTES) && !home_bytes(h, base + at + n))
            n += PAGE_BYTES;
        if (n)
            rc = add_area(h, segment, at, (uint32_t)n);
        at += skip ? skip : n ? n : PAGE_BYTES;
    }
    return rc;
}

/* Adds the data that the program has sent, by chunks. */
static int find_touched(struct gn_tcp_handover *h, uint32_t segment, const unsigned char *touched)
{
    const uint64_t bytes = h->v->segments[segment].bytes,
                   chunks =
                       touched ? (bytes + GN_REMOTE_CHUNK_BYTES - 1) / GN_REMOTE_CHUNK_BYTES : 0;
    int rc = 0;
    for (uint64_t c = 0; c < chunks && !rc; c++) {
        const uint64_t end = (c + 1) * GN_REMOTE_CHUNK_BYTES;
        if (touched[c / 8] & 1u << c % 8)
            rc = find_runs(h, segment, c * GN_REMOTE_CHUNK_BYTES, end < bytes ? end : bytes);
    }
    return rc;
}

/* Adds the used pages of memory that the program maps, too. */
static int find_used(struct gn_tcp_handover *h, uint32_t segment)
{
    const struct gn_segment *s = &h->v->segments[segment];
    int rc = 0;
    for (off_t at = 0, end; !rc && (at = lseek(s->fd, at, SEEK_DATA)) >= 0; at = end) {
        end = lseek(s->fd, at, SEEK_HOLE);
        if (end <= at || (uint64_t)end > s->bytes)
            end = (off_t)s->bytes;
        rc = find_runs(h, segment, (uint64_t)at / PAGE_BYTES * PAGE_BYTES,
                       (uint64_t)end / PAGE_BYTES * PAGE_BYTES);
    }
    return rc;
}

static int find_areas(struct gn_tcp_handover *h)
{
    const uint32_t n = atomic_load_explicit(&h->v->n_segments, memory_order_acquire);
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = h->v->tcp ? find_touched(h, i, h->v->tcp->touched[i]) : find_used(h, i);
    return rc;
}

/*
 * Results in transit to the program lie in the data area. Only this list knows that they are still
 * needed.
 */
static int add_results(struct gn_tcp_handover *h)
{
    int rc = 0;
    for (uint32_t i = 0; i < h->said.n && !rc; i++) {
        struct gn_stream_record record;
        memcpy(&record, h->said.all[i].head, sizeof record);
        const uint32_t n = h->said.all[i].in_ring ? 0 : h->said.all[i].n_bytes;
        for (uint32_t at = 0; at < n && !rc; at += RUN_BYTES)
            rc = add_area(h, record.part, record.at + at, run_bytes(n - at));
    }
    return rc;
}

static int add_unacknowledged(struct gn_tcp_handover *h)
{
    int rc = 0;
    for (uint32_t i = 0; i < h->said.n && !rc; i++) {
        const struct gn_out_sent *s = &h->said.all[i];
        struct part part = {.op = GN_WORKER_HAND_SENT, .seq = !s->in_ring};
        const unsigned char *from = s->in_ring ? s->bytes : s->head;
        const uint32_t n = s->in_ring ? s->n_bytes : s->n_header;
        for (uint32_t at = 0; at < n && !rc; at += RUN_BYTES) {
            part.bytes = from + at;
            part.n_bytes = run_bytes(n - at);
            rc = add_part(h, &part);
        }
    }
    return rc;
}

static int find_parts(struct gn_tcp_handover *s, const struct gn_route *route)
{
    struct gn_vgpu_tcp *h = s->v->tcp;
    int rc = 0;
    if (h) {
        s->far = (struct gn_worker_hand_tcp){
            .received = h->in.received, .small = h->in.small, .n_batches = h->n_batches};
        rc = add_held(s);
    }
    s->far.n_held = s->n;
    if (!rc && h && route->continues_stream) {
        gn_vgpu_tcp_pass_prints(h);
        rc = gn_out_hold(&h->out, &s->said);
        s->far.first = s->said.first;
        s->far.acknowledged = s->said.acknowledged;
    }
    if (!rc && !route->session_from_program && !(rc = find_homes(s)))
        rc = find_areas(s);
    if (!rc)
        rc = add_results(s);
    s->far.n_areas = s->n - s->far.n_held;
    if (!rc)
        rc = add_unacknowledged(s);
    s->far.n_said = s->n - s->far.n_held - s->far.n_areas;
    return rc;
}

int gn_tcp_handover_new(struct gn_vgpu *v, const struct gn_route *route,
                        struct gn_tcp_handover **ret)
{
    struct gn_tcp_handover *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->v = v;
    *ret = s;
    return find_parts(s, route);
}

uint64_t gn_tcp_handover_size(const struct gn_tcp_handover *s, uint32_t frame_bytes)
{
    uint64_t bytes = frame_bytes + sizeof s->far;
    for (uint32_t i = 0; i < s->n; i++)
        bytes += frame_bytes + s->parts[i].n_head + s->parts[i].n_bytes;
    return bytes;
}

int gn_tcp_handover_send(const struct gn_tcp_handover *s,
                         int (*carry_one)(void *ctx, const struct gn_frame *f), void *ctx)
{
    unsigned char payload[sizeof s->parts->head + RUN_BYTES];
    struct gn_frame f = {.op = GN_WORKER_HAND_TCP, .payload = &s->far, .n_payload = sizeof s->far};
    int rc = carry_one(ctx, &f);
    for (uint32_t i = 0; i < s->n && !rc; i++) {
        const struct part *p = &s->parts[i];
        memcpy(payload, &p->head, p->n_head);
        memcpy(payload + p->n_head, p->bytes, p->n_bytes);
        f = (struct gn_frame){
            .op = p->op, .seq = p->seq, .payload = payload, .n_payload = p->n_head + p->n_bytes};
        rc = carry_one(ctx, &f);
    }
    return rc;
}

void gn_tcp_handover_free(struct gn_tcp_handover *s)
{
    if (!s)
        return;
    gn_out_retained_fini(&s->said);
    free(s->homes);
    free(s->parts);
    free(s);
}
