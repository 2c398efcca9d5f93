/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of frames: readers and writers on a socket pair, malformed input, and descriptors in
 * every situation in which they could leak.
 */
#include "link/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

struct pair {
    int near, far; /* the reader uses far */
    struct gn_frame_reader reader;
    int fds_before;
};

static int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    int ends[2];
    p->fds_before = count_fds();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    p->near = ends[0];
    p->far = ends[1];
    gn_frame_reader_init(&p->reader, p->far);
    *state = p;
    return 0;
}

/* Also checks that the test has leaked no descriptor. */
static int teardown(void **state)
{
    struct pair *p = *state;
    gn_frame_reader_fini(&p->reader);
    if (p->near >= 0)
        close(p->near);
    close(p->far);
    int left = count_fds() - p->fds_before;
    free(p);
    return left;
}

static void put(struct pair *p, const void *bytes, size_t n)
{
    assert_int_equal(send(p->near, bytes, n, MSG_NOSIGNAL), n);
}

static void put_with_fds(struct pair *p, const void *bytes, size_t n, int n_fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(253 * sizeof(int))];
    } control;
    int any = STDERR_FILENO; /* not the socket itself, which a copy would keep open */
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control};
    memset(&control, 0, sizeof control);
    msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
    for (int i = 0; i < n_fds; i++)
        memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &any, sizeof(int));
    assert_int_equal(sendmsg(p->near, &msg, MSG_NOSIGNAL), n);
}

static struct gn_frame_header header(uint32_t payload)
{
    return (struct gn_frame_header){.size = 16 + payload, .op = 7, .seq = 9};
}

static void a_frame_arrives_as_it_was_sent(void **state)
{
    struct pair *p = *state;
    int pipe_ends[2];
    struct gn_frame f;
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(gn_frame_send(p->near, 1000, 3, GN_FRAME_MORE, 77, "payload", 8, pipe_ends, 2),
                     0);
    assert_int_equal(gn_frame_send(p->near, 1000, 4, 0, 78, NULL, 0, NULL, 0), 0);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.op, 3);
    assert_int_equal(f.flags, GN_FRAME_MORE);
    assert_int_equal(f.seq, 77);
    assert_int_equal(f.n_payload, 8);
    assert_string_equal(f.payload, "payload");
    assert_int_equal(f.n_fds, 2);
    /*
     * Descriptor 1 is the pipe's write end. Descriptor 0 is not taken, so the next read must close
     * it.
     */
    int write_end = gn_frame_take_fd(&p->reader, 1);
    assert_true(write_end >= 0);
    assert_int_equal(gn_frame_take_fd(&p->reader, 1), -1);
    assert_int_equal(gn_frame_take_fd(&p->reader, 2), -1);
    assert_true(fcntl(write_end, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(write_end, "x", 1), 1);
    close(write_end);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.op, 4);
    assert_int_equal(f.n_payload, 0);
    assert_int_equal(f.n_fds, 0);
    assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void the_largest_frame_passes_and_no_larger(void **state)
{
    struct pair *p = *state;
    static char big[GN_FRAME_MAX_PAYLOAD + 1];
    struct gn_frame f;
    int room = 4 << 20;
    setsockopt(p->near, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    big[GN_FRAME_MAX_PAYLOAD - 1] = 'z';
    assert_int_equal(gn_frame_send(p->near, 1000, 1, 0, 0, big, sizeof big, NULL, 0), -EMSGSIZE);
    assert_int_equal(gn_frame_send(p->near, 1000, 1, 0, 0, big, sizeof big - 1, NULL, 0), 0);
    assert_int_equal(gn_frame_wait(&p->reader, 1000, &f), 1);
    assert_int_equal(f.n_payload, GN_FRAME_MAX_PAYLOAD);
    assert_memory_equal(f.payload, big, f.n_payload);
}

static void every_strict_prefix_waits_and_faults_at_its_end(void **state)
{
    char whole[16 + 24];
    struct gn_frame_header h = header(24);
    memcpy(whole, &h, sizeof h);
    memset(whole + 16, 'p', 24);
    for (size_t n = 0; n < sizeof whole; n++) {
        struct pair *p;
        struct gn_frame f;
        assert_int_equal(setup((void **)&p), 0);
        if (n)
            put_with_fds(p, whole, n, 3);
        assert_int_equal(gn_frame_read(&p->reader, &f), 0);
        close(p->near);
        p->near = -1;
        int rc = gn_frame_read(&p->reader, &f);
        assert_int_equal(rc, n ? -EPROTO : -EPIPE);
        assert_int_equal(gn_frame_read(&p->reader, &f), rc); /* the error is sticky */
        assert_int_equal(teardown((void **)&p), 0);
    }
}

static void bytes_may_come_one_by_one(void **state)
{
    struct pair *p = *state;
    char whole[16 + 5];
    struct gn_frame f;
    struct gn_frame_header h = header(5);
    memcpy(whole, &h, sizeof h);
    memcpy(whole + 16, "hello", 5);
    for (size_t i = 0; i < sizeof whole; i++) {
        put(p, whole + i, 1);
        assert_int_equal(gn_frame_read(&p->reader, &f), i + 1 == sizeof whole ? 1 : 0);
    }
    assert_memory_equal(f.payload, "hello", 5);
}

static void malformed_headers_fault(void **state)
{
    const struct gn_frame_header bad[] = {
        {.size = 0},
        {.size = 15},
        {.size = GN_FRAME_MAX_BYTES + 1},
        {.size = UINT32_MAX},
        {.size = 16, .zero = 1},
        {.size = 16, .flags = 2},
        {.size = 16, .flags = 0x8000},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pair *p;
        struct gn_frame f;
        assert_int_equal(setup((void **)&p), 0);
        put_with_fds(p, &bad[i], sizeof bad[i], 2);
        assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
        /* The reader ignores later frames. */
        assert_int_equal(gn_frame_send(p->near, 1000, 1, 0, 0, NULL, 0, NULL, 0), 0);
        assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
        assert_int_equal(teardown((void **)&p), 0);
    }
}

static void too_many_descriptors_fault_and_are_closed(void **state)
{
    struct pair *p = *state;
    struct gn_frame f;
    struct gn_frame_header h = header(0);
    put_with_fds(p, &h, sizeof h, GN_FRAME_MAX_FDS + 1);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
}

static void too_many_descriptors_in_pieces_fault_as_well(void **state)
{
    struct pair *p = *state;
    struct gn_frame f;
    struct gn_frame_header h = header(0);
    put_with_fds(p, &h, 8, GN_FRAME_MAX_FDS);
    put_with_fds(p, (const char *)&h + 8, 8, 1);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
}

static void descriptors_belong_to_the_frame_in_whose_bytes_they_came(void **state)
{
    struct pair *p = *state;
    struct gn_frame f;
    struct gn_frame_header h = header(4);
    put(p, &h, sizeof h);
    put_with_fds(p, "abcd", 4, 1);
    put(p, &h, sizeof h);
    put(p, "efgh", 4);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.n_fds, 1);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.n_fds, 0);
    assert_memory_equal(f.payload, "efgh", 4);
}

