/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swaps under random workers: they ask for more and less memory, work, wait for evicted memory,
 * fail to evict, find no room in their driver and die. What the workers have in their drivers never
 * exceeds the device, a worker is granted the device only with all of its memory there, and each
 * that waits gets its memory. Copies of what is on the device never exceed the swap memory, with
 * all that is evicted.
 */
#include "daemon/schedule/placement_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/worker_wire.h"
#include "place/residency.h"

#define N      6u
#define SLOT   (UINT64_C(1) << 20)
#define SLOTS  16u
#define MEMORY (SLOTS * SLOT)
#define SWAP   (MEMORY * 3 / 2)

struct worker {
    struct gn_placement placement;
    struct gn_shares shares;
    struct gn_grant_slot slot;
    uint64_t leased; /* answered: it may use it */
    uint64_t asked;  /* of the last resize; waits: not answered yet */
    uint64_t limit;  /* of the last RESIDE that it obeys */
    uint64_t told;   /* of an order that it has not answered */
    uint32_t number;
    bool waits, owes, owes_discard, wants;
    uint32_t n_unfit; /* one after another: its driver has had no room */
    bool keeps;       /* of the last RESIDE */
    uint64_t copies;  /* of the bytes in its driver, so many are in host memory, too */
    uint64_t n_turns;
};

struct world {
    struct gn_scheduler *s;
    struct gn_tenant_shares *tenant;
    struct worker w[N];
    uint64_t now, seed;
    uint64_t copied; /* what each answer says */
    unsigned n_swaps, n_copies, n_discards;
};

static uint32_t dice(struct world *x, uint32_t n)
{
    x->seed = x->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(x->seed >> 33) % n;
}

/* Without a thread: the test decides when its work is done. */
static void open_world(struct world *x, uint64_t seed, const char *policy)
{
    const struct gn_placement_options options = {
        .on = true, .policy = gn_place_policy_find(policy), .share_set = true, .share = 200000};
    const struct gn_placement_memory memory = {MEMORY, SLOT, SWAP};
    memset(x, 0, sizeof *x);
    x->seed = seed;
    x->now = UINT64_C(1000000000);
    x->copied = SLOT;
    x->s = calloc(1, sizeof *x->s + sizeof x->s->devices[0]);
    assert_non_null(x->s);
    x->s->n_devices = 1;
    x->s->wake_fd = eventfd(0, EFD_NONBLOCK);
    pthread_mutex_init(&x->s->lock, NULL);
    gn_list_init(&x->s->orders);
    gn_list_init(&x->s->paused);
    gn_sched_init(&x->s->devices[0].sched, gn_sched_policy_at(0), 1000000, x->now);
    assert_int_equal(gn_placement_start(x->s, &options, &memory, eventfd(0, EFD_NONBLOCK)), 0);
}

static struct gn_placing *placing(struct world *x)
{
    return x->s->devices[0].placing;
}

static void start_worker(struct world *x, struct worker *w)
{
    const uint32_t device = 0;
    memset(w, 0, sizeof *w);
    w->limit = UINT64_MAX;
    assert_int_equal(
        gn_placement_join(x->s, &w->placement, &x->tenant, 1, 1 + dice(x, 3), &device, 1, x->now),
        0);
    w->shares.joined = true;
    w->shares.n = 1;
    w->shares.all[0] = (struct gn_share){.of = &w->shares, .slot = &w->slot};
    assert_int_equal(gn_sched_add(&x->s->devices[0].sched, &x->tenant->of_device[0],
                                  &w->shares.all[0].entity, 1, x->now),
                     0);
    gn_placement_bind(x->s, &w->placement, &w->shares, x->now);
}

static void end_turn(struct world *x, struct worker *w, bool more)
{
    const uint64_t used = 1000000 + dice(x, 4000000);
    x->now += used;
    gn_sched_yield(&x->s->devices[0].sched, used, more, x->now);
    gn_placed_turn_over(x->s, &w->shares.all[0], used, more, x->now);
    /* A turn may end when swaps have been decided on: then there is a time for the next decision.
     */
    assert_true(RB_EMPTY(&placing(x)->place.wanting) || placing(x)->again_ns);
}

