/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's end of a session over tcp; remote.h has the idea. Any thread sends, one reads. When the connection breaks the
 * watcher makes a new one within the grace that gantryd gives, and both sides go on where they were; else the loss is declared
 * and every wait ends. The worker is believed no more than one that shares our memory: whatever it sends stays inside the
 * tables and the data area.
 */
#include "guest/core/remote.h"

#include "base/clock.h"
#include "link/stream_in.h"
#include "link/stream_out.h"
#include "shm/futex.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define INLINE_BYTES    (16u << 10) /* inputs up to this go before their message, larger ones as bulk data beside it */
#define FLUSH_BYTES     (16u << 10) /* this much is sent without waiting for more */
#define FLUSH_NS        100000u     /* and nothing waits longer than this */
#define LEASE_NS        1000000u    /* how long after a read by a waiting thread the watcher leaves the socket alone */
#define OPEN_NS         UINT64_C(10000000000)
#define TRY_NS          UINT64_C(1000000000) /* one attempt to come back */
#define TRY_PAUSE_MS    20
#define MAX_DATA_BYTES  (UINT64_C(1) << 32)
#define SPIN_NS         20000u
#define LOOKS_PER_CLOCK 8
#define PAUSES_PER_LOOK 8u
#define MAX_LANDINGS    128u
#define FILE_PIECE      16384u
#define WIRE_BYTES_NS   2u /* what a fast network moves in a nanosecond */

struct gn_remote {
    struct gn_wait_hook hook;
    struct gn_session *s;
    uint64_t grace_ns;
    int epoll_fd, wake_fd, flush_fd, lease_fd;
    struct gn_stream_out out;
    _Atomic uint64_t clock_ahead; /* of the worker's, against ours */
    _Atomic uint64_t trip_ns;     /* there and back, when it was last measured */
    pthread_mutex_t landings_lock;
    struct landing {
        uint32_t segment; /* GN_NO_BLOCK: unused */
        uint64_t offset, bytes;
        char *to;
    } landings[MAX_LANDINGS]; /* landings_lock */
    /* whoever has the role */
    struct gn_tcp tcp;
    struct gn_stream_in in;
    struct gn_spin_habit habit;
    /* any thread; sequentially consistent, so that nobody parks while nobody reads */
    _Alignas(64) _Atomic uint32_t role;
    _Atomic uint32_t n_parked, baton;
    _Atomic bool broken;
    _Atomic bool room_watched; /* whoever reads also waits for room in the socket */
    _Atomic bool flush_armed, lease_armed;
    uint32_t n_segments; /* link_lock */
    /* Files that a build over there includes: asked by whoever reads, answered by the watcher. */
    pthread_mutex_t wants_lock;
    struct gn_list wants;         /* wants_lock */
    _Atomic bool answers_waiting; /* for room */
    struct want *answering;       /* the watcher's */
};

struct want {
    struct gn_list link;
    uint32_t seq, n;
    /* once it is being answered */
    bool begun;
    int fd;
    uint64_t at;
    struct gn_session_file file;
    char payload[];
};

/* The batch of bulk data that this thread's next message is about; 0: none. */
static _Thread_local uint64_t my_batch;

static struct gn_remote *of_hook(const struct gn_wait_hook *h)
{
    return gn_container_of(h, struct gn_remote, hook);
}

static void wake_watcher(struct gn_remote *r)
{
    const uint64_t one = 1;
    (void)!write(r->wake_fd, &one, sizeof one);
}

static void arm(int timer, uint64_t ns)
{
    const struct itimerspec when = {.it_value = {.tv_nsec = (long)ns}};
    (void)timerfd_settime(timer, 0, &when, NULL);
}

/* ---- the role of reading */

static bool take_role(struct gn_remote *r)
{
    return !atomic_load_explicit(&r->role, memory_order_relaxed) &&
           !atomic_exchange_explicit(&r->role, 1, memory_order_seq_cst);
}

