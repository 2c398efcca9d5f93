/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tenants.c and refusals.c: which peers and devices a tenant admits, floors, and the
 * limits on refusals. */
#include "daemon/tenants/tenants.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/devices.h"
#include "daemon/tenants/refusals.h"

#define TOKEN "a-token-of-some-length"

static const struct gn_lease_ops ops = {NULL, NULL};

static struct gn_tenant_rules rules_of(const char *name)
{
    struct gn_tenant_rules r;
    gn_tenant_rules_init(&r, name);
    return r;
}

static void without_rules_only_operators_are_admitted(void **state)
{
    struct gn_tenant_rules r = rules_of("a");
    struct gn_peer operator_of_it = {.uid = 7, .is_operator = true},
                   stranger = {.uid = 8, .gid = 9};
    assert_int_equal(gn_tenant_admits_user(&r, &operator_of_it), 0);
    assert_int_equal(gn_tenant_admits_user(&r, &stranger), -EACCES);
    assert_false(gn_tenant_admits_others(&r));
}

static void users_and_groups_admit(void **state)
{
    static const gid_t groups[] = {100, 44};
    struct gn_tenant_rules r = rules_of("a");
    struct gn_error err;
    assert_int_equal(gn_tenant_add_uid(&r, "8", &err), 0);
    assert_int_equal(gn_tenant_add_gid(&r, "44", &err), 0);
    assert_true(gn_tenant_admits_others(&r));
    struct gn_peer by_uid = {.uid = 8, .gid = 1}, by_gid = {.uid = 9, .gid = 44},
                   no = {.uid = 9, .gid = 8},
                   by_group = {.uid = 9, .gid = 1, .n_groups = 2, .groups = groups},
                   not_quite = {.uid = 9, .gid = 1, .n_groups = 1, .groups = groups};
    assert_int_equal(gn_tenant_admits_user(&r, &by_uid), 0);
    assert_int_equal(gn_tenant_admits_user(&r, &by_gid), 0);
    assert_int_equal(gn_tenant_admits_user(&r, &by_group), 0);
    assert_int_equal(gn_tenant_admits_user(&r, &not_quite), -EACCES);
    assert_int_equal(gn_tenant_admits_user(&r, &no), -EACCES);
    assert_int_equal(gn_tenant_add_uid(&r, "any", &err), 0);
    assert_int_equal(gn_tenant_admits_user(&r, &no), 0);
}

static void token_admits_its_holder(void **state)
{
    static const char *const wrong[] = {"a-token-of-some-lengtH", "a-token-of-some-lengt",
                                        "a-token-of-some-length-", "x", "A-token-of-some-length"};
    struct gn_tenant_rules r = rules_of("a");
    struct gn_error err;
    struct gn_peer p = {.uid = 8, .gid = 9, .token = TOKEN, .n_token = strlen(TOKEN)};
    /* the tenant has no token that could match */
    assert_int_equal(gn_tenant_admits_user(&r, &p), -EACCES);
    assert_false(gn_tenant_token_is(&r, "", 0));
    assert_int_equal(gn_tenant_set_token(&r, TOKEN, strlen(TOKEN), &err), 0);
    assert_true(gn_tenant_admits_others(&r));
    assert_int_equal(gn_tenant_admits_user(&r, &p), 0);
    p.n_token = 0;
    assert_int_equal(gn_tenant_admits_user(&r, &p), -EACCES);
    assert_false(gn_tenant_token_is(&r, "", 0));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        p.token = wrong[i];
        p.n_token = strlen(wrong[i]);
        assert_int_equal(gn_tenant_admits_user(&r, &p), -EPERM);
    }
    /* An operator's wrong token is refused, too. */
    p.is_operator = true;
    assert_int_equal(gn_tenant_admits_user(&r, &p), -EPERM);
    p.n_token = 0;
    assert_int_equal(gn_tenant_admits_user(&r, &p), 0);
    assert_int_equal(gn_tenant_set_token(&r, NULL, 0, &err), 0);
    assert_false(gn_tenant_admits_others(&r));
}

static void remote_peers_need_credentials(void **state)
{
    struct gn_tenant_rules r = rules_of("blue"), plain = rules_of("default");
    struct gn_error err;
    struct gn_peer nobody = {.uid = 7, .gid = 7}, trusted = {.anybody = true},
                   named = {.subject = "blue"}, other = {.subject = "blu"},
                   token = {.token = TOKEN, .n_token = strlen(TOKEN)};
    r.any_uid = plain.any_uid = true;
    r.n_uids = r.n_gids = 1;
    r.uids[0] = r.gids[0] = 7;
    assert_int_equal(gn_tenant_admits_tcp(&r, &nobody), -EACCES);
    assert_int_equal(gn_tenant_admits_tcp(&plain, &nobody), -EACCES);
    assert_int_equal(gn_tenant_admits_tcp(&r, &trusted), -EACCES);
    assert_int_equal(gn_tenant_admits_tcp(&plain, &trusted), 0);
    assert_int_equal(gn_tenant_admits_tcp(&r, &named), 0);
    assert_int_equal(gn_tenant_admits_tcp(&plain, &named), -EACCES);
    assert_int_equal(gn_tenant_admits_tcp(&r, &other), -EACCES);
    assert_int_equal(gn_tenant_admits_tcp(&r, &token), -EACCES);
    assert_int_equal(gn_tenant_set_token(&r, TOKEN, strlen(TOKEN), &err), 0);
    assert_int_equal(gn_tenant_admits_tcp(&r, &token), 0);
}

