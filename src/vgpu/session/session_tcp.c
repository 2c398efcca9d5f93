/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of a session over tcp. The socket thread receives messages, serves them, and
 * sends the records that have gathered when it has no more to serve. When the connection breaks,
 * commands go on, and their records are kept for the next connection, which must come within the
 * grace. session_tcp_send.c has the sending.
 */
#include "vgpu/session/session_tcp_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"
#include "link/link_wire.h"
#include "link/tls.h"
#include "vgpu/core/include_files.h"
#include "vgpu/core/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define HELLO_NS       UINT64_C(2000000000)
#define LOOKS_A_CLOCK  8u
#define MAX_HANDSHAKES 4
#define PASSING_BYTES  (UINT64_C(640) << 20) /* above STAGED_FAR_MOST of the front end */

static void wake_serving(struct gn_vgpu *v)
{
    gn_vgpu_tcp_wake(v->tcp);
}

/* ---- receiving */

/* The part of this machine's memory that a program without a limit may have. */
#define DEFAULT_PART 4u

/* Bytes that the program may hold here: its limit, or by default a part of this machine's memory.
 */
static uint64_t area_limit(const struct gn_vgpu *v)
{
    const uint64_t limit = v->boot->memory_limit_bytes,
                   ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit ? limit : ram / DEFAULT_PART;
}

/*
 * The program fills this machine's memory by sending, so its use is counted here, a chunk at its
 * first use. The program may fill twice its limit (a buffer and its map), and some more for data
 * that passes through.
 */
