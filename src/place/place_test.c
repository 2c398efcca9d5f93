/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the policies on the paper's examples, and the accounts of slots. */
#include "place/place.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define S         UINT64_C(1000000000)
#define MS        UINT64_C(1000000)
#define MAX_VGPUS 16

struct world {
    struct gn_place p;
    struct gn_place_tenant t;
    struct gn_place_vgpu v[MAX_VGPUS];
    unsigned n;
    uint64_t now;
};

static struct world w;

/* A device of n_slots that swaps at each turn, one tenant. */
static void device(const char *policy, uint32_t n_slots)
{
    memset(&w, 0, sizeof w);
    assert_non_null(gn_place_policy_find(policy));
    assert_int_equal(
        gn_place_init(&w.p, gn_place_policy_find(policy), n_slots * GN_PLACE_SLOT_BYTES, 0, 0), 0);
    w.p.swap_share = 0;
    assert_int_equal(w.p.n_slots, n_slots);
    assert_int_equal(gn_place_tenant_add(&w.p, &w.t, 100, 0), 0);
}

static struct gn_place_vgpu *add(uint32_t n_chunks)
{
    struct gn_place_vgpu *v = &w.v[w.n++];
    assert_int_equal(gn_place_add(&w.p, &w.t, v, 100, n_chunks, w.now), 0);
    return v;
}

/* A turn of used_ns, with the swap that it needs. Returns the chunks that were copied in. */
static uint32_t turn(struct gn_place_vgpu *v, uint64_t used_ns, bool more_work)
{
    struct gn_place_plan plan;
    gn_place_wake(&w.p, v, w.now);
    assert_true(gn_place_plan(&w.p, v, w.now, &plan));
    gn_place_apply(&w.p, &plan, w.now);
    assert_true(gn_place_is_resident(v));
    gn_place_turn(&w.p, v, w.now);
    w.now += used_ns;
    gn_place_yield(&w.p, v, used_ns, more_work, w.now);
    return plan.n_in;
}

#define assert_slots(...)                                                                          \
    do {                                                                                           \
        const uint32_t wanted_[] = {__VA_ARGS__};                                                  \
        for (unsigned i_ = 0; i_ < sizeof wanted_ / sizeof *wanted_; i_++)                         \
            if (w.v[i_].first_slot != wanted_[i_])                                                 \
                fail_msg("vGPU %u is at slot %u and not %u", i_, w.v[i_].first_slot, wanted_[i_]); \
    } while (0)

/* ---- slots */

static void slots_double_until_there_are_1024(void **state)
{
    struct gn_place p;
    assert_int_equal(gn_place_init(&p, &gn_place_turn_policy, UINT64_C(3456) << 20, 0, 0), 0);
    assert_int_equal(p.n_slots, 54);
    assert_int_equal(gn_place_init(&p, &gn_place_turn_policy, UINT64_C(64) << 30, 0, 0), 0);
    assert_int_equal(p.n_slots, 1024);
    assert_int_equal(p.slot_bytes, GN_PLACE_SLOT_BYTES);
    assert_int_equal(gn_place_init(&p, &gn_place_turn_policy, UINT64_C(80) << 30, 0, 0), 0);
    assert_int_equal(p.n_slots, 640);
    assert_int_equal(p.slot_bytes, 2 * GN_PLACE_SLOT_BYTES);
    assert_int_equal(gn_place_init(&p, &gn_place_turn_policy, 63 << 20, 0, 0), -EINVAL);
}

static void chunk_sets(void **state)
{
    const uint32_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 1023, 1024};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct gn_chunk_set s = gn_chunk_range(sizes[i]);
        uint32_t n = 0;
        gn_chunk_for_each(k, &s)
        {
            assert_int_equal(k, n++);
        }
        assert_int_equal(n, sizes[i]);
        assert_int_equal(gn_chunk_count(&s), sizes[i]);
        assert_int_equal(gn_chunk_empty(&s), sizes[i] == 0);
    }
    struct gn_chunk_set a = gn_chunk_range(70), b = gn_chunk_range(100);
    assert_true(gn_chunk_within(&a, &b));
    assert_false(gn_chunk_within(&b, &a));
    gn_chunk_remove(&a, 64);
    assert_false(gn_chunk_has(&a, 64));
    assert_int_equal(gn_chunk_next(&a, 64), 65);
    b = gn_chunk_minus(&b, &a);
    assert_int_equal(gn_chunk_count(&b), 31);
    assert_int_equal(gn_chunk_next(&b, 0), 64);
    gn_chunk_add(&a, 1023);
    assert_int_equal(gn_chunk_next(&a, 70), 1023);
}

