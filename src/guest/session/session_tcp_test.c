/* SPDX-License-Identifier: Apache-2.0 */
/* A program's end of a session over tcp; the test is the worker at the other end of a socket pair.
 */
#include "guest/migrate/follow_migration.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp_internal.h"

#include "shm/futex.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define AREA_BYTES (UINT64_C(4) << 20)
#define LONG_BYTES 600000u

#define NO_MEMORY (-6)

static struct gn_session session;
static struct gn_session_tcp remote;
static struct gn_link no_link; /* which no test calls */

/* In the place of the library's own, by the linker's --wrap. */
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
static uint32_t n_callocs, failing; /* the how manieth finds no memory; 0: none */

void *__wrap_calloc(size_t n, size_t bytes)
{
    return ++n_callocs == failing ? NULL : __real_calloc(n, bytes);
}

struct worker {
    struct gn_tcp tcp;
    struct gn_stream_in in;
    unsigned char area[AREA_BYTES];
    uint32_t n_messages, longest, n_segments, last_segment;
    uint64_t batch, n_batches; /* of the last message; that have come */
    unsigned char *seen, *wanted;
    uint32_t n_seen; /* bytes at the area's beginning that are to be there when the message comes */
    bool there;
};

static void *place(void *context, const struct gn_stream_record *r)
{
    struct worker *w = context;
    return r->part == 0 && gn_range_ok(r->at, r->bytes, AREA_BYTES) ? w->area + r->at : NULL;
}

static int take(void *context, const struct gn_stream_record *r, const void *payload)
{
    struct worker *w = context;
    (void)payload;
    if (r->bytes > w->longest)
        w->longest = r->bytes;
    if (r->type == GN_RECORD_SEGMENT) {
        w->n_segments++;
        w->last_segment = r->part;
    }
    w->n_batches += r->type == GN_RECORD_DATA_END;
    if (r->type != GN_RECORD_MESSAGE)
        return 0;
    w->n_messages++;
    w->batch = r->at;
    w->there = w->n_seen && !memcmp(w->seen, w->wanted, w->n_seen);
    return 0;
}

static const struct gn_in_ops ops = {place, take};

static void hear_nothing(struct gn_session *s, uint16_t op, const void *payload, uint32_t n)
{
    (void)s, (void)op, (void)payload, (void)n;
}

static const struct gn_guest_api api = {.on_frame = hear_nothing, .result_no_memory = NO_MEMORY};

/* The program, which the tests share. */
static int begin(void **state)
{
    struct gn_segment data;
    (void)state;
    session.api = &api;
    session.migration = &gn_session_migration;
    gn_lost_init(&session.lost);
    session.waiter = (struct gn_waiter){gn_spin_policy_default(), &session.lost};
    session.tcp = &remote;
    session.ops = &gn_session_tcp_direct;
    session.link = &no_link;
    pthread_mutex_init(&session.link_lock, NULL);
    return gn_segment_create("test-data", AREA_BYTES, &data) || gn_segment_map(&data) ||
           gn_area_init(&session, data);
}

static int set_up(void **state)
{
    struct worker *w = calloc(1, sizeof *w);
    int ends[2];
    memset(&remote, 0, sizeof remote);
    remote.s = &session;
    remote.hook = gn_session_tcp_hook;
    pthread_mutex_init(&remote.landings_lock, NULL);
    pthread_cond_init(&remote.landings_wake, NULL);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++)
        remote.landings[i].segment = GN_NO_BLOCK;
    remote.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    remote.flush_fd = remote.lease_fd = remote.epoll_fd = remote.nudge_fd = -1;
    if (!w || remote.wake_fd < 0 || gn_out_init(&remote.out) ||
        gn_in_init(&remote.in, &gn_session_tcp_in_ops, &remote) || gn_in_init(&w->in, &ops, w) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        return -1;
    remote.tcp = (struct gn_tcp){ends[0], NULL};
    w->tcp = (struct gn_tcp){ends[1], NULL};
    gn_in_connect(&remote.in, &remote.tcp);
    gn_in_connect(&w->in, &w->tcp);
    *state = w;
    return gn_out_connect(&remote.out, &remote.tcp, 0);
}

