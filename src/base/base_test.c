/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "base/error.h"
#include "base/list.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void ranges_do_not_wrap(void **state)
{
    assert_true(gn_range_ok(0, 0, 0));
    assert_true(gn_range_ok(4, 4, 8));
    assert_false(gn_range_ok(4, 5, 8));
    assert_false(gn_range_ok(9, 0, 8));
    assert_false(gn_range_ok(UINT64_MAX, 2, 8));
    assert_false(gn_range_ok(2, UINT64_MAX, 8));
}

static void arithmetic_reports_overflow(void **state)
{
    uint64_t r = 7;
    assert_false(gn_add_u64(UINT64_MAX, 1, &r));
    assert_false(gn_mul_u64(UINT64_MAX, 2, &r));
    assert_int_equal(r, 7);
    assert_true(gn_mul_u64(6, 7, &r));
    assert_int_equal(r, 42);
}

static void failures_carry_a_sentence(void **state)
{
    struct gn_error err;
    assert_int_equal(gn_fail(&err, ENOENT, "do this", "no %s", "thing"), -ENOENT);
    assert_string_equal(err.what, "no thing");
    assert_string_equal(err.fix, "do this");
    assert_int_equal(gn_fail(NULL, EIO, NULL, "unheard"), -EIO);
}

struct item {
    int n;
    struct gn_list link;
};

static void list_keeps_order_while_removing(void **state)
{
    struct gn_list head = GN_LIST_INIT(head);
    struct item items[4];
    int seen = 0;
    for (int i = 0; i < 4; i++) {
        items[i].n = i;
        gn_list_append(&head, &items[i].link);
    }
    gn_list_for_each(it, &head, struct item, link)
    {
        assert_int_equal(it->n, seen++);
        gn_list_remove(&it->link);
    }
    assert_int_equal(seen, 4);
    assert_true(gn_list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_do_not_wrap),
        cmocka_unit_test(arithmetic_reports_overflow),
        cmocka_unit_test(failures_carry_a_sentence),
        cmocka_unit_test(list_keeps_order_while_removing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
