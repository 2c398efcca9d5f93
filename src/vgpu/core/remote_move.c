/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session over tcp, from one worker to another (docs/moves.md). What the program has sent goes on where the old worker stopped reading:
 * it keeps what is not acknowledged, and sends from there what the new one has not taken. What the old one has said has all reached the
 * program before it goes over, so of that nothing is handed. In the data area lies what messages have brought that are not over yet;
 * which those are only the program knows, so all goes that has come and is not zero, but for objects' memory, which the stream has. Of a
 * program that shared its memory with the old worker no records are under way, and all of the data area that there is may have come.
 * Run by who saves and by who loads; the socket thread stands, or is not there yet.
 */
#include "vgpu/core/remote_host_inside.h"

#include "link/frame.h"
#include "link/worker_wire.h"
#include "vgpu/core/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define RUN_BYTES  (12u * PAGE_BYTES) /* of one frame */
#define MAX_HELD   65536u
#define MAX_AREAS  (UINT32_C(1) << 22)

static const unsigned char zeros[PAGE_BYTES];

/* ---- from the old one */

struct home {
    const unsigned char *base;
    uint64_t bytes;
};

struct homes {
    struct home *all; /* by their addresses */
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
        if (ret->n == ret->capacity) {
            const uint32_t more = ret->capacity ? 2 * ret->capacity : 64;
            struct home *all = realloc(ret->all, more * sizeof *all);
            if (!all)
                return -ENOMEM;
            ret->all = all;
            ret->capacity = more;
        }
        home.base = base;
        ret->all[ret->n++] = home;
    }
    if (ret->n)
        qsort(ret->all, ret->n, sizeof *ret->all, by_base);
    return 0;
}

/* How many bytes from here are an object's, in whole pages. */
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
    return home && home->base + home->bytes > page ? (uint64_t)(home->base + home->bytes - page) / PAGE_BYTES * PAGE_BYTES : 0;
}

static bool is_zero(const unsigned char *page)
{
    return memcmp(page, zeros, PAGE_BYTES) == 0;
}

struct run {
    uint32_t segment, bytes;
    uint64_t at;
};

/* Found first, and then handed: the program may write there meanwhile. */
struct handing {
    struct gn_vgpu *v;
    struct homes homes;
    struct run *runs;
    uint32_t n, capacity;
};

static int add_run(struct handing *h, const struct run *run)
{
    if (h->n == h->capacity) {
        const uint32_t more = h->capacity ? 2 * h->capacity : 256;
        struct run *runs = h->n < MAX_AREAS ? realloc(h->runs, more * sizeof *runs) : NULL;
        if (!runs)
            return -ENOMEM;
        h->runs = runs;
        h->capacity = more;
    }
    h->runs[h->n++] = *run;
    return 0;
}

/* Every run of pages between the two. */
static int find_runs(struct handing *h, uint32_t segment, uint64_t at, uint64_t end)
{
    const unsigned char *base = h->v->segments[segment].base;
    int rc = 0;
    while (at < end && !rc) {
        const uint64_t skip = home_bytes(&h->homes, base + at);
        uint64_t n = 0;
        while (!skip && n < RUN_BYTES && at + n < end && !is_zero(base + at + n) && !home_bytes(&h->homes, base + at + n))
            n += PAGE_BYTES;
        if (n)
            rc = add_run(h, &(struct run){segment, (uint32_t)n, at});
        at += skip ? skip : n ? n : PAGE_BYTES;
    }
    return rc;
}

/* What the program has sent, by chunks. */
static int find_touched(struct handing *h, uint32_t segment, const unsigned char *touched)
{
    const uint64_t bytes = h->v->segments[segment].bytes,
                   chunks = touched ? (bytes + GN_REMOTE_CHUNK_BYTES - 1) / GN_REMOTE_CHUNK_BYTES : 0;
    int rc = 0;
    for (uint64_t c = 0; c < chunks && !rc; c++) {
        const uint64_t end = (c + 1) * GN_REMOTE_CHUNK_BYTES;
        if (touched[c / 8] & 1u << c % 8)
            rc = find_runs(h, segment, c * GN_REMOTE_CHUNK_BYTES, end < bytes ? end : bytes);
    }
    return rc;
}

/* What there is of memory that the program has as well. */
static int find_used(struct handing *h, uint32_t segment)
{
    const struct gn_segment *s = &h->v->segments[segment];
    int rc = 0;
    for (off_t at = 0, end; !rc && (at = lseek(s->fd, at, SEEK_DATA)) >= 0; at = end) {
        end = lseek(s->fd, at, SEEK_HOLE);
        if (end <= at || (uint64_t)end > s->bytes)
            end = (off_t)s->bytes;
        rc = find_runs(h, segment, (uint64_t)at / PAGE_BYTES * PAGE_BYTES, (uint64_t)end / PAGE_BYTES * PAGE_BYTES);
    }
    return rc;
}