static bool holds(struct world *x, const struct worker *w)
{
    return x->s->devices[0].sched.running == &w->shares.all[0].entity;
}

static void kill_worker(struct world *x, struct worker *w)
{
    if (holds(x, w))
        end_turn(x, w, false);
    gn_sched_remove(&x->s->devices[0].sched, &w->shares.all[0].entity, x->now);
    gn_placed_unbind(&w->shares.all[0], x->now);
    gn_placement_leave(x->s, &w->placement, x->now);
}

static void resize(struct world *x, struct worker *w, uint64_t bytes)
{
    if (w->waits) {
        /* One ask at a time. But gantryd may look at the size anew, and ROOM is still to come. */
        (void)gn_placement_resize(x->s, &w->placement, 0, w->asked, 0, x->now);
        return;
    }
    /* What it gives back it does not use any more. */
    if (bytes < w->leased)
        w->leased = bytes;
    const int rc = gn_placement_resize(x->s, &w->placement, 0, bytes, 0, x->now);
    if (rc < 0)
        return;
    w->asked = bytes;
    w->waits = !rc;
    if (rc)
        w->leased = bytes;
}

static uint64_t in_driver(const struct worker *w)
{
    return w->limit < w->leased ? w->limit : w->leased;
}

/* It has had `before` bytes in its driver. */
static void bring_in(struct world *x, struct worker *w, uint64_t before)
{
    w->limit = UINT64_MAX;
    w->copies = w->keeps ? w->copies + w->leased - before : 0;
    x->n_copies += w->copies != 0;
}

static void read_orders(struct world *x)
{
    struct gn_placement_order order;
    while (gn_placement_next(x->s, &order)) {
        struct worker *w = gn_container_of(order.of, struct worker, placement);
        if (order.kind == GN_PLACEMENT_RESIDE) {
            assert_false(w->owes);
            w->owes = true;
            w->told = order.bytes;
            w->number = order.number;
            w->keeps = order.keeps_copies;
            w->copies = w->keeps ? w->copies : 0;
            if (order.bytes == UINT64_MAX)
                bring_in(x, w, in_driver(w)); /* it begins to */
            else
                assert_false(holds(x, w));
        } else if (order.kind == GN_PLACEMENT_DISCARD) {
            assert_false(w->owes_discard);
            w->owes_discard = true;
            w->keeps = false;
        } else {
            assert_int_equal(order.kind, GN_PLACEMENT_ROOM);
            if (w->waits)
                resize(x, w, (w->waits = false, w->asked));
        }
    }
}

static void answer(struct world *x, struct worker *w, bool refuses)
{
    const uint64_t in = in_driver(w);
    struct gn_worker_resides r = {.copied_bytes = x->copied};
    if (w->owes_discard) {
        w->owes_discard = false;
        w->copies = 0;
        x->n_discards++;
        assert_int_equal(gn_placement_discarded(x->s, &w->placement, x->now), 0);
        assert_int_equal(gn_placement_discarded(x->s, &w->placement, x->now), -EPROTO);
    }
    if (!w->owes)
        return;
    if (!refuses || in <= w->told)
        w->limit = w->told;
    w->owes = w->wants = false;
    if (refuses && w->told == UINT64_MAX && in >= SLOT && w->n_unfit++ < GN_WORKER_REFUSALS) {
        r.refused_bytes = SLOT * (1 + dice(x, (uint32_t)(in / SLOT)));
        w->limit = in - r.refused_bytes;
        w->wants = true;
    } else if (w->told == UINT64_MAX) {
        w->n_unfit = 0;
    }
    r.resident_bytes = in < w->limit ? in : w->limit;
    assert_int_equal(gn_placement_answered(x->s, &w->placement, w->number, &r, x->now), 0);
    x->now += 100000;
}

static void decide(struct world *x)
{
    gn_placing_decide(x->s, placing(x), x->now);
}

