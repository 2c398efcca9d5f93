/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of a session over tcp. The socket thread receives, serves, and sends what has
 * gathered when it runs out of work; other threads send by themselves what somebody waits for.
 * Whatever is appended is sent at the latest FLUSH_NS later. When the connection breaks, commands
 * go on, and what they say is kept for the connection that comes within the grace.
 */
#include "vgpu/session/session_tcp_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"
#include "link/link_wire.h"
#include "link/tls.h"
#include "vgpu/core/include_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define INLINE_BYTES   (16u << 10)
#define FLUSH_BYTES    (16u << 10)
#define FLUSH_NS       100000u
#define HELLO_NS       UINT64_C(2000000000)
#define LOOKS_A_CLOCK  8u
#define MAX_HANDSHAKES 4
#define PRINT_BYTES    (1 << 20)
#define PASSING_BYTES  (UINT64_C(640) << 20) /* above STAGED_FAR_MOST of the front end */

static _Thread_local bool is_socket_thread;

static void wake(struct gn_vgpu_tcp *h)
{
    const uint64_t one = 1;
    (void)!write(h->wake_fd, &one, sizeof one);
}

void gn_vgpu_tcp_wake(struct gn_vgpu_tcp *h)
{
    wake(h);
}

/* ---- sending */

static void flush(struct gn_vgpu_tcp *h)
{
    /* The socket thread polls for room, and finds out about a broken connection by itself. */
    if (gn_out_pending(&h->out) && gn_out_flush(&h->out) && !is_socket_thread)
        wake(h);
}

static void flush_soon(struct gn_vgpu_tcp *h)
{
    if (is_socket_thread || atomic_load_explicit(&h->out.blocked, memory_order_relaxed))
        return;
    if (atomic_load_explicit(&h->out.unsent, memory_order_relaxed) >= FLUSH_BYTES) {
        flush(h);
    } else if (!atomic_exchange_explicit(&h->flush_armed, true, memory_order_seq_cst)) {
        const struct itimerspec when = {.it_value = {.tv_nsec = FLUSH_NS}};
        (void)timerfd_settime(h->flush_fd, 0, &when, NULL);
    }
}

static void overflow(struct gn_vgpu_tcp *h, int rc)
{
    if (rc && rc != -EPIPE)
        gn_vgpu_fault(h->v, "the program does not take what it is told", "tcp");
}

/* The socket thread sends when it has no more to serve; on other threads (builds, a driver's)
 * somebody waits for this now. */
static void send_now(struct gn_vgpu_tcp *h)
{
    if (!is_socket_thread)
        flush(h);
}

void gn_vgpu_tcp_reply(struct gn_vgpu_tcp *h, uint32_t token, int32_t result, const void *payload,
                       size_t n)
{
    const struct gn_stream_record record = {(uint32_t)n, GN_RECORD_REPLY, 0,
                                            gn_record_pair(token, result)};
    int rc = gn_out_append(&h->out, &record, payload);
    if (rc == -EAGAIN)
        rc = gn_out_append_ordered(&h->out, &record, payload);
    overflow(h, rc);
    send_now(h);
}

void gn_vgpu_tcp_answer(struct gn_vgpu_tcp *h, const struct gn_request *r, uint32_t token,
                        const void *payload, size_t n)
{
    const struct gn_stream_record reply = {(uint32_t)n, GN_RECORD_REPLY, 0,
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
    parts[n_parts] = (struct gn_out_part){reply, payload};
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
        /* From the area, where they stay until the program has its answer. */
        rc = 0;
        for (int i = 0; i < n_parts && !rc; i++) {
            const struct gn_stream_record *p = &parts[i].record;
            rc = gn_out_bulk(&h->out, p->part, p->at,
                             gn_vgpu_area(h->v, p->part + 1u, p->at, p->bytes), p->bytes, true,
                             &batch);
        }
        if (!rc)
            rc = gn_out_append_ordered(&h->out, &reply, payload);
    }
    overflow(h, rc);
    send_now(h);
}

void gn_vgpu_tcp_event(struct gn_vgpu_tcp *h, uint32_t index, enum gn_event_phase phase)
{
    const struct gn_stream_record record = {0, GN_RECORD_EVENT, (uint16_t)phase, index};
    overflow(h, gn_out_append_ordered(&h->out, &record, NULL));
    flush_soon(h);
}