static int tear_down(void **state)
{
    struct worker *w = *state;
    gn_out_stop(&remote.out);
    gn_tcp_close(&remote.tcp);
    gn_tcp_close(&w->tcp);
    close(remote.wake_fd);
    gn_in_fini(&remote.in);
    gn_in_fini(&w->in);
    gn_out_fini(&remote.out);
    free(w);
    return 0;
}

/* Until it has come, whole. */
static void hear(struct worker *w, uint32_t n_messages)
{
    for (int i = 0; i < 100000 && w->n_messages < n_messages; i++) {
        const int rc = gn_in_read(&w->in);
        assert_true(rc > 0 || rc == -EAGAIN);
        assert_int_equal(gn_out_acknowledged(&remote.out, w->in.received), 0);
        gn_session_tcp_flush(&remote);
    }
    assert_int_equal(w->n_messages, n_messages);
}

static unsigned char *sample(uint32_t n)
{
    unsigned char *bytes = malloc(n);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i * 31u + i / 253u);
    return bytes;
}

static void long_inputs_of_what_nobody_answers_come_before_it(void **state)
{
    struct worker *w = *state;
    struct gn_call c;
    void *room;
    w->wanted = sample(LONG_BYTES);
    gn_call_begin(&c, &session, 1, sizeof(struct gn_msg));
    const struct gn_span span = gn_call_room(&c, LONG_BYTES, &room);
    assert_int_equal(span.segment, 1);
    memcpy(room, w->wanted, LONG_BYTES);
    w->seen = w->area + span.offset;
    w->n_seen = LONG_BYTES;
    assert_int_equal(gn_call_post(&c), 0);
    memset(room, 0, LONG_BYTES); /* it is used again at once */
    hear(w, 1);
    assert_true(w->there);
    assert_true(w->longest < GN_RECORD_PIECE_BYTES);
    free(w->wanted);
}

static void so_they_do_of_a_message_that_was_in_the_ring(void **state)
{
    struct worker *w = *state;
    const struct gn_msg msg = {.op = 1, .reply = GN_NO_REPLY, .size = sizeof msg};
    struct gn_block block;
    w->wanted = sample(LONG_BYTES);
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, LONG_BYTES, &block), 0);
    memcpy(block.base, w->wanted, LONG_BYTES);
    w->seen = w->area + block.offset;
    w->n_seen = LONG_BYTES;
    const struct gn_passed passed = {gn_block_ref(&block, 0), LONG_BYTES, true};
    assert_int_equal(gn_session_tcp_pass(&remote, &msg, sizeof msg, &passed, 1), 0);
    memset(block.base, 0, LONG_BYTES);
    hear(w, 1);
    assert_true(w->there);
    gn_block_free(&session, &block);
    free(w->wanted);
}

static void what_is_shipped_for_a_call_that_fails_is_of_no_other_call(void **state)
{
    struct worker *w = *state;
    struct gn_call c;
    struct gn_block block;
    unsigned char *bytes = sample(LONG_BYTES);
    void *room;
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, LONG_BYTES, &block), 0);
    const struct gn_area_ref ref = gn_block_ref(&block, 0);
    assert_int_equal(gn_session_tcp_ship(&remote, &ref, bytes, LONG_BYTES), 0);
    gn_call_begin(&c, &session, 1, sizeof(struct gn_msg));
    (void)gn_call_room(&c, UINT64_C(1) << 40, &room);
    assert_int_equal(gn_call_post(&c), NO_MEMORY);
    gn_session_tcp_forget(&remote, bytes, LONG_BYTES);
    free(bytes);
    memset(w->area, 7, sizeof w->area);
    gn_call_begin(&c, &session, 1, sizeof(struct gn_msg));
    assert_int_equal(gn_call_post(&c), 0);
    hear(w, 1);
    assert_int_equal(w->batch, 0);
    while (!w->n_batches) {
        gn_session_tcp_flush(&remote);
        (void)gn_in_read(&w->in);
    }
    for (size_t i = 0; i < LONG_BYTES; i++)
        assert_int_equal(w->area[block.offset + i], 7); /* the block may be another call's by now */
    gn_block_free(&session, &block);
}