/* Somebody who parks after this sees the role free; who parked before is woken to take it. */
static void leave_role(struct gn_remote *r)
{
    atomic_store_explicit(&r->role, 0, memory_order_seq_cst);
    if (atomic_load_explicit(&r->n_parked, memory_order_seq_cst)) {
        atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
        gn_futex_wake(&r->baton, 1, true);
    }
}

static void wake_all(struct gn_remote *r)
{
    atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
    gn_futex_wake(&r->baton, INT_MAX, true);
}

/* The connection is no more: the watcher sees to a new one. */
static void broke(struct gn_remote *r)
{
    if (!atomic_exchange_explicit(&r->broken, true, memory_order_seq_cst))
        wake_watcher(r);
}

static void send_some(struct gn_remote *r, bool watches_room)
{
    if (!gn_out_pending(&r->out) || atomic_load_explicit(&r->broken, memory_order_relaxed))
        return;
    int rc = gn_out_flush(&r->out);
    if (rc && rc != -EAGAIN)
        broke(r);
    else if (rc && !watches_room && !atomic_load_explicit(&r->room_watched, memory_order_seq_cst))
        wake_watcher(r);
}

/* By whoever does not stay to see the socket have room again. */
static void flush(struct gn_remote *r)
{
    send_some(r, false);
}

void gn_remote_flush(struct gn_remote *r)
{
    flush(r);
}

/* ---- what comes */

static void *area_at(struct gn_session *s, uint32_t segment, uint64_t offset, uint64_t n)
{
    struct gn_area *a = &s->area;
    char *base = NULL;
    uint64_t bytes = 0;
    pthread_mutex_lock(&a->lock);
    if (segment < a->n_segments)
        base = gn_area_segment_base(a, segment, &bytes);
    pthread_mutex_unlock(&a->lock);
    return base && gn_range_ok(offset, n, bytes) ? base + offset : NULL;
}

static void *place(void *context, const struct gn_stream_record *record)
{
    struct gn_remote *r = context;
    void *to = NULL;
    pthread_mutex_lock(&r->landings_lock);
    for (uint32_t i = 0; i < MAX_LANDINGS && !to; i++) {
        const struct landing *l = &r->landings[i];
        if (l->segment == record->part && record->at >= l->offset &&
            gn_range_ok(record->at - l->offset, record->bytes, l->bytes))
            to = l->to + (record->at - l->offset);
    }
    pthread_mutex_unlock(&r->landings_lock);
    return to ? to : area_at(r->s, record->part, record->at, record->bytes);
}

bool gn_remote_land(struct gn_remote *r, const struct gn_area_ref *ref, void *to, uint64_t bytes)
{
    bool found = false;
    pthread_mutex_lock(&r->landings_lock);
    for (uint32_t i = 0; i < MAX_LANDINGS && !found; i++) {
        found = r->landings[i].segment == GN_NO_BLOCK;
        if (found)
            r->landings[i] = (struct landing){ref->segment - 1, ref->offset, bytes, to};
    }
    pthread_mutex_unlock(&r->landings_lock);
    return found;
}

void gn_remote_landed(struct gn_remote *r, const struct gn_area_ref *ref)
{
    pthread_mutex_lock(&r->landings_lock);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++)
        if (r->landings[i].segment == ref->segment - 1 && r->landings[i].offset == ref->offset)
            r->landings[i].segment = GN_NO_BLOCK;
    pthread_mutex_unlock(&r->landings_lock);
}

uint32_t gn_remote_pieces(struct gn_remote *r, uint32_t least, uint32_t most, uint64_t piece_bytes)
{
    uint64_t n = least + atomic_load_explicit(&r->trip_ns, memory_order_relaxed) * WIRE_BYTES_NS / piece_bytes;
    return n < most ? (uint32_t)n : most;
}

