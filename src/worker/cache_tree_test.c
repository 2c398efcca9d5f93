/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/cache_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static char work[] = "/tmp/gantry-caches-XXXXXX";
static int at, from, to;
static struct gn_cache_copy rules;

static void make_folder(const char *path)
{
    assert_int_equal(mkdirat(at, path, 0755), 0);
}

static void make_file(const char *path, const char *text, uint64_t bytes, time_t when)
{
    const int fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    if (bytes)
        assert_int_equal(posix_fallocate(fd, 0, (off_t)bytes), 0);
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    if (when)
        assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static const char *text_of(const char *path)
{
    static char text[64];
    const int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NULL;
    text[n] = 0;
    return text;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(work, sizeof work, "/tmp/gantry-caches-XXXXXX");
    if (!mkdtemp(work) || (at = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    make_folder("new");
    make_folder("kept");
    from = openat(at, "new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to = openat(at, "kept", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rules = (struct gn_cache_copy){
        .uid = geteuid(), .gid = getegid(), .largest_bytes = MIB, .most_bytes = 4 * MIB};
    return from < 0 || to < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char name[64];
    (void)state;
    close(from);
    close(to);
    const int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%s", work + 5);
    const int rc = gn_cache_remove(parent, name);
    close(parent);
    close(at);
    return rc;
}

static void files_and_folders_are_copied(void **state)
{
    struct stat st;
    (void)state;
    make_folder("new/a");
    make_folder("new/a/b");
    make_file("new/a/b/k.so", "code", 0, 1000);
    make_file("new/x", "x", 0, 0);
    make_folder("kept/a");
    make_file("kept/a/old", "old", 0, 0);
    make_file("kept/x", "older", 0, 0);
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_int_equal(rules.n_files, 2);
    assert_string_equal(text_of("kept/a/b/k.so"), "code");
    assert_string_equal(text_of("kept/a/old"), "old");
    assert_string_equal(text_of("kept/x"), "x");
    assert_int_equal(fstatat(at, "kept/a/b/k.so", &st, 0), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000);
    assert_int_equal(st.st_mode & 0777, 0640);
}

/* Links, to a file of another's and to a folder, on either side; pipes; devices; what is too
 * large. */
static void nothing_else_is_copied_or_followed(void **state)
{
    char secret[128];
    (void)state;
    make_folder("others");
    make_file("others/secret", "secret", 0, 0);
    snprintf(secret, sizeof secret, "%s/others/secret", work);
    assert_int_equal(symlinkat(secret, from, "link"), 0);
    assert_int_equal(symlinkat("../others", from, "folder"), 0);
    assert_int_equal(mkfifoat(from, "pipe", 0600), 0);
    make_file("new/large", "", 2 * MIB, 0);
    /* In the way on the other side, where only this process writes: a link all the same. */
    assert_int_equal(symlinkat("../others/secret", to, "f"), 0);
    make_file("new/f", "mine", 0, 0);
    assert_int_equal(symlinkat("../others", to, "d"), 0);
    make_folder("new/d");
    make_file("new/d/g", "mine", 0, 0);
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_int_equal(rules.n_files, 2);
    for (const char *const *name = (const char *const[]){"link", "folder", "pipe", "large", NULL};
         *name; name++)
        assert_int_equal(faccessat(to, *name, F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_string_equal(text_of("others/secret"), "secret");
    assert_string_equal(text_of("kept/f"), "mine");
    assert_string_equal(text_of("kept/d/g"), "mine");
    assert_null(text_of("others/g"));
}

/* A file with many names is copied as many files. */
static void all_of_it_is_bounded(void **state)
{
    char name[16];
    (void)state;
    make_file("new/0", "", MIB, 0);
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(linkat(from, "0", from, name, 0), 0);
    }
    assert_int_equal(gn_cache_copy(from, to, &rules), -ENOSPC);
    assert_int_equal(rules.n_files, 4);
    assert_int_equal(rules.bytes, 4 * MIB);
}

static void what_is_there_is_not_copied_again(void **state)
{
    (void)state;
    make_file("new/a", "once", 0, 1000);
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    make_file("kept/a", "same", 0, 1000);
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_int_equal(rules.n_files, 1);
    assert_string_equal(text_of("kept/a"), "same");
    make_file("new/a", "once more", 0, 1000);
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_string_equal(text_of("kept/a"), "once more");
}

static void what_was_removed_above_is_removed(void **state)
{
    (void)state;
    make_file("kept/gone", "x", 0, 0);
    make_folder("kept/folder");
    make_file("kept/folder/gone", "x", 0, 0);
    if (mknodat(from, "gone", S_IFCHR, makedev(0, 0)) < 0 ||
        mknodat(from, "folder", S_IFCHR, makedev(0, 0)) < 0)
        skip(); /* only root has layers */
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_null(text_of("kept/gone"));
    assert_int_equal(faccessat(to, "folder", F_OK, 0), -1);
}

static void what_was_just_written_is_left_for_later(void **state)
{
    (void)state;
    make_file("new/fresh", "half of", 0, 0);
    rules.older_than.tv_sec = 1; /* its change is later than that */
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_null(text_of("kept/fresh"));
    rules.older_than.tv_sec = 0;
    assert_int_equal(gn_cache_copy(from, to, &rules), 0);
    assert_string_equal(text_of("kept/fresh"), "half of");
}

static void what_was_written_first_goes_first(void **state)
{
    char path[32];
    (void)state;
    make_folder("kept/a");
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "kept/a/%d", i);
        make_file(path, "x", MIB, 1000 + i);
    }
    gn_cache_trim(to, 3 * MIB + MIB / 2);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "kept/a/%d", i);
        assert_int_equal(text_of(path) != NULL, i >= 5);
    }
    gn_cache_trim(to, 0);
    assert_int_equal(faccessat(to, "a", F_OK, 0), -1);
    assert_int_equal(faccessat(at, "kept", F_OK, 0), 0);
}

static void caches_of_users_who_stay_away_are_removed(void **state)
{
    static const char *const names[] = {"@1000.kept", "alice@7", "@1001.kept", "AB",
                                        "alice.1000", "@x",      "someone@"};
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        make_folder(names[i]);
        if (i != 2)
            assert_int_equal(utimensat(at, names[i], old, 0), 0);
    }
    make_file("alice@7.lock", "", 0, 0);
    const int used = openat(at, "alice@7.lock", O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(used, LOCK_SH), 0);
    assert_int_equal(gn_cache_sweep(at, 2000), 1);
    assert_int_equal(faccessat(at, "@1000.kept", F_OK, 0), -1);
    for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(faccessat(at, names[i], F_OK, 0), 0);
    close(used);
    assert_int_equal(gn_cache_sweep(at, 2000), 1);
    assert_int_equal(faccessat(at, "alice@7.lock", F_OK, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_and_folders_are_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_else_is_copied_or_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_of_it_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_there_is_not_copied_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_removed_above_is_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_just_written_is_left_for_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_written_first_goes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(caches_of_users_who_stay_away_are_removed, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