static void default_is_there_always(void **state)
{
    struct gn_tenants t;
    struct gn_error err = {{0}, {0}};
    struct gn_tenant_rules given[2] = {rules_of("blue"), rules_of("default")};
    assert_int_equal(gn_tenants_init(&t, &ops, NULL, 0, &err), 0);
    assert_ptr_equal(gn_tenants_find(&t, ""), gn_tenants_find(&t, "default"));
    assert_int_equal(gn_tenants_may_remove(gn_tenants_find(&t, ""), &err), -EPERM);
    gn_tenants_fini(&t);
    given[1].memory_limit_bytes = 5;
    assert_int_equal(gn_tenants_init(&t, &ops, given, 2, &err), 0);
    assert_int_equal(t.n, 2);
    assert_int_equal(gn_tenants_find(&t, "")->memory.limit_bytes, 5);
    assert_ptr_equal(gn_list_first(&t.all, struct gn_tenant, link), gn_tenants_find(&t, ""));
    assert_null(gn_tenants_find(&t, "red"));
    assert_int_equal(gn_tenants_add(&t, &given[0], NULL, &err), -EEXIST);
    struct gn_tenant *blue = gn_tenants_find(&t, "blue");
    blue->n_vgpus = 1;
    assert_int_equal(gn_tenants_may_remove(blue, &err), -EBUSY);
    assert_non_null(strstr(err.what, "has 1 vGPU"));
    blue->n_vgpus = 0;
    assert_false(gn_tenants_admit_others(&t));
    blue->rules.any_uid = true;
    assert_true(gn_tenants_admit_others(&t));
    assert_int_equal(gn_tenants_may_remove(blue, &err), 0);
    gn_tenants_remove(&t, blue);
    assert_false(gn_tenants_admit_others(&t));
    assert_null(gn_tenants_find(&t, "blue"));
    gn_tenants_fini(&t);
}

static void devices_are_selected_over_all_platforms(void **state)
{
    struct gn_platform_record platforms[2];
    struct gn_machine m = {.n_platforms = 2, .platforms = platforms};
    struct gn_tenant_rules r = rules_of("a");
    struct gn_error err = {{0}, {0}};
    memset(platforms, 0, sizeof platforms);
    platforms[0].n_devices = 2;
    strcpy(platforms[0].devices[0].facts.name, "Card A");
    strcpy(platforms[0].devices[1].facts.name, "Other");
    platforms[1].n_devices = 64;
    for (int i = 0; i < 64; i++)
        strcpy(platforms[1].devices[i].facts.name, i == 63 ? "Card B" : "Slot");
    assert_true(gn_tenant_devices(&r, &m, 0) == 3 && gn_tenant_devices(&r, &m, 1) == UINT64_MAX);
    assert_int_equal(gn_tenant_add_device(&r, "card", &err), 0);
    assert_true(gn_tenant_devices(&r, &m, 0) == 1 && gn_tenant_devices(&r, &m, 1) == UINT64_C(1)
                                                                                         << 63);
    assert_int_equal(gn_tenant_devices_check(&r, &m, &err), 0);
    assert_int_equal(gn_tenant_add_device(&r, "any", &err), 0);
    assert_int_equal(gn_tenant_add_device(&r, "card:1", &err), 0);
    assert_true(gn_tenant_devices(&r, &m, 0) == 0 && gn_tenant_devices(&r, &m, 1) == UINT64_C(1)
                                                                                         << 63);
    assert_int_equal(gn_tenant_add_device(&r, "card:2", &err), 0);
    assert_int_equal(gn_tenant_devices_check(&r, &m, &err), -ENODEV);
    assert_non_null(strstr(err.what, "\"card\" with that index"));
}