static void take_end(struct gn_remote *r, struct gn_event_entry *e, const struct gn_stream_record *record, const void *payload)
{
    struct gn_stream_times t;
    struct gn_event_times times;
    int32_t error = (int32_t)(record->at >> 32);
    if (record->bytes != sizeof t) {
        gn_event_finish(e, error, NULL);
        return;
    }
    memcpy(&t, payload, sizeof t);
    uint64_t ahead = atomic_load_explicit(&r->clock_ahead, memory_order_relaxed), now = gn_now_ns();
    times.end_ns = t.end_ns ? t.end_ns - ahead : 0;
    times.start_ns = t.start_ns ? t.start_ns - ahead : 0;
    times.submit_ns = t.submit_ns ? t.submit_ns - ahead : 0;
    /* Two clocks never agree to the last microsecond; what has ended has ended before now. */
    uint64_t late = times.end_ns && times.end_ns > now ? times.end_ns - now : 0;
    times.end_ns -= late;
    times.start_ns -= times.start_ns ? late : 0;
    times.submit_ns -= times.submit_ns ? late : 0;
    gn_event_finish(e, error, &times);
}

static void print(uint16_t fd, const char *text, uint32_t n)
{
    while (n) {
        ssize_t m = write(fd, text, n);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0)
            return;
        text += m;
        n -= (uint32_t)m;
    }
}

static int take_want(struct gn_remote *r, const struct gn_stream_record *record, const void *payload)
{
    struct want *w = malloc(sizeof *w + record->bytes);
    if (!w)
        return 0; /* the compiler over there gives up waiting */
    *w = (struct want){.seq = (uint32_t)record->at, .n = record->bytes, .fd = -1};
    memcpy(w->payload, payload, record->bytes);
    gn_list_init(&w->link);
    pthread_mutex_lock(&r->wants_lock);
    gn_list_append(&r->wants, &w->link);
    pthread_mutex_unlock(&r->wants_lock);
    wake_watcher(r);
    return 0;
}

static int take(void *context, const struct gn_stream_record *record, const void *payload)
{
    struct gn_remote *r = context;
    struct gn_session *s = r->s;
    struct gn_event_entry *e;
    int rc = 0;
    switch (record->type) {
    case GN_RECORD_DATA:
    case GN_RECORD_DATA_END:
        return 0;
    case GN_RECORD_ACK:
        rc = gn_out_acknowledged(&r->out, record->at);
        if (atomic_exchange_explicit(&r->answers_waiting, false, memory_order_seq_cst))
            wake_watcher(r);
        if (!rc && atomic_load_explicit(&r->n_parked, memory_order_seq_cst))
            gn_futex_wake(&r->out.room, INT_MAX, true);
        return rc;
    case GN_RECORD_REPLY:
        if (record->bytes > GN_REPLY_PAYLOAD)
            return -EPROTO;
        gn_reply_send(s->view.replies, (uint32_t)record->at, (int32_t)(record->at >> 32), payload, record->bytes);
        return 0;
    case GN_RECORD_EVENT:
    case GN_RECORD_EVENT_END:
        e = gn_event_at(s->events, (uint32_t)record->at);
        if (!e || record->part > GN_EVENT_QUEUED)
            return -EPROTO;
        if (record->type == GN_RECORD_EVENT)
            gn_event_post(e, record->part);
        else
            take_end(r, e, record, payload);
        return 0;
    case GN_RECORD_FRAME:
        if (record->part == GN_SESSION_WANT)
            return take_want(r, record, payload);
        s->api->heard(s, record->part, payload, record->bytes);
        return 0;
    case GN_RECORD_PRINT:
        if (record->part != STDOUT_FILENO && record->part != STDERR_FILENO)
            return -EPROTO;
        print(record->part, payload, record->bytes);
        return 0;
    default:
        return -EPROTO;
    }
}

static const struct gn_in_ops in_ops = {.place = place, .take = take};

/* With the role. One read; -EAGAIN: nothing is there. */
static int read_once(struct gn_remote *r)
{
    int rc = gn_in_read(&r->in);
    if (rc > 0 && gn_out_ack_due(&r->out, r->in.received)) {
        gn_out_owe_ack(&r->out, r->in.received);
        flush(r);
    }
    if (rc < 0 && rc != -EAGAIN)
        broke(r);
    return rc;
}

