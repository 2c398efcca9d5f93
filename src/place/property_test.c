/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random steps on a device's memory under every policy; after each one the invariants must hold.
 * The number of steps is the first argument: test-place-property 2000000 is the long form, with a
 * seed as the second.
 */
#include "place/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "place/place_internal.h"

#define MS        UINT64_C(1000000)
#define N_TENANTS 5
#define N_VGPUS   20

static uint64_t n_steps = 60000, seed = 1;

static struct gn_place p;
static struct gn_place_tenant tenants[N_TENANTS];
static struct gn_place_vgpu vgpus[N_VGPUS];
static bool present[N_VGPUS];
static uint64_t now;
static uint64_t n_plans, n_refused, n_swaps, n_joined, n_pinned; /* that they happen at all */

static uint32_t draw(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % n);
}

static struct gn_chunk_set draw_chunks(const struct gn_place_vgpu *v)
{
    struct gn_chunk_set s = {{0}};
    const uint32_t n = v->n_chunks, first = n ? draw(n) : 0;
    for (uint32_t k = first; k < n && k < first + 1 + draw(8); k++)
        gn_chunk_add(&s, k);
    return s;
}

/* ---- what must hold */

static void check_vgpu(const struct gn_place_vgpu *v)
{
    const struct gn_chunk_set all = gn_chunk_range(v->n_chunks);
    uint32_t n = 0;
    assert_int_equal(gn_chunk_count(&v->occupied), v->n_occupied);
    assert_int_equal(gn_chunk_count(&v->pinned), v->n_pinned);
    assert_true(gn_chunk_within(&v->occupied, &all));
    assert_true(gn_chunk_within(&v->needs, &all));
    assert_true(gn_chunk_within(&v->pinned, &all));
    assert_true(gn_chunk_within(&v->changed, &v->occupied));
    assert_int_equal(!gn_list_empty(&v->occupying), v->n_occupied > 0);
    assert_int_equal(v->wants, p.swap_share && v->ready && !v->granted && !gn_place_is_resident(v));
    for (uint32_t s = 0; p.policy->addressed && s < p.n_slots; s++) {
        if (p.owner[s] == v) {
            assert_true(gn_chunk_has(&v->occupied, p.chunk[s]));
            n++;
        }
    }
    /* One owner a slot, one slot a chunk. */
    assert_int_equal(n, p.policy->addressed ? v->n_occupied : 0);
    if (p.policy->addressed && !v->idle && v->n_chunks)
        assert_true(v->first_slot + v->n_chunks <= p.n_slots);
}

static void check_all(void)
{
    uint32_t occupied = 0, reserved = 0, n_wanting = 0, n_wants = 0;
    uint32_t of_tenant[N_TENANTS] = {0}, chunks[N_TENANTS] = {0}, pins[N_TENANTS] = {0};
    for (unsigned i = 0; i < N_VGPUS; i++) {
        if (!present[i])
            continue;
        const struct gn_place_vgpu *v = &vgpus[i];
        const long t = v->tenant - tenants;
        check_vgpu(v);
        occupied += v->n_occupied;
        of_tenant[t] += v->n_occupied;
        chunks[t] += v->n_chunks;
        pins[t] += v->n_pinned;
        n_wants += v->wants;
        /* I6: all of it can be on the device at once. */
        assert_true(v->n_chunks + p.n_kept - v->tenant->n_kept + v->tenant->n_pinned -
                        v->n_pinned <=
                    p.n_slots);
    }
    for (unsigned i = 0; i < N_TENANTS; i++) {
        assert_int_equal(tenants[i].n_occupied, of_tenant[i]);
        assert_int_equal(tenants[i].n_chunks, chunks[i]);
        assert_int_equal(tenants[i].n_pinned, pins[i]);
        assert_int_equal(tenants[i].n_kept, gn_place_kept(&tenants[i]));
        reserved += tenants[i].reserve;
    }
    assert_int_equal(occupied + p.n_free, p.n_slots); /* I1 */
    assert_int_equal(reserved, p.n_reserved);
    assert_true(p.n_kept <= p.n_slots);
    struct gn_place_vgpu *v, *before = NULL;
    RB_FOREACH(v, gn_place_wanting, &p.wanting)
    {
        assert_true(!before || (int64_t)(v->wanting_key - before->wanting_key) >= 0);
        before = v;
        n_wanting++;
    }
    assert_int_equal(n_wanting, n_wants);
}