static bool pass_prints(struct gn_vgpu_tcp *h, int which);

void gn_vgpu_tcp_event_end(struct gn_vgpu_tcp *h, uint32_t index, int32_t error,
                           const struct gn_event_times *times, const struct gn_command *c)
{
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
        /* Small ones may go ahead of bulk data: their place is nobody else's. */
        rc = c->area_bytes <= INLINE_BYTES ? gn_out_append_all(&h->out, &data, 1) : -EAGAIN;
        if (rc == -EAGAIN)
            rc = gn_out_bulk(&h->out, data.record.part, ref->offset, c->area, c->area_bytes, true,
                             &batch);
    }
    (void)pass_prints(h, 0);
    if (!rc)
        rc = gn_out_append_ordered(&h->out, &record, times ? &t : NULL);
    overflow(h, rc);
    /* The entry here is only what says whether somebody waits there. */
    bool wanted = gn_event_finish(gn_event_at(h->v->events, index), error, NULL);
    if (wanted || atomic_exchange_explicit(&h->eager, false, memory_order_seq_cst))
        send_now(h);
    else
        flush_soon(h);
}

int gn_vgpu_tcp_frame(struct gn_vgpu_tcp *h, uint16_t op, uint32_t seq, const void *payload,
                      size_t n)
{
    const struct gn_stream_record record = {(uint32_t)n, GN_RECORD_FRAME, op, seq};
    int rc = n <= GN_OUT_SMALL_BYTES ? gn_out_append_ordered(&h->out, &record, payload)
                                     : gn_out_append(&h->out, &record, payload);
    if (op == GN_SESSION_WANT)
        send_now(h); /* a compiler waits */
    else
        flush_soon(h);
    return rc;
}

/* ---- what is printed */

static void append_print(struct gn_vgpu_tcp *h, uint16_t fd, const char *text, uint32_t n)
{
    struct gn_stream_record record = {n, GN_RECORD_PRINT, fd, 0};
    int rc = gn_out_append(&h->out, &record, text);
    while (rc == -EAGAIN && n) {
        record.bytes = n < GN_OUT_SMALL_BYTES ? n : GN_OUT_SMALL_BYTES;
        int piece = gn_out_append_ordered(&h->out, &record, text);
        if (piece) {
            overflow(h, piece);
            return;
        }
        text += record.bytes;
        n -= record.bytes;
    }
}

/*
 * Everything that was printed before now goes before what is appended from now on. While objects
 * are made anew the driver's output reaches nobody: the program has it from their first making, and
 * its stream may not stand yet.
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
        if (atomic_load_explicit(&h->v->arriving, memory_order_relaxed))
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

/* For text that belongs to no event's end, and for more of it than a pipe holds. */
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

static int catch_prints(struct gn_vgpu_tcp *h)
{
    pthread_t thread;
    pthread_mutex_init(&h->print_lock, NULL);
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0) /* in a worker */
            return -errno;
        /* Only what reads must not wait: a driver that has filled the pipe waits for us. */
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

/* ---- receiving */

/* Of this machine's memory, what a program without a limit may have of it by default. */
#define DEFAULT_PART 4u

uint64_t gn_vgpu_tcp_limit(const struct gn_vgpu *v)
{
    const uint64_t limit = v->boot->memory_limit_bytes,
                   ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit ? limit : ram / DEFAULT_PART;
}

/*
 * This machine's memory is filled by the program that sends, not by the one that has it: so it is
 * counted, a chunk at its first use. What a program may fill is what it may hold, twice (a buffer
 * and its map), and something for what passes through.
 */
static uint64_t most_touched(const struct gn_vgpu *v)
{
    const uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                   limit = gn_vgpu_tcp_limit(v);
    return limit < ram / 2 ? 2 * limit + PASSING_BYTES : ram;
}

