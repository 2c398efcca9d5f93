/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sequences of events in transaction_world.c are explored, for each kind of migration. Then the
 * same with one wrong entry in the table, for each entry and each way to be wrong.
 */
#include "transaction_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct world *worlds;
static uint32_t n_worlds, capacity, *world_index, index_size;

/* ---- the search */

static uint32_t slot_of(const struct world *w)
{
    const unsigned char *bytes = (const unsigned char *)w;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < sizeof *w; i++)
        h = (h ^ bytes[i]) * 16777619u;
    h &= index_size - 1;
    while (world_index[h] && memcmp(&worlds[world_index[h] - 1], w, sizeof *w) != 0)
        h = (h + 1) & (index_size - 1);
    return h;
}

static void add(const struct world *w)
{
    const uint32_t slot = slot_of(w);
    if (world_index[slot])
        return;
    assert_true(n_worlds < capacity);
    worlds[n_worlds] = *w;
    world_index[slot] = ++n_worlds;
}

static const char *explore(enum gn_transaction_kind kind, table t)
{
    struct gn_transaction begun;
    gn_transaction_begin(&begun, kind, 0, 0);
    now.kind = kind;
    now.table = t;
    now.violation = NULL;
    n_worlds = 0;
    now.succeeded = false;
    capacity = 1u << 19;
    index_size = 1u << 20;
    if (!worlds)
        worlds = calloc(capacity, sizeof *worlds);
    if (!world_index)
        world_index = calloc(index_size, sizeof *world_index);
    assert_true(worlds && world_index);
    struct world first = {.state = begun.state,
                          .limited = 1,
                          .asker = 1,
                          .program = 1,
                          .link = 1,
                          .source = is_kind(MOVES)   ? RUNS
                                    : is_kind(SAVES) ? SAVES_NOW
                                                     : NO_SOURCE,
                          .dest = is_kind(TWO | K(OUTBOUND)) ? BOOTS : NO_DEST};
    add(&first);
    for (uint32_t i = 0; i < n_worlds && !now.violation; i++) {
        for (enum event e = 0; e < N_EVENTS && !now.violation; e++) {
            struct world w = worlds[i];
            if (happens(&w, e)) {
                judge(&w);
                add(&w);
            }
        }
    }
    if (!now.violation && !now.succeeded)
        violate("it can never succeed");
    memset(world_index, 0, index_size * sizeof *world_index);
    return now.violation;
}

static void expand(enum gn_transaction_kind kind, table ret)
{
    memset(ret, 0, sizeof(table));
    for (size_t i = 0; i < gn_transaction_n_rows; i++) {
        const struct gn_transaction_row *r = &gn_transaction_rows[i];
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS; in++) {
                if (!(r->kinds >> kind & 1) || !(r->states >> s & 1) || !(r->inputs >> in & 1))
                    continue;
                if (ret[s][in].there)
                    fail_msg("kind %d, state %u, input %u: two rows", kind, s, in);
                ret[s][in] =
                    (struct cell){.there = 1,
                                  .next = (uint8_t)(r->next == GN_TX_SAME ? (int)s : r->next),
                                  .actions = r->actions,
                                  .limit = (uint8_t)r->limit};
            }
    }
}

static bool is_visited(enum gn_transaction_state state)
{
    for (uint32_t i = 0; i < n_worlds; i++)
        if (worlds[i].state == state)
            return true;
    return false;
}

static void the_table_holds(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < GN_TX_N_KINDS; kind++) {
        table t;
        unsigned n = 0;
        expand(kind, t);
        memset(now.reached, 0, sizeof now.reached);
        const char *violation = explore(kind, t);
        if (violation)
            fail_msg("kind %u: %s", kind, violation);
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS && is_visited(s); in++) {
                if (t[s][in].there && !now.reached[s][in])
                    fail_msg("kind %u, state %u: input %u is never met", kind, s, in);
                n += t[s][in].there;
            }
        print_message("kind %u: %u entries of the table, %u states of the world\n", kind, n,
                      n_worlds);
    }
}

/* Is a table with this entry in the place of its own found to be wrong? */
static bool is_caught(enum gn_transaction_kind kind, table t, unsigned state, unsigned input,
                      struct cell wrong)
{
    const struct cell right = t[state][input];
    t[state][input] = wrong;
    const bool caught = explore(kind, t) != NULL;
    t[state][input] = right;
    return caught;
}

static unsigned n_planted, n_missed;

static void plant(enum gn_transaction_kind kind, table t, unsigned state, unsigned input,
                  struct cell wrong, const char *what)
{
    n_planted++;
    if (is_caught(kind, t, state, input, wrong))
        return;
    n_missed++;
    print_message("kind %u, state %u, input %u: %s is not caught (next %u, actions %x)\n", kind,
                  state, input, what, wrong.next, (unsigned)wrong.actions);
}

/* Does this kind do anything at this action? A set of kinds may have more in common. */
static bool matters(enum gn_transaction_kind kind, unsigned state, uint32_t action)
{
    const uint32_t reported = K(OUTBOUND) | K(INBOUND) | K(RESTORE);
    switch (action) {
    case GN_TX_DO_DISMISS:
        return TWO >> kind & 1;
    case GN_TX_DO_STAY: /* STOP lets go of the session that it has when all is saved */
        return (reported >> kind & 1) || (kind == GN_TX_STOP && state == GN_TX_SAVED);
    default:
        return true;
    }
}

static void plant_all(enum gn_transaction_kind kind, table t, unsigned state, unsigned input)
{
    const struct cell right = t[state][input];
    struct cell wrong = right;
    wrong.there = 0;
    plant(kind, t, state, input, wrong, "no entry");
    for (uint32_t left = right.actions; left; left &= left - 1) {
        if (!matters(kind, state, left & -left))
            continue;
        wrong = right;
        wrong.actions &= ~(left & -left);
        plant(kind, t, state, input, wrong, "an action too few");
    }
    for (unsigned next = 0; next < GN_TX_N_STATES; next++) {
        wrong = right;
        wrong.next = (uint8_t)next;
        if (next != right.next)
            plant(kind, t, state, input, wrong, "another state");
    }
}

static void every_wrong_entry_is_caught(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < GN_TX_N_KINDS; kind++) {
        table t;
        bool visited[GN_TX_N_STATES];
        expand(kind, t);
        assert_null(explore(kind, t));
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            visited[s] = is_visited(s);
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS; in++)
                if (t[s][in].there && visited[s])
                    plant_all(kind, t, s, in);
    }
    print_message("%u wrong entries planted\n", n_planted);
    assert_int_equal(n_missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_holds),
                                       cmocka_unit_test(every_wrong_entry_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