static bool is_over(const struct gn_remote *r, const _Atomic uint32_t *word, uint32_t seen)
{
    return atomic_load_explicit(word, memory_order_acquire) != seen || gn_lost_is(&r->s->lost) ||
           atomic_load_explicit(&r->broken, memory_order_acquire);
}

static void read_until(struct gn_remote *r, const _Atomic uint32_t *word, uint32_t seen)
{
    uint64_t spin_ns = r->s->waiter.policy.spin_ns < SPIN_NS ? r->s->waiter.policy.spin_ns : SPIN_NS;
    uint64_t until = gn_spin_is_worth(&r->habit) ? gn_now_ns() + spin_ns : 0;
    uint32_t looks = 0;
    while (!is_over(r, word, seen)) {
        int rc = read_once(r);
        if (rc != -EAGAIN) {
            gn_spin_was_worth(&r->habit, looks > 0);
            continue;
        }
        bool blocked = atomic_load_explicit(&r->out.blocked, memory_order_relaxed);
        if (!blocked && until && (++looks % LOOKS_PER_CLOCK || gn_now_ns() < until)) {
            for (uint32_t i = 0; i < PAUSES_PER_LOOK; i++)
                gn_spin_pause();
            continue;
        }
        struct pollfd p = {.fd = r->tcp.fd, .events = POLLIN | (blocked ? POLLOUT : 0)};
        atomic_store_explicit(&r->room_watched, blocked, memory_order_seq_cst);
        gn_spin_was_not(&r->habit, looks > 0);
        (void)poll(&p, 1, -1);
        if (p.revents & POLLOUT)
            send_some(r, true);
        looks = 0;
        until = 0;
    }
    if (atomic_exchange_explicit(&r->room_watched, false, memory_order_seq_cst) &&
        atomic_load_explicit(&r->out.blocked, memory_order_seq_cst))
        wake_watcher(r);
}

/* Where the word is an event's, the worker is told that its end is wanted at once. */
static uint32_t want_event(struct gn_remote *r, const _Atomic uint32_t *word, uint32_t seen)
{
    const char *at = (const char *)word, *table = (const char *)r->s->events;
    if (at < table || at >= table + GN_EVENT_TABLE_BYTES || (seen & GN_EVENT_WANTED))
        return seen;
    uint64_t index = (uint64_t)(at - table) / sizeof(struct gn_event_entry);
    _Atomic uint32_t *mine = &r->s->events[index].word;
    if (!atomic_compare_exchange_strong_explicit(mine, &seen, seen | GN_EVENT_WANTED, memory_order_acq_rel,
                                                 memory_order_acquire))
        return UINT32_MAX;
    const struct gn_stream_record record = {0, GN_RECORD_WAIT, 0, index};
    (void)gn_out_append(&r->out, &record, NULL); /* without room its end comes a little later */
    return seen | GN_EVENT_WANTED;
}

static bool look(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t seen)
{
    struct gn_remote *r = of_hook(hook);
    seen = want_event(r, word, seen);
    if (seen == UINT32_MAX)
        return true;
    const bool reads = !atomic_load_explicit(&r->broken, memory_order_acquire) && take_role(r);
    send_some(r, reads);
    if (!reads)
        return atomic_load_explicit(word, memory_order_acquire) != seen;
    read_until(r, word, seen);
    leave_role(r);
    if (!atomic_exchange_explicit(&r->lease_armed, true, memory_order_seq_cst))
        arm(r->lease_fd, LEASE_NS);
    return true;
}