static void what_was_in_the_ring_waits_for_room(void **state)
{
    struct worker *w = *state;
    const struct gn_msg msg = {.op = 1, .reply = GN_NO_REPLY, .size = sizeof msg};
    struct gn_block block;
    uint64_t batch;
    remote.out.most_items = 64;
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, LONG_BYTES, &block), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(gn_out_bulk(&remote.out, 0, block.offset, block.base, 1, true, &batch), 0);
    assert_int_equal(gn_out_bulk(&remote.out, 0, block.offset, block.base, 1, true, &batch),
                     -ENOBUFS);
    const struct gn_passed passed = {gn_block_ref(&block, 0), LONG_BYTES, false};
    assert_int_equal(gn_session_tcp_pass(&remote, &msg, sizeof msg, &passed, 1), 0);
    hear(w, 1);
    assert_int_equal(w->batch, 65);
    gn_block_free(&session, &block);
}

/* ---- data that lands in the program's memory */

struct ending {
    struct gn_area_ref ref;
    _Atomic bool over;
};

static void *end(void *arg)
{
    struct ending *e = arg;
    gn_session_tcp_landed(&remote, &e->ref);
    atomic_store(&e->over, true);
    return NULL;
}

static void nothing_comes_to_memory_whose_transfer_is_over(void **state)
{
    struct worker *w = *state;
    struct ending e = {.ref = {1, 0, 65536}};
    struct gn_stream_record record = {20000, GN_RECORD_DATA, 0, 65536};
    unsigned char to[20000], *bytes = sample(sizeof to);
    pthread_t thread;
    assert_true(gn_session_tcp_land(&remote, &e.ref, to, sizeof to));
    assert_int_equal(send(w->tcp.fd, &record, sizeof record, 0), sizeof record);
    assert_int_equal(send(w->tcp.fd, bytes, 5000, 0), 5000);
    assert_true(gn_in_read(&remote.in) > 0);
    /* Its end is told in the middle of it. */
    assert_int_equal(pthread_create(&thread, NULL, end, &e), 0);
    while (!atomic_load(&e.over) && !atomic_load(&remote.broken))
        sched_yield();
    if (atomic_load(&remote.broken)) { /* as the watcher does */
        gn_out_disconnect(&remote.out);
        gn_tcp_close(&remote.tcp);
        gn_session_tcp_dropped(&remote);
    }
    pthread_join(thread, NULL);
    memset(to, 7, sizeof to);
    (void)send(w->tcp.fd, bytes + 5000, 15000, MSG_NOSIGNAL);
    (void)gn_in_read(&remote.in);
    for (size_t i = 0; i < sizeof to; i++)
        assert_int_equal(to[i], 7);
    free(bytes);
}

static void a_transfer_that_is_over_in_time_breaks_nothing(void **state)
{
    struct worker *w = *state;
    const struct gn_area_ref ref = {1, 0, 65536};
    struct gn_stream_record record = {20000, GN_RECORD_DATA, 0, 65536};
    unsigned char to[20000], *bytes = sample(sizeof to);
    assert_true(gn_session_tcp_land(&remote, &ref, to, sizeof to));
    assert_int_equal(send(w->tcp.fd, &record, sizeof record, 0), sizeof record);
    assert_int_equal(send(w->tcp.fd, bytes, sizeof to, 0), sizeof to);
    while (gn_in_read(&remote.in) > 0)
        ;
    gn_session_tcp_landed(&remote, &ref);
    assert_false(atomic_load(&remote.broken));
    assert_memory_equal(to, bytes, sizeof to);
    free(bytes);
}

/*
 * Both sides count the segments. This test runs after the others, since the area keeps its
 * segments.
 */
static void a_segment_that_finds_no_memory_is_not_counted(void **state)
{
    struct worker *w = *state;
    struct gn_block block;
    for (failing = 1; failing <= 5; failing++) {
        n_callocs = 0;
        assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, 2 * AREA_BYTES, &block),
                         -ENOMEM);
    }
    failing = 0;
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, 2 * AREA_BYTES, &block), 0);
    assert_int_equal(block.segment, 1);
    gn_session_tcp_flush(&remote);
    assert_int_equal(gn_in_read(&w->in), 1);
    assert_int_equal(w->n_segments, 1);
    assert_int_equal(w->last_segment, 1);
    gn_block_free(&session, &block);
}

