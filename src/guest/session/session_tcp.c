/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's end of a session over tcp (session_tcp.h). Any thread sends, one reads. When the
 * connection breaks the watcher makes a new one within the grace that gantryd gives, and both sides
 * continue where they were; else the loss is declared and every wait ends. The worker is not
 * trusted: its records can not write outside the tables and the data area.
 */
#include "guest/session/session_ops.h"
#include "guest/session/session_shm.h"
#include "guest/session/session_tcp_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "shm/futex.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define INLINE_BYTES                                                                               \
    (16u << 10) /* inputs up to this go before their message, larger ones as bulk data beside it   \
                 */
#define COPIED_BYTES    (64u << 10) /* of a record: larger inputs that are copied go in several */
#define FLUSH_BYTES     (16u << 10) /* this much is sent without waiting for more */
#define FLUSH_NS        100000u     /* and nothing waits longer than this */
#define SPIN_NS         20000u
#define LOOKS_PER_CLOCK 8
#define PAUSES_PER_LOOK 8u
#define WIRE_BYTES_NS   2u /* bytes that a fast network moves in a nanosecond */

/* The batch of bulk data that this thread's next message is about; 0: none. */
static _Thread_local uint64_t my_batch;

static struct gn_session_tcp *of_hook(const struct gn_wait_hook *h)
{
    return gn_container_of(h, struct gn_session_tcp, hook);
}

static void wake_watcher(struct gn_session_tcp *r)
{
    const int fd = r->wake_fd; /* -1: closed here, after a loss */
    if (fd >= 0 && !gn_fd_signal(fd))
        gn_session_tcp_cut_off(r);
}

void gn_session_tcp_arm(int timer, uint64_t ns)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};
    (void)timerfd_settime(timer, 0, &when, NULL);
}

/* ---- the role of reading */

bool gn_session_tcp_acquire_role(struct gn_session_tcp *r)
{
    return !atomic_load_explicit(&r->role, memory_order_relaxed) &&
           !atomic_exchange_explicit(&r->role, 1, memory_order_seq_cst);
}

/* A thread that parks after this sees the role free; one that parked before is woken to take it. */
void gn_session_tcp_leave_role(struct gn_session_tcp *r)
{
    atomic_store_explicit(&r->role, 0, memory_order_seq_cst);
    if (atomic_load_explicit(&r->n_parked, memory_order_seq_cst)) {
        atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
        gn_futex_wake(&r->baton, 1, true);
    }
}

void gn_session_tcp_wake_all(struct gn_session_tcp *r)
{
    atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
    gn_futex_wake(&r->baton, INT_MAX, true);
}

/* The connection is broken: the watcher makes a new one. */
void gn_session_tcp_broke(struct gn_session_tcp *r)
{
    const int fd = r->tcp.fd;
    if (atomic_exchange_explicit(&r->broken, true, memory_order_seq_cst))
        return;
    if (fd >= 0 && !gn_fd_is_ours(fd))
        gn_session_tcp_cut_off(r);
    else
        wake_watcher(r);
}

static void send_some(struct gn_session_tcp *r, bool watches_room)
{
    if (!gn_out_pending(&r->out) || atomic_load_explicit(&r->broken, memory_order_relaxed))
        return;
    int rc = gn_out_flush(&r->out);
    if (rc && rc != -EAGAIN)
        gn_session_tcp_broke(r);
    else if (rc && !watches_room && !atomic_load_explicit(&r->room_watched, memory_order_seq_cst))
        wake_watcher(r);
}

/* For threads that do not wait until the socket has room again. */
void gn_session_tcp_flush(struct gn_session_tcp *r)
{
    send_some(r, false);
}

