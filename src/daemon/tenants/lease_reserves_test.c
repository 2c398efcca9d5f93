/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reserves in leases.c: which accounts get a device's last memory. */
#include "daemon/tenants/leases.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

struct worker {
    struct gn_lease_holder h;
    int n_answers;
    uint64_t granted;
    bool owes, asks, tight;
};

static void answered(struct gn_lease_holder *h, uint32_t seq, uint64_t granted)
{
    struct worker *w = gn_container_of(h, struct worker, h);
    (void)seq;
    w->n_answers++;
    w->granted = granted;
    w->asks = false;
}

static void recalled(struct gn_lease_holder *h, bool tight)
{
    struct worker *w = gn_container_of(h, struct worker, h);
    w->owes = true;
    w->tight = tight;
}

static const struct gn_lease_ops ops = {answered, recalled};

static void start(struct gn_lease_account *a, struct gn_lease_device *d, struct worker *w, int n)
{
    gn_account_init(a, &ops, 0);
    memset(w, 0, (size_t)n * sizeof *w);
    for (int i = 0; i < n; i++) {
        gn_holder_join(&w[i].h, a, 0);
        gn_holder_add_device(&w[i].h, d);
    }
}

static void ask(struct worker *w, uint64_t need, uint64_t want, uint64_t now)
{
    w->asks = true;
    assert_int_equal(gn_holder_ask(&w->h, 1, need, want, now), 0);
}

static void reserve_is_free_for_its_account_alone(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct gn_lease_reserve r;
    struct worker w, strangers[2];
    gn_lease_device_init(&d, 100);
    start(&a, &d, &w, 1);
    start(&other, &d, strangers, 2);
    ask(&w, 10, 10, 1);
    gn_lease_reserve(&r, &a, &d, 40);
    assert_int_equal(r.leased_bytes, 10);
    assert_int_equal(gn_lease_reserved(&d, &other), 30);
    assert_int_equal(gn_lease_reserved(&d, &a), 0);
    ask(&strangers[0], 61, 61, 1); /* not even when all others return theirs */
    assert_int_equal(strangers[0].n_answers, 1);
    assert_int_equal(strangers[0].h.refusal, GN_LEASE_DEVICE_FULL);
    ask(&strangers[0], 44, 300, 1);
    assert_int_equal(strangers[0].granted, 46); /* slack: an eighth of the 16 that are left */
    ask(&strangers[1], 15, 15, 1);
    assert_int_equal(strangers[1].n_answers, 0);
    assert_int_equal(gn_holder_returned(&w.h, 10, true, 1), 0); /* no help: the reserve grows */
    assert_int_equal(strangers[1].n_answers, 0);
    assert_int_equal(gn_holder_returned(&strangers[0].h, 1, true, 1), 0);
    assert_int_equal(strangers[1].granted, 15);
    assert_int_equal(d.leased_bytes, 60);
    /* Its account has all of it, and what others free beyond it. */
    ask(&w, 40, 40, 2);
    assert_int_equal(w.granted, 40);
    assert_int_equal(r.leased_bytes, 40);
    assert_int_equal(gn_lease_reserved(&d, &other), 0);
    assert_int_equal(gn_holder_returned(&strangers[0].h, 45, false, 2), 0);
    ask(&w, 45, 45, 3);
    assert_int_equal(w.granted, 45);
    gn_holder_gone(&w.h, 4);
    ask(&strangers[1], 46, 46, 4);
    assert_int_equal(strangers[1].granted, 0);
    gn_lease_unreserve(&r);
    ask(&strangers[1], 85, 85, 5);
    assert_int_equal(strangers[1].granted, 85);
}

static void reserve_of_used_memory_stops_others_until_they_free_it(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct gn_lease_reserve r;
    struct worker w, stranger;
    gn_lease_device_init(&d, 100);
    start(&a, &d, &w, 1);
    start(&other, &d, &stranger, 1);
    ask(&stranger, 90, 90, 1);
    gn_lease_reserve(&r, &a, &d, 30);
    gn_account_settle(&other, 1);
    assert_true(stranger.owes && stranger.tight);
    assert_int_equal(gn_holder_returned(&stranger.h, 5, true, 1), 0);
    ask(&w, 20, 20, 1);
    assert_int_equal(gn_holder_returned(&stranger.h, 0, true, 1), 0);
    assert_int_equal(w.granted, 0);
    ask(&stranger, 1, 1, 2);
    assert_int_equal(stranger.granted, 0);
    assert_int_equal(gn_holder_returned(&stranger.h, 14, false, 2), 0);
    assert_true(stranger.tight);
    stranger.owes = false;
    assert_int_equal(gn_holder_returned(&stranger.h, 1, false, 2), 0);
    assert_true(stranger.owes && !stranger.tight); /* the reserve is free: it may keep the rest */
    assert_int_equal(gn_holder_returned(&stranger.h, 0, true, 2), 0);
    ask(&stranger, 1, 1, 3);
    assert_int_equal(stranger.granted, 0);
    ask(&w, 30, 30, 3);
    assert_int_equal(w.granted, 30);
}

