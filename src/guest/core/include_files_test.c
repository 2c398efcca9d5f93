/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the files that a program gives out, asked for over a socket as a worker does. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/core/guest_core.h"
#include "link/frame.h"

static char top[] = "/tmp/gantry-folders-XXXXXX";
static struct gn_session session;
static int worker = -1;

static void make(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Returns the answer's error number; copies the file's text to `text` (64 bytes). */
static int ask(uint32_t number, uint32_t how, const char *name, char *text)
{
    struct {
        struct gn_session_want want;
        char name[256];
    } m = {.want = {number, how}};
    struct gn_frame_reader reader;
    struct gn_session_file file;
    struct gn_frame f;
    snprintf(m.name, sizeof m.name, "%s", name);
    gn_folders_answer(&session, 7, &m, (uint32_t)(sizeof m.want + strlen(m.name) + 1));
    gn_frame_reader_init(&reader, worker);
    assert_int_equal(gn_frame_wait(&reader, 10000, &f), 1);
    assert_int_equal(f.op, GN_SESSION_FILE);
    assert_int_equal(f.seq, 7);
    assert_true(gn_frame_payload(&f, &file, sizeof file));
    assert_int_equal(f.n_fds, file.error == 0 && how == GN_SESSION_WANT_CONTENTS);
    if (f.n_fds && text) {
        int fd = gn_frame_take_fd(&reader, 0);
        ssize_t n = read(fd, text, 63);
        text[n < 0 ? 0 : n] = 0;
        close(fd);
    }
    gn_frame_reader_fini(&reader);
    return (int)file.error;
}

static int open_session(void **state)
{
    int ends[2];
    char folder[128];
    (void)state;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || !mkdtemp(top) || chdir(top))
        return -1;
    session.socket = ends[0];
    worker = ends[1];
    pthread_mutex_init(&session.socket_lock, NULL);
    pthread_mutex_init(&session.folders_lock, NULL);
    gn_list_init(&session.folders);
    snprintf(folder, sizeof folder, "%s/here/deep", top);
    if (mkdir("here", 0700) || mkdir(folder, 0700) || mkdir("there", 0700) ||
        mkdir("blank folder", 0700))
        return -1;
    make("secret.h", "secret");
    make("here/a.h", "a");
    make("here/deep/b.h", "b");
    make("there/c.h", "c");
    make("blank folder/d.h", "d");
    return symlink("../secret.h", "here/link.h") || mkfifo("here/fifo", 0600) || chdir("here") ? -1
                                                                                               : 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static int close_session(void **state)
{
    (void)state;
    close(session.socket);
    close(worker);
    return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void what_lies_in_the_folders_is_given_out(void **state)
{
    char text[64], path[256], folder[128];
    const char *names;
    size_t n;
    (void)state;
    struct gn_folders *f = gn_folders_open(&session);
    snprintf(folder, sizeof folder, "%s/there/", top);
    gn_folders_add(f, folder);
    gn_folders_add(f, "../blank folder");
    gn_folders_add(f, "no/such/folder");
    const uint32_t number = gn_folders_offer(f, &names, &n);
    assert_int_not_equal(number, 0);
    assert_string_equal(names, ""); /* the working directory comes first */
    assert_int_equal(names[n - 1], 0);
    const char *const good[] = {"a.h",         "./a.h",     "deep/b.h",
                                "deep/../a.h", "deep//b.h", "../blank folder/d.h"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, good[i], text), 0);
    assert_string_equal(text, "d");
    snprintf(path, sizeof path, "%s/there/c.h", top);
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, path, text), 0);
    assert_string_equal(text, "c");
    snprintf(path, sizeof path, "%s/here/deep/b.h", top);
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, path, text), 0);
    assert_string_equal(text, "b");
    /* Links are followed. */
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, "link.h", text), 0);
    assert_string_equal(text, "secret");
    assert_int_equal(ask(number, GN_SESSION_WANT_FACTS, "deep", NULL), 0);
    assert_int_equal(ask(number, GN_SESSION_WANT_FACTS, "a.h", NULL), 0);
    gn_folders_close(f);
    /* the build has ended */
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, "a.h", NULL), ENOENT);
}

static void nothing_else_is(void **state)
{
    char path[256];
    const char *names;
    size_t n;
    (void)state;
    struct gn_folders *f = gn_folders_open(&session);
    const uint32_t number = gn_folders_offer(f, &names, &n);
    snprintf(path, sizeof path, "%s/secret.h", top);
    char beside[256], up[256];
    snprintf(beside, sizeof beside, "%s/here-not/x.h", top);
    snprintf(up, sizeof up, "%s/here/../secret.h", top);
    const char *const bad[] = {"/etc/passwd",
                               path,
                               beside,
                               up,
                               "../secret.h",
                               "deep/../../secret.h",
                               "./../secret.h",
                               "deep/./../..//secret.h",
                               "..",
                               "nothing.h",
                               ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_not_equal(ask(number, GN_SESSION_WANT_CONTENTS, bad[i], NULL), 0);
        if (bad[i][0])
            assert_int_not_equal(ask(number, GN_SESSION_WANT_FACTS, bad[i], NULL), 0);
    }
    /* Files that may block a reader, and directories to walk from. */
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, "fifo", NULL), EACCES);
    assert_int_equal(ask(number, GN_SESSION_WANT_CONTENTS, "deep", NULL), EACCES);
    /* the number of another build */
    assert_int_equal(ask(number + 1, GN_SESSION_WANT_CONTENTS, "a.h", NULL), ENOENT);
    gn_folders_close(f);
}

static void a_service_gives_out_nothing(void **state)
{
    const char *names;
    size_t n;
    int here = open(".", O_PATH | O_CLOEXEC);
    (void)state;
    assert_int_equal(chdir("/"), 0);
    struct gn_folders *f = gn_folders_open(&session);
    assert_int_equal(gn_folders_offer(f, &names, &n), 0);
    gn_folders_close(f);
    assert_int_equal(fchdir(here), 0);
    close(here);
}

static void what_is_malformed_is_an_error(void **state)
{
    static const char bytes[] = {1, 0, 0, 0, 1, 0, 0, 0, 'a', '.', 'h'};
    (void)state;
    for (uint32_t n = 0; n <= sizeof bytes; n++) { /* never terminated by a zero */
        struct gn_frame_reader reader;
        struct gn_session_file file;
        struct gn_frame f;
        gn_folders_answer(&session, n, bytes, n);
        gn_frame_reader_init(&reader, worker);
        assert_int_equal(gn_frame_wait(&reader, 10000, &f), 1);
        assert_true(gn_frame_payload(&f, &file, sizeof file));
        assert_int_equal(file.error, EINVAL);
        gn_frame_reader_fini(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_in_the_folders_is_given_out),
        cmocka_unit_test(nothing_else_is),
        cmocka_unit_test(a_service_gives_out_nothing),
        cmocka_unit_test(what_is_malformed_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