static void check_plan(const struct gn_place_plan *plan)
{
    uint32_t leaving[N_TENANTS] = {0}, n_out = 0;
    gn_list_for_each(v, &plan->victims, struct gn_place_vgpu, victim)
    {
        const struct gn_chunk_set pinned = gn_chunk_both(&v->leaving, &v->pinned);
        const struct gn_chunk_set needed = gn_chunk_both(&v->leaving, &v->needs);
        assert_false(gn_chunk_empty(&v->leaving));
        assert_true(gn_chunk_within(&v->leaving, &v->occupied));
        assert_true(gn_chunk_empty(&pinned));
        assert_true(v != plan->vgpu || gn_chunk_empty(&needed));
        assert_false(p.swap_share && v->ready && !v->ran && gn_place_is_resident(v));
        gn_chunk_for_each(k, &v->leaving)
        {
            uint32_t first, end;
            gn_place_run(v, k, &first, &end);
            for (uint32_t i = first; i < end; i++)
                assert_int_equal(gn_chunk_has(&v->leaving, i), gn_chunk_has(&v->occupied, i));
        }
        leaving[v->tenant - tenants] += gn_chunk_count(&v->leaving);
        n_out += gn_chunk_count(&v->leaving);
    }
    assert_int_equal(n_out, plan->n_out);
    assert_true(plan->n_changed <= n_out);
    assert_true(plan->n_in - gn_chunk_count(&plan->moved) <= p.n_free + n_out);
    assert_true(gn_chunk_within(&plan->in, &plan->vgpu->needs));
    for (unsigned i = 0; i < N_TENANTS; i++) {
        const struct gn_place_tenant *t = &tenants[i];
        /* I4 */
        if (t != plan->vgpu->tenant && leaving[i])
            assert_true(t->n_occupied - leaving[i] >= t->reserve);
    }
}

/* ---- the steps */

static struct gn_place_vgpu *draw_present(void)
{
    const unsigned i = draw(N_VGPUS);
    return present[i] ? &vgpus[i] : NULL;
}

static void apply(struct gn_place_plan *plan)
{
    check_plan(plan);
    gn_place_apply(&p, plan, now);
    assert_true(gn_place_is_resident(plan->vgpu));
    n_swaps += plan->n_out > 0;
}

static void step_turn(struct gn_place_vgpu *v)
{
    struct gn_place_plan plan;
    if (p.swap_share && !gn_place_is_resident(v))
        return;
    gn_place_wake(&p, v, now);
    /* I6 promises that it fits. */
    n_plans++;
    assert_true(gn_place_plan(&p, v, now, &plan) || p.swap_share);
    if (p.swap_share && plan.n_in)
        return;
    apply(&plan);
    gn_place_turn(&p, v, now);
    check_all();
    const struct gn_chunk_set written = draw_chunks(v);
    gn_place_set_changed(v, &written);
    const uint64_t ns = draw(30) * MS;
    now += ns;
    gn_place_yield(&p, v, ns, draw(2), now);
}

static void step_period(void)
{
    struct gn_place_plan plan;
    uint64_t again;
    if (gn_residency_next(&p, now, &plan, &again))
        apply(&plan);
}

static void step_size(unsigned i)
{
    struct gn_place_vgpu *v = &vgpus[i];
    if (!present[i]) {
        present[i] = gn_place_add(&p, &tenants[draw(N_TENANTS)], v, 1 + draw(300),
                                  draw(1 + p.n_slots / 3), now) == 0;
        n_refused += !present[i];
    } else if (draw(3) == 0) {
        gn_place_remove(&p, v, now);
        present[i] = false;
    } else {
        const uint32_t n = draw(1 + p.n_slots / 2);
        const struct gn_chunk_set all = gn_chunk_range(v->n_chunks), left = gn_chunk_range(n);
        const struct gn_chunk_set gone = gn_chunk_minus(&all, &left);
        gn_place_unpin(&p, v, &gone);
        gn_place_vacate(&p, v, &gone);
        n_refused += gn_place_resize(&p, v, n, now) != 0;
    }
}

