/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the scheduler's thread: this thread plays the workers on their grant pages. Timeouts
 * only end waits that would last forever. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/schedule/scheduler.h"
#include "shm/trace_ring.h"

#define PATIENCE_NS UINT64_C(20000000000)
#define SLICE_NS    5000000u

static struct gn_scheduler *scheduler;
static struct gn_shares a, b;
static struct gn_tenant_shares *of_a, *of_b;
static int late_fd;

static struct gn_grant_slot *slot(struct gn_shares *sh)
{
    return sh->all[0].slot;
}

static void start(uint64_t limit_ns, uint32_t weight_a, uint32_t weight_b)
{
    static const uint32_t devices[] = {1};
    static const uint64_t slices_ns[] = {6 * SLICE_NS, SLICE_NS};
    late_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    of_a = of_b = NULL;
    assert_int_equal(gn_scheduler_start(&scheduler, gn_sched_policy_at(0), slices_ns, 2, limit_ns,
                                        late_fd, NULL),
                     0);
    assert_int_equal(gn_shares_init(&a, 10), 0);
    assert_int_equal(gn_shares_init(&b, 11), 0);
    assert_int_equal(gn_scheduler_join(scheduler, &a, &of_a, weight_a, 100, devices, 1), 0);
    assert_int_equal(gn_scheduler_join(scheduler, &b, &of_b, weight_b, 100, devices, 1), 0);
}