/* ---- receiving */

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
    struct gn_session_tcp *r = context;
    void *to = NULL;
    pthread_mutex_lock(&r->landings_lock);
    for (uint32_t i = 0; i < MAX_LANDINGS && !to; i++) {
        const struct landing *l = &r->landings[i];
        if (l->segment == record->part && record->at >= l->offset &&
            gn_range_ok(record->at - l->offset, record->bytes, l->bytes)) {
            to = l->to + (record->at - l->offset);
            atomic_store_explicit(&r->receiving, l, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&r->landings_lock);
    return to ? to : area_at(r->s, record->part, record->at, record->bytes);
}

bool gn_session_tcp_land(struct gn_session_tcp *r, const struct gn_area_ref *ref, void *to,
                         uint64_t bytes)
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

void gn_session_tcp_landed(struct gn_session_tcp *r, const struct gn_area_ref *ref)
{
    pthread_mutex_lock(&r->landings_lock);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++) {
        struct landing *l = &r->landings[i];
        if (l->segment != ref->segment - 1 || l->offset != ref->offset)
            continue;
        l->segment = GN_NO_BLOCK;
        /*
         * The transfer ends in the middle of a record of its bytes, which no honest worker's does.
         * The rest must not be written to the program's memory.
         */
        if (atomic_load_explicit(&r->receiving, memory_order_acquire) == l)
            gn_session_tcp_broke(r);
        while (atomic_load_explicit(&r->receiving, memory_order_acquire) == l)
            pthread_cond_wait(&r->landings_wake, &r->landings_lock);
    }
    pthread_mutex_unlock(&r->landings_lock);
}

void gn_session_tcp_dropped(struct gn_session_tcp *r)
{
    pthread_mutex_lock(&r->landings_lock);
    atomic_store_explicit(&r->receiving, NULL, memory_order_relaxed);
    pthread_cond_broadcast(&r->landings_wake);
    pthread_mutex_unlock(&r->landings_lock);
}

uint32_t gn_session_tcp_pieces(struct gn_session_tcp *r, uint32_t least, uint32_t most,
                               uint64_t piece_bytes)
{
    uint64_t n = least + atomic_load_explicit(&r->trip_ns, memory_order_relaxed) * WIRE_BYTES_NS /
                             piece_bytes;
    return n < most ? (uint32_t)n : most;
}

static void take_end(struct gn_session_tcp *r, struct gn_event_entry *e,
                     const struct gn_stream_record *record, const void *payload)
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
    /* Two clocks never agree to the last microsecond, but the command has ended before now. */
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

static int take_want(struct gn_session_tcp *r, const struct gn_stream_record *record,
                     const void *payload)
{
    struct want *w = malloc(sizeof *w + record->bytes);
    if (!w)
        return 0; /* the compiler in the worker stops waiting */
    *w = (struct want){.seq = (uint32_t)record->at, .n = record->bytes, .fd = -1};
    memcpy(w->payload, payload, record->bytes);
    gn_list_init(&w->link);
    pthread_mutex_lock(&r->wants_lock);
    const bool room = r->n_wants < MAX_WANTS;
    if (room) {
        gn_list_append(&r->wants, &w->link);
        r->n_wants++;
    }
    pthread_mutex_unlock(&r->wants_lock);
    if (!room) {
        free(w);
        return -EPROTO; /* a worker that waits for answers does not ask so much */
    }
    wake_watcher(r);
    return 0;
}

