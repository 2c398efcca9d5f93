/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a device: it runs one kernel at a time, to its end. A grant lasts until its slice is
 * used. A vGPU without work gives the grant back after the spin time, or polls until the slice is
 * over, as its policy requires. The events of a run call it, on the thread of the run. It never
 * makes a scheduling decision itself: src/sched does.
 */
#include "sim/sim_internal.h"

#include "base/clock.h"

static uint64_t clock_now(const struct gn_sim_world *world)
{
    return world->measure ? gn_now_ns() : 0;
}

static void clock_stop(struct gn_sim_world *world, uint64_t since_ns)
{
    const uint64_t ns = clock_now(world) - since_ns;
    if (ns > world->clock_cost_ns)
        world->result->decisions.clock_ns += ns - world->clock_cost_ns;
}

static void run(struct gn_sim_world *world, struct gn_sim_device *d)
{
    const uint64_t ns = gn_sim_program_begin(world, d->holder);
    d->state = GN_SIM_RUNS;
    d->began_ns = d->settled_ns = world->now_ns;
    gn_sim_heap_set(&world->heap, &d->timer, world->now_ns + ns);
}

/* A launch that begins while its vGPU holds the device waited only for earlier launches. */
static void run_next(struct gn_sim_world *world, struct gn_sim_device *d)
{
    const uint64_t launched_ns = gn_sim_program_launched(world, d->holder);
    if (launched_ns != GN_SIM_NEVER)
        gn_sim_add_wait(world, d->holder, world->now_ns - launched_ns);
    run(world, d);
}

static void note_contention(struct gn_sim_world *world, struct gn_sim_device *d)
{
    if (d->contended_ns == GN_SIM_NEVER && gn_sched_contended(&d->sched))
        d->contended_ns = world->now_ns;
}

/* The holder's first kernel of this grant. */
static void begin_turn(struct gn_sim_world *world, struct gn_sim_device *d)
{
    struct gn_sim_vgpu *v = d->holder;
    const uint64_t launched_ns = gn_sim_program_launched(world, v);
    d->granted_ns = world->now_ns;
    gn_sim_memory_turn(world, d);
    gn_sim_add_wait(world, v,
                    world->now_ns -
                        (launched_ns < v->e.ready_at_ns ? launched_ns : v->e.ready_at_ns));
    run(world, d);
}

static void pick(struct gn_sim_world *world, struct gn_sim_device *d)
{
    uint64_t slice_ns, retry_ns;
    gn_sim_memory_swap(world, d);
    const uint64_t since = clock_now(world);
    struct gn_sched_entity *e = gn_sched_pick(&d->sched, world->now_ns, &slice_ns, &retry_ns);
    clock_stop(world, since);
    world->result->decisions.n_picks++;
    if (!e) {
        gn_sim_heap_clear(&world->heap, &d->timer);
        if (retry_ns)
            gn_sim_heap_set(&world->heap, &d->timer,
                            retry_ns > world->now_ns ? retry_ns : world->now_ns + 1);
        return;
    }
    struct gn_sim_vgpu *v = gn_container_of(e, struct gn_sim_vgpu, e);
    d->holder = v;
    d->asked = false;
    d->slice_ns = slice_ns;
    d->used_ns = d->wasted_ns = 0;
    d->contended_ns = GN_SIM_NEVER;
    d->result->turns++;
    v->usage->turns++;
    note_contention(world, d);
    const uint64_t copy_ns = gn_sim_memory_copy(world, d);
    if (copy_ns) {
        d->state = GN_SIM_COPIES;
        gn_sim_heap_set(&world->heap, &d->timer, world->now_ns + copy_ns);
    } else {
        begin_turn(world, d);
    }
}

void gn_sim_device_pick(struct gn_sim_world *world, struct gn_sim_device *d)
{
    if (d->state == GN_SIM_FREE)
        pick(world, d);
}

/* Counts the time without work as wasted from when another vGPU waited. */
static void end_idling(struct gn_sim_world *world, struct gn_sim_device *d)
{
    const uint64_t since = d->idle_ns > d->contended_ns ? d->idle_ns : d->contended_ns;
    if (d->state != GN_SIM_HOLDS || d->contended_ns == GN_SIM_NEVER)
        return;
    d->wasted_ns += world->now_ns - since;
    d->result->wasted_ns += world->now_ns - since;
}