/* From now on this process can open n more descriptors. */
static struct rlimit leave_room(int n)
{
    struct rlimit before, now;
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = (struct rlimit){(rlim_t)(lowest + n), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before;
}

static void restore_room(struct rlimit limit)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void descriptors_without_room_are_lost_and_nothing_else(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header h = header(0);
    struct gn_frame f;
    for (int room = 0; room < 2; room++) {
        put_with_fds(p, &h, sizeof h, 2);
        put_with_fds(p, &h, sizeof h, 1);
        const struct rlimit limit = leave_room(room);
        const int rc = gn_frame_read(&p->reader, &f);
        restore_room(limit);
        assert_int_equal(rc, 1);
        assert_true(f.lost_fds);
        assert_int_equal(f.n_fds, 0);
        assert_int_equal(gn_frame_read(&p->reader, &f), 1);
        assert_false(f.lost_fds);
        assert_int_equal(f.n_fds, 1);
        assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    }
}

static void a_kept_frame_comes_once_there_is_room(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header h = header(4);
    struct gn_frame f;
    int codes[3];
    p->reader.keeps_frames = true;
    for (int room = 0; room < 2; room++) {
        put_with_fds(p, &h, sizeof h, 2);
        put(p, "four", 4);
        const struct rlimit limit = leave_room(room);
        for (int i = 0; i < 3; i++)
            codes[i] = i < 2 ? gn_frame_read(&p->reader, &f) : gn_frame_wait(&p->reader, 0, &f);
        restore_room(limit);
        for (int i = 0; i < 3; i++)
            assert_int_equal(codes[i], -EMFILE);
        assert_int_equal(gn_frame_read(&p->reader, &f), 1);
        assert_false(f.lost_fds);
        assert_int_equal(f.n_fds, 2);
        assert_memory_equal(f.payload, "four", 4);
        assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    }
    /* Byte by byte, the descriptors with the first. */
    put_with_fds(p, &h, 1, 2);
    assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    put(p, (char *)&h + 1, sizeof h - 1);
    put(p, "five", 4);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.n_fds, 2);
    assert_memory_equal(f.payload, "five", 4);
    shutdown(p->near, SHUT_WR);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPIPE);
}