bool gn_vgpu_tcp_touch(struct gn_vgpu_tcp *h, uint32_t segment, uint64_t at, uint64_t bytes)
{
    unsigned char **map = &h->touched[segment];
    if (!bytes)
        return true;
    if (!*map && !(*map = calloc(1, h->v->segments[segment].bytes / GN_REMOTE_CHUNK_BYTES / 8 + 1)))
        return false;
    for (uint64_t i = at / GN_REMOTE_CHUNK_BYTES; i <= (at + bytes - 1) / GN_REMOTE_CHUNK_BYTES;
         i++) {
        if (!((*map)[i / 8] & 1u << i % 8)) {
            (*map)[i / 8] |= (unsigned char)(1u << i % 8);
            h->touched_bytes += GN_REMOTE_CHUNK_BYTES;
        }
    }
    if (h->touched_bytes <= h->most_touched)
        return true;
    gn_vgpu_fault(h->v, "its program fills more memory than it may have", "tcp");
    return false;
}

/* Whole chunks of what is not needed any more. */
static void untouch(struct gn_vgpu_tcp *h, uint32_t segment, uint64_t at, uint64_t bytes)
{
    unsigned char *map = h->touched[segment];
    for (uint64_t i = (at + GN_REMOTE_CHUNK_BYTES - 1) / GN_REMOTE_CHUNK_BYTES;
         map && (i + 1) * GN_REMOTE_CHUNK_BYTES <= at + bytes; i++) {
        if (map[i / 8] & 1u << i % 8) {
            map[i / 8] &= (unsigned char)~(1u << i % 8);
            h->touched_bytes -= GN_REMOTE_CHUNK_BYTES;
        }
    }
}

static void *place(void *context, const struct gn_stream_record *record)
{
    struct gn_vgpu_tcp *h = context;
    if (record->part >= atomic_load_explicit(&h->v->n_segments, memory_order_relaxed))
        return NULL;
    void *at = gn_vgpu_area(h->v, record->part + 1u, record->at, record->bytes);
    return at && gn_vgpu_tcp_touch(h, record->part, record->at, record->bytes) ? at : NULL;
}

