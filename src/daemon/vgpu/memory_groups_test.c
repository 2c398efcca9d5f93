/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to folders in the place of the kernel's. tests/walls uses real cgroups.
 */
#include "daemon/vgpu/memory_groups.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

static char work[32], self[64], mounts[64], text[256];
static struct gn_memory_groups g;

static void put(const char *path, const char *contents)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", work, path);
    FILE *f = fopen(full, "we");
    assert_non_null(f);
    fputs(contents, f);
    fclose(f);
}

static const char *get(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", work, path);
    FILE *f = fopen(full, "re");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return f ? text : NULL;
}

static void make(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", work, path);
    assert_int_equal(mkdir(full, 0755), 0);
}

static bool there(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", work, path);
    return access(full, F_OK) == 0;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(work, sizeof work, "/tmp/gantry-groups-XXXXXX");
    if (!mkdtemp(work))
        return -1;
    snprintf(self, sizeof self, "%s/self", work);
    snprintf(mounts, sizeof mounts, "%s/cgroup", work);
    make("cgroup");
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *root_name(const char *own, const char *rest)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/gantry-%d%s", own, (int)getpid(), rest);
    return path;
}

static void version_1_is_found_by_its_controller(void **state)
{
    char folder[PATH_MAX];
    (void)state;
    put("self", "9:name=systemd:/x\n4:cpu,memory:/a/b\n3:notmemory:/c\n0::/y\n");
    make("cgroup/memory");
    make("cgroup/memory/a");
    make("cgroup/memory/a/b");
    put("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    gn_memory_groups_init(&g, self, mounts);
    assert_true(g.have);
    assert_false(g.v2);
    assert_true(there(root_name("cgroup/memory/a/b", "")));
    struct gn_memory_group group = gn_memory_group_name(&g, 500, folder, sizeof folder);
    assert_int_equal(group.number, 1);
    assert_string_equal(folder + strlen(work) + 1, root_name("cgroup/memory/a/b", "/1"));
    assert_false(there(root_name("cgroup/memory/a/b", "/1"))); /* its worker makes it */
    make(root_name("cgroup/memory/a/b", "/1"));
    gn_memory_group_remove(&g, &group);
    assert_int_equal(group.number, 0);
    gn_memory_groups_fini(&g);
    assert_false(there(root_name("cgroup/memory/a/b", "")));
}

static void start_version_1(void)
{
    put("self", "4:memory:/\n");
    make("cgroup/memory");
    put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    gn_memory_groups_init(&g, self, mounts);
    assert_true(g.have);
}

static void groups_are_removed_by_a_thread_and_at_the_end(void **state)
{
    char folder[PATH_MAX];
    (void)state;
    start_version_1();
    struct gn_memory_group never = gn_memory_group_name(&g, 500, folder, sizeof folder);
    gn_memory_group_remove(&g, &never); /* its worker has not come to it */
    for (int i = 0; i < 200; i++) {
        struct gn_memory_group group = gn_memory_group_name(&g, 500, folder, sizeof folder);
        assert_int_equal(mkdir(folder, 0755), 0);
        gn_memory_group_remove(&g, &group);
        assert_int_equal(group.number, 0);
    }
    while (access(folder, F_OK) == 0)
        usleep(1000);
    struct gn_memory_group last = gn_memory_group_name(&g, 500, folder, sizeof folder);
    assert_int_equal(last.number, 202);
    assert_int_equal(mkdir(folder, 0755), 0); /* a worker that gantryd does not know to be over */
    gn_memory_groups_fini(&g);
    assert_false(there(root_name("cgroup/memory", "")));
}

static void bounds_are_raised_and_never_lowered(void **state)
{
    char folder[PATH_MAX], limit[PATH_MAX];
    (void)state;
    start_version_1();
    struct gn_memory_group group = gn_memory_group_name(&g, 500, folder, sizeof folder);
    make(root_name("cgroup/memory", "/1"));
    snprintf(limit, sizeof limit, "%s", root_name("cgroup/memory", "/1/memory.limit_in_bytes"));
    gn_memory_group_raise(&g, &group, 700); /* that could not be written, and is tried again */
    put(limit, "");
    gn_memory_group_raise(&g, &group, 700);
    assert_string_equal(get(limit), "700\n");
    put(limit, "");
    gn_memory_group_raise(&g, &group, 600);
    gn_memory_group_raise(&g, &group, 0);
    assert_string_equal(get(limit), "");
    /* One without a bound gets none. */
    struct gn_memory_group free_one = gn_memory_group_name(&g, 0, folder, sizeof folder);
    make(root_name("cgroup/memory", "/2"));
    put(root_name("cgroup/memory", "/2/memory.limit_in_bytes"), "");
    gn_memory_group_raise(&g, &free_one, 700);
    assert_string_equal(get(root_name("cgroup/memory", "/2/memory.limit_in_bytes")), "");
}

static void what_the_kernel_has_ended_is_known(void **state)
{
    char folder[PATH_MAX], control[PATH_MAX];
    (void)state;
    start_version_1();
    const struct gn_memory_group group = gn_memory_group_name(&g, 500, folder, sizeof folder),
                                 none = {0, 0};
    make(root_name("cgroup/memory", "/1"));
    snprintf(control, sizeof control, "%s", root_name("cgroup/memory", "/1/memory.oom_control"));
    assert_false(gn_memory_group_overflowed(&g, &group));
    put(control, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    assert_false(gn_memory_group_overflowed(&g, &group));
    put(control, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    assert_true(gn_memory_group_overflowed(&g, &group));
    assert_false(gn_memory_group_overflowed(&g, &none));
}

/* Names of others' groups, of a gantryd that lives and of none are left alone. */
static void groups_of_a_killed_gantryd_are_removed(void **state)
{
    char live[64];
    (void)state;
    put("self", "4:memory:/\n");
    make("cgroup/memory");
    put("cgroup/memory/memory.limit_in_bytes", "1\n");
    snprintf(live, sizeof live, "cgroup/memory/gantry-%d", (int)getppid());
    const char *const stay[] = {live, "cgroup/memory/gantry-other", "cgroup/memory/gantry-",
                                "cgroup/memory/gantry-1000000000x"};
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        make(stay[i]);
    make("cgroup/memory/gantry-1000000000"); /* more than any process's number */
    make("cgroup/memory/gantry-1000000000/7");
    gn_memory_groups_init(&g, self, mounts);
    assert_false(there("cgroup/memory/gantry-1000000000"));
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        assert_true(there(stay[i]));
    gn_memory_groups_fini(&g);
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        assert_true(there(stay[i]));
}

static void version_2_wants_to_be_delegated(void **state)
{
    char folder[PATH_MAX], own[PATH_MAX];
    (void)state;
    put("self", "0::/a\n");
    make("cgroup/a");
    snprintf(own, sizeof own, "%s/cgroup/a", work);
    gn_memory_groups_init(&g, self, mounts);
    assert_false(g.have);
    put("cgroup/a/cgroup.controllers", "cpu memory pids\n");
    put("cgroup/a/memory.max", "max\n");
    gn_memory_groups_init(&g, self, mounts);
    assert_false(g.have);
    if (setxattr(own, "user.delegate", "1", 1, 0) < 0)
        skip(); /* no such attributes in /tmp here */
    put("cgroup/a/cgroup.subtree_control", "");
    make("cgroup/a/gantry-main");
    put("cgroup/a/gantry-main/cgroup.procs", "");
    gn_memory_groups_init(&g, self, mounts);
    /* The new group's own file is missing here, as the kernel would have made it. */
    assert_false(g.have);
    assert_string_equal(get("cgroup/a/cgroup.subtree_control"), "-memory\n");
    assert_string_equal(get("cgroup/a/gantry-main/cgroup.procs"), "0\n");
    assert_false(there(root_name("cgroup/a", "")));
    assert_int_equal(gn_memory_group_name(&g, 1, folder, sizeof folder).number, 0);
    assert_string_equal(folder, "");
}

static void without_a_group_nothing_happens(void **state)
{
    char folder[PATH_MAX];
    (void)state;
    gn_memory_groups_init(&g, "/nonexistent", mounts);
    assert_false(g.have);
    put("self", "4:memory:/not/there\n");
    gn_memory_groups_init(&g, self, mounts);
    assert_false(g.have);
    put("self", "4:memory:/..\n"); /* of another cgroup namespace: no group is there */
    make("cgroup/memory");
    gn_memory_groups_init(&g, self, mounts);
    assert_false(g.have);
    assert_false(there(root_name("cgroup", "")));
    struct gn_memory_group none = gn_memory_group_name(&g, 1, folder, sizeof folder);
    assert_int_equal(none.number, 0);
    gn_memory_group_raise(&g, &none, 1);
    gn_memory_group_remove(&g, &none);
    gn_memory_groups_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_1_is_found_by_its_controller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_are_raised_and_never_lowered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_are_removed_by_a_thread_and_at_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_the_kernel_has_ended_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_of_a_killed_gantryd_are_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_wants_to_be_delegated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_group_nothing_happens, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