static void stop(void)
{
    gn_scheduler_leave(scheduler, &a);
    gn_scheduler_leave(scheduler, &b);
    gn_scheduler_forget(scheduler, of_a);
    gn_scheduler_forget(scheduler, of_b);
    gn_scheduler_stop(scheduler);
    gn_shares_fini(&a);
    gn_shares_fini(&b);
    close(late_fd);
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void until_state(struct gn_shares *sh, enum gn_grant_state wanted)
{
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    while (gn_grant_look(slot(sh)) != wanted && gn_now_ns() < end)
        pause_a_little();
    assert_int_equal(gn_grant_look(slot(sh)), wanted);
}

static void until_preempted(struct gn_shares *sh)
{
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    while (!gn_grant_is_preempted(slot(sh)) && gn_now_ns() < end)
        pause_a_little();
    assert_true(gn_grant_is_preempted(slot(sh)));
}

static void tell(struct gn_shares *sh)
{
    const uint64_t one = 1;
    assert_int_equal(write(sh->tell_fd, &one, sizeof one), sizeof one);
}

static bool acquire(struct gn_shares *sh)
{
    bool news, held = gn_grant_acquire(slot(sh), &news);
    if (news)
        tell(sh);
    return held;
}

static void yield_grant(struct gn_shares *sh, bool again)
{
    gn_grant_yield(slot(sh), again);
    tell(sh);
}

static void alone_it_is_asked_once(void **state)
{
    start(0, 1, 1);
    assert_false(acquire(&a));
    until_state(&a, GN_GRANT_HELD);
    for (int i = 0; i < 3; i++) {
        assert_true(acquire(&a));
        assert_false(gn_grant_park(slot(&a)));
        assert_int_equal(gn_grant_look(slot(&a)), GN_GRANT_PARKED);
    }
    stop();
}

static void parked_grant_is_taken_at_once(void **state)
{
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    assert_false(gn_grant_park(slot(&a)));
    acquire(&b);
    until_state(&b, GN_GRANT_HELD);
    assert_int_equal(gn_grant_look(slot(&a)), GN_GRANT_NONE);
    stop();
}

static void working_holder_is_preempted(void **state)
{
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    assert_int_equal(gn_grant_look(slot(&b)), GN_GRANT_WANTED);
    yield_grant(&a, true);
    until_state(&b, GN_GRANT_HELD);
    assert_true(gn_grant_is_preempted(slot(&b)));
    assert_int_equal(atomic_load(&slot(&b)->slice_ns), SLICE_NS);
    /* It has no more work and another vGPU waits: it yields at once. */
    assert_true(gn_grant_park(slot(&b)));
    tell(&b);
    until_state(&a, GN_GRANT_HELD);
    stop();
}

static void a_grant_that_fails_forfeits_what_was_owed(void **state)
{
    (void)state;
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    /* It does not notify gantryd, which finds out when it grants the device. */
    assert_true(gn_grant_decline(slot(&b)));
    yield_grant(&a, true);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    /* This takes the scheduler's lock: its thread does not touch b again until a yields. */
    struct gn_share_figures f;
    gn_scheduler_figures(scheduler, &b, 0, &f);
    assert_int_equal(f.n_grants, 1);
    assert_int_equal(b.all[0].entity.node.fair.owed, 0);
    yield_grant(&a, false);
    until_state(&b, GN_GRANT_HELD);
    stop();
}

/* Waits for the next event, which must be this one. */
static void expect_event(struct gn_trace_ring *ring, struct gn_trace_reader *at,
                         struct gn_shares *sh, enum gn_trace_kind kind)
{
    static uint64_t last_ns;
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    struct gn_trace_event e;
    bool got;
    while (!(got = gn_trace_get(ring, at, &e)) && gn_now_ns() < end)
        pause_a_little();
    assert_true(got);
    assert_string_equal(gn_trace_kinds[e.kind].name, gn_trace_kinds[kind].name);
    assert_int_equal(e.vgpu, sh->vgpu);
    assert_int_equal(e.device, 1);
    assert_true(e.at_ns >= last_ns && e.at_ns <= gn_now_ns());
    last_ns = e.at_ns;
    if (kind == GN_TRACE_GRANT && last_ns && e.a)
        assert_int_equal(e.a, SLICE_NS);
}

static void trace_has_each_turn(void **state)
{
    struct gn_trace_ring *ring = aligned_alloc(128, GN_TRACE_RING_BYTES);
    struct gn_trace_reader at = {0};
    struct gn_trace_event e;
    memset(ring, 0, GN_TRACE_RING_BYTES);
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    gn_scheduler_trace(scheduler, ring, 0);
    expect_event(ring, &at, &a, GN_TRACE_GRANT); /* the state at the start */
    acquire(&b);
    expect_event(ring, &at, &b, GN_TRACE_WANT);
    expect_event(ring, &at, &a, GN_TRACE_PREEMPT);
    until_preempted(&a);
    yield_grant(&a, true);
    expect_event(ring, &at, &a, GN_TRACE_BACK);
    expect_event(ring, &at, &b, GN_TRACE_GRANT);
    until_state(&b, GN_GRANT_HELD);
    yield_grant(&b, false);
    expect_event(ring, &at, &b, GN_TRACE_BACK);
    expect_event(ring, &at, &a, GN_TRACE_GRANT);
    until_state(&a, GN_GRANT_HELD);
    /* Events of one vGPU. */
    gn_scheduler_trace(scheduler, ring, b.vgpu);
    yield_grant(&a, false);
    until_state(&a, GN_GRANT_NONE);
    acquire(&b);
    expect_event(ring, &at, &b, GN_TRACE_WANT);
    expect_event(ring, &at, &b, GN_TRACE_GRANT);
    until_state(&b, GN_GRANT_HELD);
    /* Tracing is off. */
    gn_scheduler_trace(scheduler, NULL, 0);
    yield_grant(&b, false);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    assert_false(gn_trace_get(ring, &at, &e));
    assert_int_equal(gn_trace_dropped(ring, &at), 0);
    stop();
    free(ring);
}

static void leaving_holder_frees_device(void **state)
{
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    gn_scheduler_leave(scheduler, &a);
    until_state(&b, GN_GRANT_HELD);
    stop();
}

/* Both always have work and hold the device for about the same time: turns follow the weights. */
static void turns_go_by_weight(void **state)
{
    struct gn_share_figures fa, fb;
    start(0, 100, 300);
    acquire(&a);
    acquire(&b);
    for (int i = 0; i < 400; i++) {
        const uint64_t patience = gn_now_ns() + PATIENCE_NS;
        while (gn_grant_look(slot(&a)) != GN_GRANT_HELD &&
               gn_grant_look(slot(&b)) != GN_GRANT_HELD && gn_now_ns() < patience)
            pause_a_little();
        struct gn_shares *holder = gn_grant_look(slot(&a)) == GN_GRANT_HELD ? &a : &b;
        until_state(holder, GN_GRANT_HELD);
        for (const uint64_t end = gn_now_ns() + 1000000; gn_now_ns() < end;)
            pause_a_little();
        yield_grant(holder, true);
    }
    gn_scheduler_figures(scheduler, &a, 0, &fa);
    gn_scheduler_figures(scheduler, &b, 0, &fb);
    /* In proportion by time, within a turn or two. */
    assert_true(fb.used_ns > 2 * fa.used_ns);
    assert_true(fb.used_ns < 4 * fa.used_ns);
    assert_true(fa.waited_ns > fb.waited_ns);
    stop();
}

/* The time that a vGPU waited is charged even if it leaves before it gets the device. */
static void a_waiter_that_leaves_is_charged_for(void **state)
{
    struct gn_share_figures f;
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    for (const uint64_t end = gn_now_ns() + 5000000; gn_now_ns() < end;)
        pause_a_little();
    gn_scheduler_leave(scheduler, &b);
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    while (gn_grant_is_preempted(slot(&a)) && gn_now_ns() < end)
        pause_a_little();
    gn_scheduler_figures(scheduler, &a, 0, &f);
    assert_true(f.used_ns >= 5000000);
    stop();
}

static void another_policy_keeps_the_waiters(void **state)
{
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    until_preempted(&a);
    gn_scheduler_set_policy(scheduler, gn_sched_policy_find("rr"));
    assert_string_equal(gn_scheduler_policy(scheduler)->name, "rr");
    yield_grant(&a, true);
    until_state(&b, GN_GRANT_HELD);
    assert_int_equal(atomic_load(&slot(&b)->slice_ns), SLICE_NS);
    yield_grant(&b, true);
    until_state(&a, GN_GRANT_HELD);
    stop();
}

/* Waits for the next late vGPU. */
static uint32_t next_late(bool *ret_over_limit)
{
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    uint32_t vgpu;
    while (!(vgpu = gn_scheduler_next_late(scheduler, ret_over_limit)) && gn_now_ns() < end)
        pause_a_little();
    return vgpu;
}

static void holder_over_limit_is_reported(void **state)
{
    bool over_limit;
    (void)state;
    start(20000000, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    assert_int_equal(gn_scheduler_next_late(scheduler, &over_limit), 0);
    acquire(&b);
    assert_int_equal(next_late(&over_limit), 10);
    assert_true(over_limit);
    assert_int_equal(gn_scheduler_next_late(scheduler, &over_limit), 0);
    gn_scheduler_leave(scheduler, &a);
    until_state(&b, GN_GRANT_HELD);
    assert_int_equal(gn_scheduler_next_late(scheduler, &over_limit), 0);
    stop();
}

/* Before the limit, and without one, a holder that does not answer is reported again and again. */
static void late_holder_is_reported_again(void **state)
{
    bool over_limit;
    (void)state;
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    acquire(&b);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next_late(&over_limit), 10);
        assert_false(over_limit);
    }
    yield_grant(&a, false);
    until_state(&b, GN_GRANT_HELD);
    assert_int_equal(gn_scheduler_next_late(scheduler, &over_limit), 0);
    stop();
}