int gn_vgpu_tcp_add_segment(struct gn_vgpu_tcp *h, uint64_t at, uint64_t bytes)
{
    struct gn_vgpu *v = h->v;
    struct gn_segment segment = {.fd = -1, .bytes = bytes};
    uint32_t index = atomic_load_explicit(&v->n_segments, memory_order_relaxed);
    /* A program that has come from this machine's memory tells of all that it has: some have come
     * from its old worker. */
    if (at && at < index)
        return v->segments[at].bytes == bytes ? 0 : -EPROTO;
    if (at != index || index >= GN_MAX_SEGMENTS || !bytes || bytes > GN_LINK_SEGMENT_LIMIT)
        return -EPROTO;
    /* Nobody else's, but shared memory by its kind: so that its pages can be given back one by one.
     */
    segment.base = mmap(NULL, segment.bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (segment.base == MAP_FAILED) {
        gn_vgpu_fault(v, "a data segment cannot be had", strerror(errno));
        return -EPROTO;
    }
    pthread_mutex_lock(&v->segments_lock);
    v->segments[index] = segment;
    atomic_store_explicit(&v->n_segments, index + 1, memory_order_release);
    pthread_cond_broadcast(&v->segments_wake);
    pthread_mutex_unlock(&v->segments_lock);
    return 0;
}

static int take_free(struct gn_vgpu_tcp *h, const struct gn_stream_record *record,
                     const void *payload)
{
    uint64_t bytes, page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (record->bytes != sizeof bytes)
        return -EPROTO;
    memcpy(&bytes, payload, sizeof bytes);
    void *at = record->part < atomic_load_explicit(&h->v->n_segments, memory_order_relaxed) &&
                       !(bytes % page) && !(record->at % page)
                   ? gn_vgpu_area(h->v, record->part + 1u, record->at, bytes)
                   : NULL;
    if (!at)
        return -EPROTO;
    (void)madvise(at, bytes, MADV_REMOVE);
    untouch(h, record->part, record->at, bytes);
    return 0;
}

static void serve(struct gn_vgpu_tcp *h, const void *bytes, uint32_t n, uint64_t batch)
{
    struct gn_request r;
    gn_request_init(&r, h->v);
    memcpy(r.bytes, bytes, n);
    gn_vgpu_handle(h->v, &r, n, batch);
}

static int take_message(struct gn_vgpu_tcp *h, const struct gn_stream_record *record,
                        const void *payload)
{
    struct gn_msg msg;
    if (record->bytes > GN_MSG_MAX_BYTES || record->bytes < sizeof msg)
        return -EPROTO;
    memcpy(&msg, payload, sizeof msg);
    if (record->at <= h->n_batches) {
        serve(h, payload, record->bytes, 0);
        return 0;
    }
    if (msg.reply == GN_NO_REPLY) {
        serve(h, payload, record->bytes, record->at);
        return 0;
    }
    /* Who waits for an answer has a slot for it. */
    if (h->n_held == GN_REPLY_SLOTS)
        return -EPROTO;
    struct gn_session_tcp_held *held = malloc(sizeof *held + record->bytes);
    if (!held)
        return -ENOMEM;
    held->batch = record->at;
    held->n_bytes = record->bytes;
    memcpy(held->bytes, payload, record->bytes);
    gn_list_append(&h->held, &held->link);
    h->n_held++;
    return 0;
}

static void batch_came(struct gn_vgpu_tcp *h)
{
    h->n_batches++;
    gn_commands_batch_came(h->v, h->n_batches);
    gn_list_for_each(held, &h->held, struct gn_session_tcp_held, link)
    {
        if (held->batch > h->n_batches)
            continue;
        gn_list_remove(&held->link);
        h->n_held--;
        serve(h, held->bytes, held->n_bytes, 0);
        free(held);
    }
}

/* Contents of a file that a build includes; in the end it is told to who asked. */
static int take_contents(struct gn_vgpu_tcp *h, const void *bytes, uint32_t n)
{
    if (n > h->file.left)
        return -EPROTO;
    if (n && write(h->file.fd, bytes, n) != (ssize_t)n)
        return -ENOMEM;
    h->file.left -= n;
    if (h->file.left)
        return 0;
    (void)lseek(h->file.fd, 0, SEEK_SET);
    gn_vgpu_file_came(h->file.seq, &h->file.facts, h->file.fd);
    h->file.fd = -1;
    return 0;
}

static int take_frame(struct gn_vgpu_tcp *h, const struct gn_stream_record *record,
                      const void *payload)
{
    struct gn_session_file file;
    if (record->part == GN_SESSION_FILE_MORE)
        return h->file.fd >= 0 && record->at == h->file.seq
                   ? take_contents(h, payload, record->bytes)
                   : -EPROTO;
    if (record->part != GN_SESSION_FILE || record->bytes < sizeof file || h->file.fd >= 0)
        return -EPROTO;
    memcpy(&file, payload, sizeof file);
    if (file.zero & ~GN_SESSION_HAS_CONTENTS)
        return -EPROTO;
    const bool contents = file.zero;
    file.zero = 0;
    if (!contents) {
        gn_vgpu_file_came((uint32_t)record->at, &file, -1);
        return record->bytes == sizeof file ? 0 : -EPROTO;
    }
    if (file.bytes > GN_SESSION_FILE_MOST)
        return -EPROTO;
    h->file.fd = gn_fd_memory("gantry-include", 0);
    if (h->file.fd < 0)
        return -ENOMEM;
    h->file.seq = (uint32_t)record->at;
    h->file.left = file.bytes;
    h->file.facts = file;
    return take_contents(h, (const char *)payload + sizeof file,
                         record->bytes - (uint32_t)sizeof file);
}

static int take(void *context, const struct gn_stream_record *record, const void *payload)
{
    struct gn_vgpu_tcp *h = context;
    struct gn_event_entry *e;
    switch (record->type) {
    case GN_RECORD_FRAME:
        return take_frame(h, record, payload);
    case GN_RECORD_DATA:
        return 0;
    case GN_RECORD_DATA_END:
        batch_came(h);
        return 0;
    case GN_RECORD_ACK:
        return gn_out_acknowledged(&h->out, record->at);
    case GN_RECORD_MESSAGE:
        return take_message(h, record, payload);
    case GN_RECORD_SEGMENT:
        return gn_vgpu_tcp_add_segment(h, record->part, record->at);
    case GN_RECORD_FREE:
        return take_free(h, record, payload);
    case GN_RECORD_WAIT:
        e = gn_event_at(h->v->events, record->at);
        if (!e)
            return -EPROTO;
        /* Over here, but maybe not told yet: by whoever tells it now. */
        if (!gn_event_want(e))
            atomic_store_explicit(&h->eager, true, memory_order_seq_cst);
        return 0;
    case GN_RECORD_PAUSED:
        pthread_mutex_lock(&h->pause_lock);
        h->paused = (uint32_t)record->at;
        pthread_cond_broadcast(&h->pause_wake);
        pthread_mutex_unlock(&h->pause_lock);
        return 0;
    case GN_RECORD_BYE:
        h->bye = true;
        return 0;
    default:
        return -EPROTO;
    }
}

static const struct gn_in_ops in_ops = {.place = place, .take = take};

/* ---- connections */

static void offer(struct gn_vgpu_tcp *h, struct gn_tcp tcp)
{
    pthread_mutex_lock(&h->next_lock);
    struct gn_tcp old = h->next;
    h->next = tcp;
    pthread_mutex_unlock(&h->next_lock);
    gn_tcp_close(&old);
    wake(h);
}

struct handshake {
    struct gn_vgpu_tcp *h;
    int fd;
};

/*
 * Whoever knows the session's name gets so far; only who knows its key gets to replace the
 * connection of now. A thread of its own, so that nobody who takes his time here holds up what is
 * served.
 */
static void *shake_hands(void *arg)
{
    struct handshake *s = arg;
    const struct gn_vgpu_boot *boot = s->h->v->boot;
    struct gn_tcp tcp = {s->fd, NULL};
    struct gn_tls_psk psk;
    struct gn_error err;
    memcpy(psk.identity, boot->session, sizeof psk.identity);
    memcpy(psk.key, boot->key, sizeof psk.key);
    const struct gn_tls_config config = {.server = true, .psk = &psk};
    if (gn_tls_connect(&config, tcp.fd, gn_now_ns() + HELLO_NS, &tcp.tls, &err)) {
        gn_log(GN_LOG_WARN, "vgpu=%08x a data connection is refused: %s", boot->id, err.what);
        gn_tcp_close(&tcp);
    } else {
        offer(s->h, tcp);
    }
    explicit_bzero(&psk, sizeof psk);
    atomic_fetch_sub_explicit(&s->h->n_handshakes, 1, memory_order_relaxed);
    free(s);
    return NULL;
}

void gn_vgpu_tcp_link(struct gn_vgpu_tcp *h, int fd)
{
    gn_tcp_set_up(fd);
    if (!h->v->boot->tls) {
        offer(h, (struct gn_tcp){fd, NULL});
        return;
    }
    struct handshake *s = malloc(sizeof *s);
    pthread_t thread;
    if (!s || atomic_load_explicit(&h->n_handshakes, memory_order_relaxed) >= MAX_HANDSHAKES) {
        gn_log(GN_LOG_WARN, "vgpu=%08x a data connection is refused: %s", h->v->boot->id,
               s ? "too many at once" : "no memory");
        free(s);
        close(fd);
        return;
    }
    *s = (struct handshake){h, fd};
    atomic_fetch_add_explicit(&h->n_handshakes, 1, memory_order_relaxed);
    if (pthread_create(&thread, NULL, shake_hands, s)) {
        atomic_fetch_sub_explicit(&h->n_handshakes, 1, memory_order_relaxed);
        free(s);
        close(fd);
        return;
    }
    pthread_detach(thread);
}

static void disconnect(struct gn_vgpu_tcp *h)
{
    gn_out_disconnect(&h->out);
    gn_tcp_close(&h->tcp);
}

/* Goes on with a connection that has come, if one has. */
static void adopt_next(struct gn_vgpu_tcp *h)
{
    struct gn_stream_hello mine = {.magic = GN_STREAM_MAGIC, .version = GN_STREAM_VERSION}, theirs;
    struct gn_tcp tcp;
    pthread_mutex_lock(&h->next_lock);
    tcp = h->next;
    h->next = (struct gn_tcp)GN_TCP_NONE;
    pthread_mutex_unlock(&h->next_lock);
    if (tcp.fd < 0)
        return;
    /* The program makes a new one only when it has given the old one up. */
    disconnect(h);
    uint64_t deadline = gn_now_ns() + HELLO_NS;
    mine.received = h->in.received;
    int rc = gn_tcp_recv_all(&tcp, &theirs, sizeof theirs, deadline);
    mine.now_ns = gn_now_ns();
    if (!rc)
        rc = gn_tcp_send_all(&tcp, &mine, sizeof mine, deadline);
    if (!rc &&
        (theirs.magic != GN_STREAM_MAGIC || theirs.version != GN_STREAM_VERSION || theirs.zero))
        rc = -EPROTO;
    h->tcp = tcp;
    gn_in_connect(&h->in, &h->tcp);
    gn_out_owe_ack(&h->out, h->in.received, h->in.small);
    if (!rc)
        rc = gn_out_connect(&h->out, &h->tcp, theirs.received);
    if (rc) {
        gn_log(GN_LOG_WARN, "vgpu=%08x a connection of the program's is refused: %s",
               h->v->boot->id, strerror(-rc));
        disconnect(h);
    }
}

static void drain_counter(int fd)
{
    uint64_t n;
    (void)!read(fd, &n, sizeof n);
}

/* Sleeps until something is to be done; false: the program has not come back in time. */
static bool sleep_until_ready(struct gn_vgpu_tcp *h, uint64_t lost_at_ns)
{
    bool blocked = atomic_load_explicit(&h->out.blocked, memory_order_relaxed);
    struct pollfd p[3] = {{.fd = h->wake_fd, .events = POLLIN},
                          {.fd = h->flush_fd, .events = POLLIN},
                          {.fd = h->tcp.fd, .events = (short)(POLLIN | (blocked ? POLLOUT : 0))}};
    int timeout_ms = -1;
    if (h->tcp.fd < 0) {
        uint64_t now = gn_now_ns(), until = lost_at_ns + h->v->boot->grace_ms * UINT64_C(1000000);
        timeout_ms = now < until ? (int)((until - now) / 1000000) + 1 : 0;
    }
    int n = poll(p, 3, timeout_ms);
    if (p[0].revents)
        drain_counter(h->wake_fd);
    if (p[1].revents) {
        drain_counter(h->flush_fd);
        atomic_store_explicit(&h->flush_armed, false, memory_order_seq_cst);
    }
    return n != 0 || h->tcp.fd >= 0;
}

/* Serves nothing while the gate is closed; what has been said goes out still, and a new connection
 * is taken for that. */
static void stand(struct gn_vgpu_tcp *h)
{
    struct gn_vgpu *v = h->v;
    gn_vgpu_flush(v);
    gn_gate_quiesced(v, true);
    while (gn_gate_is_closed(&v->gate) && !atomic_load_explicit(&v->fault, memory_order_relaxed)) {
        adopt_next(h);
        const int rc = h->tcp.fd >= 0 && gn_out_pending(&h->out) ? gn_out_flush(&h->out) : 0;
        if (rc && rc != -EAGAIN)
            disconnect(h);
        const bool blocked =
            h->tcp.fd >= 0 && atomic_load_explicit(&h->out.blocked, memory_order_relaxed);
        struct pollfd p[3] = {{.fd = h->wake_fd, .events = POLLIN},
                              {.fd = h->flush_fd, .events = POLLIN},
                              {.fd = blocked ? h->tcp.fd : -1, .events = POLLOUT}};
        (void)poll(p, 3, -1);
        if (p[0].revents)
            drain_counter(h->wake_fd);
        if (p[1].revents) {
            drain_counter(h->flush_fd);
            atomic_store_explicit(&h->flush_armed, false, memory_order_seq_cst);
        }
    }
    gn_gate_quiesced(v, false);
}

void gn_vgpu_tcp_go_on(struct gn_vgpu_tcp *h)
{
    gn_out_release(&h->out);
}

int gn_vgpu_tcp_pause(struct gn_vgpu_tcp *h, uint32_t number, uint64_t until_ns,
                      struct gn_error *err)
{
    const struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_PAUSE, number};
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    int rc = -gn_out_append_ordered(&h->out, &record, NULL);
    wake(h);
    pthread_mutex_lock(&h->pause_lock);
    while (!rc && h->paused != number)
        rc = pthread_cond_timedwait(&h->pause_wake, &h->pause_lock, &until);
    pthread_mutex_unlock(&h->pause_lock);
    if (rc == ETIMEDOUT)
        return gn_fail(err, rc, "allow more time, or try again later",
                       "what the program has sent takes longer than the drain may take");
    return rc ? gn_fail(err, rc, NULL, "cannot tell the program: %s", strerror(rc)) : 0;
}