/*
 * The second half of a header arrives, with descriptors, after the reader has peeked at the first
 * half.
 */
static void a_kept_frame_takes_no_more_than_it_has_looked_at(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header h = header(0);
    struct gn_frame f;
    p->reader.keeps_frames = true;
    put(p, &h, 5);
    assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    put_with_fds(p, (char *)&h + 5, sizeof h - 5, 1);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(f.n_fds, 1);
    assert_false(f.lost_fds);
}

/* The kernel's peek at the first frame receives the second one's descriptor as well. */
static void a_kept_frame_has_no_descriptor_of_the_next_one(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header empty = header(0), filled = header(4);
    struct gn_frame f;
    p->reader.keeps_frames = true;
    for (int i = 0; i < 2; i++) {
        put(p, i ? &filled : &empty, sizeof empty);
        if (i)
            put(p, "four", 4);
        put_with_fds(p, &empty, sizeof empty, 1);
        assert_int_equal(gn_frame_read(&p->reader, &f), 1);
        assert_int_equal(f.n_fds, 0);
        assert_int_equal(gn_frame_read(&p->reader, &f), 1);
        assert_int_equal(f.n_fds, 1);
        assert_int_equal(gn_frame_read(&p->reader, &f), 0);
    }
}

static void a_kept_frame_may_be_had_without_its_descriptors(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header h = header(0);
    struct gn_frame f;
    p->reader.keeps_frames = true;
    put_with_fds(p, &h, sizeof h, 2);
    put(p, &h, sizeof h);
    const struct rlimit limit = leave_room(1);
    const int kept = gn_frame_read(&p->reader, &f), without = gn_frame_read_without(&p->reader, &f);
    restore_room(limit);
    assert_int_equal(kept, -EMFILE);
    assert_int_equal(without, 1);
    assert_true(f.lost_fds);
    assert_int_equal(f.n_fds, 0);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_false(f.lost_fds);
    assert_int_equal(gn_frame_read(&p->reader, &f), 0);
}

static void waiting_ends_at_the_deadline_and_may_go_on(void **state)
{
    struct pair *p = *state;
    struct gn_frame f;
    assert_int_equal(gn_frame_wait(&p->reader, 1, &f), -ETIMEDOUT);
    assert_int_equal(gn_frame_send(p->near, 1000, 5, 0, 0, NULL, 0, NULL, 0), 0);
    assert_int_equal(gn_frame_wait(&p->reader, -1, &f), 1);
    assert_int_equal(f.op, 5);
}

static void a_writer_keeps_what_the_peer_does_not_read_yet(void **state)
{
    struct pair *p = *state;
    struct gn_frame_writer w;
    struct gn_frame f;
    char payload[4096];
    uint32_t sent = 0, got = 0;
    gn_frame_writer_init(&w, p->near, 1u << 20);
    memset(payload, 'w', sizeof payload);
    /* Fills the socket and queues three more frames, each with a descriptor. */
    for (unsigned after = 0; after < 3; sent++) {
        assert_int_equal(gn_frame_push(&w, 1, 0, sent, payload, sizeof payload, &p->far, 1), 0);
        after += gn_frame_writer_pending(&w);
    }
    while (got < sent) {
        assert_int_equal(gn_frame_flush(&w), 0);
        int rc;
        while ((rc = gn_frame_read(&p->reader, &f)) == 1) {
            assert_int_equal(f.seq, got++);
            assert_int_equal(f.n_payload, sizeof payload);
            assert_int_equal(f.n_fds, 1);
        }
        assert_int_equal(rc, 0);
    }
    assert_false(gn_frame_writer_pending(&w));
    assert_int_equal(w.queued_bytes, 0);
    gn_frame_writer_fini(&w);
}

static void a_writer_gives_up_on_a_peer_who_never_reads(void **state)
{
    struct pair *p = *state;
    struct gn_frame_writer w;
    char payload[4096] = {0};
    int rc = 0;
    gn_frame_writer_init(&w, p->near, 64 << 10);
    for (int i = 0; i < 100000 && rc == 0; i++)
        rc = gn_frame_push(&w, 1, 0, 0, payload, sizeof payload, &p->far, 1);
    assert_int_equal(rc, -ENOBUFS);
    assert_int_equal(gn_frame_flush(&w), -ENOBUFS);
    assert_true(w.queued_bytes <= 64 << 10);
    gn_frame_writer_fini(&w);
}

