/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a vGPU: every pair of the table is possible, and none from another state. */
#include "vgpu/core/life.h"

#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N_STATES (GN_VGPU_ENDED + 1)

static const struct {
    enum gn_vgpu_state from, to;
} table[] = {
    {GN_VGPU_OWNED, GN_VGPU_ARRIVING}, {GN_VGPU_OWNED, GN_VGPU_SAVED},
    {GN_VGPU_OWNED, GN_VGPU_ENDED},    {GN_VGPU_ARRIVING, GN_VGPU_OWNED},
    {GN_VGPU_ARRIVING, GN_VGPU_AWAY},  {GN_VGPU_SAVED, GN_VGPU_OWNED},
    {GN_VGPU_SAVED, GN_VGPU_AWAY},     {GN_VGPU_SAVED, GN_VGPU_ENDED},
};

static void test_changes_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(table); i++)
        for (int now = 0; now < N_STATES; now++) {
            struct gn_vgpu_life life = {now};
            const bool from = now == (int)table[i].from;
            assert_int_equal(gn_vgpu_change_state(&life, table[i].from, table[i].to), from);
            assert_int_equal(gn_vgpu_state(&life), from ? (int)table[i].to : now);
        }
}

static bool is_in_table(int from, int to)
{
    bool found = false;
    for (size_t i = 0; i < GN_ARRAY_SIZE(table); i++)
        found |= (int)table[i].from == from && (int)table[i].to == to;
    return found;
}

/* Does the change end the process? */
static bool is_refused(int from, int to)
{
    int status;
    const pid_t child = fork();
    if (!child) {
        struct gn_vgpu_life life = {from};
        close(STDERR_FILENO);
        (void)gn_vgpu_change_state(&life, (enum gn_vgpu_state)from, (enum gn_vgpu_state)to);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void test_other_changes_are_errors(void **state)
{
    (void)state;
    for (int from = 0; from < N_STATES; from++)
        for (int to = 0; to < N_STATES; to++)
            assert_int_equal(is_refused(from, to), !is_in_table(from, to));
}

static void test_ends(void **state)
{
    static const struct {
        enum gn_vgpu_state from;
        bool handed, ends;
        enum gn_vgpu_state to;
    } ends[] = {
        {GN_VGPU_OWNED, false, true, GN_VGPU_ENDED},   {GN_VGPU_OWNED, true, true, GN_VGPU_ENDED},
        {GN_VGPU_ARRIVING, false, true, GN_VGPU_AWAY}, {GN_VGPU_ARRIVING, true, true, GN_VGPU_AWAY},
        {GN_VGPU_SAVED, false, true, GN_VGPU_ENDED},   {GN_VGPU_SAVED, true, true, GN_VGPU_AWAY},
        {GN_VGPU_AWAY, false, false, GN_VGPU_AWAY},    {GN_VGPU_ENDED, true, false, GN_VGPU_ENDED},
    };
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(ends); i++) {
        struct gn_vgpu_life life = {(int)ends[i].from};
        assert_int_equal(gn_vgpu_end_life(&life, ends[i].handed), ends[i].ends);
        assert_int_equal(gn_vgpu_state(&life), ends[i].to);
    }
}

static void test_elsewhere(void **state)
{
    (void)state;
    for (int now = 0; now < N_STATES; now++) {
        const struct gn_vgpu_life life = {now};
        assert_int_equal(gn_vgpu_is_elsewhere(&life),
                         now == GN_VGPU_ARRIVING || now == GN_VGPU_AWAY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_of_the_table),
        cmocka_unit_test(test_other_changes_are_errors),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