/* ---- first-fit: DymGPU II.A */

/* The paper counts slots from 1: the new vGPU gets its slots 4 and 5. */
static void first_fit_takes_the_lowest_score(void **state)
{
    device("first-fit", 5);
    add(4);
    add(2);
    assert_slots(0, 3);
}

static void first_fit_takes_the_leftmost_of_equals(void **state)
{
    device("first-fit", 6);
    add(2);
    add(2);
    add(2);
    add(2);
    assert_slots(0, 2, 4, 0);
}

/* With one weight for each slot, whatever the number of vGPUs, the last one would go to slot 0. */
static void first_fit_counts_each_vgpu(void **state)
{
    device("first-fit", 5);
    add(3);
    add(3);
    add(1);
    add(2);
    assert_slots(0, 2, 0, 3);
}

static void first_fit_moves_no_vgpu(void **state)
{
    device("first-fit", 5);
    add(3);
    add(3);
    gn_place_remove(&w.p, &w.v[0], 0);
    assert_int_equal(w.v[1].first_slot, 2);
    w.now = 60 * S;
    gn_place_tick(&w.p, w.now);
    assert_true(w.v[1].idle);
    assert_int_equal(w.v[1].first_slot, 2);
    gn_place_wake(&w.p, &w.v[1], w.now);
    assert_int_equal(w.v[1].first_slot, 2);
}

/* ---- size: DymGPU III.B */

static void size_places_as_in_the_paper(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    add(3);
    add(2);
    assert_slots(0, 1, 1, 1);
    assert_int_equal(w.p.shared_slot, 1);
    assert_int_equal(w.p.n_shared, 3);
}

/* The largest are alone in whatever order they come. */
static void size_places_late_large_vgpus_alone(void **state)
{
    device("size", 10);
    add(2);
    add(3);
    add(4);
    assert_slots(0, 2, 5);
    add(6);
    /* Of 6, 4, 3 and 2: 0, then 6, then P_K. */
    assert_slots(7, 7, 6, 0);
    assert_int_equal(w.p.shared_slot, 7);
    assert_int_equal(w.p.n_shared, 3);
}

static void size_puts_small_ones_onto_shared_slots(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    const uint64_t moved = w.p.n_rearranged;
    add(3);
    add(1);
    assert_slots(0, 1, 1, 1);
    assert_int_equal(w.p.n_rearranged, moved);
}

/*
 * 4, 4 and 1 on 10 slots share none. A vGPU of 3 shares 2 slots with one of them, or, with all
 * placed anew, 4, 4 | 3 at slot 7, it shares 1, and the one of 1 goes to slot 7 too.
 */
static void size_compares_shared_slots(void **state)
{
    device("size", 10);
    add(4);
    add(4);
    add(1);
    assert_slots(0, 4, 8);
    add(3);
    assert_slots(0, 4, 7, 7);
    assert_int_equal(w.p.n_shared, 1);
    /* At P_K it shares slots 7 to 9; placed anew 4, 4, 3 are alone or share 1, it shares 7 and 8.
     */
    add(2);
    assert_slots(0, 4, 7, 7, 7);
}

static void size_replaces_after_the_end_of_a_vgpu_with_own_slots(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    add(3);
    add(2);
    /* The last two have no slot of their own. */
    const uint64_t moved = w.p.n_rearranged;
    gn_place_remove(&w.p, &w.v[3], 0);
    assert_slots(0, 1, 1);
    assert_int_equal(w.p.n_rearranged, moved);
    gn_place_remove(&w.p, &w.v[0], 0);
    assert_int_equal(w.v[1].first_slot, 0);
    assert_int_equal(w.v[2].first_slot, 2);
    assert_int_equal(w.p.n_rearranged, moved + 1);
}

static void size_takes_idle_vgpus_as_ended(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    add(3);
    for (w.now = 0; w.now < 30 * S;) {
        turn(&w.v[1], 500 * MS, true);
        turn(&w.v[2], 500 * MS, true);
        gn_place_tick(&w.p, w.now);
        assert_int_equal(w.v[0].idle, w.now >= 20 * S);
    }
    assert_slots(GN_PLACE_NOWHERE, 0, 2);
    /* It works again, and is placed like a new one. */
    turn(&w.v[0], MS, false);
    assert_false(w.v[0].idle);
    assert_int_equal(w.p.n_free, 0);
    assert_int_not_equal(w.v[0].first_slot, GN_PLACE_NOWHERE);
}

