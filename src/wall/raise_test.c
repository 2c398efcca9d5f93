/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests all walls together, around a child that is forked as a worker is. Walls that this machine
 * cannot have are skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "wall/parts.h"

#define NOBODY 65534

static char folder[] = "/tmp/gantry-wall-XXXXXX";
static char cache[64], outside[64];

struct child {
    struct gn_wall_report report;
    int result;
};

/*
 * Raises the available walls in a child that lives as a worker does, calls work() there, and
 * returns its findings.
 */
static struct child behind_walls(enum gn_wall_mode mode, uint64_t data_bytes,
                                 int (*work)(const struct gn_wall_report *))
{
    struct child c = {{0, 0}, -1};
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = gn_wall_spawn(mode); /* as gantryd starts a template, but without exec */
    if (pid == 0) {
        struct gn_wall_forker f;
        if (gn_wall_forker_init(&f, mode))
            _exit(1);
        pid_t worker = gn_wall_fork(&f);
        if (worker == 0) {
            static const char *const config_paths[] = {"/etc/passwd", NULL};
            static const char *const cache_variables[] = {"AN_APIS_CACHE", NULL};
            struct gn_wall_plan plan = {.mode = mode,
                                        .change_user = geteuid() == 0,
                                        .uid = NOBODY,
                                        .gid = NOBODY,
                                        .cache = cache,
                                        .config_paths = config_paths,
                                        .cache_variables = cache_variables,
                                        .data_bytes = data_bytes};
            struct gn_error err;
            gn_wall_follow(&f);
            int rc = gn_wall_raise(&plan, &c.report, &err);
            c.result = rc ? rc : work(&c.report);
            _exit(write(ends[1], &c, sizeof c) == sizeof c ? 0 : 1);
        }
        waitpid(worker, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    assert_true(pid > 0);
    close(ends[1]);
    ssize_t n = read(ends[0], &c, sizeof c);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(n, sizeof c);
    return c;
}

static int opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int files(const struct gn_wall_report *r)
{
    char path[4096];
    if (!(r->have & GN_WALL_FILES))
        return 0;
    if (opens("/etc/shadow", O_RDONLY) == 0 || opens("/etc/group", O_RDONLY) == 0)
        return 1;
    if (opens("/etc/passwd", O_RDONLY) != 0 || opens("/etc/passwd", O_RDWR) == 0)
        return 8;
    if (opens(outside, O_RDONLY) == 0)
        return 2;
    if (opens("/usr/bin/env", O_RDONLY) != 0)
        return 3;
    if (opens("/usr/bin", O_RDONLY | O_DIRECTORY) != 0 || opens("/dev/null", O_RDWR) != 0)
        return 4;
    if (opens("/proc/1/environ", O_RDONLY) == 0)
        return 5;
    snprintf(path, sizeof path, "%s/made", getenv("AN_APIS_CACHE"));
    if (opens(path, O_RDWR | O_CREAT) != 0 || unlink(path) != 0)
        return 6;
    snprintf(path, sizeof path, "%s/made", getenv("TMPDIR"));
    if (opens(path, O_RDWR | O_CREAT) != 0)
        return 7;
    return 0;
}

static void only_what_a_driver_needs_opens(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_AVAILABLE, 0, files);
    if (!(c.report.have & GN_WALL_FILES))
        skip();
    assert_int_equal(c.result, 0);
    assert_true(c.report.landlock_abi >= 1);
    /* Its temporary file ended with it, or lies in its tenant's folder. */
    char path[128];
    snprintf(path, sizeof path, "%s/made", "/tmp");
    assert_int_not_equal(access(path, F_OK), 0);
}

static int scratch(const struct gn_wall_report *r)
{
    if (!(r->have & GN_WALL_SCRATCH))
        return 0;
    /* Only the cache and the worker's own shared memory are visible. */
    DIR *dir = opendir("/tmp");
    if (!dir)
        return 1;
    for (const struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "cache") != 0 && strcmp(e->d_name, "shm") != 0)
            return 2;
    closedir(dir);
    if (access(folder, F_OK) == 0)
        return 3;
    return strcmp(getenv("TMPDIR"), "/tmp") == 0 ? 0 : 4;
}

static void temporary_files_are_its_own(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_AVAILABLE, 0, scratch);
    if (!(c.report.have & GN_WALL_SCRATCH))
        skip();
    assert_int_equal(c.result, 0);
}