static uint64_t most_touched(const struct gn_vgpu *v)
{
    const uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                   limit = area_limit(v);
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

/* Uncounts whole chunks that are not needed any more. */
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

static int add_segment(struct gn_vgpu *v, uint64_t at, uint64_t bytes)
{
    struct gn_segment segment = {.fd = -1, .bytes = bytes};
    uint32_t index = atomic_load_explicit(&v->n_segments, memory_order_relaxed);
    /*
     * A program that shared this machine's memory before announces all its segments: some have come
     * from the source already.
     */
    if (at && at < index)
        return v->segments[at].bytes == bytes ? 0 : -EPROTO;
    if (at != index || index >= GN_MAX_SEGMENTS || !bytes || bytes > GN_LINK_SEGMENT_LIMIT)
        return -EPROTO;
    /* Private, but a shared mapping, so that single pages can be freed. */
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
    /* A program has at most one waiting message for each reply slot. */
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

/* Contents of a file that a build includes; passed on when complete. */
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
        return add_segment(h->v, record->part, record->at);
    case GN_RECORD_FREE:
        return take_free(h, record, payload);
    case GN_RECORD_WAIT:
        e = gn_event_at(h->v->events, record->at);
        if (!e)
            return -EPROTO;
        /*
         * The event has ended here, but its record may not be appended yet: the thread that appends
         * it sends at once.
         */
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
    gn_vgpu_tcp_wake(h);
}

struct handshake {
    struct gn_vgpu_tcp *h;
    int fd;
};

/*
 * A connection that knows the session's name gets this far; it must prove the key before it
 * replaces the present connection. A thread of its own, so that a slow peer does not delay the
 * session.
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

static void adopt_connection(struct gn_vgpu *v, int fd)
{
    struct gn_vgpu_tcp *h = v->tcp;
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

/* Continues with a connection that has come, if one has. */
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
    /* The program makes a new connection only when it has given the old one up. */
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

/* Sleeps until there is something to do; `events`: of the connection. False: the program has not
 * come back in time. */
static bool sleep_until_ready(struct gn_vgpu_tcp *h, short events)
{
    bool blocked = atomic_load_explicit(&h->out.blocked, memory_order_relaxed);
    struct pollfd p[3] = {{.fd = h->wake_fd, .events = POLLIN},
                          {.fd = h->flush_fd, .events = POLLIN},
                          {.fd = h->tcp.fd, .events = (short)(events | (blocked ? POLLOUT : 0))}};
    int timeout_ms = -1;
    if (h->tcp.fd < 0) {
        uint64_t now = gn_now_ns(),
                 until = h->lost_at_ns + h->v->boot->grace_ms * UINT64_C(1000000);
        timeout_ms = now < until ? (int)((until - now) / 1000000) + 1 : 0;
    }
    int n = poll(p, 3, timeout_ms);
    if (p[0].revents)
        drain_counter(h->wake_fd);
    if (p[1].revents) {
        drain_counter(h->flush_fd);
        atomic_store_explicit(&h->flush_armed, false, memory_order_seq_cst);
    }
    h->gone = n == 0 && h->tcp.fd < 0;
    if (h->gone)
        gn_log(GN_LOG_INFO, "vgpu=%08x the program has not come back", h->v->boot->id);
    return !h->gone;
}

static void lose_connection(struct gn_vgpu_tcp *h, int rc)
{
    gn_log(h->bye ? GN_LOG_DEBUG : GN_LOG_INFO, "vgpu=%08x the connection broke: %s",
           h->v->boot->id, strerror(-rc));
    h->lost_at_ns = gn_now_ns();
    disconnect(h);
}

static bool has_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * What the program has sent stays unread, since messages are served in order. A connection that
 * breaks is dropped, and a new one is accepted: the program sends again what was not received.
 */
static void await_memory(struct gn_vgpu *v)
{
    struct gn_vgpu_tcp *h = v->tcp;
    adopt_next(h);
    if (h->tcp.fd >= 0 && has_hung_up(h->tcp.fd))
        lose_connection(h, -EPIPE);
    gn_vgpu_tcp_flush(h);
    if (!sleep_until_ready(h, POLLRDHUP))
        gn_vgpu_end_waits(v);
}

/*
 * Serves nothing while the gate is closed. Records that were appended before are still sent, and a
 * new connection is accepted for them.
 */
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

static void resume(struct gn_vgpu *v)
{
    gn_out_release(&v->tcp->out);
}

static int pause_program(struct gn_vgpu *v, uint32_t number, uint64_t until_ns,
                         struct gn_error *err)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_PAUSE, number};
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    int rc = -gn_out_append_ordered(&h->out, &record, NULL);
    gn_vgpu_tcp_wake(h);
    pthread_mutex_lock(&h->pause_lock);
    while (!rc && h->paused != number)
        rc = pthread_cond_timedwait(&h->pause_wake, &h->pause_lock, &until);
    pthread_mutex_unlock(&h->pause_lock);
    if (rc == ETIMEDOUT)
        return gn_fail(err, rc, "allow more time, or try again later",
                       "what the program has sent takes longer than the drain may take");
    return rc ? gn_fail(err, rc, NULL, "cannot tell the program: %s", strerror(rc)) : 0;
}

static void send_quiesced(struct gn_vgpu *v, uint32_t number)
{
    struct gn_vgpu_tcp *h = v->tcp;
    const struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_STANDS, number};
    gn_vgpu_tcp_pass_prints(h);
    gn_vgpu_tcp_overflow(h, gn_out_append_ordered(&h->out, &record, NULL));
    gn_vgpu_tcp_wake(h); /* the socket thread sends it when there is room */
}

/* As gn_in_read. Acknowledges soon in any case, since the program may wait for the room. */
static int read_some(struct gn_vgpu_tcp *h)
{
    const int rc = gn_in_read(&h->in);
    if (rc > 0 && gn_out_ack_due(&h->out, h->in.received, h->in.small))
        gn_out_owe_ack(&h->out, h->in.received, h->in.small);
    return rc;
}

/* Polls for more records for a while, as a ring thread does. */
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