static void park(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t expected, bool private_word)
{
    struct gn_remote *r = of_hook(hook);
    atomic_fetch_add_explicit(&r->n_parked, 1, memory_order_seq_cst);
    uint32_t baton = atomic_load_explicit(&r->baton, memory_order_seq_cst);
    /* Either the reader of now sees us when it leaves, or we see that nobody reads. */
    if (atomic_load_explicit(&r->role, memory_order_seq_cst) || atomic_load_explicit(&r->broken, memory_order_seq_cst))
        gn_park_either(word, expected, private_word, &r->s->lost, &r->baton, baton);
    atomic_fetch_sub_explicit(&r->n_parked, 1, memory_order_seq_cst);
    /* The baton may have been passed to us while our own wait ended: then it is passed on. */
    if (atomic_load_explicit(&r->n_parked, memory_order_seq_cst) && !atomic_load_explicit(&r->role, memory_order_seq_cst)) {
        atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
        gn_futex_wake(&r->baton, 1, true);
    }
}

void gn_remote_look(struct gn_remote *r)
{
    flush(r);
    if (atomic_load_explicit(&r->broken, memory_order_acquire) || !take_role(r))
        return;
    while (read_once(r) > 0)
        ;
    leave_role(r);
}

/* ---- what goes */

/* Appends, waiting for room when the worker lags behind. */
static int append_all(struct gn_remote *r, const struct gn_out_part *parts, int n)
{
    for (;;) {
        uint32_t room = atomic_load_explicit(&r->out.room, memory_order_seq_cst);
        int rc = gn_lost_is(&r->s->lost) ? -EPIPE : gn_out_append_all(&r->out, parts, n);
        if (rc != -EAGAIN)
            return rc;
        if (!look(&r->hook, &r->out.room, room))
            park(&r->hook, &r->out.room, room, true);
    }
}

/* Nobody waits for what was sent: it may wait for company. */
static void flush_soon(struct gn_remote *r)
{
    if (atomic_load_explicit(&r->out.blocked, memory_order_relaxed))
        return; /* the watcher goes on when there is room */
    if (atomic_load_explicit(&r->out.unsent, memory_order_relaxed) >= FLUSH_BYTES)
        flush(r);
    else if (!atomic_exchange_explicit(&r->flush_armed, true, memory_order_seq_cst))
        arm(r->flush_fd, FLUSH_NS);
}

int gn_remote_send(struct gn_remote *r, struct gn_call *c)
{
    struct gn_out_part parts[GN_CALL_MAX_BLOCKS + 1];
    const struct gn_msg *msg = (const void *)c->message;
    uint64_t batch = my_batch;
    int n = 0, rc = 0;
    my_batch = 0;
    for (uint32_t i = 0; i < c->n_blocks && !rc; i++) {
        const struct gn_block *b = &c->blocks[i];
        if (c->out_blocks & 1u << i)
            continue;
        /* Without an answer the block is used again at once, so that its bytes must be copied. */
        if (b->bytes <= INLINE_BYTES || msg->reply == GN_NO_REPLY)
            parts[n++] = (struct gn_out_part){
                {(uint32_t)b->bytes, GN_RECORD_DATA, (uint16_t)b->segment, b->offset}, b->base};
        else
            rc = gn_out_bulk(&r->out, (uint16_t)b->segment, b->offset, b->base, b->bytes, true, &batch);
    }
    parts[n++] = (struct gn_out_part){{c->bytes, GN_RECORD_MESSAGE, 0, batch}, c->message};
    if (!rc)
        rc = append_all(r, parts, n);
    if (!rc && (msg->reply == GN_NO_REPLY))
        flush_soon(r);
    return rc == -EPIPE ? GN_RESULT_LOST : rc ? GN_RESULT_NO_MEMORY : 0;
}

int gn_remote_ship(struct gn_remote *r, const struct gn_area_ref *ref, const void *from, uint64_t bytes)
{
    if (ref->segment == GN_SPAN_NULL || !bytes)
        return 0;
    uint16_t segment = (uint16_t)(ref->segment - 1);
    if (!from)
        from = area_at(r->s, segment, ref->offset, bytes);
    if (!from)
        return -EINVAL;
    if (bytes > INLINE_BYTES)
        return gn_out_bulk(&r->out, segment, ref->offset, from, bytes, true, &my_batch);
    struct gn_out_part part = {{(uint32_t)bytes, GN_RECORD_DATA, segment, ref->offset}, from};
    return append_all(r, &part, 1);
}