/* ---- it comes to share the program's memory */

static _Atomic uint32_t awaited;

static void *wait_for_word(void *arg)
{
    (void)arg;
    while (!atomic_load(&awaited))
        gn_park(&awaited, 0, true, &session.lost);
    return NULL;
}

static void
who_is_in_the_middle_of_something_is_waited_for_and_nobody_begins_by_himself(void **state)
{
    pthread_t sleeper;
    (void)state;
    remote.nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_store(&session.lost.hook, &remote.hook);
    atomic_store(&remote.role,
                 1); /* another thread reads: the waiting one sleeps until it is woken */
    atomic_store(&awaited, 0);
    assert_int_equal(pthread_create(&sleeper, NULL, wait_for_word, NULL), 0);
    while (!atomic_load(&remote.n_parked))
        sched_yield();
    assert_ptr_equal(gn_session_tcp_enter(&session), &remote);
    gn_session_tcp_turn(&remote);
    assert_false(gn_session_tcp_is_empty(&remote));
    /* All of a transfer goes this way, or nothing. */
    assert_ptr_equal(gn_session_tcp_enter(&session), &remote);
    gn_session_tcp_leave(&remote);
    assert_false(gn_session_tcp_is_empty(&remote));
    gn_session_tcp_leave(&remote);
    assert_true(gn_session_tcp_is_empty(&remote));
    assert_null(gn_session_tcp_enter(&session));
    assert_true(gn_session_tcp_is_empty(&remote));
    /*
     * A thread that slept by the hook, and for the role of reading, now waits for the word alone.
     */
    while (atomic_load(&remote.n_parked))
        sched_yield();
    atomic_store(&awaited, 1);
    gn_futex_wake(&awaited, 1, true);
    pthread_join(sleeper, NULL);
    close(remote.nudge_fd);
}

/* ---- messages of gantryd */

static sem_t heard;

static int fake_poll_fd(const struct gn_link *link)
{
    (void)link;
    return remote.nudge_fd; /* never readable: the message has been read from the socket */
}

static int fake_hear(struct gn_link *link)
{
    (void)link;
    sem_post(&heard);
    return 0;
}

static void *watch(void *arg)
{
    (void)arg;
    (void)gn_session_tcp_watch(&session);
    return NULL;
}

/* The very last test: the session is lost with it. */
static void what_came_with_an_answer_of_gantryds_is_heard(void **state)
{
    static const struct gn_link_ops link_ops = {
        .name = "fake", .poll_fd = fake_poll_fd, .hear = fake_hear};
    struct gn_link link = {.ops = &link_ops};
    struct epoll_event wake = {.events = EPOLLIN};
    struct timespec until;
    pthread_t thread;
    (void)state;
    session.link = &link;
    pthread_mutex_init(&remote.dialling, NULL);
    pthread_mutex_init(&remote.wants_lock, NULL);
    gn_list_init(&remote.wants);
    remote.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    remote.nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wake.data.fd = remote.wake_fd;
    assert_int_equal(epoll_ctl(remote.epoll_fd, EPOLL_CTL_ADD, remote.wake_fd, &wake), 0);
    sem_init(&heard, 0, 0);
    atomic_store(&remote.leaving, true);
    assert_int_equal(pthread_create(&thread, NULL, watch, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    const int rc = sem_timedwait(&heard, &until);
    gn_session_tcp_broke(&remote);
    pthread_join(thread, NULL);
    close(remote.epoll_fd);
    close(remote.nudge_fd);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(long_inputs_of_what_nobody_answers_come_before_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(so_they_do_of_a_message_that_was_in_the_ring, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_shipped_for_a_call_that_fails_is_of_no_other_call,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_in_the_ring_waits_for_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_comes_to_memory_whose_transfer_is_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_transfer_that_is_over_in_time_breaks_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_segment_that_finds_no_memory_is_not_counted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            who_is_in_the_middle_of_something_is_waited_for_and_nobody_begins_by_himself, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(what_came_with_an_answer_of_gantryds_is_heard, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