void gn_vgpu_tcp_send_quiesced(struct gn_vgpu_tcp *h, uint32_t number)
{
    const struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_STANDS, number};
    gn_vgpu_tcp_pass_prints(h);
    overflow(h, gn_out_append_ordered(&h->out, &record, NULL));
    wake(h); /* it may have to wait for room */
}

/* As gn_in_read. However it came, the program may wait for the room that it has taken. */
static int read_some(struct gn_vgpu_tcp *h)
{
    const int rc = gn_in_read(&h->in);
    if (rc > 0 && gn_out_ack_due(&h->out, h->in.received, h->in.small))
        gn_out_owe_ack(&h->out, h->in.received, h->in.small);
    return rc;
}

/* Looks for more for a while, as a ring's thread does. */
static int spin(struct gn_vgpu_tcp *h)
{
    struct gn_vgpu *v = h->v;
    bool busy =
        v->on_processors && atomic_load_explicit(&v->counters->pending, memory_order_relaxed);
    uint64_t spin_ns = v->ring.waiter.policy.spin_ns;
    if (busy && spin_ns > GN_SPIN_SHORT_NS)
        spin_ns = GN_SPIN_SHORT_NS;
    if (!gn_spin_is_worth(&h->habit))
        return -EAGAIN;
    uint64_t until = gn_now_ns() + spin_ns;
    for (uint32_t looks = 1;; looks++) {
        int rc = read_some(h);
        if (rc != -EAGAIN) {
            gn_spin_was_worth(&h->habit, true);
            return rc;
        }
        if (looks % LOOKS_A_CLOCK == 0 && gn_now_ns() >= until) {
            gn_spin_was_not(&h->habit, true);
            return rc;
        }
        gn_spin_pause();
    }
}

