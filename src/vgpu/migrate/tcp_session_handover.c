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
#include "vgpu/migrate/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define RUN_BYTES  (12u * PAGE_BYTES) /* in one frame */

static const unsigned char zeros[PAGE_BYTES];

struct home {
    const unsigned char *base;
    uint64_t bytes;
};

struct homes {
    struct home *all; /* sorted by address */
    uint32_t n, capacity;
};

static int by_base(const void *a, const void *b)
{
    const struct home *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

static int find_homes(struct gn_vgpu *v, struct homes *ret)
{
    struct gn_vobject *o;
    for (uint32_t at = 0; (o = gn_object_next(v, &at)); at++) {
        struct home home;
        const void *base = v->api->contents->home(v, o, &home.bytes);
        if (!base)
            continue;
        struct home *all = gn_array_reserve(ret->all, ret->n, &ret->capacity, sizeof *all);
        if (!all)
            return -ENOMEM;
        ret->all = all;
        home.base = base;
        ret->all[ret->n++] = home;
    }
    if (ret->n)
        qsort(ret->all, ret->n, sizeof *ret->all, by_base);
    return 0;
}

/* The number of bytes from this page on, in whole pages, that belong to an object. */
static uint64_t home_bytes(const struct homes *h, const unsigned char *page)
{
    uint32_t low = 0, high = h->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (h->all[middle].base <= page)
            low = middle + 1;
        else
            high = middle;
    }
    const struct home *home = low ? &h->all[low - 1] : NULL;
    return home && home->base + home->bytes > page
               ? (uint64_t)(home->base + home->bytes - page) / PAGE_BYTES * PAGE_BYTES
               : 0;
}

static bool is_zero(const unsigned char *page)
{
    return memcmp(page, zeros, PAGE_BYTES) == 0;
}

struct run {
    uint32_t segment, bytes;
    uint64_t at;
};

/* The runs are found first and handed over later, because the program may write there meanwhile. */
struct gn_tcp_handover {
    struct gn_vgpu *v;
    struct gn_worker_hand_tcp far;
    struct gn_out_retained said;
    struct homes homes;
    struct run *runs;
    uint32_t n, capacity;
};

static int add_run(struct gn_tcp_handover *h, const struct run *run)
{
    struct run *runs = h->n < GN_REMOTE_MAX_AREAS
                           ? gn_array_reserve(h->runs, h->n, &h->capacity, sizeof *runs)
                           : NULL;
    if (!runs)
        return -ENOMEM;
    h->runs = runs;
    h->runs[h->n++] = *run;
    return 0;
}

/* Adds every run of pages in [at, end). */
static int find_runs(struct gn_tcp_handover *h, uint32_t segment, uint64_t at, uint64_t end)
{
    const unsigned char *base = h->v->segments[segment].base;
    int rc = 0;
    while (at < end && !rc) {
        const uint64_t skip = home_bytes(&h->homes, base + at);
        uint64_t n = 0;
        while (!skip && n < RUN_BYTES && at + n < end && !is_zero(base + at + n) &&
               !home_bytes(&h->homes, base + at + n))
            n += PAGE_BYTES;
        if (n)
            rc = add_run(h, &(struct run){segment, (uint32_t)n, at});
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

/* The receiver of frames. */
struct frame_sink {
    int (*carry)(void *ctx, const struct gn_frame *f);
    void *ctx;
};

static int put_frame(const struct frame_sink *to, uint16_t op, uint32_t seq, const void *payload,
                     size_t n)
{
    return to->carry(
        to->ctx,
        &(struct gn_frame){.op = op, .seq = seq, .payload = payload, .n_payload = (uint32_t)n});
}

static int put_held(struct gn_vgpu_tcp *h, const struct frame_sink *to)
{
    unsigned char frame[sizeof(uint64_t) + GN_MSG_MAX_BYTES];
    int rc = 0;
    gn_list_for_each(held, &h->held, struct gn_session_tcp_held, link)
    {
        memcpy(frame, &held->batch, sizeof held->batch);
        memcpy(frame + sizeof held->batch, held->bytes, held->n_bytes);
        rc = rc ? rc
                : put_frame(to, GN_WORKER_HAND_HELD, 0, frame, sizeof held->batch + held->n_bytes);
    }
    return rc;
}

static int put_areas(const struct gn_tcp_handover *s, const struct frame_sink *to)
{
    unsigned char frame[sizeof(struct gn_worker_hand_area) + RUN_BYTES];
    int rc = 0;
    for (uint32_t i = 0; i < s->n && !rc; i++) {
        const struct run *run = &s->runs[i];
        const struct gn_worker_hand_area area = {.segment = run->segment, .at = run->at};
        memcpy(frame, &area, sizeof area);
        memcpy(frame + sizeof area, (const char *)s->v->segments[run->segment].base + run->at,
               run->bytes);
        rc = put_frame(to, GN_WORKER_HAND_AREA, 0, frame, sizeof area + run->bytes);
    }
    return rc;
}

static struct gn_stream_record record_of(const struct gn_out_sent *s)
{
    struct gn_stream_record record;
    memcpy(&record, s->head, sizeof record);
    return record;
}

/*
 * Results in transit to the program lie in the data area. Only this list knows that they are still
 * needed.
 */
static int find_results(struct gn_tcp_handover *s)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->said.n && !rc; i++) {
        const struct gn_stream_record record = record_of(&s->said.all[i]);
        const uint32_t n = s->said.all[i].in_ring ? 0 : s->said.all[i].n_bytes;
        for (uint32_t at = 0; at < n && !rc; at += RUN_BYTES)
            rc = add_run(s, &(struct run){record.part, n - at < RUN_BYTES ? n - at : RUN_BYTES,
                                          record.at + at});
    }
    return rc;
}