static int take(void *context, const struct gn_stream_record *record, const void *payload)
{
    struct gn_session_tcp *r = context;
    struct gn_session *s = r->s;
    struct gn_event_entry *e;
    int rc = 0;
    switch (record->type) {
    case GN_RECORD_DATA:
    case GN_RECORD_DATA_END:
        atomic_store_explicit(&r->receiving, NULL, memory_order_release);
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
        gn_reply_send(s->view.replies, (uint32_t)record->at, (int32_t)(record->at >> 32), payload,
                      record->bytes);
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
        if (record->part == GN_SESSION_STANDS || record->part == GN_SESSION_PAUSE) {
            s->migration->note(s,
                               record->part == GN_SESSION_STANDS ? GN_NOTE_QUIESCED : GN_NOTE_PAUSE,
                               (uint32_t)record->at);
            return 0;
        }
        s->api->on_frame(s, record->part, payload, record->bytes);
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

const struct gn_in_ops gn_session_tcp_in_ops = {.place = place, .take = take};

/* With the role. One read; -EAGAIN: nothing is there. */
static int read_once(struct gn_session_tcp *r)
{
    int rc = gn_in_read(&r->in);
    if (rc > 0 && gn_out_ack_due(&r->out, r->in.received, r->in.small)) {
        gn_out_owe_ack(&r->out, r->in.received, r->in.small);
        gn_session_tcp_flush(r);
    }
    if (rc < 0 && rc != -EAGAIN)
        gn_session_tcp_broke(r);
    return rc;
}

/* `stays`: also when no thread waits by the hook any more. */
static bool is_over(const struct gn_session_tcp *r, const _Atomic uint32_t *word, uint32_t seen,
                    bool stays)
{
    return (!stays && atomic_load_explicit(&r->turned, memory_order_seq_cst)) ||
           atomic_load_explicit(word, memory_order_acquire) != seen || gn_lost_is(&r->s->lost) ||
           atomic_load_explicit(&r->broken, memory_order_acquire);
}

static void read_until(struct gn_session_tcp *r, const _Atomic uint32_t *word, uint32_t seen,
                       bool stays)
{
    uint64_t spin_ns =
        r->s->waiter.policy.spin_ns < SPIN_NS ? r->s->waiter.policy.spin_ns : SPIN_NS;
    uint64_t until = gn_spin_is_worth(&r->habit) ? gn_now_ns() + spin_ns : 0;
    uint32_t looks = 0;
    while (!is_over(r, word, seen, stays)) {
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
        struct pollfd p[2] = {{.fd = r->tcp.fd, .events = POLLIN | (blocked ? POLLOUT : 0)},
                              {.fd = r->nudge_fd, .events = POLLIN}};
        atomic_store_explicit(&r->room_watched, blocked, memory_order_seq_cst);
        gn_spin_was_not(&r->habit, looks > 0);
        if (poll(p, 2, (int)(GN_PARK_LOOK_NS / 1000000u)) == 0 && !gn_fd_is_ours(p[0].fd)) {
            gn_session_tcp_broke(r);
            break;
        }
        if (p[0].revents & POLLOUT)
            send_some(r, true);
        if (p[1].revents)
            gn_fd_drain(r->nudge_fd);
        looks = 0;
        until = 0;
    }
    if (atomic_exchange_explicit(&r->room_watched, false, memory_order_seq_cst) &&
        atomic_load_explicit(&r->out.blocked, memory_order_seq_cst))
        wake_watcher(r);
}

/* If the word belongs to an event, tells the worker that its end is wanted at once. */
static uint32_t want_event(struct gn_session_tcp *r, const _Atomic uint32_t *word, uint32_t seen)
{
    const char *at = (const char *)word, *table = (const char *)r->s->events;
    if (at < table || at >= table + GN_EVENT_TABLE_BYTES || (seen & GN_EVENT_WANTED))
        return seen;
    uint64_t index = (uint64_t)(at - table) / sizeof(struct gn_event_entry);
    _Atomic uint32_t *mine = &r->s->events[index].word;
    if (!atomic_compare_exchange_strong_explicit(mine, &seen, seen | GN_EVENT_WANTED,
                                                 memory_order_acq_rel, memory_order_acquire))
        return UINT32_MAX;
    const struct gn_stream_record record = {0, GN_RECORD_WAIT, 0, index};
    (void)gn_out_append(&r->out, &record, NULL); /* without room its end comes a little later */
    return seen | GN_EVENT_WANTED;
}

static bool look(struct gn_session_tcp *r, const _Atomic uint32_t *word, uint32_t seen, bool stays)
{
    seen = want_event(r, word, seen);
    if (seen == UINT32_MAX)
        return true;
    const bool reads =
        !atomic_load_explicit(&r->broken, memory_order_acquire) && gn_session_tcp_acquire_role(r);
    send_some(r, reads);
    if (!reads)
        return atomic_load_explicit(word, memory_order_acquire) != seen;
    read_until(r, word, seen, stays);
    atomic_store_explicit(&r->n_turns, atomic_load_explicit(&r->n_turns, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    gn_session_tcp_leave_role(r);
    if (!atomic_exchange_explicit(&r->lease_armed, true, memory_order_seq_cst))
        gn_session_tcp_arm(r->lease_fd, GN_REMOTE_LEASE_NS);
    return true;
}

static void park(struct gn_session_tcp *r, const _Atomic uint32_t *word, uint32_t expected,
                 bool private_word, bool stays)
{
    atomic_fetch_add_explicit(&r->n_parked, 1, memory_order_seq_cst);
    uint32_t baton = atomic_load_explicit(&r->baton, memory_order_seq_cst);
    /*
     * Either the present reader sees this thread when it leaves, or this thread sees that no thread
     * reads.
     */
    if (!stays && atomic_load_explicit(&r->turned, memory_order_seq_cst))
        gn_park_for(word, expected, private_word, &r->s->lost, 0);
    else if (atomic_load_explicit(&r->role, memory_order_seq_cst) ||
             atomic_load_explicit(&r->broken, memory_order_seq_cst))
        gn_park_either(word, expected, private_word, &r->s->lost, &r->baton, baton);
    atomic_fetch_sub_explicit(&r->n_parked, 1, memory_order_seq_cst);
    /* This thread may have got the baton while its own wait ended: then it passes the baton on. */
    if (atomic_load_explicit(&r->n_parked, memory_order_seq_cst) &&
        !atomic_load_explicit(&r->role, memory_order_seq_cst)) {
        atomic_fetch_add_explicit(&r->baton, 1, memory_order_seq_cst);
        gn_futex_wake(&r->baton, 1, true);
    }
}

static bool look_by_hook(const struct gn_wait_hook *hook, const _Atomic uint32_t *word,
                         uint32_t seen)
{
    struct gn_session_tcp *r = of_hook(hook);
    atomic_fetch_add_explicit(&r->n_hooked, 1, memory_order_seq_cst);
    const bool again =
        !atomic_load_explicit(&r->turned, memory_order_seq_cst) && look(r, word, seen, false);
    atomic_fetch_sub_explicit(&r->n_hooked, 1, memory_order_seq_cst);
    return again;
}

static void park_by_hook(const struct gn_wait_hook *hook, const _Atomic uint32_t *word,
                         uint32_t expected, bool private_word)
{
    struct gn_session_tcp *r = of_hook(hook);
    park(r, word, expected, private_word, false);
}

const struct gn_wait_hook gn_session_tcp_hook = {look_by_hook, park_by_hook};

/* ---- threads that send directly */

static _Thread_local uint32_t depth;

struct gn_session_tcp *gn_session_tcp_enter(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    /* A session never becomes direct again: so this one has not turned before it was loaded. */
    if (!r || gn_session_ops(s) != &gn_session_tcp_direct)
        return NULL;
    /* Either this thread sees that it has turned, or the thread that turns it sees n_inside. */
    if (!depth)
        atomic_fetch_add_explicit(&r->n_inside, 1, memory_order_seq_cst);
    if (!depth && atomic_load_explicit(&r->turned, memory_order_seq_cst)) {
        atomic_fetch_sub_explicit(&r->n_inside, 1, memory_order_release);
        return NULL;
    }
    depth++;
    return r;
}

void gn_session_tcp_leave(struct gn_session_tcp *r)
{
    if (r && !--depth)
        atomic_fetch_sub_explicit(&r->n_inside, 1, memory_order_release);
}

void gn_session_tcp_turn(struct gn_session_tcp *r)
{
    atomic_store_explicit(&r->s->lost.hook, NULL, memory_order_release);
    atomic_store_explicit(&r->turned, true, memory_order_seq_cst);
    gn_session_tcp_nudge(r);
    gn_session_tcp_wake_all(r);
}

bool gn_session_tcp_has_turned(struct gn_session_tcp *r)
{
    return atomic_load_explicit(&r->turned, memory_order_seq_cst);
}

bool gn_session_tcp_is_empty(struct gn_session_tcp *r)
{
    return !atomic_load_explicit(&r->n_inside, memory_order_seq_cst);
}

void gn_session_tcp_nudge(struct gn_session_tcp *r)
{
    (void)gn_fd_signal(r->nudge_fd);
}

void gn_session_tcp_look(struct gn_session_tcp *r)
{
    gn_session_tcp_flush(r);
    if (atomic_load_explicit(&r->broken, memory_order_acquire) || !gn_session_tcp_acquire_role(r))
        return;
    while (read_once(r) > 0)
        ;
    gn_session_tcp_leave_role(r);
}

/* ---- sending */

/* Appends, waiting for room when the worker lags behind. */
static int append_all(struct gn_session_tcp *r, const struct gn_out_part *parts, int n)
{
    for (;;) {
        uint32_t room = atomic_load_explicit(&r->out.room, memory_order_seq_cst);
        int rc = gn_lost_is(&r->s->lost) ? -EPIPE : gn_out_append_all(&r->out, parts, n);
        if (rc != -EAGAIN)
            return rc;
        if (!look(r, &r->out.room, room, true))
            park(r, &r->out.room, room, true, true);
    }
}

/* Waits, likewise, while too much bulk data waits to be sent. */
static int bulk_all(struct gn_session_tcp *r, uint16_t segment, uint64_t at, const void *from,
                    uint64_t bytes, uint64_t *ret_batch)
{
    for (;;) {
        uint32_t room = atomic_load_explicit(&r->out.room, memory_order_seq_cst);
        int rc = gn_lost_is(&r->s->lost)
                     ? -EPIPE
                     : gn_out_bulk(&r->out, segment, at, from, bytes, true, ret_batch);
        if (rc != -ENOBUFS)
            return rc;
        if (!look(r, &r->out.room, room, true))
            park(r, &r->out.room, room, true, true);
    }
}

/* No thread waits for these records, so more may be gathered before they are sent. */
static void flush_soon(struct gn_session_tcp *r)
{
    if (atomic_load_explicit(&r->out.blocked, memory_order_relaxed))
        return; /* the watcher continues when there is room */
    if (atomic_load_explicit(&r->out.unsent, memory_order_relaxed) >= FLUSH_BYTES)
        gn_session_tcp_flush(r);
    else if (!atomic_exchange_explicit(&r->flush_armed, true, memory_order_seq_cst))
        gn_session_tcp_arm(r->flush_fd, FLUSH_NS);
}

/*
 * Appends bytes ahead of their message; their place may be reused when this returns. Until then it
 * belongs to this thread, so other threads may append in between.
 */
static int append_copied(struct gn_session_tcp *r, uint16_t segment, uint64_t at, const void *from,
                         uint64_t bytes)
{
    int rc = 0;
    for (uint64_t done = 0; done < bytes && !rc;) {
        const uint32_t n = bytes - done < COPIED_BYTES ? (uint32_t)(bytes - done) : COPIED_BYTES;
        const struct gn_out_part part = {{n, GN_RECORD_DATA, segment, at + done},
                                         (const char *)from + done};
        rc = append_all(r, &part, 1);
        done += n;
        flush_soon(r);
    }
    return rc;
}

int gn_session_tcp_send(struct gn_session_tcp *r, struct gn_call *c)
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
        if (b->bytes <= INLINE_BYTES)
            parts[n++] = (struct gn_out_part){
                {(uint32_t)b->bytes, GN_RECORD_DATA, (uint16_t)b->segment, b->offset}, b->base};
        else if (msg->reply == GN_NO_REPLY) /* the block is reused at once */
            rc = append_copied(r, (uint16_t)b->segment, b->offset, b->base, b->bytes);
        else
            rc = gn_out_bulk(&r->out, (uint16_t)b->segment, b->offset, b->base, b->bytes, true,
                             &batch);
    }
    parts[n++] = (struct gn_out_part){{c->bytes, GN_RECORD_MESSAGE, 0, batch}, c->message};
    if (!rc)
        rc = append_all(r, parts, n);
    if (!rc && (msg->reply == GN_NO_REPLY))
        flush_soon(r);
    return rc ? gn_session_failure(r->s, rc) : 0;
}

int gn_session_tcp_pass(struct gn_session_tcp *r, const struct gn_msg *msg, uint32_t n_bytes,
                        const struct gn_passed *all, uint32_t n)
{
    struct gn_out_part parts[GN_MAX_PASSED + 1];
    uint64_t batch = 0;
    int n_parts = 0, rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct gn_passed *p = &all[i];
        const uint16_t segment = (uint16_t)(p->ref.segment - 1);
        const void *from = p->ref.segment ? area_at(r->s, segment, p->ref.offset, p->bytes) : NULL;
        if (!from)
            return -EPROTO;
        if (p->bytes <= INLINE_BYTES)
            parts[n_parts++] = (struct gn_out_part){
                {(uint32_t)p->bytes, GN_RECORD_DATA, segment, p->ref.offset}, from};
        else if (p->copied)
            rc = append_copied(r, segment, p->ref.offset, from, p->bytes);
        else
            rc = bulk_all(r, segment, p->ref.offset, from, p->bytes, &batch);
    }
    parts[n_parts++] = (struct gn_out_part){{n_bytes, GN_RECORD_MESSAGE, 0, batch}, msg};
    return rc ? rc : append_all(r, parts, n_parts);
}

void gn_session_tcp_send_paused(struct gn_session_tcp *r, uint32_t number)
{
    const struct gn_stream_record record = {0, GN_RECORD_PAUSED, 0, number};
    int rc;
    do {
        const uint32_t room = atomic_load_explicit(&r->out.room, memory_order_seq_cst);
        rc = gn_lost_is(&r->s->lost) ? -EPIPE : gn_out_append_ordered(&r->out, &record, NULL);
        if (rc == -ENOBUFS && !look(r, &r->out.room, room, true))
            park(r, &r->out.room, room, true, true);
    } while (rc == -ENOBUFS);
    gn_session_tcp_flush(r);
}

void gn_session_tcp_begin(struct gn_session_tcp *r, uint32_t grace_ms)
{
    struct gn_area *a = &r->s->area;
    r->grace_ns = (uint64_t)grace_ms * 1000000u;
    r->n_segments = a->n_segments - 1;
    for (uint32_t i = 1; i < a->n_segments; i++) {
        struct gn_stream_record record = {0, GN_RECORD_SEGMENT, (uint16_t)i, 0};
        (void)gn_area_segment_base(a, i, &record.at);
        (void)gn_out_append(&r->out, &record, NULL);
    }
}

int gn_session_tcp_ship(struct gn_session_tcp *r, const struct gn_area_ref *ref, const void *from,
                        uint64_t bytes)
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

void gn_session_tcp_unship(void)
{
    my_batch = 0;
}

void gn_session_tcp_forget(struct gn_session_tcp *r, const void *from, uint64_t bytes)
{
    gn_out_forget(&r->out, from, bytes);
}

void gn_session_tcp_free_pages(struct gn_session_tcp *r, uint32_t segment, uint64_t offset,
                               uint64_t bytes)
{
    const struct gn_stream_record record = {sizeof bytes, GN_RECORD_FREE, (uint16_t)segment,
                                            offset};
    (void)gn_out_append(&r->out, &record,
                        &bytes); /* without room the pages stay until they are used again */
}

int gn_session_tcp_segment(struct gn_session_tcp *r, uint64_t bytes, struct gn_segment *ret,
                           uint32_t *ret_index)
{
    struct gn_segment segment;
    int rc = r->n_segments + 1 < GN_AREA_SEGMENTS
                 ? gn_segment_create("gantry-data", bytes, &segment)
                 : -ENOMEM;
    if (rc)
        return rc;
    struct gn_out_part part = {{0, GN_RECORD_SEGMENT, (uint16_t)(r->n_segments + 1), segment.bytes},
                               NULL};
    rc = gn_segment_map(&segment);
    if (!rc)
        rc = append_all(r, &part, 1);
    if (rc) {
        gn_segment_fini(&segment);
        return rc;
    }
    *ret_index = ++r->n_segments;
    *ret = segment;
    return 0;
}
