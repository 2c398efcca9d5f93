/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the descriptors of a program, and of a program without the first three. Each case runs in a
 * child; its exit status says which line failed.
 */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define NEED(what) need((what), __LINE__)

static void need(bool is, int line)
{
    if (!is)
        _exit(line % 250 + 1);
}

static void in_child(void (*does)(void))
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        does();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void are_free(void)
{
    for (int fd = 0; fd < 3; fd++)
        NEED(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
}

/* Returns a socket with a message in it that carries two descriptors. */
static int something_comes(void)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = {.space = {0}};
    char byte = 'x';
    int ends[2];
    NEED(!gn_fd_pair(AF_UNIX, SOCK_STREAM, ends) && ends[0] > 2 && ends[1] > 2);
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    msg.msg_control = &control;
    msg.msg_controllen = sizeof control;
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(c), ends, sizeof ends);
    NEED(sendmsg(ends[0], &msg, 0) == 1);
    close(ends[0]);
    return ends[1];
}

static void receive(int from, int ret[2])
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char byte;
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    msg.msg_control = &control;
    msg.msg_controllen = sizeof control;
    NEED(gn_fd_receive(from, &msg, 0) == 1);
    memcpy(ret, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
    close(from);
}

static void of_a_program(void)
{
    int came[2];
    gn_fd_in_program();
    NEED(gn_fd_socket(AF_UNIX, SOCK_STREAM, 0) > 2);
    NEED(gn_fd_event(0) > 2);
    NEED(gn_fd_timer(CLOCK_MONOTONIC, 0) > 2);
    NEED(gn_fd_epoll() > 2);
    NEED(gn_fd_memory("test", 0) > 2);
    NEED(gn_fd_open("/dev/null", O_RDONLY) > 2);
    NEED(gn_fd_duplicate(gn_fd_event(0)) > 2);
    NEED(gn_fd_open("/is/not/there", O_RDONLY) == -1 && errno == ENOENT);
    receive(something_comes(), came);
    NEED(came[0] > 2 && came[1] > 2);
    are_free();
    for (int fd = 0; fd < 3; fd++)
        NEED(!gn_fd_is_open(fd));
}

static void test_a_programs_lie_above_two(void **state)
{
    (void)state;
    in_child(of_a_program);
}

static void of_gantrys_own(void)
{
    NEED(gn_fd_event(0) == 0);
    NEED(gn_fd_is_open(0));
}

static void test_gantrys_own_processes_have_all(void **state)
{
    (void)state;
    in_child(of_gantrys_own);
}

static _Atomic bool ends;

static void *writes(void *arg)
{
    while (!ends)
        for (int fd = 0; fd < 3; fd++)
            NEED(write(fd, "x", 1) < 0 && errno == EBADF);
    return arg;
}

static void *makes(void *arg)
{
    int came[2];
    for (int i = 0; i < 2000; i++) {
        close(gn_fd_event(0));
        close(gn_fd_memory("test", 0));
        receive(something_comes(), came);
        close(came[0]);
        close(came[1]);
    }
    return arg;
}

/* Two threads make descriptors while a third one writes to the first three numbers. */
static void beside_who_writes(void)
{
    pthread_t writer, makers[2];
    gn_fd_in_program();
    NEED(!pthread_create(&writer, NULL, writes, NULL));
    for (int i = 0; i < 2; i++)
        NEED(!pthread_create(&makers[i], NULL, makes, NULL));
    for (int i = 0; i < 2; i++)
        pthread_join(makers[i], NULL);
    ends = true;
    pthread_join(writer, NULL);
    are_free();
}

static void test_nothing_is_written_anywhere(void **state)
{
    (void)state;
    in_child(beside_who_writes);
}

/* The program closes one of Gantry's descriptors and gets a file of its own under the number. */
static void replace_behind(int fd)
{
    int own[2];
    NEED(!pipe(own) && dup2(own[0], fd) == fd);
    close(own[0]);
    close(own[1]);
}

static void close_behind(void)
{
    int pair[2], more[2];
    gn_fd_in_program();
    NEED(!gn_fd_pair(AF_UNIX, SOCK_STREAM, pair) && !gn_fd_pair(AF_UNIX, SOCK_STREAM, more));
    const uint64_t first = gn_fd_serial(pair[0]), second = gn_fd_serial(pair[1]);
    NEED(first && second && first != second);
    NEED(gn_fd_is_ours(pair[0]) && !gn_fd_is_ours(-1) && !gn_fd_serial(-1));

    close(pair[0]);
    NEED(!gn_fd_is_ours(pair[0]));
    replace_behind(pair[0]);
    NEED(!gn_fd_is_ours(pair[0]) && !gn_fd_serial(pair[0]) && !gn_fd_signal(pair[0]));
    NEED(gn_fd_replace(more[0], pair[0]) < 0 && errno == EBADF);
    gn_fd_close(pair[0]);
    NEED(fcntl(pair[0], F_GETFD) >= 0);

    NEED(!gn_fd_replace(more[0], pair[1]));
    NEED(gn_fd_is_ours(pair[1]) && gn_fd_serial(pair[1]) != second);
    gn_fd_close(pair[1]);
    NEED(fcntl(pair[1], F_GETFD) < 0);
}

static void test_a_program_closes_and_replaces_them(void **state)
{
    (void)state;
    in_child(close_behind);
}

/* Two libraries of a program have a table each: in this library's, the number was another file. */
static void adopt(void)
{
    gn_fd_in_program();
    const int fd = gn_fd_memory("test", 0);
    close(fd);
    replace_behind(fd);
    NEED(!gn_fd_is_ours(fd));
    gn_fd_adopt(fd);
    NEED(gn_fd_is_ours(fd));
    gn_fd_close(fd);
    NEED(fcntl(fd, F_GETFD) < 0);
}

static void test_one_library_adopts_from_another(void **state)
{
    (void)state;
    in_child(adopt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_programs_lie_above_two),
        cmocka_unit_test(test_gantrys_own_processes_have_all),
        cmocka_unit_test(test_nothing_is_written_anywhere),
        cmocka_unit_test(test_a_program_closes_and_replaces_them),
        cmocka_unit_test(test_one_library_adopts_from_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