static void serve_connections(struct gn_vgpu *v)
{
    struct gn_vgpu_tcp *h = v->tcp;
    h->lost_at_ns = gn_now_ns();
    gn_vgpu_tcp_is_socket_thread = true;
    while (!atomic_load_explicit(&v->fault, memory_order_relaxed) && !h->bye && !h->gone) {
        if (gn_budget_has_order(&v->budget))
            gn_budget_obey(&v->budget);
        if (gn_gate_is_closed(&v->gate) && gn_gate_helpers_idle(v)) {
            stand(h);
            h->lost_at_ns = gn_now_ns(); /* no program could come back meanwhile, or before the vGPU
                                            was loaded */
            continue;
        }
        adopt_next(h);
        int rc = h->tcp.fd < 0 ? -EPIPE : read_some(h);
        if (rc > 0) {
            gn_vgpu_tcp_flush(h);
            continue;
        }
        if (rc == -EAGAIN) {
            gn_vgpu_tcp_flush(h);
            gn_vgpu_flush(v);
            gn_objects_bury(v);
            rc = spin(h);
            if (rc > 0) {
                gn_vgpu_tcp_flush(h);
                continue;
            }
        }
        if (rc == -EPROTO) {
            gn_vgpu_fault(v, "a record is malformed", "tcp");
            return;
        }
        if (rc != -EAGAIN && h->tcp.fd >= 0)
            lose_connection(h, rc);
        gn_vgpu_park_grants(v);
        if (sleep_until_ready(h, POLLIN))
            gn_vgpu_tcp_flush(h);
    }
}

static int start(struct gn_vgpu *v)
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
        rc = gn_vgpu_tcp_catch_prints(h);
    if (!rc)
        v->tcp = h;
    return rc;
}

/* The socket thread sleeps on the connection: nothing tells it to spin. */
static bool expect_message(struct gn_vgpu *v)
{
    (void)v;
    return false;
}

static void send_pending(struct gn_vgpu *v)
{
    gn_vgpu_tcp_flush(v->tcp);
}

/* Messages that are still on the network are not waited for. */
static void recall_memory(struct gn_vgpu *v)
{
    gn_lease_shed(&v->lease);
}

static int load_frame(struct gn_vgpu *v, const struct gn_frame *f)
{
    const int rc = gn_vgpu_tcp_load_frame(v->tcp, f);
    return rc ? rc : gn_vgpu_tcp_is_loaded(v->tcp);
}

static int loaded(struct gn_vgpu *v)
{
    return gn_vgpu_tcp_resume_stream(v->tcp);
}

/* The program's output goes over the connection. */
static int set_output(struct gn_vgpu *v, const int fds[2])
{
    (void)v;
    (void)fds;
    return 0;
}

/* Drops the output that the driver has printed while objects were made again. */
static void resume_as_owner(struct gn_vgpu *v)
{
    gn_vgpu_tcp_pass_prints(v->tcp);
}

static void end(struct gn_vgpu *v)
{
    gn_vgpu_end_worker(v);
}

const struct gn_vgpu_session_ops gn_vgpu_session_tcp = {
    .name = "tcp",
    .has_serving_thread = true,
    .asks_for_files = true,
    .maps_window = true,
    .start = start,
    .serve = serve_connections,
    .end = end,
    .connect = adopt_connection,
    .area_limit = area_limit,
    .reply = gn_vgpu_tcp_reply,
    .answer = gn_vgpu_tcp_answer,
    .post_event = gn_vgpu_tcp_post_event,
    .end_event = gn_vgpu_tcp_end_event,
    .send_frame = gn_vgpu_tcp_send_frame,
    .wake = wake_serving,
    .send_pending = send_pending,
    .await_memory = await_memory,
    .expect_message = expect_message,
    .recall_memory = recall_memory,
    .gate_changed = wake_serving,
    .pause_program = pause_program,
    .send_quiesced = send_quiesced,
    .resume = resume,
    .add_segment = add_segment,
    .load_frame = load_frame,
    .loaded = loaded,
    .set_output = set_output,
    .resume_as_owner = resume_as_owner,
};