static void grant(struct world *x)
{
    struct gn_sched *of = &x->s->devices[0].sched;
    uint64_t slice_ns, retry_ns;
    if (of->running)
        return;
    struct gn_sched_entity *e = gn_sched_pick(of, x->now, &slice_ns, &retry_ns);
    if (!e)
        return;
    struct gn_share *sh = gn_container_of(e, struct gn_share, entity);
    struct worker *w = gn_container_of(sh->of, struct worker, shares);
    /* Its worker has everything there, and nothing is under way. */
    assert_true(w->limit == UINT64_MAX && !w->owes);
    w->n_turns++;
    gn_placed_turn(sh, x->now);
}

static void want(struct world *x, struct worker *w, bool wants)
{
    if (holds(x, w))
        return;
    if (wants)
        gn_sched_wake(&x->s->devices[0].sched, &w->shares.all[0].entity, x->now);
    else
        gn_sched_sleep(&x->s->devices[0].sched, &w->shares.all[0].entity, x->now);
    gn_placed_ready(&w->shares.all[0], wants, x->now);
}

/* The device has room for all that the drivers have, and the books say no less. */
static void check(struct world *x)
{
    uint64_t in_drivers = 0, copies = 0, evicted = 0;
    uint32_t occupied = 0;
    for (uint32_t i = 0; i < N; i++) {
        struct worker *w = &x->w[i];
        const uint64_t in = in_driver(w);
        w->copies = w->copies < in ? w->copies : in;
        in_drivers += in;
        evicted += w->leased - in;
        copies += w->copies;
        occupied += w->placement.of[0].place.n_occupied;
    }
    assert_true(in_drivers <= MEMORY);
    /* Nothing is evicted before copies have made way for it. */
    assert_true(placing(x)->phase != GN_SWAP_LEAVE || !placing(x)->n_discarding);
    assert_true(!copies || copies + evicted <= placing(x)->swap_bytes);
    assert_int_equal(occupied + placing(x)->place.n_free, SLOTS);
    assert_true(occupied * SLOT >= in_drivers);
}

static void step(struct world *x, uint32_t refusals)
{
    struct worker *w = &x->w[dice(x, N)];
    switch (dice(x, 12)) {
    case 0:
        resize(x, w, w->leased + dice(x, 5) * SLOT);
        break;
    case 1:
        resize(x, w, w->leased / (1 + dice(x, 4)));
        break;
    case 2:
        want(x, w, false);
        break;
    case 3:
    case 4:
        want(x, w, true);
        break;
    case 5:
        if (w->limit != UINT64_MAX && !w->wants) {
            w->wants = true;
            assert_int_equal(gn_placement_wanted(x->s, &w->placement, x->now), 0);
        }
        break;
    case 6:
        if (dice(x, 40) == 0) {
            kill_worker(x, w);
            start_worker(x, w);
        }
        break;
    case 7:
        /* Long pauses in a swap would count as its copies. */
        x->now += dice(x, 3) || placing(x)->phase ? 100000 : UINT64_C(1100000000);
        break;
    case 8:
        if (holds(x, w))
            end_turn(x, w, dice(x, 3));
        break;
    default:
        answer(x, w, dice(x, 100) < refusals);
        break;
    }
    decide(x);
    read_orders(x);
    grant(x);
    check(x);
}

/* Everybody works: each that wants turns gets some. */
static void all_get_in(struct world *x)
{
    for (uint32_t i = 0; i < N; i++) {
        x->w[i].n_turns = 0;
        x->w[i].placement.of[0].place.kept_until_ns = 0; /* it has refused minutes ago */
        x->w[i].placement.of[0].retry_ns = placing(x)->retry_ns = 1;
        want(x, &x->w[i], true);
    }
    gn_place_withhold(&placing(x)->place, 0, 0);
    for (uint32_t n = 0; n < 20000; n++) {
        for (uint32_t i = 0; i < N; i++) {
            answer(x, &x->w[i], false);
            if (holds(x, &x->w[i]))
                end_turn(x, &x->w[i], true);
        }
        x->now += 1000000;
        decide(x);
        read_orders(x);
        grant(x);
        check(x);
    }
    for (uint32_t i = 0; i < N; i++) {
        assert_true(x->w[i].n_turns > 0);
        assert_false(x->w[i].waits);
    }
    x->n_swaps = (unsigned)placing(x)->n_swaps;
}

