/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's pipe on one side, gantryd's stderr on the other. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/vgpu/worker_log.h"

static struct gn_loop loop;
static struct gn_worker_log worker;
static struct gn_line_limit limit;
static int worker_fd, file, real_stderr;
static char said[1 << 20];

static int start(void **state)
{
    (void)state;
    gn_log_init("gantryd", GN_LOG_WARN);
    file = memfd_create("stderr", MFD_CLOEXEC);
    real_stderr = dup(STDERR_FILENO);
    gn_worker_log_init(&worker, &limit);
    return file < 0 || gn_loop_init(&loop) || gn_worker_log_open(&worker, &loop, &worker_fd);
}

static int end(void **state)
{
    (void)state;
    gn_worker_log_close(&worker);
    gn_worker_log_close(&worker); /* once more does nothing */
    close(worker_fd);
    close(file);
    close(real_stderr);
    gn_loop_fini(&loop);
    return 0;
}

/* Everything that gantryd's stderr got while `work` ran. */
static const char *hear(void (*work)(void))
{
    assert_int_equal(ftruncate(file, 0), 0);
    assert_true(dup2(file, STDERR_FILENO) >= 0 && lseek(STDERR_FILENO, 0, SEEK_SET) == 0);
    work();
    dup2(real_stderr, STDERR_FILENO);
    ssize_t n = pread(file, said, sizeof said - 1, 0);
    assert_true(n >= 0);
    said[n] = 0;
    return said;
}

static void write_all(const char *text)
{
    assert_int_equal(write(worker_fd, text, strlen(text)), strlen(text));
}

static void honest(void)
{
    write_all("gantry-worker: error: vgpu=1 ends: why\ngantry-worker: warn: half ");
    gn_worker_log_drain(&worker);
    write_all("a line\n");
    gn_worker_log_drain(&worker);
}

static void lines_come_whole(void **state)
{
    (void)state;
    assert_string_equal(
        hear(honest), "gantry-worker: error: vgpu=1 ends: why\ngantry-worker: warn: half a line\n");
}

static void forged(void)
{
    write_all("gantryd: warn: all is well\n\033[2J\a\tgantryd: x\r\n");
    gn_worker_log_drain(&worker);
}

static void nobody_speaks_as_gantryd(void **state)
{
    (void)state;
    assert_string_equal(hear(forged),
                        "gantry-worker: not in its own words: gantryd: warn: all is well\n"
                        "gantry-worker: not in its own words: ?[2J??gantryd: x?\n");
}

static void flood(void)
{
    for (int i = 0; i < 5000; i++) {
        /* The pipe is full now and then: lines are lost there, too. */
        if (write(worker_fd, "gantry-worker: error: again\n", 28) < 0)
            gn_worker_log_drain(&worker);
    }
    gn_worker_log_drain(&worker);
}

static void a_flood_is_cut_short(void **state)
{
    unsigned lines = 0;
    (void)state;
    limit = (struct gn_line_limit){0};
    for (const char *at = hear(flood); (at = strchr(at, '\n')); at++)
        lines++;
    assert_in_range(lines, GN_LINES_BURST, 1000);
    assert_true(limit.n_dropped > 1000);
}

static void close_it(void)
{
    char *long_line = malloc(60000);
    memset(long_line, 'x', 60000);
    assert_true(write(worker_fd, long_line, 60000) > 0);
    limit.bucket = (struct gn_bucket){0};
    gn_worker_log_close(&worker);
    free(long_line);
}

static void the_next_line_tells_what_was_left_out(void **state)
{
    unsigned n = 0;
    (void)state;
    const unsigned n_dropped = limit.n_dropped;
    const char *text = hear(close_it);
    const char *newline = strchr(text, '\n');
    assert_int_equal(
        sscanf(text, "gantryd: warn: %u lines of a user's workers were left out here", &n), 1);
    assert_int_equal(n, n_dropped);
    assert_non_null(newline);
    assert_true(strlen(newline + 1) < 1000); /* cut */
    assert_int_equal(worker.source.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole),
        cmocka_unit_test(nobody_speaks_as_gantryd),
        cmocka_unit_test(a_flood_is_cut_short),
        cmocka_unit_test(the_next_line_tells_what_was_left_out),
    };
    return cmocka_run_group_tests(tests, start, end);
}
