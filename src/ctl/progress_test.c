/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the progress texts, with times that the tests choose. */
#include "ctl/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

static struct gn_moving moving(const char *phase, uint32_t round, uint64_t done, uint64_t total,
                               uint64_t sent)
{
    struct gn_moving m = {.id = "1f3a77c0",
                          .round = round,
                          .done_bytes = done,
                          .total_bytes = total,
                          .sent_bytes = sent};
    snprintf(m.phase, sizeof m.phase, "%s", phase);
    return m;
}

static void assert_shown(struct gn_progress *p, const struct gn_moving *all, unsigned n,
                         uint64_t at_ms, const char *text)
{
    char line[GN_PROGRESS_BYTES];
    const bool shown = gn_progress_look(p, all, n, at_ms * MS, line);
    assert_string_equal(shown ? line : "", text);
}

static void lines_come_now_and_then(void **state)
{
    struct gn_progress p;
    struct gn_moving m = moving("ahead", 1, 256 * MIB, 1024 * MIB, 256 * MIB);
    (void)state;
    gn_progress_init(&p, "migrate", false, 1000 * MS);
    assert_shown(&p, &m, 1, 1100, "");
    assert_shown(&p, &m, 1, 2999, "");
    m = moving("ahead", 1, 512 * MIB, 1024 * MIB, 512 * MIB);
    assert_shown(&p, &m, 1, 3000,
                 "gantry migrate: 1f3a77c0 ahead, round 1: 50%, 512M of 1G, 256M/s\n");
    assert_shown(&p, &m, 1, 4500, "");
    /* New information is shown earlier. */
    m = moving("stop", 2, 0, 1024 * MIB, 512 * MIB);
    assert_shown(&p, &m, 1, 4600, "gantry migrate: 1f3a77c0 stop, round 2: 0%, 0 of 1G, 0/s\n");
    assert_shown(&p, &m, 1, 9599, "");
    assert_shown(&p, &m, 1, 9600, "gantry migrate: 1f3a77c0 stop, round 2: 0%, 0 of 1G, 0/s\n");
    assert_string_equal(gn_progress_erase(&p), "");
}

static void a_bar_is_drawn_over(void **state)
{
    struct gn_progress p;
    struct gn_moving m = moving("preparing", 0, 0, 0, 0);
    (void)state;
    gn_progress_init(&p, "mode", true, 1000 * MS);
    assert_string_equal(gn_progress_erase(&p), "");
    assert_shown(&p, &m, 1, 1199, "");
    assert_shown(&p, &m, 1, 1200, "\r[....................] 1f3a77c0 preparing\033[K");
    m = moving("ahead", 1, 3 * MIB, 4 * MIB, 3 * MIB);
    assert_shown(&p, &m, 1, 2000,
                 "\r[###############.....] 1f3a77c0 ahead, round 1: 75%, 3M of 4M, 3M/s\033[K");
    assert_string_equal(gn_progress_erase(&p), "\r\033[K");
    /* The move is over: nothing is drawn, and the bar can still be erased. */
    assert_shown(&p, NULL, 0, 2100, "");
}

static void several_are_summed_up(void **state)
{
    struct gn_progress p;
    const struct gn_moving all[] = {
        moving("ahead", 1, MIB, 2 * MIB, MIB), moving("stop", 2, 2 * MIB, 2 * MIB, 3 * MIB),
        moving("ahead", 1, 0, 4 * MIB, 0), moving("preparing", 0, 7, 7, 0)};
    (void)state;
    gn_progress_init(&p, "drain", false, 1000 * MS);
    assert_shown(&p, all, 4, 3000,
                 "gantry drain: 4 under way: 2 ahead, 1 stop, 1 preparing: 37%, 3M of 8M, 2M/s\n");
    /* One vGPU has left, so the rate restarts. */
    assert_shown(&p, all, 1, 4000, "gantry drain: 1f3a77c0 ahead, round 1: 50%, 1M of 2M, 0/s\n");
}

static struct gn_moving read_one(const char *text, bool is)
{
    struct gn_moving m;
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    assert_int_equal(gn_moving_read(o, &m), is);
    json_decref(o);
    return m;
}

static void what_gantryd_says_is_not_believed(void **state)
{
    char text[GN_MOVING_STATE_BYTES];
    (void)state;
    read_one("{\"id\":\"1f3a77c0\",\"state\":\"idle\"}", false);
    read_one("{}", false);
    struct gn_moving m = read_one("{\"id\":\"1f3a77c0\",\"state\":\"moving\"}", true);
    gn_moving_state(&m, ", ", " ", text);
    assert_string_equal(text, "moving");
    m = read_one("{\"id\":\"1f3a77c0\",\"state\":\"moving\",\"moving\":{\"phase\":\"ahead\","
                 "\"round\":1,\"done_bytes\":9,\"total_bytes\":20}}",
                 true);
    gn_moving_state(&m, ", ", " ", text);
    assert_string_equal(text, "moving, ahead 45%");
    gn_moving_state(&m, ":", ":", text);
    assert_string_equal(text, "moving:ahead:45%");
    /* No escape sequences, no part above 100%, no negative numbers. */
    m = read_one("{\"id\":\"1f\\u001b[2Jxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\","
                 "\"state\":\"moving\",\"moving\":{\"phase\":"
                 "\"abcdefghijklmnopqrstuvwxyz\",\"round\":1,\"done_bytes\":99,"
                 "\"total_bytes\":20,\"sent_bytes\":-4}}",
                 true);
    assert_string_equal(m.id, "1f");
    assert_string_equal(m.phase, "abcdefghijklmno");
    assert_int_equal(m.sent_bytes, 0);
    gn_moving_state(&m, ", ", " ", text);
    assert_string_equal(text, "moving, abcdefghijklmno 100%");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_come_now_and_then),
                                       cmocka_unit_test(a_bar_is_drawn_over),
                                       cmocka_unit_test(several_are_summed_up),
                                       cmocka_unit_test(what_gantryd_says_is_not_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