static uint32_t n_frames(const struct gn_out_retained *said)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < said->n; i++)
        n += said->all[i].in_ring ? (said->all[i].n_bytes + RUN_BYTES - 1) / RUN_BYTES : 1;
    return n;
}

static int put_unacknowledged(const struct gn_out_retained *said, const struct frame_sink *to)
{
    int rc = 0;
    for (uint32_t i = 0; i < said->n && !rc; i++) {
        const struct gn_out_sent *s = &said->all[i];
        if (!s->in_ring)
            rc = put_frame(to, GN_WORKER_HAND_SENT, 1, s->head, s->n_header);
        for (uint32_t at = 0; s->in_ring && at < s->n_bytes && !rc; at += RUN_BYTES)
            rc = put_frame(to, GN_WORKER_HAND_SENT, 0, s->bytes + at,
                           s->n_bytes - at < RUN_BYTES ? s->n_bytes - at : RUN_BYTES);
    }
    return rc;
}

static int find_parts(struct gn_tcp_handover *s, const struct gn_route *route)
{
    struct gn_vgpu_tcp *h = s->v->tcp;
    int rc = 0;
    if (h)
        s->far = (struct gn_worker_hand_tcp){.received = h->in.received,
                                             .small = h->in.small,
                                             .n_batches = h->n_batches,
                                             .n_held = h->n_held};
    if (h && route->continues_stream) {
        gn_vgpu_tcp_pass_prints(h);
        rc = gn_out_hold(&h->out, &s->said);
        s->far.first = s->said.first;
        s->far.acknowledged = s->said.acknowledged;
        s->far.n_said = n_frames(&s->said);
    }
    if (!rc && !route->session_from_program && !(rc = find_homes(s->v, &s->homes)))
        rc = find_areas(s);
    if (!rc)
        rc = find_results(s);
    s->far.n_areas = s->n;
    return rc;
}

int gn_tcp_handover_new(struct gn_vgpu *v, const struct gn_route *route,
                        struct gn_tcp_handover **ret, struct gn_error *err)
{
    struct gn_tcp_handover *s = calloc(1, sizeof *s);
    if (!s)
        return gn_fail(err, ENOMEM, NULL, "no memory left to hand over the program's session");
    s->v = v;
    int rc = find_parts(s, route);
    if (rc) {
        gn_tcp_handover_free(s);
        return gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc));
    }
    *ret = s;
    return 0;
}

struct gn_tcp_handover_bytes gn_tcp_handover_size(const struct gn_tcp_handover *s)
{
    struct gn_tcp_handover_bytes size = {.n_frames = 1u + s->far.n_held + s->n + s->far.n_said,
                                         .bytes = sizeof s->far};
    if (s->v->tcp)
        gn_list_for_each(held, &s->v->tcp->held, struct gn_session_tcp_held, link) size.bytes +=
            sizeof held->batch + held->n_bytes;
    for (uint32_t i = 0; i < s->n; i++)
        size.bytes += sizeof(struct gn_worker_hand_area) + s->runs[i].bytes;
    for (uint32_t i = 0; i < s->said.n; i++)
        size.bytes += s->said.all[i].in_ring ? s->said.all[i].n_bytes : s->said.all[i].n_header;
    return size;
}

int gn_tcp_handover_send(const struct gn_tcp_handover *s,
                         int (*carry_one)(void *ctx, const struct gn_frame *f), void *ctx)
{
    const struct frame_sink to = {carry_one, ctx};
    int rc = put_frame(&to, GN_WORKER_HAND_TCP, 0, &s->far, sizeof s->far);
    if (!rc && s->v->tcp)
        rc = put_held(s->v->tcp, &to);
    if (!rc)
        rc = put_areas(s, &to);
    return rc ? rc : put_unacknowledged(&s->said, &to);
}

void gn_tcp_handover_free(struct gn_tcp_handover *s)
{
    if (!s)
        return;
    gn_out_retained_fini(&s->said);
    free(s->homes.all);
    free(s->runs);
    free(s);
}