static int find_areas(struct handing *h)
{
    const uint32_t n = atomic_load_explicit(&h->v->n_segments, memory_order_acquire);
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = h->v->remote ? find_touched(h, i, h->v->remote->touched[i]) : find_used(h, i);
    return rc;
}

static int hand_areas(const struct handing *h, struct gn_tcp *to, int timeout_ms)
{
    unsigned char frame[sizeof(struct gn_worker_hand_area) + RUN_BYTES];
    int rc = 0;
    for (uint32_t i = 0; i < h->n && !rc; i++) {
        const struct run *run = &h->runs[i];
        const struct gn_worker_hand_area area = {.segment = run->segment, .at = run->at};
        memcpy(frame, &area, sizeof area);
        memcpy(frame + sizeof area, (const char *)h->v->segments[run->segment].base + run->at, run->bytes);
        rc = gn_frame_send_tcp(to, timeout_ms, GN_WORKER_HAND_AREA, 0, 0, frame, sizeof area + run->bytes);
    }
    return rc;
}

static int hand_held(struct gn_remote_host *h, struct gn_tcp *to, int timeout_ms)
{
    unsigned char frame[sizeof(uint64_t) + GN_MSG_MAX_BYTES];
    int rc = 0;
    gn_list_for_each(held, &h->held, struct gn_remote_held, link)
    {
        memcpy(frame, &held->batch, sizeof held->batch);
        memcpy(frame + sizeof held->batch, held->bytes, held->n_bytes);
        rc = rc ? rc : gn_frame_send_tcp(to, timeout_ms, GN_WORKER_HAND_HELD, 0, 0, frame, sizeof held->batch + held->n_bytes);
    }
    return rc;
}

static struct gn_stream_record record_of(const struct gn_out_sent *s)
{
    struct gn_stream_record record;
    memcpy(&record, s->head, sizeof record);
    return record;
}

/* Results that are on their way to the program lie in the area, where nothing tells what is still needed of it but this. */
static int find_results(struct handing *h, const struct gn_out_kept *said)
{
    int rc = 0;
    for (uint32_t i = 0; i < said->n && !rc; i++) {
        const struct gn_stream_record record = record_of(&said->all[i]);
        const uint32_t n = said->all[i].in_ring ? 0 : said->all[i].n_bytes;
        for (uint32_t at = 0; at < n && !rc; at += RUN_BYTES)
            rc = add_run(h, &(struct run){record.part, n - at < RUN_BYTES ? n - at : RUN_BYTES, record.at + at});
    }
    return rc;
}

static uint32_t n_frames(const struct gn_out_kept *said)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < said->n; i++)
        n += said->all[i].in_ring ? (said->all[i].n_bytes + RUN_BYTES - 1) / RUN_BYTES : 1;
    return n;
}

static int hand_said(const struct gn_out_kept *said, struct gn_tcp *to, int timeout_ms)
{
    int rc = 0;
    for (uint32_t i = 0; i < said->n && !rc; i++) {
        const struct gn_out_sent *s = &said->all[i];
        if (!s->in_ring)
            rc = gn_frame_send_tcp(to, timeout_ms, GN_WORKER_HAND_SAID, 0, 1, s->head, s->n_header);
        for (uint32_t at = 0; s->in_ring && at < s->n_bytes && !rc; at += RUN_BYTES)
            rc = gn_frame_send_tcp(to, timeout_ms, GN_WORKER_HAND_SAID, 0, 0, s->bytes + at,
                                   s->n_bytes - at < RUN_BYTES ? s->n_bytes - at : RUN_BYTES);
    }
    return rc;
}

int gn_far_hand(struct gn_vgpu *v, enum gn_far_way way, struct gn_tcp *to, int timeout_ms, struct gn_error *err)
{
    struct gn_remote_host *h = v->remote;
    struct gn_worker_hand_far far = {.n_held = 0};
    struct handing handing = {.v = v};
    struct gn_out_kept said = {.n = 0};
    if (h) {
        far = (struct gn_worker_hand_far){.received = h->in.received, .small = h->in.small, .n_batches = h->n_batches};
        gn_list_for_each(held, &h->held, struct gn_remote_held, link) far.n_held++;
    }
    int rc = 0;
    if (h && way == GN_FAR_BESIDE) {
        gn_remote_host_pass_prints(h);
        rc = gn_out_hold(&h->out, &said);
        far.first = said.first;
        far.acknowledged = said.acknowledged;
        far.n_said = n_frames(&said);
    }
    if (!rc && way != GN_FAR_NEAR)
        rc = find_homes(v, &handing.homes);
    if (!rc && way != GN_FAR_NEAR)
        rc = find_areas(&handing);
    if (!rc)
        rc = find_results(&handing, &said);
    far.n_areas = handing.n;
    if (!rc)
        rc = gn_frame_send_tcp(to, timeout_ms, GN_WORKER_HAND_FAR, 0, 0, &far, sizeof far);
    if (!rc && h)
        rc = hand_held(h, to, timeout_ms);
    if (!rc)
        rc = hand_areas(&handing, to, timeout_ms);
    if (!rc)
        rc = hand_said(&said, to, timeout_ms);
    gn_out_kept_fini(&said);
    free(handing.homes.all);
    free(handing.runs);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc)) : 0;
}

