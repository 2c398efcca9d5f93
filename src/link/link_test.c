/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of a program's link, against a gantryd that the test plays frame by frame; so it can
 * also send frames that a real gantryd never sends.
 */
#include "link/link.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "link/frame.h"
#include "link/link_internal.h"
#include "link/tls.h"

struct server {
    char dir[64], path[100], address[110];
    int listener;
    void (*play)(int fd, struct gn_frame_reader *);
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    struct gn_frame_reader reader;
    int fd = accept(s->listener, NULL, NULL);
    if (fd < 0)
        return NULL;
    gn_frame_reader_init(&reader, fd);
    s->play(fd, &reader);
    gn_frame_reader_fini(&reader);
    close(fd);
    return NULL;
}

static void start(struct server *s, void (*play)(int fd, struct gn_frame_reader *))
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(s->dir, "/tmp/gantry-link-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof s->path, "%s/s", s->dir);
    snprintf(s->address, sizeof s->address, "unix:%s", s->path);
    memcpy(a.sun_path, s->path, strlen(s->path));
    s->play = play;
    s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void finish(struct server *s)
{
    pthread_join(s->thread, NULL);
    close(s->listener);
    unlink(s->path);
    rmdir(s->dir);
}

/* ---- the test's gantryd ---- */

static struct gn_frame expect(struct gn_frame_reader *r, uint16_t op)
{
    struct gn_frame f = {.op = 0};
    if (gn_frame_wait(r, 10000, &f) != 1 || f.op != op)
        abort();
    return f;
}

static void say(int fd, uint16_t op, uint16_t flags, uint32_t seq, const void *payload, size_t n,
                int n_fds)
{
    int fds[GN_FRAME_MAX_FDS];
    for (int i = 0; i < n_fds; i++)
        fds[i] = fd;
    (void)gn_frame_send(fd, 10000, op, flags, seq, payload, n, fds, n_fds);
}

static void greet(int fd, struct gn_frame_reader *r)
{
    struct {
        struct gn_link_welcome head;
        struct gn_link_welcome_platform platform;
    } w;
    struct gn_link_hello h;
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    if (!gn_frame_payload(&f, &h, sizeof h) || h.magic != GN_LINK_MAGIC ||
        h.pid != (uint32_t)getpid())
        abort();
    memset(&w, 0, sizeof w);
    w.head.version = GN_LINK_VERSION;
    w.head.n_platforms = 1;
    w.platform.index = 5;
    w.platform.n_devices = 2;
    strcpy(w.platform.api, "opencl");
    strcpy(w.platform.name, "Played");
    say(fd, GN_LINK_WELCOME, 0, f.seq, &w, sizeof w, 0);
}

static void play_all(int fd, struct gn_frame_reader *r)
{
    greet(fd, r);
    struct gn_frame f = expect(r, GN_LINK_ATTACH);
    struct gn_link_attach a;
    if (!gn_frame_payload(&f, &a, sizeof a) || a.platform != 5 || a.weight != 3 ||
        a.memory_bytes != 4096 || strcmp(a.tenant, "blue") != 0 || a.stdio != GN_LINK_HAS_STDERR ||
        f.n_fds != 1)
        abort();
    struct gn_link_attached d = {
        .vgpu_id = 0xabcd, .platform = 5, .ring_bytes = 1, .events_bytes = 2, .data_bytes = 3};
    say(fd, GN_LINK_ATTACHED, 0, f.seq, &d, sizeof d, 4);
    f = expect(r, GN_LINK_SEGMENT);
    struct gn_link_segment_made m = {.index = 1, .bytes = 8192};
    say(fd, GN_LINK_SEGMENT_MADE, 0, f.seq, &m, sizeof m, 1);
    f = expect(r, GN_LINK_CONTROL);
    uint32_t seq = f.seq;
    say(fd, GN_LINK_CONTROL, GN_FRAME_MORE, seq, "{\"a\":", 5, 0);
    say(fd, GN_LINK_CONTROL, GN_FRAME_MORE, seq, NULL, 0, 0);
    say(fd, GN_LINK_CONTROL, 0, seq, "1}", 2, 0);
    f = expect(r, GN_LINK_SEGMENT);
    struct gn_link_error e = {.code = ENOMEM};
    strcpy(e.what, "no more memory");
    strcpy(e.fix, "buy some");
    say(fd, GN_LINK_ERROR, 0, f.seq, &e, sizeof e, 0);
    (void)gn_frame_wait(r, 10000, &f); /* the hang-up */
}

static void a_program_gets_what_gantryd_says(void **state)
{
    struct server s;
    struct gn_link *l;
    struct gn_error err;
    struct gn_platform_list platforms;
    struct gn_attached attached;
    char *reply;
    int fd;
    uint32_t index;
    start(&s, play_all);
    assert_int_equal(gn_link_connect(s.address, &l, &err), 0);
    assert_int_equal(gn_link_platforms(l, &platforms), 0);
    assert_int_equal(platforms.n, 1);
    assert_int_equal(platforms.items[0].index, 5);
    assert_int_equal(platforms.items[0].n_devices, 2);
    assert_string_equal(platforms.items[0].name, "Played");
    assert_string_equal(platforms.items[0].api, "opencl");
    struct gn_attach_request request = {.platform = 5,
                                        .tenant = "blue",
                                        .weight = 3,
                                        .memory_bytes = 4096,
                                        .stdout_fd = -1,
                                        .stderr_fd = 2};
    assert_int_equal(gn_link_attach(l, &request, &attached, &err), 0);
    assert_int_equal(attached.vgpu_id, 0xabcd);
    assert_int_equal(attached.data_bytes, 3);
    close(attached.session_fd);
    close(attached.ring_fd);
    close(attached.events_fd);
    close(attached.data_fd);
    assert_int_equal(gn_link_segment(l, 8192, &fd, &index, &err), 0);
    assert_int_equal(index, 1);
    close(fd);
    assert_int_equal(gn_link_control(l, "{}", &reply, &err), 0);
    assert_string_equal(reply, "{\"a\":1}");
    free(reply);
    assert_int_equal(gn_link_segment(l, 8192, &fd, &index, &err), -ENOMEM);
    assert_string_equal(err.what, "no more memory");
    assert_string_equal(err.fix, "buy some");
    gn_link_close(l);
    finish(&s);
}

#define STANDS_S 11

static void play_stopped(int fd, struct gn_frame_reader *r)
{
    greet(fd, r);
    struct gn_frame f = expect(r, GN_LINK_SEGMENT);
    sleep(STANDS_S);
    struct gn_link_segment_made m = {.index = 1, .bytes = 8192};
    say(fd, GN_LINK_SEGMENT_MADE, 0, f.seq, &m, sizeof m, 1);
    (void)gn_frame_wait(r, 10000, &f); /* the hang-up */
}

/*
 * gantryd charges the segment when it resumes, so the program must not have given up the request.
 */
static void a_gantryd_that_was_stopped_makes_the_segment_late(void **state)
{
    struct server s;
    struct gn_link *l;
    struct gn_error err;
    uint32_t index;
    int fd;
    start(&s, play_stopped);
    assert_int_equal(gn_link_connect(s.address, &l, &err), 0);
    assert_int_equal(gn_link_segment(l, 8192, &fd, &index, &err), 0);
    assert_int_equal(index, 1);
    assert_int_equal(gn_link_dispatch(l), 0);
    close(fd);
    gn_link_close(l);
    finish(&s);
}

/* ---- malformed and hostile answers to HELLO ---- */

static void hang_up(int fd, struct gn_frame_reader *r)
{
}

static void answer_garbage(int fd, struct gn_frame_reader *r)
{
    expect(r, GN_LINK_HELLO);
    (void)!write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

static void answer_too_many_platforms(int fd, struct gn_frame_reader *r)
{
    struct gn_link_welcome w = {.version = GN_LINK_VERSION, .n_platforms = UINT32_MAX};
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    say(fd, GN_LINK_WELCOME, 0, f.seq, &w, sizeof w, 0);
}

static void answer_short(int fd, struct gn_frame_reader *r)
{
    struct gn_link_welcome w = {.version = GN_LINK_VERSION, .n_platforms = 1};
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    say(fd, GN_LINK_WELCOME, 0, f.seq, &w, sizeof w, 0);
}

static void answer_endless_name(int fd, struct gn_frame_reader *r)
{
    struct {
        struct gn_link_welcome head;
        struct gn_link_welcome_platform platform;
    } w;
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    memset(&w, 'x', sizeof w);
    w.head = (struct gn_link_welcome){.version = GN_LINK_VERSION, .n_platforms = 1};
    say(fd, GN_LINK_WELCOME, 0, f.seq, &w, sizeof w, 0);
}

static void answer_another(int fd, struct gn_frame_reader *r)
{
    struct gn_link_welcome w = {.version = GN_LINK_VERSION};
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    say(fd, GN_LINK_WELCOME, 0, f.seq + 1, &w, sizeof w, 3);
}

static void answer_empty_error(int fd, struct gn_frame_reader *r)
{
    struct gn_frame f = expect(r, GN_LINK_HELLO);
    say(fd, GN_LINK_ERROR, 0, f.seq, NULL, 0, 0);
}

static void nonsense_is_an_error_and_no_more(void **state)
{
    static const struct {
        void (*play)(int, struct gn_frame_reader *);
        int rc;
    } cases[] = {
        {hang_up, -EPIPE},
        {answer_garbage, -EPROTO},
        {answer_too_many_platforms, -EPROTO},
        {answer_short, -EPROTO},
        {answer_endless_name, -EPROTO},
        {answer_another, -EPROTO},
        {answer_empty_error, -EPROTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server s;
        struct gn_link *l = NULL;
        struct gn_error err = {{0}, {0}};
        start(&s, cases[i].play);
        assert_int_equal(gn_link_connect(s.address, &l, &err), cases[i].rc);
        assert_null(l);
        assert_true(err.what[0]);
        finish(&s);
    }
}

static void attached_without_descriptors(int fd, struct gn_frame_reader *r)
{
    struct gn_link_attached d = {.vgpu_id = 1};
    greet(fd, r);
    struct gn_frame f = expect(r, GN_LINK_ATTACH);
    say(fd, GN_LINK_ATTACHED, 0, f.seq, &d, sizeof d, 3);
}

static void an_attach_without_its_descriptors_fails(void **state)
{
    struct server s;
    struct gn_link *l;
    struct gn_error err;
    struct gn_attached attached;
    struct gn_attach_request request = {.stdout_fd = -1, .stderr_fd = -1};
    char name[100];
    start(&s, attached_without_descriptors);
    assert_int_equal(gn_link_connect(s.address, &l, &err), 0);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    request.tenant = name;
    assert_int_equal(gn_link_attach(l, &request, &attached, &err), -EINVAL);
    request.tenant = NULL;
    assert_int_equal(gn_link_attach(l, &request, &attached, &err), -EPROTO);
    gn_link_close(l);
    finish(&s);
}

static void no_daemon_is_a_quick_failure(void **state)
{
    struct gn_link *l;
    struct gn_error err;
    assert_int_equal(gn_link_connect("unix:/tmp/gantry-nobody-listens-here", &l, &err), -ENOENT);
    assert_non_null(strstr(err.what, "no gantryd"));
    assert_int_equal(gn_link_connect("gopher:x", &l, &err), -EINVAL);
}

/* ---- a forked child */

static void touch(struct gn_tls *t)
{
    (void)t;
    fail_msg("TLS that another thread of the parent's may be in the middle of is touched");
}

static void a_forked_child_closes_descriptors_and_no_more(void **state)
{
    static const struct gn_tls_ops ops = {.free = touch};
    struct gn_tls tls = {&ops};
    struct gn_link_end u = {.socket = {-1, &tls}, .left = {-1, &tls}};
    int pairs[2][2];
    uint8_t byte;
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
    u.socket.fd = pairs[0][0];
    u.left.fd = pairs[1][0];
    u.reader.payload = &byte; /* freeing it would crash */
    gn_link_forked(&u.base);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(recv(pairs[i][1], &byte, 1, MSG_DONTWAIT), 0);
        close(pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_gets_what_gantryd_says),
        cmocka_unit_test(a_gantryd_that_was_stopped_makes_the_segment_late),
        cmocka_unit_test(nonsense_is_an_error_and_no_more),
        cmocka_unit_test(an_attach_without_its_descriptors_fails),
        cmocka_unit_test(no_daemon_is_a_quick_failure),
        cmocka_unit_test(a_forked_child_closes_descriptors_and_no_more),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