static void close_world(struct world *x)
{
    for (uint32_t i = 0; i < N; i++)
        kill_worker(x, &x->w[i]);
    assert_int_equal(placing(x)->place.n_free, SLOTS);
    assert_int_equal(placing(x)->phase, GN_SWAP_NONE);
    gn_sched_tenant_remove(&x->s->devices[0].sched, &x->tenant->of_device[0], x->now);
    gn_placement_remove_tenant(x->s, x->tenant);
    free(x->tenant);
    gn_placement_stop(x->s);
    close(x->s->wake_fd);
    close(x->s->news_fd);
    free(x->s);
}

static void run(const char *policy, uint32_t refusals)
{
    unsigned n_swaps = 0, n_copies = 0, n_discards = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world x;
        open_world(&x, seed, policy);
        for (uint32_t i = 0; i < N; i++)
            start_worker(&x, &x.w[i]);
        for (uint32_t i = 0; i < 3000; i++)
            step(&x, refusals);
        all_get_in(&x);
        n_swaps += x.n_swaps;
        n_copies += x.n_copies;
        n_discards += x.n_discards;
        close_world(&x);
    }
    assert_true(n_swaps > 100 && n_copies > 100 && n_discards > 100);
}

static void drivers_never_hold_more_than_the_device(void **state)
{
    (void)state;
    for (unsigned i = 0; gn_place_policy_at(i); i++)
        run(gn_place_policy_at(i)->name, 0);
}

static void workers_that_refuse_are_asked_again(void **state)
{
    (void)state;
    for (unsigned i = 0; gn_place_policy_at(i); i++)
        run(gn_place_policy_at(i)->name, 30);
}

/* Two workers with more than the device; each works until the other has its memory. */
static void take_turns(struct world *x, struct worker *in, struct worker *out)
{
    const uint64_t before = out->n_turns;
    for (uint32_t n = 0; n < 100000 && out->n_turns < before + 2; n++) {
        want(x, in, true);
        want(x, out, true);
        for (uint32_t i = 0; i < N; i++)
            answer(x, &x->w[i], false);
        if (holds(x, in) || holds(x, out))
            end_turn(x, holds(x, in) ? in : out, true);
        x->now += 1000000;
        decide(x);
        read_orders(x);
        grant(x);
        check(x);
    }
    assert_true(out->n_turns >= before + 2);
    if (holds(x, out))
        end_turn(x, out, true);
}

static uint32_t n_changed(const struct worker *w)
{
    return gn_chunk_count(&w->placement.of[0].place.changed);
}

/* gantryd expects of a worker with copies what it last copied, and of others everything. */
static void contents_that_do_not_change_cost_no_copy(void **state)
{
    struct world x;
    (void)state;
    open_world(&x, 1, "turn");
    placing(&x)->swap_bytes = MEMORY;
    for (uint32_t i = 0; i < N; i++)
        start_worker(&x, &x.w[i]);
    struct worker *a = &x.w[0], *b = &x.w[1];
    resize(&x, a, MEMORY);
    take_turns(&x, b, a);
    assert_int_equal(n_changed(a), SLOTS);
    resize(&x, b, MEMORY);
    x.copied = 0;
    for (int i = 0; i < 2; i++) {
        take_turns(&x, a, b);
        take_turns(&x, b, a);
        assert_int_equal(a->copies, 0);
        assert_int_equal(n_changed(a), SLOTS);
    }
    placing(&x)->swap_bytes = 2 * MEMORY;
    x.copied = MEMORY;
    take_turns(&x, a, b);
    take_turns(&x, b, a);
    assert_int_equal(a->copies, MEMORY);
    assert_int_equal(n_changed(a), SLOTS);
    x.copied = 0;
    take_turns(&x, a, b);
    take_turns(&x, b, a);
    assert_int_equal(n_changed(a), 0);
    x.copied = SLOT + 1;
    take_turns(&x, a, b);
    take_turns(&x, b, a);
    assert_int_equal(n_changed(a), 2);
    close_world(&x);
}

/* A worker asks for more memory while it holds the grant, and gives that back after the decision,
 * when it is asked to: the next decision must not wait for another event. */
