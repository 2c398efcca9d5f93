/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/vgpu/vgpu_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct {
    enum gn_record_state from, to;
} steps[] = {
    {GN_RECORD_PENDING, GN_RECORD_ATTACHED},  /* its program is told, or goes on here */
    {GN_RECORD_PENDING, GN_RECORD_STOPPED},   /* its program waits here for a restore */
    {GN_RECORD_ATTACHED, GN_RECORD_STOPPED},  /* a checkpoint that stops it */
    {GN_RECORD_ATTACHED, GN_RECORD_RELEASED}, /* a migration to another gantryd */
    {GN_RECORD_STOPPED, GN_RECORD_ATTACHED},  /* a restore */
};

static void test_allowed_steps(void **state)
{
    (void)state;
    for (int from = 0; from < GN_RECORD_N_STATES; from++)
        for (int to = 0; to < GN_RECORD_N_STATES; to++) {
            bool allowed = false;
            for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
                allowed |= (int)steps[i].from == from && (int)steps[i].to == to;
            if (gn_record_may_become(from, to) != allowed)
                fail_msg("from %d to %d", from, to);
        }
}

static void test_a_step(void **state)
{
    struct gn_vgpu_record v = {.id = 1};
    (void)state;
    assert_int_equal(v.state, GN_RECORD_PENDING);
    assert_false(gn_record_is_listed(&v));
    gn_record_set_state(&v, GN_RECORD_ATTACHED);
    assert_true(gn_record_is_listed(&v));
    gn_record_set_state(&v, GN_RECORD_STOPPED);
    assert_true(gn_record_is_listed(&v) && gn_record_is_stopped(&v));
    gn_record_set_state(&v, GN_RECORD_ATTACHED);
    assert_false(gn_record_is_stopped(&v));
    gn_record_set_state(&v, GN_RECORD_RELEASED);
    assert_false(gn_record_is_listed(&v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allowed_steps),
        cmocka_unit_test(test_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