static void give_back(struct gn_sim_world *world, struct gn_sim_device *d, bool more_work)
{
    end_idling(world, d);
    if (d->state == GN_SIM_COPIES)
        gn_sim_memory_abort(world, d, &d->timer);
    gn_sim_memory_yield(world, d, d->used_ns + d->wasted_ns, more_work);
    d->state = GN_SIM_FREE;
    d->holder = NULL;
    gn_sim_heap_clear(&world->heap, &d->timer);
    const uint64_t since = clock_now(world);
    gn_sched_yield(&d->sched, d->used_ns + d->wasted_ns, more_work, world->now_ns);
    clock_stop(world, since);
    world->result->decisions.n_yields++;
}

void gn_sim_device_give_up(struct gn_sim_world *world, struct gn_sim_device *d)
{
    give_back(world, d, false);
}

static void hold(struct gn_sim_world *world, struct gn_sim_device *d)
{
    uint64_t until_ns = d->sched.policy->conserving ? world->now_ns + world->w->spin_ns
                                                    : d->granted_ns + d->slice_ns;
    if (d->asked || d->used_ns >= d->slice_ns || until_ns <= world->now_ns) {
        give_back(world, d, false);
        pick(world, d);
        return;
    }
    d->state = GN_SIM_HOLDS;
    d->idle_ns = world->now_ns;
    gn_sim_heap_set(&world->heap, &d->timer, until_ns);
}

static void end_kernel(struct gn_sim_world *world, struct gn_sim_device *d)
{
    struct gn_sim_vgpu *v = d->holder;
    gn_sim_device_settle(world, d);
    d->used_ns += world->now_ns - d->began_ns;
    v->usage->kernels++;
    gn_sim_program_end(world, v);
    if (v->leaving) {
        give_back(world, d, false);
        gn_sched_remove(&d->sched, &v->e, world->now_ns);
        gn_sim_program_gone(world, v);
        gn_sim_device_pick(world, d);
    } else if (!gn_sim_program_has_work(v)) {
        gn_sim_set_working(world, v, false);
        hold(world, d);
    } else if (d->asked || d->used_ns >= d->slice_ns) {
        give_back(world, d, true);
        pick(world, d);
    } else {
        run_next(world, d);
    }
}

void gn_sim_device_fire(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_device *d = gn_container_of(t, struct gn_sim_device, timer);
    if (d->state == GN_SIM_RUNS) {
        end_kernel(world, d);
        return;
    }
    if (d->state == GN_SIM_COPIES) {
        begin_turn(world, d);
        return;
    }
    if (d->state == GN_SIM_HOLDS)
        give_back(world, d, false);
    pick(world, d);
}

void gn_sim_device_work(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_sim_device *d = v->seat->device;
    gn_sim_set_working(world, v, true);
    if (d->holder == v) {
        if (d->state == GN_SIM_HOLDS) {
            end_idling(world, d);
            run_next(world, d);
        }
        return;
    }
    if (v->e.node.ready || v->e.awaits_memory)
        return;
    const uint64_t since = clock_now(world);
    gn_sched_wake(&d->sched, &v->e, world->now_ns);
    clock_stop(world, since);
    world->result->decisions.n_wakes++;
    gn_sim_memory_work(world, v);
    if (d->state == GN_SIM_FREE) {
        pick(world, d);
        return;
    }
    note_contention(world, d);
    /*
     * The program has just launched, so a processor runs it: policies that depend on that are asked
     * now.
     */
    if (gn_sched_ask(&d->sched, &v->e, world->now_ns)) {
        d->asked = true;
        if (d->state == GN_SIM_HOLDS) {
            give_back(world, d, false);
            pick(world, d);
        }
    }
}

bool gn_sim_device_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_sim_device *d = v->seat->device;
    if (d->holder == v && d->state == GN_SIM_RUNS) {
        v->leaving = true;
        return false;
    }
    const bool held = d->holder == v;
    if (held)
        give_back(world, d, false);
    gn_sched_remove(&d->sched, &v->e, world->now_ns);
    if (held)
        pick(world, d);
    return true;
}

void gn_sim_device_finish(struct gn_sim_world *world, struct gn_sim_device *d)
{
    if (d->state == GN_SIM_RUNS && d->timer.at_ns == world->now_ns)
        d->holder->usage->kernels++;
    end_idling(world, d);
    gn_sim_epoch_end(world, d);
}