void gn_vgpu_tcp_loop(struct gn_vgpu_tcp *h)
{
    struct gn_vgpu *v = h->v;
    uint64_t lost_at_ns = gn_now_ns();
    is_socket_thread = true;
    while (!atomic_load_explicit(&v->fault, memory_order_relaxed) && !h->bye) {
        if (gn_gate_is_closed(&v->gate) && gn_gate_helpers_idle(v)) {
            stand(h);
            lost_at_ns = gn_now_ns(); /* nobody could come back meanwhile, or before it was here */
            continue;
        }
        adopt_next(h);
        int rc = h->tcp.fd < 0 ? -EPIPE : read_some(h);
        if (rc > 0) {
            flush(h);
            continue;
        }
        if (rc == -EAGAIN) {
            flush(h);
            gn_vgpu_flush(v);
            gn_objects_bury(v);
            rc = spin(h);
            if (rc > 0) {
                flush(h);
                continue;
            }
        }
        if (rc == -EPROTO) {
            gn_vgpu_fault(v, "a record is malformed", "tcp");
            return;
        }
        if (rc != -EAGAIN && h->tcp.fd >= 0) {
            gn_log(h->bye ? GN_LOG_DEBUG : GN_LOG_INFO, "vgpu=%08x the connection broke: %s",
                   v->boot->id, strerror(-rc));
            lost_at_ns = gn_now_ns();
            disconnect(h);
        }
        gn_vgpu_rest(v);
        if (!sleep_until_ready(h, lost_at_ns)) {
            gn_log(GN_LOG_INFO, "vgpu=%08x the program has not come back", v->boot->id);
            return;
        }
        flush(h);
    }
}

int gn_vgpu_tcp_start(struct gn_vgpu *v)
{
    static struct gn_vgpu_tcp host;
    struct gn_vgpu_tcp *h = &host;
    pthread_condattr_t attr;
    h->v = v;
    h->tcp = h->next = (struct gn_tcp)GN_TCP_NONE;
    h->wake_fd = gn_fd_event(EFD_NONBLOCK);
    h->flush_fd = gn_fd_timer(CLOCK_MONOTONIC, TFD_NONBLOCK);
    pthread_mutex_init(&h->next_lock, NULL);
    pthread_mutex_init(&h->pause_lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->pause_wake, &attr);
    pthread_condattr_destroy(&attr);
    gn_list_init(&h->held);
    h->file.fd = -1;
    h->most_touched = most_touched(v);
    int rc = h->wake_fd < 0 || h->flush_fd < 0 ? -EMFILE : gn_out_init(&h->out);
    if (!rc)
        rc = gn_in_init(&h->in, &in_ops, h);
    if (!rc)
        rc = catch_prints(h);
    if (!rc)
        v->remote = h;
    return rc;
}