void gn_remote_forget(struct gn_remote *r, const void *from, uint64_t bytes)
{
    gn_out_forget(&r->out, from, bytes);
}

void gn_remote_free(struct gn_remote *r, uint32_t segment, uint64_t offset, uint64_t bytes)
{
    const struct gn_stream_record record = {sizeof bytes, GN_RECORD_FREE, (uint16_t)segment, offset};
    (void)gn_out_append(&r->out, &record, &bytes); /* without room the pages stay until they are used again */
}

int gn_remote_segment(struct gn_remote *r, uint64_t bytes, int *ret_fd, uint32_t *ret_index)
{
    struct gn_segment segment;
    int rc = r->n_segments + 1 < GN_AREA_SEGMENTS ? gn_segment_create("gantry-data", bytes, &segment) : -ENOMEM;
    if (rc)
        return rc;
    struct gn_out_part part = {{0, GN_RECORD_SEGMENT, (uint16_t)(r->n_segments + 1), segment.bytes}, NULL};
    rc = append_all(r, &part, 1);
    if (rc) {
        gn_segment_fini(&segment);
        return rc;
    }
    *ret_index = ++r->n_segments;
    *ret_fd = segment.fd;
    return 0;
}

/* ---- connections */

static int connect_data(struct gn_remote *r, uint64_t deadline_ns, struct gn_error *err)
{
    struct gn_stream_hello hello;
    struct gn_tcp tcp;
    pthread_mutex_lock(&r->s->link_lock);
    uint64_t trip_ns = 0;
    int rc = gn_link_data(r->s->link, r->in.received, deadline_ns, &tcp, &hello, &trip_ns, err);
    pthread_mutex_unlock(&r->s->link_lock);
    if (rc)
        return rc;
    r->tcp = tcp;
    gn_in_connect(&r->in, &r->tcp);
    atomic_store_explicit(&r->clock_ahead, hello.now_ns, memory_order_relaxed);
    atomic_store_explicit(&r->trip_ns, trip_ns, memory_order_relaxed);
    gn_out_owe_ack(&r->out, r->in.received);
    rc = gn_out_connect(&r->out, &r->tcp, hello.received);
    if (rc) {
        gn_tcp_close(&r->tcp);
        return gn_fail(err, -rc, NULL, "the worker has lost its place in the session");
    }
    return 0;
}

int gn_remote_make_memory(struct gn_attached *a)
{
    struct gn_segment ring, events, data;
    if (a->data_bytes > MAX_DATA_BYTES)
        return -EPROTO;
    int rc = gn_session_create("gantry-ring", &ring);
    if (!rc) {
        a->ring_fd = ring.fd;
        a->ring_bytes = ring.bytes;
        rc = gn_segment_create("gantry-events", GN_EVENT_TABLE_BYTES, &events);
    }
    if (!rc) {
        a->events_fd = events.fd;
        a->events_bytes = events.bytes;
        rc = gn_segment_create("gantry-data", a->data_bytes, &data);
    }
    if (!rc) {
        a->data_fd = data.fd;
        a->data_bytes = data.bytes;
    }
    return rc;
}

static int watch_fd(struct gn_remote *r, int fd, uint32_t events, int op)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    return epoll_ctl(r->epoll_fd, op, fd, &e) < 0 ? -errno : 0;
}

