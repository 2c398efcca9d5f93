/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of closer.c with close() calls that wait: some end on a signal, others hang (simulated by
 * __wrap_close). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/closer.h"

#define MOST 4096

static struct gn_closer *closer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs[MOST], released;
static unsigned n_hanging;

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < MOST && hangs[fd]) {
        n_hanging++;
        pthread_cond_broadcast(&changed);
        while (!released)
            pthread_cond_wait(&changed, &lock);
        n_hanging--;
        hangs[fd] = false;
    }
    pthread_mutex_unlock(&lock);
    return __real_close(fd);
}

static int start(void **state)
{
    struct gn_error err;
    (void)state;
    released = false;
    return gn_closer_start(-1, &closer, &err);
}

static int end(void **state)
{
    (void)state;
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    gn_closer_stop(closer, 60000);
    return 0;
}

static void wait_until_hanging(unsigned n)
{
    pthread_mutex_lock(&lock);
    while (n_hanging < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_until_closed(const struct gn_closing *s)
{
    while (gn_closer_pending_of(closer, s))
        usleep(1000);
}

static int make_one(void)
{
    const int fd = eventfd(0, EFD_CLOEXEC);
    assert_in_range(fd, 0, MOST - 1);
    return fd;
}

static int make_hanging(void)
{
    const int fd = make_one();
    hangs[fd] = true;
    return fd;
}

/* A socket that lingers for a day: it has unsent data, and its peer does not read. */
static int make_lingering(int *ret_peer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger day = {.l_onoff = 1, .l_linger = 86400};
    static const char bytes[65536];
    socklen_t n = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, n), 0);
    *ret_peer = accept(listener, NULL, NULL);
    assert_true(*ret_peer >= 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &day, sizeof day), 0);
    close(listener);
    return fd;
}

static void all_are_closed(void **state)
{
    struct gn_closing s = {0};
    int fds[300];
    for (size_t i = 0; i < 300; i++)
        fds[i] = make_one();
    for (size_t i = 0; i < 300; i++)
        gn_closer_add(closer, &s, fds[i]);
    wait_until_closed(&s);
    for (size_t i = 0; i < 300; i++)
        assert_true(fcntl(fds[i], F_GETFD) < 0 && errno == EBADF);
    assert_int_equal(gn_closer_pending(closer), 0);
}

static void lingering_is_cut_short(void **state)
{
    struct gn_closing s = {0};
    int peers[20];
    for (size_t i = 0; i < 20; i++)
        gn_closer_add(closer, &s, make_lingering(&peers[i]));
    wait_until_closed(&s);
    for (size_t i = 0; i < 20; i++)
        close(peers[i]);
}

/* The same in the unread queue of a Unix socket. */
static void lingering_in_a_queue_is_cut_short(void **state)
{
    struct gn_closing s = {0};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {.iov_base = (char[]){"x"}, .iov_len = 1};
    const struct msghdr message = {.msg_iov = &byte,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control};
    int ends[2], peers[20];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (size_t i = 0; i < 20; i++) {
        const int fd = make_lingering(&peers[i]);
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        assert_int_equal(sendmsg(ends[0], &message, 0), 1);
        close(fd); /* the queue has the last reference */
    }
    close(ends[0]);
    gn_closer_add(closer, &s, ends[1]);
    wait_until_closed(&s);
    for (size_t i = 0; i < 20; i++)
        close(peers[i]);
}

static void a_source_that_hangs_holds_up_itself_alone(void **state)
{
    static struct gn_closing bad; /* used until the closer ends */
    struct gn_closing good = {0};
    for (int i = 0; i < 50; i++)
        gn_closer_add(closer, &bad, make_hanging());
    wait_until_hanging(GN_CLOSER_A_SOURCE);
    for (int i = 0; i < 100; i++)
        gn_closer_add(closer, &good, make_one());
    wait_until_closed(&good);
    assert_int_equal(gn_closer_pending_of(closer, &bad), 50);
    assert_int_equal(n_hanging, GN_CLOSER_A_SOURCE);
}

static void hanging_sources_leave_threads(void **state)
{
    static struct gn_closing bad[GN_CLOSER_THREADS / GN_CLOSER_A_SOURCE - 1];
    struct gn_closing good = {0};
    memset(bad, 0, sizeof bad);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int j = 0; j < 5; j++)
            gn_closer_add(closer, &bad[i], make_hanging());
    wait_until_hanging(GN_CLOSER_THREADS - GN_CLOSER_A_SOURCE);
    for (int i = 0; i < 100; i++)
        gn_closer_add(closer, &good, make_one());
    wait_until_closed(&good);
}

static void stop_does_not_wait_for_hanging(void **state)
{
    struct gn_error err;
    static struct gn_closing s;
    struct gn_closer *hung = closer;
    assert_int_equal(gn_closer_start(-1, &closer, &err), 0);
    gn_closer_add(hung, &s, make_hanging());
    wait_until_hanging(1);
    gn_closer_stop(hung, 1);                /* returns although one hangs */
    static struct gn_closer *volatile kept; /* its thread still uses it: not a leak */
    kept = hung;
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (gn_closer_pending(kept))
        usleep(1000);
}

static void news_come_once(void **state)
{
    struct gn_error err;
    struct gn_closing s = {0};
    eventfd_t n = 0;
    struct gn_closer *c;
    const int news = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(gn_closer_start(news, &c, &err), 0);
    gn_closer_await(c);
    for (int i = 0; i < 100; i++)
        gn_closer_add(c, &s, make_one());
    assert_int_equal(eventfd_read(news, &n), 0);
    gn_closer_stop(c, 60000);
    assert_int_equal(n, 1);
    close(news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_closed, start, end),
        cmocka_unit_test_setup_teardown(lingering_is_cut_short, start, end),
        cmocka_unit_test_setup_teardown(lingering_in_a_queue_is_cut_short, start, end),
        cmocka_unit_test_setup_teardown(a_source_that_hangs_holds_up_itself_alone, start, end),
        cmocka_unit_test_setup_teardown(hanging_sources_leave_threads, start, end),
        cmocka_unit_test_setup_teardown(stop_does_not_wait_for_hanging, start, end),
        cmocka_unit_test_setup_teardown(news_come_once, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