/* A capped vGPU is preempted from the start even if it is alone; above its cap it waits until the
 * cap is lifted. */
static void a_cap_is_kept_and_lifted(void **state)
{
    static const bool floors[] = {true, true};
    start(0, 1, 1);
    gn_scheduler_bound(scheduler, of_a, 100, 0, floors);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    until_preempted(&a);
    /* The cap is a ten-thousandth: this pause uses up more time than PATIENCE_NS refills. */
    for (const uint64_t end = gn_now_ns() + 2100000; gn_now_ns() < end;)
        pause_a_little();
    yield_grant(&a, true);
    acquire(&b);
    until_state(&b, GN_GRANT_HELD); /* a vGPU without a cap is not delayed */
    assert_int_equal(gn_grant_look(slot(&a)), GN_GRANT_WANTED);
    yield_grant(&b, false);
    /* A vGPU that comes and goes proves that the scheduler has looked in between. */
    acquire(&b);
    until_state(&b, GN_GRANT_HELD);
    yield_grant(&b, false);
    assert_int_equal(gn_grant_look(slot(&a)), GN_GRANT_WANTED);
    gn_scheduler_bound(scheduler, of_a, 0, 0, floors);
    until_state(&a, GN_GRANT_HELD);
    assert_false(gn_grant_is_preempted(slot(&a)));
    gn_scheduler_bound(scheduler, NULL, 1, 1, floors);
    stop();
}

