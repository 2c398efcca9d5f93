/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explores every interleaving of the protocols of src/shm, with and without store buffers. The
 * protocol as it is must hold in both, and each mutant, which takes one thing away from it, must be
 * caught in the world it is meant for: so every ordering and every step in the protocol is shown to
 * be needed, and the checker is shown to be able to fail.
 */
#include "ring_model.h"
#include "wait_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

typedef void (*describe)(struct model *m);

static void holds(describe what)
{
    for (int buffers = 0; buffers < 2; buffers++) {
        struct model m = {.buffers = buffers};
        what(&m);
        const char *violation = model_check(&m);
        if (violation)
            fail_msg("%s%s: %s", m.name, buffers ? ", store buffers" : "", violation);
        print_message("%s%s: %lu states\n", m.name, buffers ? ", store buffers" : "",
                      (unsigned long)m.n_states);
        assert_true(m.n_states > 10); /* it went somewhere */
    }
}

/* Caught with store buffers; and when `in_order`, by interleaving alone too. */
static void caught(describe what, int mutant, bool in_order)
{
    for (int buffers = !in_order; buffers < 2; buffers++) {
        struct model m = {.buffers = buffers, .mutant = mutant};
        what(&m);
        if (!model_check(&m))
            fail_msg("%s%s: mutant %d was not caught", m.name, buffers ? ", store buffers" : "",
                     mutant);
    }
}

static void the_ring_holds(void **state)
{
    holds(ring_model_traffic);
    holds(ring_model_loss);
}

static void the_ring_needs_every_piece(void **state)
{
    for (int k = 1; k < RING_N_MUTANTS; k++) {
        bool needs_buffers = k == RING_PARKED_NOT_SEQ_CST || k == RING_PUBLISH_NOT_SEQ_CST ||
                             k == RING_PUBLISH_RELAXED || k == RING_STARVED_PLAIN_LOAD;
        bool about_loss = k == RING_LOST_NOT_IN_THE_PARK || k == RING_LOST_WITHOUT_WAKE;
        caught(about_loss ? ring_model_loss : ring_model_traffic, k, !needs_buffers);
    }
}

static void the_reply_slot_holds(void **state)
{
    holds(reply_model);
    holds(take_model);
}

static void the_reply_slot_needs_every_piece(void **state)
{
    for (int k = 1; k < REPLY_N_MUTANTS; k++)
        caught(reply_model, k, k != REPLY_PAYLOAD_UNORDERED);
    for (int k = 1; k < TAKE_N_MUTANTS; k++)
        caught(take_model, k, k != TAKE_PUT_RELEASE);
}

static void the_event_holds(void **state)
{
    holds(event_model);
    holds(fail_model);
}

static void the_event_needs_every_piece(void **state)
{
    for (int k = 1; k < EVENT_N_MUTANTS; k++)
        caught(event_model, k, k != EVENT_ERROR_UNORDERED);
    for (int k = 1; k < FAIL_N_MUTANTS; k++)
        caught(fail_model, k, k == FAIL_SWEEP_BEFORE);
}

static void the_grant_holds(void **state)
{
    holds(grant_model);
}

static void the_grant_needs_every_piece(void **state)
{
    for (int k = 1; k < GRANT_N_MUTANTS; k++)
        caught(grant_model, k, k != GRANT_REST_STORED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_holds),       cmocka_unit_test(the_ring_needs_every_piece),
        cmocka_unit_test(the_reply_slot_holds), cmocka_unit_test(the_reply_slot_needs_every_piece),
        cmocka_unit_test(the_event_holds),      cmocka_unit_test(the_event_needs_every_piece),
        cmocka_unit_test(the_grant_holds),      cmocka_unit_test(the_grant_needs_every_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