/* Workers of three tenants allocate, free and die, while reserves come and go. No grant takes
 * memory that is reserved for another tenant, and each tenant gets its reserve once others are
 * within the rest. */
static void random_grants_leave_reserves_alone(void **state)
{
    enum { N = 6, TENANTS = 3, STEPS = 100000, LIMIT = 1000 };
    struct gn_lease_account a[TENANTS];
    struct gn_lease_device d;
    struct gn_lease_reserve reserves[TENANTS];
    struct worker w[N];
    bool has_reserve[TENANTS] = {false};
    uint64_t now = 1, seed = 88172645463325252u, n_granted = 0, n_refused = 0, n_reserved = 0;
    gn_lease_device_init(&d, LIMIT);
    for (int i = 0; i < TENANTS; i++)
        start(&a[i], &d, &w[2 * i], 2);
    for (int step = 0; step < STEPS; step++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const uint64_t r = seed >> 8, n = 1 + r / 64 % 300, before = d.leased_bytes;
        const int i = (int)(r % N), of = i / 2;
        struct worker *it = &w[i];
        const uint64_t reserved = gn_lease_reserved(&d, &a[of]),
                       own = has_reserve[of] && reserves[of].bytes > reserves[of].leased_bytes
                                 ? reserves[of].bytes - reserves[of].leased_bytes
                                 : 0;
        now += r % 3 ? 1000 : GN_LEASE_RECALL_NS / 7;
        switch (r / 8 % 8) {
        case 0:
        case 1:
        case 2:
            if (it->asks)
                break;
            ask(it, n, n + 50, now);
            n_granted += !it->asks && it->granted;
            n_refused += !it->asks && !it->granted;
            if (!it->asks && it->granted)
                assert_true(before + it->granted + reserved <= LIMIT);
            /* Within the reserve an ask is granted at once, unless others had more before. */
            if (n <= own && before + reserved + own <= LIMIT) {
                assert_true(!it->asks && it->granted);
                n_reserved++;
            }
            break;
        case 3:
            if (it->h.leased_bytes && !it->owes) {
                const uint64_t back = 1 + n % it->h.leased_bytes;
                assert_int_equal(gn_holder_returned(&it->h, back, false, now), 0);
            }
            break;
        case 4:
            if (it->owes) {
                it->owes = false;
                assert_int_equal(
                    gn_holder_returned(&it->h, n % (it->h.leased_bytes + 1), true, now), 0);
            }
            break;
        case 5:
            if (r / 512 % 8 == 0) {
                gn_holder_gone(&it->h, now);
                memset(it, 0, sizeof *it);
                gn_holder_join(&it->h, &a[of], 0);
                gn_holder_add_device(&it->h, &d);
            } else if (r / 512 % 8 == 1) {
                if (has_reserve[of])
                    gn_lease_unreserve(&reserves[of]);
                else
                    gn_lease_reserve(&reserves[of], &a[of], &d, r / 4096 % (LIMIT / TENANTS));
                has_reserve[of] = !has_reserve[of];
            }
            break;
        default:
            gn_account_settle(&a[of], now);
        }
        uint64_t leased = 0;
        for (int t = 0; t < TENANTS; t++) {
            leased += a[t].leased_bytes;
            assert_true(!has_reserve[t] || reserves[t].leased_bytes == a[t].leased_bytes);
        }
        assert_int_equal(leased, d.leased_bytes);
        assert_true(leased <= LIMIT);
    }
    assert_true(n_granted > 1000 && n_refused > 100 && n_reserved > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_is_free_for_its_account_alone),
        cmocka_unit_test(reserve_of_used_memory_stops_others_until_they_free_it),
        cmocka_unit_test(random_grants_leave_reserves_alone),
    };
    return cmocka_run_group_tests_name("lease_reserves", tests, NULL, NULL);
}