static void step_pin(struct gn_place_vgpu *v)
{
    const struct gn_chunk_set chunks = draw_chunks(v);
    const uint32_t before = v->tenant->n_pinned;
    if (draw(2))
        gn_place_unpin(&p, v, &chunks);
    else if (gn_place_pin(&p, v, &chunks) == 0 && v->tenant->n_pinned > before) {
        n_pinned++;
        assert_true(v->tenant->n_pinned <= gn_place_pin_limit(&p, v->tenant)); /* I5 */
    }
}

static void step_tenant(void)
{
    struct gn_place_tenant *t = &tenants[draw(N_TENANTS)];
    if (draw(2))
        n_refused += gn_place_tenant_set_reserve(&p, t, draw(1 + p.n_slots / 5)) != 0;
    else
        assert_int_equal(gn_place_tenant_set_weight(&p, t, 1 + draw(1000)), 0);
}

/* Twice is as good as once. */
static void step_rearrange(void)
{
    uint32_t first[N_VGPUS];
    if (!p.policy->rearrange)
        return;
    p.policy->rearrange(&p);
    for (unsigned i = 0; i < N_VGPUS; i++)
        first[i] = vgpus[i].first_slot;
    const uint64_t n = p.n_rearranged;
    p.policy->rearrange(&p);
    for (unsigned i = 0; i < N_VGPUS; i++)
        assert_true(!present[i] || first[i] == vgpus[i].first_slot);
    assert_int_equal(p.n_rearranged, n);
}

static void step(void)
{
    struct gn_place_vgpu *v = draw_present();
    struct gn_chunk_set chunks;
    const uint32_t what = draw(100);
    now += draw(1000) * 1000;
    if (what < 6)
        step_size(draw(N_VGPUS));
    else if (what < 8)
        step_tenant();
    else if (what < 9)
        step_rearrange();
    else if (what < 10)
        gn_place_tick(&p, now += draw(40) * 1000 * MS);
    else if (what < 30)
        step_period();
    else if (!v)
        return;
    else if (what < 35)
        step_pin(v);
    else if (what < 38)
        n_joined += gn_place_join(&p, v, draw(p.n_slots), 1 + draw(6)) == 0;
    else if (what < 45) {
        chunks = draw_chunks(v);
        gn_place_set_needs(&p, v, &chunks);
    } else if (what < 50) {
        chunks = gn_chunk_range(v->n_chunks);
        gn_place_set_needs(&p, v, &chunks);
    } else if (what < 55)
        gn_place_sleep(&p, v, now);
    else if (what < 60)
        gn_place_wake(&p, v, now);
    else if (what < 62) {
        chunks = draw_chunks(v);
        gn_place_set_clean(v, &chunks);
    } else if (what < 64) {
        chunks = draw_chunks(v);
        gn_place_vacate(&p, v, &chunks);
    } else
        step_turn(v);
}

static void device(const struct gn_place_policy *policy)
{
    memset(present, 0, sizeof present);
    assert_int_equal(gn_place_init(&p, policy, (8 + draw(100)) * GN_PLACE_SLOT_BYTES, 0, now), 0);
    gn_place_note_copy(&p, true, 1, MS);
    gn_place_note_copy(&p, false, 1, MS);
    gn_residency_set_share(&p, draw(2) * (1 + draw(300000)));
    for (unsigned i = 0; i < N_TENANTS; i++)
        assert_int_equal(gn_place_tenant_add(&p, &tenants[i], 1 + draw(500), 0), 0);
}

static void random_steps(void **state)
{
    printf("%llu steps, seed %llu\n", (unsigned long long)n_steps, (unsigned long long)seed);
    for (uint64_t i = 0; i < n_steps; i++) {
        if (i % 2000 == 0)
            device(gn_place_policy_at(draw(4)));
        /* Live: some steps under another policy. */
        if (i % 2000 == 1500)
            gn_place_set_policy(&p, gn_place_policy_at(draw(4)), now);
        step();
        check_all();
    }
    printf("%llu plans, %llu swaps, %llu refusals, %llu pins, %llu runs\n",
           (unsigned long long)n_plans, (unsigned long long)n_swaps, (unsigned long long)n_refused,
           (unsigned long long)n_pinned, (unsigned long long)n_joined);
    assert_true(n_plans > n_steps / 20 && n_swaps > n_steps / 100 && n_refused && n_pinned &&
                n_joined);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_steps)};
    if (argc > 1)
        n_steps = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests_name("place-property", tests, NULL, NULL);
}
