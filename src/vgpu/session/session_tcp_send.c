/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending half of a session over tcp: answers, ends of commands, frames, and output of the
 * worker. Any thread appends records; the socket thread (session_tcp.c) sends when it has no more
 * to serve, other threads send the records that the program waits for. Nothing waits for the
 * connection: records are kept for the next one when it breaks, and a program that leaves too many
 * unread loses its vGPU.
 */
#include "vgpu/session/session_tcp_internal.h"

#include "link/link_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define INLINE_BYTES (16u << 10)
#define FLUSH_BYTES  (16u << 10)
#define FLUSH_NS     100000u
#define PRINT_BYTES  (1 << 20)

_Thread_local bool gn_vgpu_tcp_is_socket_thread;

void gn_vgpu_tcp_wake(struct gn_vgpu_tcp *h)
{
    const uint64_t one = 1;
    (void)!write(h->wake_fd, &one, sizeof one);
}

/* ---- sending */

void gn_vgpu_tcp_flush(struct gn_vgpu_tcp *h)
{
    /* The socket thread polls for room, and notices a broken connection itself. */
    if (gn_out_pending(&h->out) && gn_out_flush(&h->out) && !gn_vgpu_tcp_is_socket_thread)
        gn_vgpu_tcp_wake(h);
}

static void flush_soon(struct gn_vgpu_tcp *h)
{
    if (gn_vgpu_tcp_is_socket_thread || atomic_load_explicit(&h->out.blocked, memory_order_relaxed))
        return;
    if (atomic_load_explicit(&h->out.unsent, memory_order_relaxed) >= FLUSH_BYTES) {
        gn_vgpu_tcp_flush(h);
    } else if (!atomic_exchange_explicit(&h->flush_armed, true, memory_order_seq_cst)) {
        const struct itimerspec when = {.it_value = {.tv_nsec = FLUSH_NS}};
        (void)timerfd_settime(h->flush_fd, 0, &when, NULL);
    }
}

void gn_vgpu_tcp_overflow(struct gn_vgpu_tcp *h, int rc)
{
    if (rc && rc != -EPIPE)
        gn_vgpu_fault(h->v, "the program does not take what it is told", "tcp");
}

/*
 * The socket thread sends when it has no more to serve; for records of other threads (builds, a
 * driver's) the program waits now.
 */
static void send_now(struct gn_vgpu_tcp *h)
{
    if (!gn_vgpu_tcp_is_socket_thread)
        gn_vgpu_tcp_flush(h);
}

void gn_vgpu_tcp_reply(struct gn_vgpu *v, uint32_t token, int32_t result, const void *payload,
                       size_t n)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record record = {(uint32_t)n, GN_RECORD_REPLY, 0,
                                            gn_record_pair(token, result)};
    int rc = gn_out_append(&h->out, &record, payload);
    if (rc == -EAGAIN)
        rc = gn_out_append_ordered(&h->out, &record, payload);
    gn_vgpu_tcp_overflow(h, rc);
    send_now(h);
}

void gn_vgpu_tcp_answer(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                        const void *payload, size_t n)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record last = {(uint32_t)n, GN_RECORD_REPLY, 0,
                                          gn_record_pair(token, r->result)};
    struct gn_out_part parts[GN_REQUEST_MAX_OUTS + 1];
    uint64_t bytes = 0, batch;
    int n_parts = 0, rc = -EAGAIN;
    for (uint32_t i = 0; i < r->n_outs; i++) {
        const struct gn_span *span = r->outs[i].span;
        if (!r->outs[i].bytes || span->segment == GN_SPAN_INLINE)
            continue;
        bytes += span->bytes;
        parts[n_parts++] = (struct gn_out_part){
            {span->bytes, GN_RECORD_DATA, (uint16_t)(span->segment - 1), span->offset},
            r->outs[i].bytes};
    }
    parts[n_parts] = (struct gn_out_part){last, payload};
    if (r->brings_bytes) {
        const struct gn_area_ref *ref = &r->brings;
        rc = gn_out_bulk(&h->out, (uint16_t)(ref->segment - 1), ref->offset,
                         gn_vgpu_area(h->v, ref->segment, ref->offset, r->brings_bytes),
                         r->brings_bytes, true, &batch);
        rc = rc ? rc : -EAGAIN;
    } else if (bytes <= INLINE_BYTES) {
        rc = gn_out_append_all(&h->out, parts, n_parts + 1);
    }
    if (rc == -EAGAIN) {
        /* Sent from the area, where they stay until the program has its answer. */
        rc = 0;
        for (int i = 0; i < n_parts && !rc; i++) {
            const struct gn_stream_record *p = &parts[i].record;
            rc = gn_out_bulk(&h->out, p->part, p->at,
                             gn_vgpu_area(h->v, p->part + 1u, p->at, p->bytes), p->bytes, true,
                             &batch);
        }
        if (!rc)
            rc = gn_out_append_ordered(&h->out, &last, payload);
    }
    gn_vgpu_tcp_overflow(h, rc);
    send_now(h);
}

void gn_vgpu_tcp_post_event(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record record = {0, GN_RECORD_EVENT, (uint16_t)phase, index};
    gn_vgpu_tcp_overflow(h, gn_out_append_ordered(&h->out, &record, NULL));
    flush_soon(h);
}