/* ---- to the new one */

static int take_held(struct gn_remote_host *h, const struct gn_frame *f)
{
    const uint32_t n = f->n_payload - (uint32_t)sizeof(uint64_t);
    if (f->op != GN_WORKER_HAND_HELD || f->n_payload < sizeof(uint64_t) + sizeof(struct gn_msg) || n > GN_MSG_MAX_BYTES)
        return -EPROTO;
    struct gn_remote_held *held = malloc(sizeof *held + n);
    if (!held)
        return -ENOMEM;
    memcpy(&held->batch, f->payload, sizeof held->batch);
    memcpy(held->bytes, (const unsigned char *)f->payload + sizeof held->batch, n);
    held->n_bytes = n;
    gn_list_append(&h->held, &held->link);
    return 0;
}

static int take_area(struct gn_remote_host *h, const struct gn_frame *f)
{
    struct gn_worker_hand_area area;
    if (f->op != GN_WORKER_HAND_AREA || f->n_payload <= sizeof area)
        return -EPROTO;
    memcpy(&area, f->payload, sizeof area);
    const uint32_t n = f->n_payload - (uint32_t)sizeof area;
    if (area.zero || area.segment >= atomic_load_explicit(&h->v->n_segments, memory_order_relaxed))
        return -EPROTO;
    void *at = gn_vgpu_area(h->v, area.segment + 1, area.at, n);
    if (!at || !gn_remote_host_touch(h, area.segment, area.at, n))
        return -EPROTO;
    memcpy(at, (const unsigned char *)f->payload + sizeof area, n);
    return 0;
}

static int take_said(struct gn_remote_host *h, const struct gn_frame *f)
{
    struct gn_stream_record record;
    if (f->op != GN_WORKER_HAND_SAID || !f->n_payload || f->seq > 1)
        return -EPROTO;
    if (!f->seq)
        return gn_out_keep_run(&h->out, f->payload, f->n_payload);
    if (f->n_payload < sizeof record)
        return -EPROTO;
    memcpy(&record, f->payload, sizeof record);
    const bool bulk = record.type == GN_RECORD_DATA || record.type == GN_RECORD_DATA_END;
    if (f->n_payload != sizeof record + (bulk ? 0 : record.bytes))
        return -EPROTO;
    if (!bulk)
        return gn_out_keep_record(&h->out, &record, (const unsigned char *)f->payload + sizeof record);
    const bool there = record.part < atomic_load_explicit(&h->v->n_segments, memory_order_relaxed);
    const void *at = there ? gn_vgpu_area(h->v, record.part + 1u, record.at, record.bytes) : NULL;
    return at ? gn_out_keep_record(&h->out, &record, at) : -EPROTO;
}

int gn_remote_host_take(struct gn_remote_host *h, struct gn_frame_reader *from, int timeout_ms, struct gn_error *err)
{
    struct gn_worker_hand_far far = {0};
    struct gn_frame f;
    int rc = gn_frame_wait(from, timeout_ms, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND_FAR && gn_frame_payload(&f, &far, sizeof far) && far.n_held <= MAX_HELD && far.n_areas <= MAX_AREAS &&
                     far.n_said <= MAX_AREAS
                 ? 0
                 : -EPROTO;
    for (uint32_t i = 0; !rc && i < far.n_held; i++) {
        rc = gn_frame_wait(from, timeout_ms, &f);
        rc = rc == 1 ? take_held(h, &f) : rc ? rc : -EPROTO;
    }
    for (uint32_t i = 0; !rc && i < far.n_areas; i++) {
        rc = gn_frame_wait(from, timeout_ms, &f);
        rc = rc == 1 ? take_area(h, &f) : rc ? rc : -EPROTO;
    }
    gn_out_go_on(&h->out, far.first);
    for (uint32_t i = 0; !rc && i < far.n_said; i++) {
        rc = gn_frame_wait(from, timeout_ms, &f);
        rc = rc == 1 ? take_said(h, &f) : rc ? rc : -EPROTO;
    }
    if (!rc)
        rc = gn_out_kept_all(&h->out, far.acknowledged);
    if (rc)
        return gn_fail(err, -rc, NULL, "the program's session has not come");
    h->in.received = far.received;
    h->in.small = far.small;
    h->n_batches = far.n_batches;
    /* One that waits for nothing would wait for ever: no honest worker hands such a one. */
    gn_commands_batch_came(h->v, h->n_batches);
    return 0;
}