/* A floor takes precedence over weights, on the devices where it applies. */
static void a_floor_goes_first(void **state)
{
    static const bool here[] = {false, true}, elsewhere[] = {true, false};
    struct gn_share_figures fa, fb;
    for (int i = 0; i < 2; i++) {
        start(0, 1, 1000);
        gn_scheduler_bound(scheduler, of_a, 0, 900000, i ? elsewhere : here);
        /* Both floors together exceed the device: the second is ignored. */
        gn_scheduler_bound(scheduler, of_b, 0, 200000, i ? elsewhere : here);
        acquire(&a);
        acquire(&b);
        /* By weight, a has one turn in a thousand. */
        memset(&fa, 0, sizeof fa);
        for (int j = 0; j < (i ? 100 : 3000) && fa.n_grants < 20; j++) {
            const uint64_t patience = gn_now_ns() + PATIENCE_NS;
            while (gn_grant_look(slot(&a)) != GN_GRANT_HELD &&
                   gn_grant_look(slot(&b)) != GN_GRANT_HELD && gn_now_ns() < patience)
                pause_a_little();
            struct gn_shares *holder = gn_grant_look(slot(&a)) == GN_GRANT_HELD ? &a : &b;
            until_state(holder, GN_GRANT_HELD);
            for (const uint64_t end = gn_now_ns() + 1000000; gn_now_ns() < end;)
                pause_a_little();
            yield_grant(holder, true);
            gn_scheduler_figures(scheduler, &a, 0, &fa);
        }
        gn_scheduler_figures(scheduler, &b, 0, &fb);
        assert_true(fa.busy && fb.busy && fa.weight == 100 && fa.tenant_weight == 1 &&
                    fb.tenant_weight == 1000);
        if (i ? fa.n_grants > 5 : fa.n_grants < 20)
            fail_msg("%d: %lu turns", i, (unsigned long)fa.n_grants);
        stop();
    }
}

/* Garbage in a page affects only the vGPU of that page. */
static void a_page_of_nonsense(void **state)
{
    start(0, 1, 1);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    for (uint32_t i = 0; i < 200; i++) {
        atomic_store(&slot(&b)->state, i * 2654435761u);
        tell(&b);
    }
    pause_a_little();
    assert_int_equal(gn_grant_look(slot(&a)), GN_GRANT_HELD);
    atomic_store(&slot(&b)->state, GN_GRANT_NONE);
    acquire(&b);
    until_preempted(&a);
    yield_grant(&a, false);
    until_state(&b, GN_GRANT_HELD);
    stop();
}

/* The worker has the eventfd, too: it may read it empty and make reads block. */
static void emptied_eventfd_delays_nobody(void **state)
{
    uint64_t counter;
    start(0, 1, 1);
    assert_int_equal(fcntl(b.tell_fd, F_SETFL, 0), 0);
    for (int i = 0; i < 20000; i++) {
        tell(&b);
        struct pollfd p = {.fd = b.tell_fd, .events = POLLIN};
        /* If another process read it, this read would block. */
        assert_int_equal(poll(&p, 1, 0), 1);
        assert_int_equal(read(b.tell_fd, &counter, sizeof counter), sizeof counter);
    }
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    stop();
}

/* A worker that notifies too often is ignored for a moment, then heard again. */
static void flood_of_notifications_is_paused(void **state)
{
    const uint64_t end = gn_now_ns() + PATIENCE_NS;
    start(0, 1, 1);
    while (!gn_scheduler_is_paused(scheduler, &b) && gn_now_ns() < end)
        tell(&b);
    assert_true(gn_scheduler_is_paused(scheduler, &b));
    assert_false(gn_scheduler_is_paused(scheduler, &a));
    acquire(&b);
    until_state(&b, GN_GRANT_HELD);
    assert_false(gn_scheduler_is_paused(scheduler, &b));
    /* A paused vGPU that leaves delays no other. */
    while (!gn_scheduler_is_paused(scheduler, &b) && gn_now_ns() < end)
        tell(&b);
    gn_scheduler_leave(scheduler, &b);
    acquire(&a);
    until_state(&a, GN_GRANT_HELD);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_is_asked_once),
        cmocka_unit_test(parked_grant_is_taken_at_once),
        cmocka_unit_test(working_holder_is_preempted),
        cmocka_unit_test(a_grant_that_fails_forfeits_what_was_owed),
        cmocka_unit_test(trace_has_each_turn),
        cmocka_unit_test(leaving_holder_frees_device),
        cmocka_unit_test(turns_go_by_weight),
        cmocka_unit_test(a_waiter_that_leaves_is_charged_for),
        cmocka_unit_test(another_policy_keeps_the_waiters),
        cmocka_unit_test(holder_over_limit_is_reported),
        cmocka_unit_test(late_holder_is_reported_again),
        cmocka_unit_test(a_cap_is_kept_and_lifted),
        cmocka_unit_test(a_floor_goes_first),
        cmocka_unit_test(a_page_of_nonsense),
        cmocka_unit_test(emptied_eventfd_delays_nobody),
        cmocka_unit_test(flood_of_notifications_is_paused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
