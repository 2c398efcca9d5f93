/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of log_writer.c with a pipe that is read and with one that is not. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/log_writer.h"

static int real_stderr, pipe_ends[2];
static char said[2 << 20];

static int start(void **state)
{
    struct gn_error err;
    (void)state;
    gn_log_init("gantryd", GN_LOG_WARN);
    signal(SIGPIPE, SIG_IGN);
    if (pipe2(pipe_ends, O_CLOEXEC) < 0 ||
        (real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) < 0)
        return -1;
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[1]);
    return gn_log_writer_start(&err);
}

static int end(void **state)
{
    (void)state;
    gn_log_writer_stop(-1);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(pipe_ends[0]);
    return 0;
}

/* Closes the reading end, which ends a write that waits. */
static int end_without_reader(void **state)
{
    close(pipe_ends[0]);
    pipe_ends[0] = -1;
    return end(state);
}

/* Reads until this word has arrived, after the text read before. */
static void read_until(const char *word)
{
    size_t n = strlen(said);
    ssize_t m = 1;
    while (!strstr(said, word) && (m = read(pipe_ends[0], said + n, sizeof said - 1 - n)) > 0) {
        n += (size_t)m;
        said[n] = 0;
    }
    assert_true(m > 0);
}

static void lines_arrive_in_their_order(void **state)
{
    char wanted[64];
    const char *at = said;
    said[0] = 0;
    for (int i = 0; i < 1000; i++)
        gn_log(GN_LOG_WARN, "line %d", i);
    read_until("line 999\n");
    for (int i = 0; i < 1000; i++) {
        snprintf(wanted, sizeof wanted, "gantryd: warn: line %d\n", i);
        assert_int_equal(strncmp(at, wanted, strlen(wanted)), 0);
        at += strlen(wanted);
    }
}

static void an_unread_log_holds_up_nobody(void **state)
{
    const uint64_t before = gn_log_writer_dropped();
    unsigned n_dropped = 0, n_lines = 0, n;
    said[0] = 0;
    for (int i = 0; i < 20000; i++) /* returns although the pipe is not read */
        gn_log(
            GN_LOG_WARN,
            "an unread line of about one hundred bytes, which is what lines mostly are; number %d",
            i);
    const uint64_t lost = gn_log_writer_dropped() - before;
    assert_true(lost > 0);
    read_until("were left out here");
    gn_log(GN_LOG_WARN, "it goes on");
    read_until("it goes on\n");
    for (const char *at = said; *at; at = strchr(at, '\n') + 1) {
        n_lines += strncmp(at, "gantryd: warn: an unread line", 29) == 0;
        n_dropped += sscanf(at, "gantryd: warn: %u lines were left out", &n) == 1 ? n : 0;
    }
    assert_int_equal(n_dropped, lost);
    assert_int_equal(n_lines + n_dropped, 20000);
}

static void the_end_does_not_wait_for_ever(void **state)
{
    for (int i = 0; i < 20000; i++)
        gn_log(
            GN_LOG_WARN,
            "an unread line of about one hundred bytes, which is what lines mostly are; number %d",
            i);
    gn_log_writer_stop(1); /* returns although a write hangs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_arrive_in_their_order, start, end),
        cmocka_unit_test_setup_teardown(an_unread_log_holds_up_nobody, start, end),
        cmocka_unit_test_setup_teardown(the_end_does_not_wait_for_ever, start, end_without_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
