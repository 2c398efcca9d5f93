/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel cache is kept within its bound, oldest out, whatever its owner has made of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/trim.h"

#define KIB 1024u

static char outside[64]; /* a folder beside the one that is trimmed, in one of their own */

static int make(void **state)
{
    static int fd;
    char path[96];
    snprintf(outside, sizeof outside, "/tmp/gantry-trim-XXXXXX");
    assert_non_null(mkdtemp(outside));
    snprintf(path, sizeof path, "%s/cache", outside);
    assert_int_equal(mkdir(path, 0700), 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    *state = &fd;
    return 0;
}

static int unmake(void **state)
{
    char command[128];
    close(*(int *)*state);
    snprintf(command, sizeof command, "rm -rf %s", outside);
    return system(command);
}

static void put_file(int at, const char *name, uint32_t bytes, time_t used_s)
{
    static const char some[64 * KIB];
    const struct timespec used[2] = {{.tv_sec = used_s}, {.tv_sec = used_s}};
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (uint32_t n = 0; n < bytes; n += sizeof some)
        assert_true(write(fd, some, bytes - n < sizeof some ? bytes - n : sizeof some) > 0);
    assert_int_equal(fsync(fd), 0); /* so that what it takes is known */
    close(fd);
    assert_int_equal(utimensat(at, name, used, 0), 0);
}

static bool is_there(int at, const char *name)
{
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_what_fits_stays(void **state)
{
    int fd = *(int *)*state;
    struct gn_trimmed sum;
    put_file(fd, "one", 64 * KIB, 100);
    assert_int_equal(gn_trim(fd, 1024 * KIB, &sum), 0);
    assert_int_equal(sum.n_removed, 0);
    assert_true(sum.before_bytes >= 64 * KIB && sum.before_bytes == sum.after_bytes);
    assert_true(is_there(fd, "one"));
}

static void test_the_oldest_goes_and_its_empty_folder(void **state)
{
    int fd = *(int *)*state;
    struct gn_trimmed sum;
    assert_int_equal(mkdirat(fd, "A", 0700), 0);
    assert_int_equal(mkdirat(fd, "A/old", 0700), 0);
    assert_int_equal(mkdirat(fd, "A/new", 0700), 0);
    put_file(fd, "A/old/program", 256 * KIB, 100);
    put_file(fd, "A/new/program", 256 * KIB, 300);
    put_file(fd, "other", 256 * KIB, 200);
    assert_int_equal(gn_trim(fd, 640 * KIB, &sum), 0);
    assert_int_equal(sum.n_removed, 1);
    assert_true(sum.after_bytes <= 640 * KIB);
    assert_false(is_there(fd, "A/old"));
    assert_true(is_there(fd, "A/new/program") && is_there(fd, "other"));
    assert_int_equal(gn_trim(fd, 0, &sum), 0);
    assert_false(is_there(fd, "A/new") || is_there(fd, "other"));
    assert_true(is_there(fd, "A")); /* a driver makes these once */
}

static void test_reading_counts_as_use(void **state)
{
    int fd = *(int *)*state;
    struct gn_trimmed sum;
    const struct timespec read_lately[2] = {{.tv_sec = 900}, {.tv_nsec = UTIME_OMIT}};
    put_file(fd, "read", 256 * KIB, 100);
    put_file(fd, "written", 256 * KIB, 500);
    assert_int_equal(utimensat(fd, "read", read_lately, 0), 0);
    assert_int_equal(gn_trim(fd, 300 * KIB, &sum), 0);
    assert_true(is_there(fd, "read"));
    assert_false(is_there(fd, "written"));
}

static void test_links_lead_nowhere(void **state)
{
    int fd = *(int *)*state, above = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct gn_trimmed sum;
    assert_int_equal(mkdirat(above, "others", 0700), 0);
    put_file(above, "others/file", 256 * KIB, 1);
    assert_int_equal(symlinkat("../others", fd, "folder"), 0);
    assert_int_equal(symlinkat("../others/file", fd, "file"), 0);
    assert_int_equal(gn_trim(fd, 0, &sum), 0);
    assert_true(is_there(above, "others/file"));
    assert_true(sum.before_bytes < 256 * KIB);
    close(above);
}

static void test_folders_without_end_go(void **state)
{
    int fd = *(int *)*state, at = dup(fd);
    struct gn_trimmed sum;
    put_file(fd, "good", 4 * KIB, 100);
    for (int depth = 0; depth < 30; depth++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    put_file(at, "hidden", 256 * KIB, 100);
    close(at);
    assert_int_equal(gn_trim(fd, 1024 * KIB, &sum), 0);
    assert_true(is_there(fd, "good"));
    assert_false(is_there(fd, "d/d/d/d/d/d/d/d/d/d/d/d/d/d"));
}

static void test_files_without_number_go(void **state)
{
    int fd = *(int *)*state;
    struct gn_trimmed sum;
    char name[32];
    uint32_t n = 0;
    for (uint32_t i = 0; i < GN_TRIM_MOST_FILES + 100; i++) {
        snprintf(name, sizeof name, "%u", i);
        int file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        close(file);
    }
    assert_int_equal(gn_trim(fd, UINT64_MAX, &sum), 0);
    DIR *d = fdopendir(dup(fd));
    assert_non_null(d);
    rewinddir(d);
    while (readdir(d))
        n++;
    closedir(d);
    assert_int_equal(n - 2, GN_TRIM_MOST_FILES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_fits_stays, make, unmake),
        cmocka_unit_test_setup_teardown(test_the_oldest_goes_and_its_empty_folder, make, unmake),
        cmocka_unit_test_setup_teardown(test_reading_counts_as_use, make, unmake),
        cmocka_unit_test_setup_teardown(test_links_lead_nowhere, make, unmake),
        cmocka_unit_test_setup_teardown(test_folders_without_end_go, make, unmake),
        cmocka_unit_test_setup_teardown(test_files_without_number_go, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