int gn_remote_open(struct gn_session *s, const struct gn_attached *a, struct gn_remote **ret, struct gn_error *err)
{
    struct gn_remote *r = aligned_alloc(64, gn_align_up(sizeof *r, 64));
    if (!r)
        return -ENOMEM;
    memset(r, 0, sizeof *r);
    r->hook = (struct gn_wait_hook){look, park};
    r->s = s;
    r->grace_ns = (uint64_t)a->grace_ms * 1000000u;
    r->tcp = (struct gn_tcp)GN_TCP_NONE;
    pthread_mutex_init(&r->landings_lock, NULL);
    pthread_mutex_init(&r->wants_lock, NULL);
    gn_list_init(&r->wants);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++)
        r->landings[i].segment = GN_NO_BLOCK;
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->flush_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    r->lease_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int rc = r->epoll_fd < 0 || r->wake_fd < 0 || r->flush_fd < 0 || r->lease_fd < 0 ? -EMFILE : 0;
    if (!rc)
        rc = gn_out_init(&r->out);
    if (!rc)
        rc = gn_in_init(&r->in, &in_ops, r);
    if (!rc)
        rc = watch_fd(r, r->wake_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (!rc)
        rc = watch_fd(r, r->flush_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (!rc)
        rc = watch_fd(r, r->lease_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (!rc)
        rc = connect_data(r, gn_now_ns() + OPEN_NS, err);
    if (rc) {
        /* A session that never was: what it allocated is left, as its mappings are. */
        gn_remote_forked(r);
        return rc;
    }
    s->lost.hook = &r->hook;
    *ret = r;
    return 0;
}

void gn_remote_forked(struct gn_remote *r)
{
    const int fds[] = {r->tcp.fd, r->epoll_fd, r->wake_fd, r->flush_fd, r->lease_fd};
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ---- the watcher */

static void drain_counter(int fd)
{
    uint64_t n;
    (void)!read(fd, &n, sizeof n);
}

/* One record of an answer. -EAGAIN: there is no room now. */
static int answer_once(struct gn_remote *r, struct want *w, bool *ret_done)
{
    struct {
        struct gn_session_file file;
        char bytes[FILE_PIECE];
    } m;
    struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_FILE_MORE, w->seq};
    size_t head = w->begun ? 0 : sizeof m.file;
    if (!w->begun && w->fd < 0) {
        gn_folders_look(r->s, w->payload, w->n, &w->file, &w->fd);
        if (w->fd >= 0 && w->file.bytes > GN_SESSION_FILE_MOST)
            w->file = (struct gn_session_file){.error = EFBIG};
        else if (w->fd >= 0)
            w->file.zero = GN_SESSION_HAS_CONTENTS;
    }
    uint64_t left = w->file.zero ? w->file.bytes - w->at : 0;
    size_t n = left < FILE_PIECE ? (size_t)left : FILE_PIECE;
    memset(m.bytes, 0, n);
    /* One that has become shorter meanwhile ends with zeros. */
    if (n && pread(w->fd, m.bytes, n, (off_t)w->at) < 0)
        memset(m.bytes, 0, n);
    m.file = w->file;
    record.part = w->begun ? GN_SESSION_FILE_MORE : GN_SESSION_FILE;
    record.bytes = (uint32_t)(head + n);
    int rc = gn_out_append(&r->out, &record, w->begun ? (void *)m.bytes : (void *)&m);
    if (rc)
        return rc;
    w->begun = true;
    w->at += n;
    *ret_done = n == left;
    return 0;
}

static void answer_wants(struct gn_remote *r)
{
    for (;;) {
        bool done = false;
        if (!r->answering) {
            pthread_mutex_lock(&r->wants_lock);
            if (!gn_list_empty(&r->wants)) {
                r->answering = gn_list_first(&r->wants, struct want, link);
                gn_list_remove(&r->answering->link);
            }
            pthread_mutex_unlock(&r->wants_lock);
            if (!r->answering)
                return;
        }
        /* Before the try: an acknowledgement after it finds that somebody waits. */
        atomic_store_explicit(&r->answers_waiting, true, memory_order_seq_cst);
        int rc = answer_once(r, r->answering, &done);
        if (rc == -EAGAIN)
            return;
        atomic_store_explicit(&r->answers_waiting, false, memory_order_seq_cst);
        flush(r);
        if (rc || done) {
            if (r->answering->fd >= 0)
                close(r->answering->fd);
            free(r->answering);
            r->answering = NULL;
        }
    }
}

/* Comes back to the session; false: it is lost. */
static bool come_back(struct gn_remote *r)
{
    uint64_t deadline = gn_now_ns() + r->grace_ns;
    struct gn_error err;
    while (!take_role(r)) {
        /* Whoever reads sees `broken` as soon as its poll returns. */
        gn_tcp_shutdown(&r->tcp);
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    gn_out_disconnect(&r->out);
    gn_tcp_close(&r->tcp);
    int rc = -EPIPE;
    for (uint64_t now = gn_now_ns(); rc && rc != -ENODEV && rc != -EPROTO && now < deadline; now = gn_now_ns()) {
        rc = connect_data(r, now + TRY_NS < deadline ? now + TRY_NS : deadline, &err);
        if (rc && rc != -ENODEV)
            poll(NULL, 0, TRY_PAUSE_MS);
    }
    if (!rc)
        atomic_store_explicit(&r->broken, false, memory_order_seq_cst);
    leave_role(r);
    if (!rc)
        wake_all(r);
    return !rc;
}

static void lose(struct gn_remote *r)
{
    gn_out_stop(&r->out);
    gn_tcp_shutdown(&r->tcp);
    /* Nobody reads any more: `broken` is set, and stays so. Nothing of the program's memory is touched from here on. */
    while (!take_role(r)) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    leave_role(r);
    gn_session_declare_lost(r->s);
    wake_all(r);
}

void *gn_remote_watch(void *session)
{
    struct gn_session *s = session;
    struct gn_remote *r = s->remote;
    int control = gn_link_poll_fd(s->link);
    uint32_t armed = UINT32_MAX;
    bool new_connection = true, reads = true;
    for (;;) {
        struct epoll_event events[8];
        if (new_connection) {
            control = gn_link_poll_fd(s->link);
            watch_fd(r, control, EPOLLRDHUP, EPOLL_CTL_ADD);
            watch_fd(r, r->tcp.fd, 0, EPOLL_CTL_ADD);
            armed = 0;
            new_connection = false;
        }
        bool full = atomic_load_explicit(&r->out.blocked, memory_order_seq_cst) &&
                    !atomic_load_explicit(&r->room_watched, memory_order_seq_cst);
        uint32_t wanted = (reads ? EPOLLIN : 0) | (full ? EPOLLOUT : 0);
        if (wanted != armed) {
            watch_fd(r, r->tcp.fd, wanted, EPOLL_CTL_MOD);
            armed = wanted;
        }
        int n = epoll_wait(r->epoll_fd, events, GN_ARRAY_SIZE(events), -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == r->wake_fd) {
                drain_counter(fd);
            } else if (fd == r->flush_fd) {
                drain_counter(fd);
                atomic_store_explicit(&r->flush_armed, false, memory_order_seq_cst);
                flush(r);
            } else if (fd == r->lease_fd) {
                drain_counter(fd);
                /* Before the look at the role: who gives it back after that sets the timer anew. */
                atomic_store_explicit(&r->lease_armed, false, memory_order_seq_cst);
                reads = !atomic_load_explicit(&r->role, memory_order_seq_cst);
            } else if (fd == control) {
                broke(r);
            } else if (fd == r->tcp.fd) {
                if (events[i].events & EPOLLOUT)
                    flush(r);
                if (events[i].events & (EPOLLERR | EPOLLHUP))
                    broke(r);
                if (!(events[i].events & EPOLLIN))
                    continue;
                /* A waiting thread reads: it says when it has not done so for a while. */
                reads = !atomic_load_explicit(&r->role, memory_order_seq_cst);
                if (reads)
                    gn_remote_look(r);
            }
        }
        answer_wants(r);
        if (!atomic_load_explicit(&r->broken, memory_order_acquire))
            continue;
        /* Closing takes them out of the epoll set. */
        epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, control, NULL);
        if (!come_back(r))
            break;
        new_connection = reads = true;
    }
    lose(r);
    return NULL;
}