static bool pass_prints(struct gn_vgpu_tcp *h, int which);

void gn_vgpu_tcp_end_event(struct gn_vgpu *v, uint32_t index, int32_t error,
                           const struct gn_event_times *times, const struct gn_command *c)
{
    struct gn_vgpu_tcp *h = v->tcp;
    struct gn_stream_record record = {0, GN_RECORD_EVENT_END, 0, gn_record_pair(index, error)};
    struct gn_stream_times t;
    uint64_t batch;
    int rc = 0;
    if (times) {
        t = (struct gn_stream_times){times->submit_ns, times->start_ns, times->end_ns};
        record.bytes = sizeof t;
    }
    if (c && c->class->brings && c->area && c->area_bytes && !error) {
        const struct gn_area_ref *ref = &c->area_ref;
        const struct gn_out_part data = {
            {(uint32_t)c->area_bytes, GN_RECORD_DATA, (uint16_t)(ref->segment - 1), ref->offset},
            c->area};
        /* Small data may go ahead of bulk data: its place is used by no other record. */
        rc = c->area_bytes <= INLINE_BYTES ? gn_out_append_all(&h->out, &data, 1) : -EAGAIN;
        if (rc == -EAGAIN)
            rc = gn_out_bulk(&h->out, data.record.part, ref->offset, c->area, c->area_bytes, true,
                             &batch);
    }
    (void)pass_prints(h, 0);
    if (!rc)
        rc = gn_out_append_ordered(&h->out, &record, times ? &t : NULL);
    gn_vgpu_tcp_overflow(h, rc);
    /* The entry in this process only tells whether the program waits there. */
    bool wanted = gn_event_finish(gn_event_at(h->v->events, index), error, NULL);
    if (wanted || atomic_exchange_explicit(&h->eager, false, memory_order_seq_cst))
        send_now(h);
    else
        flush_soon(h);
}

int gn_vgpu_tcp_send_frame(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload,
                           size_t n)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record record = {(uint32_t)n, GN_RECORD_FRAME, op, seq};
    int rc = n <= GN_OUT_SMALL_BYTES ? gn_out_append_ordered(&h->out, &record, payload)
                                     : gn_out_append(&h->out, &record, payload);
    if (op == GN_SESSION_WANT)
        send_now(h); /* a compiler waits */
    else
        flush_soon(h);
    return rc;
}

/* ---- output of this process */

static void append_print(struct gn_vgpu_tcp *h, uint16_t fd, const char *text, uint32_t n)
{
    struct gn_stream_record record = {n, GN_RECORD_PRINT, fd, 0};
    int rc = gn_out_append(&h->out, &record, text);
    while (rc == -EAGAIN && n) {
        record.bytes = n < GN_OUT_SMALL_BYTES ? n : GN_OUT_SMALL_BYTES;
        int piece = gn_out_append_ordered(&h->out, &record, text);
        if (piece) {
            gn_vgpu_tcp_overflow(h, piece);
            return;
        }
        text += record.bytes;
        n -= record.bytes;
    }
}

/*
 * Text printed before now goes before the records that are appended from now on. While objects are
 * made again the output is dropped: the program has it from the first time, and its stream may not
 * be set up yet.
 */
static bool pass_prints(struct gn_vgpu_tcp *h, int which)
{
    char text[4096];
    bool any = false;
    pthread_mutex_lock(&h->print_lock);
    for (;;) {
        ssize_t n = read(h->print_fds[which], text, sizeof text);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (gn_vgpu_state(&h->v->life) == GN_VGPU_ARRIVING)
            continue;
        append_print(h, (uint16_t)(which + 1), text, (uint32_t)n);
        any = true;
    }
    pthread_mutex_unlock(&h->print_lock);
    return any;
}

void gn_vgpu_tcp_pass_prints(struct gn_vgpu_tcp *h)
{
    (void)pass_prints(h, 0);
    (void)pass_prints(h, 1);
}

/* For text that belongs to no event's end, and for more text than a pipe holds. */
static void *print_thread(void *arg)
{
    struct gn_vgpu_tcp *h = arg;
    struct pollfd p[2] = {{.fd = h->print_fds[0], .events = POLLIN},
                          {.fd = h->print_fds[1], .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return NULL;
        for (int i = 0; i < 2; i++)
            if (p[i].revents && pass_prints(h, i))
                flush_soon(h);
    }
}

int gn_vgpu_tcp_catch_prints(struct gn_vgpu_tcp *h)
{
    pthread_t thread;
    pthread_mutex_init(&h->print_lock, NULL);
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0) /* in a worker */
            return -errno;
        /* Only the reader must not wait: a driver that has filled the pipe waits for it. */
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        (void)fcntl(ends[0], F_SETPIPE_SZ, PRINT_BYTES);
        if (dup2(ends[1], i + 1) < 0)
            return -errno;
        close(ends[1]);
        h->print_fds[i] = ends[0];
    }
    int rc = pthread_create(&thread, NULL, print_thread, h);
    if (!rc)
        pthread_detach(thread);
    return -rc;
}
