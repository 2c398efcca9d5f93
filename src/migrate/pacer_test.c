/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the limit in virtual time: the bytes sent in a second, for any size of pieces. */
#include "migrate/pacer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define S UINT64_C(1000000000)

/* Sends pieces for `seconds` as fast as the limit allows. */
static uint64_t pump(uint64_t rate, uint64_t piece, uint64_t seconds)
{
    struct gn_pacer p;
    uint64_t now = 5 * S, end = now + seconds * S, sent = 0;
    p = (struct gn_pacer){.bytes_per_s = rate, .free_at_ns = now};
    while (now < end) {
        uint64_t wait = gn_pacer_wait_ns(&p, now);
        if (wait) {
            assert_in_range(wait, 1, UINT64_MAX);
            now += wait;
            assert_int_equal(gn_pacer_wait_ns(&p, now), 0);
            continue;
        }
        gn_pacer_sent(&p, piece, now);
        sent += piece;
    }
    return sent;
}

static void the_rate_holds(void **state)
{
    static const uint64_t rates[] = {1000,      65536,      1000000,
                                     125000000, 1250000000, UINT64_C(20000000000)};
    static const uint64_t pieces[] = {4096, 65536, 262144, 4194304};
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
        for (unsigned j = 0; j < sizeof pieces / sizeof *pieces; j++) {
            if (rates[i] > 1250000000 && pieces[j] < 65536)
                continue;
            uint64_t seconds = pieces[j] / rates[i] * 8 + 2,
                     sent = pump(rates[i], pieces[j], seconds);
            uint64_t due = rates[i] * seconds;
            /*
             * Ten milliseconds in advance, the current piece, and a rounding of one nanosecond for
             * each piece.
             */
            assert_true(sent <= due + rates[i] / 100 + pieces[j]);
            assert_true(sent + pieces[j] + due / 500 >= due);
        }
    }
}

static void an_idle_line_saves_up_ten_milliseconds(void **state)
{
    struct gn_pacer p;
    p = (struct gn_pacer){.bytes_per_s = 1000000, .free_at_ns = 0};
    uint64_t now = 3600 * S, sent = 0;
    while (!gn_pacer_wait_ns(&p, now)) {
        gn_pacer_sent(&p, 1000, now);
        sent += 1000;
    }
    assert_in_range(sent, 10000, 11000);
}

static void no_limit_never_waits(void **state)
{
    struct gn_pacer p;
    p = (struct gn_pacer){.bytes_per_s = 0, .free_at_ns = 0};
    gn_pacer_sent(&p, UINT64_MAX, 0);
    assert_int_equal(gn_pacer_wait_ns(&p, 0), 0);
}

static void extremes_do_not_wrap(void **state)
{
    struct gn_pacer p;
    p = (struct gn_pacer){.bytes_per_s = 1, .free_at_ns = S};
    gn_pacer_sent(&p, UINT64_MAX, S);
    assert_int_equal(p.free_at_ns, UINT64_MAX);
    gn_pacer_sent(&p, UINT64_MAX, S);
    assert_int_equal(p.free_at_ns, UINT64_MAX);
    p = (struct gn_pacer){.bytes_per_s = UINT64_MAX, .free_at_ns = S};
    gn_pacer_sent(&p, 1, S);
    assert_in_range(gn_pacer_wait_ns(&p, S), 0, 1);
    /* Time that goes backwards or stands still. */
    p = (struct gn_pacer){.bytes_per_s = 1000, .free_at_ns = 100 * S};
    gn_pacer_sent(&p, 1000, 50 * S);
    assert_int_equal(gn_pacer_wait_ns(&p, 50 * S), 51 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_holds),
        cmocka_unit_test(an_idle_line_saves_up_ten_milliseconds),
        cmocka_unit_test(no_limit_never_waits),
        cmocka_unit_test(extremes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