/* ---- utilization: DymGPU III.A, III.B */

static void utilization_places_the_busiest_alone(void **state)
{
    device("utilization", 10);
    add(4);
    add(4);
    add(4);
    add(2);
    /* No use so far: by age from the left, the third does not fit. */
    assert_slots(0, 4, 6, 8);
    while (w.now < 19 * S) {
        turn(&w.v[0], 10 * MS, true);
        turn(&w.v[1], 20 * MS, true);
        turn(&w.v[2], 40 * MS, true);
        turn(&w.v[3], 30 * MS, true);
        gn_place_tick(&w.p, w.now);
    }
    assert_slots(0, 4, 6, 8);
    while (w.now < 20 * S)
        turn(&w.v[2], 40 * MS, true);
    gn_place_tick(&w.p, w.now);
    /* 2, then 3, then 1 in 6 to 9 alone, and 0 flush right. */
    assert_slots(6, 6, 0, 4);
}

static void utilization_is_of_the_last_20_seconds(void **state)
{
    device("utilization", 10);
    struct gn_place_vgpu *v = add(4);
    for (int i = 0; i < 30; i++)
        turn(v, S, true);
    /* 19 whole seconds and the one that has just begun. */
    assert_int_equal(gn_place_utilization(v, w.now), 20 * S);
    assert_int_equal(gn_place_utilization(v, w.now + 5 * S), 15 * S);
    assert_int_equal(gn_place_utilization(v, w.now + 19 * S), S);
    assert_int_equal(gn_place_utilization(v, w.now + 20 * S), 0);
    assert_int_equal(gn_place_utilization(v, w.now + 2000 * S), 0);
    w.now += 100 * S;
    turn(v, 250 * MS, false);
    assert_int_equal(gn_place_utilization(v, w.now), 250 * MS);
}

static void utilization_replaces_at_create_and_destroy(void **state)
{
    device("utilization", 10);
    add(6);
    add(5);
    assert_slots(0, 5);
    turn(&w.v[1], S, true);
    add(2);
    /* 5, then 6 and 2 flush right. */
    assert_slots(4, 0, 8);
    gn_place_remove(&w.p, &w.v[0], w.now);
    assert_int_equal(w.v[1].first_slot, 0);
    assert_int_equal(w.v[2].first_slot, 5);
}

/* ---- chunks in slots */

/* A chunk whose address has changed is copied at its vGPU's next turn, not before. */
static void a_chunk_moves_at_its_next_use(void **state)
{
    device("utilization", 10);
    add(6);
    add(5);
    assert_int_equal(turn(&w.v[0], MS, true), 6);
    assert_int_equal(turn(&w.v[1], S, true), 5);
    assert_int_equal(w.v[0].n_occupied, 5);
    assert_int_equal(turn(&w.v[1], S, true), 0);
    w.now = 20 * S;
    gn_place_tick(&w.p, w.now);
    assert_slots(4, 0);
    assert_int_equal(w.v[0].n_occupied, 5);
    assert_int_equal(w.v[1].n_occupied, 5);
    assert_int_equal(turn(&w.v[1], MS, true), 5);
    assert_int_equal(w.v[0].n_occupied, 0);
    assert_int_equal(turn(&w.v[1], MS, true), 0);
    assert_int_equal(turn(&w.v[0], MS, true), 6);
    assert_int_equal(w.v[1].n_occupied, 4);
    assert_int_equal(w.p.n_free, 0);
}

/* DymGPU III.B: sizes 4 and 4 on 5 slots; a switch copies slots 2, 3 and 4 (from 1). */
static void a_switch_copies_shared_slots_only(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    assert_int_equal(turn(&w.v[0], MS, true), 4);
    assert_int_equal(turn(&w.v[1], MS, true), 4);
    for (int i = 0; i < 10; i++)
        assert_int_equal(turn(&w.v[i % 2], MS, true), 3);
}

/* The first copies of a device may take a hundred times as long, while its driver builds kernels.
 */