static void writing_to_nobody_raises_no_signal(void **state)
{
    struct pair *p = *state;
    struct gn_frame_writer w;
    shutdown(p->far, SHUT_RDWR);
    assert_int_equal(gn_frame_send(p->near, 1000, 1, 0, 0, NULL, 0, NULL, 0), -EPIPE);
    gn_frame_writer_init(&w, p->near, 4096);
    assert_int_equal(gn_frame_push(&w, 1, 0, 0, NULL, 0, NULL, 0), -EPIPE);
    assert_int_equal(gn_frame_push(&w, 1, 0, 0, NULL, 0, NULL, 0), -EPIPE);
    gn_frame_writer_fini(&w);
}

struct sink {
    struct gn_fd_sink base;
    int n, fds[300];
};

static void keep(struct gn_fd_sink *base, int fd)
{
    struct sink *s = gn_container_of(base, struct sink, base);
    s->fds[s->n++] = fd;
}

/*
 * With a sink, no descriptor of a message is closed by the reader or the kernel, whatever the
 * reader's limit.
 */
static void nothing_that_came_is_closed_here(void **state)
{
    struct pair *p = *state;
    struct sink s = {.base = {keep}};
    struct gn_frame_header h = header(0);
    struct gn_frame f;
    p->reader.sink = &s.base;
    p->reader.max_fds = 2;
    put_with_fds(p, &h, sizeof h, 253);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
    assert_int_equal(s.n, 253);
    for (int i = 0; i < s.n; i++)
        assert_int_equal(close(s.fds[i]), 0);
}

static void and_what_nobody_takes_goes_there(void **state)
{
    struct pair *p = *state;
    struct sink s = {.base = {keep}};
    struct gn_frame_header h = header(0);
    struct gn_frame f;
    p->reader.sink = &s.base;
    put_with_fds(p, &h, sizeof h, 3);
    put(p, &h, sizeof h);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    close(gn_frame_take_fd(&p->reader, 1));
    assert_int_equal(s.n, 0);
    assert_int_equal(gn_frame_read(&p->reader, &f), 1);
    assert_int_equal(s.n, 2);
    for (int i = 0; i < s.n; i++)
        assert_int_equal(close(s.fds[i]), 0);
}

static void bounds_hold_before_a_frame_is_whole(void **state)
{
    struct pair *p = *state;
    struct gn_frame_header h = header(100);
    struct gn_frame f;
    p->reader.max_bytes = 115;
    put(p, &h, sizeof h);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
    assert_int_equal(p->reader.capacity, 0);
    gn_frame_reader_fini(&p->reader);
    gn_frame_reader_init(&p->reader, p->far);
    p->reader.max_fds = 0;
    put_with_fds(p, &h, 1, 1);
    assert_int_equal(gn_frame_read(&p->reader, &f), -EPROTO);
}

static void string_fields_are_cut_between_characters(void **state)
{
    char field[8];
    gn_frame_string_set(field, sizeof field, "abc");
    assert_memory_equal(field, "abc\0\0\0\0\0", 8);
    gn_frame_string_set(field, sizeof field, "abcdefghij");
    assert_string_equal(field, "abcdefg");
    gn_frame_string_set(field, sizeof field, "abcdef\xc3\xa4");
    assert_string_equal(field, "abcdef");
    gn_frame_string_set(field, sizeof field, "a\nb\x7f");
    assert_string_equal(field, "a?b?");
    gn_frame_string_set(field, sizeof field, "a\xc2\x9b\xe2\x80\xae");
    assert_string_equal(field, "a?????");
    assert_true(gn_frame_string_ok(field, sizeof field));
    memset(field, 'x', sizeof field);
    assert_false(gn_frame_string_ok(field, sizeof field));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_frame_arrives_as_it_was_sent),
        T(the_largest_frame_passes_and_no_larger),
        cmocka_unit_test(every_strict_prefix_waits_and_faults_at_its_end),
        T(bytes_may_come_one_by_one),
        cmocka_unit_test(malformed_headers_fault),
        T(too_many_descriptors_fault_and_are_closed),
        T(too_many_descriptors_in_pieces_fault_as_well),
        T(descriptors_belong_to_the_frame_in_whose_bytes_they_came),
        T(descriptors_without_room_are_lost_and_nothing_else),
        T(a_kept_frame_comes_once_there_is_room),
        T(a_kept_frame_takes_no_more_than_it_has_looked_at),
        T(a_kept_frame_has_no_descriptor_of_the_next_one),
        T(a_kept_frame_may_be_had_without_its_descriptors),
        T(waiting_ends_at_the_deadline_and_may_go_on),
        T(a_writer_keeps_what_the_peer_does_not_read_yet),
        T(a_writer_gives_up_on_a_peer_who_never_reads),
        T(writing_to_nobody_raises_no_signal),
        T(nothing_that_came_is_closed_here),
        T(and_what_nobody_takes_goes_there),
        T(bounds_hold_before_a_frame_is_whole),
        cmocka_unit_test(string_fields_are_cut_between_characters),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