static void floors_fit_the_device(void **state)
{
    static struct gn_platform_record platforms[1];
    struct gn_machine m = {.n_platforms = 1, .platforms = platforms};
    struct gn_tenant_rules given[2] = {rules_of("blue"), rules_of("green")}, red = rules_of("red");
    struct gn_tenants t;
    struct gn_error err = {{0}, {0}};
    platforms[0].n_devices = 2;
    strcpy(platforms[0].devices[0].facts.name, "Card A");
    strcpy(platforms[0].devices[1].facts.name, "Card B");
    given[0].floor = 600000;
    assert_int_equal(gn_tenant_add_device(&given[0], "card a", &err), 0);
    given[1].floor = 700000;
    assert_int_equal(gn_tenant_add_device(&given[1], "card b", &err), 0);
    assert_int_equal(gn_tenants_init(&t, &ops, given, 2, &err), 0);
    struct gn_tenant *blue = gn_tenants_find(&t, "blue"), *green = gn_tenants_find(&t, "green");
    assert_int_equal(gn_tenants_floors_check(&t, blue, false, &blue->rules, &m, &err), 0);
    assert_int_equal(gn_tenants_floors_check(&t, green, false, &green->rules, &m, &err), 0);
    /* On every device the rest is available; a tenant without a floor needs none. */
    red.floor = 300000;
    assert_int_equal(gn_tenants_floors_check(&t, NULL, false, &red, &m, &err), 0);
    red.floor = 300001;
    assert_int_equal(gn_tenants_floors_check(&t, NULL, false, &red, &m, &err), -ENOSPC);
    assert_string_equal(
        err.what,
        "the floor 0.300001 of the tenant \"red\" and the floors of others, 0.7, together exceed "
        "the device \"Card B\"");
    assert_non_null(strstr(err.fix, "at most 0.3 is left"));
    red.floor = 0;
    assert_int_equal(gn_tenants_floors_check(&t, NULL, false, &red, &m, &err), 0);
    /* A tenant's previous floor does not count against its new one; another device may
     * lack room. */
    struct gn_tenant_rules more = blue->rules;
    more.floor = 1000000;
    assert_int_equal(gn_tenants_floors_check(&t, blue, false, &more, &m, &err), 0);
    more = blue->rules;
    assert_int_equal(gn_tenant_add_device(&more, "any", &err), 0);
    assert_int_equal(gn_tenants_floors_check(&t, blue, false, &more, &m, &err), -ENOSPC);
    /* In a file, only tenants above this one count. */
    assert_int_equal(gn_tenants_floors_check(&t, blue, true, &more, &m, &err), 0);
    green->rules.n_devices = 0;
    assert_int_equal(gn_tenants_floors_check(&t, green, true, &green->rules, &m, &err), -ENOSPC);
    gn_tenants_fini(&t);
}

static void refusal_lines_are_limited(void **state)
{
    static struct gn_refusals r;
    uint32_t more = 0;
    uint64_t now = 5;
    for (int i = 0; i < 100; i++)
        assert_int_equal(gn_refusals_note(&r, 1000, false, now, &more), i < GN_REFUSALS_LINES);
    /* Other sources are still logged. */
    assert_true(gn_refusals_note(&r, 1001, false, now, &more));
    assert_int_equal(more, 0);
    now += GN_REFUSALS_WINDOW_NS;
    assert_true(gn_refusals_note(&r, 1000, false, now, &more));
    assert_int_equal(more, 100 - GN_REFUSALS_LINES);
    assert_true(gn_refusals_note(&r, 1000, false, now, &more));
    assert_int_equal(more, 0);
    /* A source that keeps trying is remembered, even among many others. */
    for (uint64_t source = 2000; source < 2000 + 10 * GN_REFUSALS_SOURCES; source++) {
        gn_refusals_note(&r, source, false, now++, &more);
        gn_refusals_note(&r, 1000, false, now++, &more);
    }
    assert_false(gn_refusals_note(&r, 1000, false, now, &more));
}

static void token_guesses_are_limited(void **state)
{
    static struct gn_refusals r;
    uint32_t more;
    uint64_t now = 1;
    for (int i = 0; i < GN_REFUSALS_TOKENS; i++) {
        assert_true(gn_refusals_may_try(&r, 1000, now));
        gn_refusals_note(&r, 1000, true, now, &more);
    }
    assert_false(gn_refusals_may_try(&r, 1000, now));
    assert_true(gn_refusals_may_try(&r, 1001, now));
    now += GN_REFUSALS_WINDOW_NS;
    assert_true(gn_refusals_may_try(&r, 1000, now));
    gn_refusals_note(&r, 1000, true, now, &more);
    assert_true(gn_refusals_may_try(&r, 1000, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_only_operators_are_admitted),
        cmocka_unit_test(users_and_groups_admit),
        cmocka_unit_test(token_admits_its_holder),
        cmocka_unit_test(remote_peers_need_credentials),
        cmocka_unit_test(default_is_there_always),
        cmocka_unit_test(devices_are_selected_over_all_platforms),
        cmocka_unit_test(refusal_lines_are_limited),
        cmocka_unit_test(floors_fit_the_device),
        cmocka_unit_test(token_guesses_are_limited),
    };
    return cmocka_run_group_tests_name("tenants", tests, NULL, NULL);
}