static void a_slow_copy_does_not_count(void **state)
{
    device("turn", 4);
    gn_place_note_copy(&w.p, false, 2, 2 * 1000 * MS);
    assert_int_equal(w.p.out_ns, 1000 * MS);
    for (int i = 0; i < 8; i++)
        gn_place_note_copy(&w.p, false, 2, 2 * (uint64_t)(9 + i % 3) * MS);
    assert_in_range(w.p.out_ns, 9 * MS, 11 * MS);
    gn_place_note_copy(&w.p, false, 1, 1000 * MS);
    gn_place_note_copy(&w.p, false, 1, 1000 * MS);
    assert_in_range(w.p.out_ns, 9 * MS, 11 * MS);
    /* But what has become slow does. */
    for (int i = 0; i < 8; i++)
        gn_place_note_copy(&w.p, false, 4, 4 * 30 * MS);
    assert_int_equal(w.p.out_ns, 30 * MS);
    assert_int_equal(w.p.in_ns, 0);
}

static void only_changed_chunks_go_out(void **state)
{
    struct gn_place_plan plan;
    device("turn", 5);
    add(4);
    add(4);
    turn(&w.v[0], MS, true);
    const struct gn_chunk_set written = gn_chunk_range(2);
    gn_place_set_changed(&w.v[0], &written);
    gn_place_note_copy(&w.p, true, 4, 40);
    gn_place_note_copy(&w.p, false, 2, 14);
    assert_true(gn_place_plan(&w.p, &w.v[1], w.now, &plan));
    assert_int_equal(plan.n_in, 4);
    assert_int_equal(plan.n_out, 3);
    /* The last chunks leave first: 3, 2 and 1. */
    assert_int_equal(plan.n_changed, 1);
    assert_int_equal(plan.copy_ns, 4 * 10 + 7);
    gn_place_set_clean(&w.v[0], &written);
    assert_true(gn_place_plan(&w.p, &w.v[1], w.now, &plan));
    assert_int_equal(plan.n_changed, 0);
    /* A plan changes nothing. */
    assert_int_equal(w.v[0].n_occupied, 4);
    assert_int_equal(w.p.n_free, 1);
}

/* ---- turn */

/*
 * In a circle of four on three places, the one that has just run is the last to run again: it
 * leaves, and two of three turns need no copy. Taking the least recently used one would copy at
 * each turn.
 */
static void turn_takes_from_the_furthest(void **state)
{
    uint32_t copies = 0;
    device("turn", 3);
    for (int i = 0; i < 4; i++)
        gn_place_wake(&w.p, add(1), i);
    w.now = 4;
    for (int i = 0; i < 4000; i++) {
        copies += turn(&w.v[i % 4], MS, true);
        assert_int_equal(w.p.n_free, i < 2 ? 2 - i : 0);
    }
    assert_in_range(copies, 1333, 1340);
}

/* One that pauses for long loses its slots before those that are in line. */
static void turn_expects_pauses(void **state)
{
    device("turn", 3);
    add(1);
    add(1);
    add(1);
    add(1);
    for (int i = 0; i <= 250; i++) {
        if (i % 25 == 0)
            turn(&w.v[0], MS, false);
        turn(&w.v[1], MS, false);
        w.now += 20 * MS;
    }
    turn(&w.v[2], MS, true);
    turn(&w.v[3], MS, false);
    assert_int_equal(w.v[0].n_occupied, 0);
    assert_int_equal(w.v[1].n_occupied, 1);
    assert_int_equal(w.v[2].n_occupied, 1);
}

/* Idle ones, then chunks that are not needed, then the vGPU whose next turn is furthest away. */
static void turn_has_an_order_of_victims(void **state)
{
    device("turn", 12);
    for (int i = 0; i < 3; i++)
        add(4);
    for (int i = 0; i < 3; i++)
        turn(&w.v[i], MS, true);
    gn_place_sleep(&w.p, &w.v[0], w.now);
    w.now = 30 * S;
    turn(&w.v[1], MS, true);
    turn(&w.v[2], MS, true);
    gn_place_tick(&w.p, w.now);
    assert_true(w.v[0].idle);
    const struct gn_chunk_set half = gn_chunk_range(2);
    gn_place_set_needs(&w.p, &w.v[1], &half);
    add(2);
    assert_int_equal(turn(&w.v[3], MS, true), 2);
    assert_int_equal(w.v[0].n_occupied, 2);
    add(3);
    assert_int_equal(turn(&w.v[4], MS, true), 3);
    assert_int_equal(w.v[0].n_occupied, 0);
    assert_int_equal(w.v[1].n_occupied, 3);
    assert_true(gn_place_is_resident(&w.v[1]));
    add(1);
    assert_int_equal(turn(&w.v[5], MS, true), 1);
    assert_int_equal(w.v[1].n_occupied, 2);
    assert_true(gn_place_is_resident(&w.v[1]));
    /* Now the one whose turn was last. */
    add(2);
    assert_int_equal(turn(&w.v[6], MS, true), 2);
    assert_int_equal(w.v[5].n_occupied, 0);
    assert_int_equal(w.v[4].n_occupied, 2);
}