static void the_end_of_a_turn_is_decided_upon(void **state)
{
    (void)state;
    struct world x;
    open_world(&x, 1, "turn");
    for (uint32_t i = 0; i < N; i++)
        start_worker(&x, &x.w[i]);
    resize(&x, &x.w[0], 12 * SLOT);
    resize(&x, &x.w[1], 4 * SLOT);
    want(&x, &x.w[1], true);
    grant(&x);
    assert_true(holds(&x, &x.w[1]));
    resize(&x, &x.w[1], 8 * SLOT);
    assert_true(x.w[1].waits);
    decide(&x);
    assert_int_equal(placing(&x)->phase, GN_SWAP_NONE);
    assert_int_equal(placing(&x)->again_ns, 0);
    x.now += UINT64_C(1000000000);
    end_turn(&x, &x.w[1], false);
    assert_int_equal(placing(&x)->again_ns, x.now);
    decide(&x);
    assert_int_not_equal(placing(&x)->phase, GN_SWAP_NONE);
    read_orders(&x);
    close_world(&x);
}

/* a is evicted, b is not, and both work until a is ordered in. */
static void await_order(struct world *x, struct worker *a, struct worker *b)
{
    want(x, a, true);
    for (uint32_t n = 0; n < 100000 && !(a->owes && a->told == UINT64_MAX); n++) {
        answer(x, a, false);
        answer(x, b, false);
        if (holds(x, b))
            end_turn(x, b, true);
        x->now += 1000000;
        decide(x);
        read_orders(x);
        grant(x);
    }
    assert_true(a->owes && a->told == UINT64_MAX);
}

/* Two workers that do not fit together; the first one is evicted. */
static void open_two(struct world *x)
{
    open_world(x, 1, "turn");
    for (uint32_t i = 0; i < N; i++)
        start_worker(x, &x->w[i]);
    resize(x, &x->w[0], MEMORY);
    take_turns(x, &x->w[1], &x->w[0]);
    resize(x, &x->w[1], MEMORY - SLOT);
    take_turns(x, &x->w[0], &x->w[1]);
}

static void refuse(struct world *x, struct worker *w, uint64_t bytes)
{
    const struct gn_worker_resides r = {.resident_bytes = w->leased - bytes,
                                        .refused_bytes = bytes};
    w->owes = false;
    w->limit = r.resident_bytes;
    assert_int_equal(gn_placement_answered(x->s, &w->placement, w->number, &r, x->now), 0);
}

/*
 * A worker whose driver has no room for memory that shares its slot with pinned memory: gantryd
 * counts all of it as on the device, and still waits before it orders the worker in again.
 */
static void a_refused_worker_waits_with_pinned_slots(void **state)
{
    struct world x;
    struct worker *a = &x.w[0];
    (void)state;
    open_two(&x);
    a->leased = SLOT;
    assert_int_equal(gn_placement_resize(x.s, &a->placement, 0, SLOT, SLOT - 1, x.now), 1);
    await_order(&x, a, &x.w[1]);
    refuse(&x, a, 1);
    for (int i = 0; i < 2; i++) {
        decide(&x);
        read_orders(&x);
        assert_true(a->owes == (i == 1));
        x.now += UINT64_C(1000000000);
    }
    close_world(&x);
}

/* Each refusal keeps memory from others. A worker that refuses more often than it may is ended. */
static void refusals_without_end_end_the_worker(void **state)
{
    struct world x;
    struct worker *a = &x.w[0];
    (void)state;
    open_two(&x);
    for (uint32_t i = 0; i <= GN_WORKER_REFUSALS; i++) {
        await_order(&x, a, &x.w[1]);
        assert_false(a->placement.of[0].ended);
        refuse(&x, a, SLOT);
    }
    assert_true(a->placement.of[0].ended);
    close_world(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_never_hold_more_than_the_device),
        cmocka_unit_test(workers_that_refuse_are_asked_again),
        cmocka_unit_test(contents_that_do_not_change_cost_no_copy),
        cmocka_unit_test(the_end_of_a_turn_is_decided_upon),
        cmocka_unit_test(a_refused_worker_waits_with_pinned_slots),
        cmocka_unit_test(refusals_without_end_end_the_worker),
    };
    return cmocka_run_group_tests_name("daemon-placement", tests, NULL, NULL);
}
