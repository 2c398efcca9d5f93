/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a program's sessions, and the states that s->ops goes through. */
#include "guest/session/session_ops.h"

#include "base/checked.h"
#include "guest/migrate/follow_migration.h"
#include "guest/session/session_tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct gn_session_ops *const all[] = {&gn_session_shm, &gn_session_in_process,
                                                   &gn_session_tcp_direct, &gn_session_relay};
static struct gn_session session;

static void test_tables_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        const struct gn_session_ops *s = all[i];
        assert_non_null(s->name);
        assert_true(s->add_segment && s->link_lock && s->link_changed);
        if (s->data)
            assert_true(s->data->begin && s->data->end && s->data->ship && s->data->unship &&
                        s->data->land && s->data->landed && s->data->forget && s->data->pieces);
    }
}

static void test_migration_table_is_complete(void **state)
{
    const struct gn_session_migration_ops *m = &gn_session_migration;
    (void)state;
    assert_true(m->note && m->await_decision && m->await_restored);
}

static void test_properties_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        const struct gn_session_ops *s = all[i];
        /* A connection has a watcher of its own, and pages on the other side. */
        assert_true(s->shares_memory == !s->watch);
        assert_true(s->shares_memory == !s->free_pages);
        assert_true(s->shares_memory == !s->look_at_descriptors);
        assert_false(s->shares_memory && s->data);
        /* Records are gathered only where threads send them. */
        assert_true((s->data != NULL) == (s->flush != NULL));
        assert_false(s->may_relay && s->send);
        assert_false(s->answers_at_once && !s->send);
    }
}

/* A thread that has loaded the table before the session turned uses the ring. */
static void test_relay_is_not_entered(void **state)
{
    (void)state;
    session.ops = &gn_session_relay;
    session.tcp = (void *)&session; /* never looked at */
    assert_null(gn_session_tcp_enter(&session));
    assert_false(gn_data_begin(&session));
    assert_int_equal(gn_session_tcp_direct.send(&session, NULL), GN_BY_RING);
    gn_session_flush(&session);
    gn_session_look_for_news(&session);
    gn_session_event_ended(&session);
}

static void test_shared_memory_needs_no_calls(void **state)
{
    (void)state;
    session.ops = &gn_session_shm;
    session.tcp = NULL;
    assert_true(gn_session_shares_memory(&session));
    assert_false(gn_data_begin(&session));
    gn_data_end(&session, false);
    assert_ptr_equal(gn_session_shm.link_lock(&session), &session.link_lock);
    gn_session_flush(&session);
    gn_session_look_for_news(&session);
    gn_session_event_ended(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_complete),
        cmocka_unit_test(test_migration_table_is_complete),
        cmocka_unit_test(test_properties_agree),
        cmocka_unit_test(test_relay_is_not_entered),
        cmocka_unit_test(test_shared_memory_needs_no_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