/* ---- what cannot be taken */

static void others_cannot_take_a_reserve(void **state)
{
    struct gn_place_tenant rich;
    struct gn_place_plan plan;
    device("turn", 10);
    assert_int_equal(gn_place_tenant_add(&w.p, &rich, 100, 11), -ENOSPC);
    assert_int_equal(gn_place_tenant_add(&w.p, &rich, 100, 4), 0);
    struct gn_place_vgpu own;
    assert_int_equal(gn_place_add(&w.p, &rich, &own, 100, 8, 0), 0);
    turn(&own, MS, true);
    /* I6: it could never have all at once. */
    assert_int_equal(gn_place_add(&w.p, &w.t, &w.v[0], 100, 7, 0), -ENOSPC);
    add(6);
    assert_int_equal(turn(&w.v[0], MS, true), 6);
    assert_int_equal(own.n_occupied, 4);
    add(6);
    assert_int_equal(turn(&w.v[1], MS, true), 6);
    assert_int_equal(own.n_occupied, 4);
    /* The tenant's own need does not count. */
    struct gn_place_vgpu second;
    assert_int_equal(gn_place_add(&w.p, &rich, &second, 100, 10, 0), 0);
    assert_true(gn_place_plan(&w.p, &second, w.now, &plan));
    assert_int_equal(plan.n_out, 10);
    /* A reserve that leaves some vGPU less than it has is refused. */
    assert_int_equal(gn_place_tenant_set_reserve(&w.p, &rich, 5), -ENOSPC);
    assert_int_equal(rich.reserve, 4);
    assert_int_equal(gn_place_tenant_set_reserve(&w.p, &w.t, 1), -ENOSPC);
    gn_place_remove(&w.p, &second, w.now);
    assert_int_equal(gn_place_tenant_set_reserve(&w.p, &w.t, 1), 0);
}

static void pinned_chunks_stay(void **state)
{
    struct gn_place_tenant other;
    device("turn", 12);
    assert_int_equal(gn_place_tenant_add(&w.p, &other, 200, 0), 0);
    struct gn_place_vgpu guest;
    add(6);
    assert_int_equal(gn_place_add(&w.p, &other, &guest, 100, 6, 0), 0);
    turn(&w.v[0], MS, true);
    /* I5: a third of the device. */
    assert_int_equal(gn_place_pin_limit(&w.p, &w.t), 4);
    struct gn_chunk_set five = gn_chunk_range(5), four = {{UINT64_C(0x3c)}};
    assert_int_equal(gn_place_pin(&w.p, &w.v[0], &five), -ENOSPC);
    assert_int_equal(w.v[0].n_pinned, 0);
    assert_int_equal(gn_place_pin(&w.p, &w.v[0], &four), 0);
    /* I6: 8 are left for others. */
    assert_int_equal(gn_place_resize(&w.p, &guest, 9, w.now), -ENOSPC);
    assert_int_equal(guest.n_chunks, 6);
    assert_int_equal(gn_place_resize(&w.p, &guest, 8, w.now), 0);
    turn(&guest, MS, true);
    assert_int_equal(w.v[0].n_occupied, 4);
    assert_true(gn_chunk_within(&four, &w.v[0].occupied));
    gn_place_unpin(&w.p, &w.v[0], &four);
    assert_int_equal(gn_place_resize(&w.p, &guest, 12, w.now), 0);
    turn(&guest, MS, true);
    assert_int_equal(w.v[0].n_occupied, 0);
}

/* With addresses, a pinned chunk that holds a slot sends the other chunk elsewhere. */
static void an_address_that_is_held_gives_way(void **state)
{
    device("size", 5);
    add(4);
    add(4);
    turn(&w.v[0], MS, true);
    struct gn_chunk_set second = {{UINT64_C(1) << 2}};
    assert_int_equal(gn_place_pin(&w.p, &w.v[0], &second), 0);
    assert_int_equal(turn(&w.v[1], MS, true), 4);
    assert_true(gn_chunk_within(&second, &w.v[0].occupied));
    assert_int_equal(w.v[0].n_occupied, 1);
    assert_int_equal(w.p.n_free, 0);
    assert_int_equal(turn(&w.v[1], MS, true), 0);
}

