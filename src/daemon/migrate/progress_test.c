/* SPDX-License-Identifier: Apache-2.0 */
/* The progress that is shown of a migration, from its state and its worker's counters. */
#include "daemon/migrate/migration.h"

#include "control/control.h"
#include "shm/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct gn_migration_ops ops = {.what = "move"};

static struct gn_control_moving see(const struct gn_migration *m, const struct gn_counters *n)
{
    struct gn_control_moving ret;
    gn_migration_progress(m, n, m->began_ns + 7, &ret);
    assert_int_equal(ret.elapsed_ns, 7);
    return ret;
}

static void test_phases(void **state)
{
    struct gn_counters n = {0};
    struct gn_migration m = {.ops = &ops,
                             .tx = {.kind = GN_TX_LOCAL, .state = GN_TX_BOOTING},
                             .where = GN_MIGRATE_TO_REMOTE,
                             .began_ns = 100};
    struct gn_control_moving s = see(&m, &n);
    (void)state;
    assert_string_equal(s.what, "move");
    assert_string_equal(s.to, "remote");
    assert_string_equal(s.phase, "preparing");
    m.tx.state = GN_TX_PRECOPY;
    assert_string_equal(see(&m, &n).phase, "ahead");
    n.save_waits = 1;
    assert_string_equal(see(&m, &n).phase, "waiting");
    m.tx.state = GN_TX_STOPPING;
    assert_string_equal(see(&m, &n).phase, "stop");
    m.tx.state = GN_TX_SAVED;
    assert_string_equal(see(&m, &n).phase, "loading");
    m = (struct gn_migration){
        .ops = &ops, .tx = {.kind = GN_TX_OUTBOUND}, .address = "unix:/b.sock"};
    assert_string_equal(see(&m, &n).to, "unix:/b.sock");
    m = (struct gn_migration){.ops = &ops,
                              .tx = {.kind = GN_TX_STOP, .state = GN_TX_PRECOPY},
                              .how = {.flags = GN_WORKER_SAVE_FILE}};
    s = see(&m, &n);
    assert_string_equal(s.phase, "preparing");
    assert_null(s.to);
    m.tx.state = GN_TX_STOPPING;
    assert_string_equal(see(&m, &n).phase, "stop");
    m = (struct gn_migration){.ops = &ops, .tx = {.kind = GN_TX_RESTORE, .state = GN_TX_SAVED}};
    assert_string_equal(see(&m, &n).phase, "loading");
}

static void test_sizes(void **state)
{
    struct gn_counters n = {
        .save_round = 2, .save_round_bytes = 30, .save_bytes = 40, .save_sent_bytes = 99};
    struct gn_migration m = {.ops = &ops, .tx = {.kind = GN_TX_LOCAL, .state = GN_TX_BOOTING}};
    (void)state;
    /* They are an earlier save's. */
    struct gn_control_moving s = see(&m, &n);
    assert_int_equal(s.round + s.done_bytes + s.total_bytes + s.sent_bytes, 0);
    m.tx.state = GN_TX_PRECOPY;
    s = see(&m, &n);
    assert_int_equal(s.round, 2);
    assert_int_equal(s.done_bytes, 30);
    assert_int_equal(s.total_bytes, 40);
    assert_int_equal(s.sent_bytes, 99);
    /* A worker may report anything. */
    n.save_round_bytes = UINT64_MAX;
    n.save_round = UINT64_MAX;
    s = see(&m, &n);
    assert_int_equal(s.done_bytes, 40);
    assert_int_equal(s.round, UINT32_MAX);
    n.save_round = 0;
    assert_int_equal(see(&m, &n).total_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_phases), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