static int privileges(const struct gn_wall_report *r)
{
    char line[128];
    int wrong = 0;
    if (geteuid() == 0 || getuid() == 0)
        return 1;
    FILE *f = fopen("/proc/self/status", "re");
    if (!f)
        return 2;
    while (fgets(line, sizeof line, f)) {
        unsigned long long caps = 0;
        if (strncmp(line, "Cap", 3) == 0 && sscanf(line + 7, "%llx", &caps) == 1 && caps)
            wrong = 3;
        if (strncmp(line, "NoNewPrivs:\t0", 13) == 0)
            wrong = 4;
        if (strncmp(line, "Seccomp:\t0", 10) == 0 && (r->have & GN_WALL_SYSCALLS))
            wrong = 5;
    }
    fclose(f);
    return wrong;
}

static void no_privilege_is_left(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_AVAILABLE, 0, privileges);
    if (!(c.report.have & GN_WALL_PRIVILEGES))
        skip();
    assert_int_equal(c.result, 0);
}

static int fork_all(const struct gn_wall_report *r)
{
    int n = 0;
    if (!(r->have & GN_WALL_NUMBER))
        return 0;
    for (; n < 100000; n++) {
        pid_t pid = fork();
        if (pid < 0)
            return errno == EAGAIN && n > 16 ? 0 : 1;
        if (pid == 0) {
            pause();
            _exit(0);
        }
    }
    return 2;
}

static void a_fork_bomb_is_small(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_AVAILABLE, 0, fork_all);
    if (!(c.report.have & GN_WALL_NUMBER))
        skip();
    assert_int_equal(c.result, 0);
    if (!(c.report.have & GN_WALL_PROCESSES))
        skip();
    /*
     * The test ends only if the others ended with their first process: each holds the pipe's other
     * end open.
     */
}

static int fill_memory(const struct gn_wall_report *r)
{
    uint64_t total = 0;
    (void)r;
    for (void *p; (p = malloc(16u << 20)); total += 16u << 20)
        if (total > (UINT64_C(1) << 30))
            return 1;
    if (total < (UINT64_C(64) << 20))
        return 2;
    /* Page tables of memory that is only read, and the stack. */
    if (mmap(NULL, (size_t)1 << 46, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0) != MAP_FAILED)
        return 3;
    struct rlimit stack;
    return getrlimit(RLIMIT_STACK, &stack) || stack.rlim_max > (UINT64_C(64) << 20) ? 4 : 0;
}

static void memory_is_bounded(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    assert_int_equal(behind_walls(GN_WALL_AVAILABLE, UINT64_C(512) << 20, fill_memory).result, 0);
}

static int alone(const struct gn_wall_report *r)
{
    if (!(r->have & GN_WALL_PROCESSES))
        return 0;
    return getpid() == 1 && kill(-1, 0) < 0 && errno == ESRCH ? 0 : 1;
}

static void other_processes_are_invisible(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_AVAILABLE, 0, alone);
    if (!(c.report.have & GN_WALL_PROCESSES))
        skip();
    assert_int_equal(c.result, 0);
}

static int anything(const struct gn_wall_report *r)
{
    return (int)r->have;
}

static void none_is_none(void **state)
{
    (void)state;
    struct child c = behind_walls(GN_WALL_NONE, 0, anything);
    assert_int_equal(c.report.have, 0);
    assert_int_equal(c.result, 0);
}

static void names_are_words(void **state)
{
    char text[160];
    (void)state;
    gn_wall_names(GN_WALL_FILES | GN_WALL_PROCESSES, text, sizeof text);
    assert_string_equal(text, "files, processes");
    gn_wall_names(0, text, sizeof text);
    assert_string_equal(text, "");
    gn_wall_names(GN_WALL_ALL, text, 8); /* too small: truncated, no overflow */
    assert_int_equal(strlen(text), 7);
}

static int make_folders(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(outside, sizeof outside, "%s/outside", folder);
    int fd = open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 || close(fd) || mkdir(cache, 0700))
        return -1;
    if (geteuid() == 0 && chown(cache, NOBODY, NOBODY))
        return -1;
    char tmp[128];
    snprintf(tmp, sizeof tmp, "%s/tmp", cache);
    return mkdir(tmp, 0777);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static int remove_folders(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_words),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(only_what_a_driver_needs_opens),
        cmocka_unit_test(temporary_files_are_its_own),
        cmocka_unit_test(no_privilege_is_left),
        cmocka_unit_test(other_processes_are_invisible),
        cmocka_unit_test(a_fork_bomb_is_small),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