static void runs_move_together(void **state)
{
    device("turn", 8);
    add(6);
    assert_int_equal(gn_place_join(&w.p, &w.v[0], 1, 4), 0);
    struct gn_chunk_set third = {{UINT64_C(1) << 3}};
    gn_place_set_needs(&w.p, &w.v[0], &third);
    assert_int_equal(gn_chunk_count(&w.v[0].needs), 4);
    assert_int_equal(turn(&w.v[0], MS, true), 4);
    add(5);
    assert_int_equal(turn(&w.v[1], MS, true), 5);
    assert_int_equal(w.v[0].n_occupied, 0);
}

static void withheld_slots_stay_free(void **state)
{
    struct gn_place_plan plan;
    (void)state;
    device("turn", 10);
    struct gn_place_vgpu *a = add(3), *b = add(4);
    turn(a, MS, false);
    gn_place_wake(&w.p, b, w.now);
    /* Seven are free: with four withheld the other one gives its last one. */
    gn_place_withhold(&w.p, 4, w.now + S);
    assert_true(gn_place_plan(&w.p, b, w.now, &plan));
    assert_int_equal(plan.n_out, 1);
    gn_place_withhold(&w.p, 7, w.now + S);
    assert_false(gn_place_plan(&w.p, b, w.now, &plan));
    /* A vGPU that has all stays. */
    assert_true(gn_place_plan(&w.p, a, w.now, &plan));
    assert_int_equal(plan.n_in + plan.n_out, 0);
    w.now += S;
    assert_true(gn_place_plan(&w.p, b, w.now, &plan));
    assert_int_equal(plan.n_out, 0);
}

static void policies_change_live(void **state)
{
    device("turn", 5);
    add(4);
    add(4);
    turn(&w.v[0], MS, true);
    turn(&w.v[1], MS, true);
    gn_place_set_policy(&w.p, gn_place_policy_find("size"), w.now);
    assert_slots(0, 1);
    for (int i = 0; i < 6; i++)
        turn(&w.v[i % 2], MS, true);
    assert_int_equal(turn(&w.v[0], MS, true), 3);
    gn_place_set_policy(&w.p, gn_place_policy_find("turn"), w.now);
    assert_int_equal(turn(&w.v[1], MS, true), 3);
    assert_int_equal(w.p.n_free, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_double_until_there_are_1024),
        cmocka_unit_test(chunk_sets),
        cmocka_unit_test(first_fit_takes_the_lowest_score),
        cmocka_unit_test(first_fit_takes_the_leftmost_of_equals),
        cmocka_unit_test(first_fit_counts_each_vgpu),
        cmocka_unit_test(first_fit_moves_no_vgpu),
        cmocka_unit_test(size_places_as_in_the_paper),
        cmocka_unit_test(size_places_late_large_vgpus_alone),
        cmocka_unit_test(size_puts_small_ones_onto_shared_slots),
        cmocka_unit_test(size_compares_shared_slots),
        cmocka_unit_test(size_replaces_after_the_end_of_a_vgpu_with_own_slots),
        cmocka_unit_test(size_takes_idle_vgpus_as_ended),
        cmocka_unit_test(utilization_places_the_busiest_alone),
        cmocka_unit_test(utilization_is_of_the_last_20_seconds),
        cmocka_unit_test(utilization_replaces_at_create_and_destroy),
        cmocka_unit_test(a_chunk_moves_at_its_next_use),
        cmocka_unit_test(a_switch_copies_shared_slots_only),
        cmocka_unit_test(a_slow_copy_does_not_count),
        cmocka_unit_test(only_changed_chunks_go_out),
        cmocka_unit_test(turn_takes_from_the_furthest),
        cmocka_unit_test(turn_expects_pauses),
        cmocka_unit_test(turn_has_an_order_of_victims),
        cmocka_unit_test(others_cannot_take_a_reserve),
        cmocka_unit_test(pinned_chunks_stay),
        cmocka_unit_test(an_address_that_is_held_gives_way),
        cmocka_unit_test(runs_move_together),
        cmocka_unit_test(withheld_slots_stay_free),
        cmocka_unit_test(policies_change_live),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
