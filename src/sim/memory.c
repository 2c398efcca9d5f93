/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the memory of devices. src/place makes all decisions; this file runs its plans: a copy
 * takes its bytes over the bus. With residency periods a copy engine copies beside the running
 * kernels, one swap a device at a time. Without them the copies of a turn come before its first
 * kernel, and the device waits.
 *
 * device.c, world.c and timers call it on the thread of the run. It never grants a device.
 */
#include "sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

/* At most GN_SIM_MAX_NS: no run is longer. */
static uint64_t copy_ns(const struct gn_sim_world *world, const struct gn_place *p,
                        uint64_t n_slots)
{
    const uint64_t bus = world->w->bus_bytes;
    const gn_sim_wide ns = bus ? (gn_sim_wide)n_slots * p->slot_bytes * SECOND_NS / bus : 0;
    return ns < GN_SIM_MAX_NS ? (uint64_t)ns : GN_SIM_MAX_NS;
}

static uint32_t slots_of(const struct gn_place *p, uint64_t bytes)
{
    return (uint32_t)(bytes / p->slot_bytes + (bytes % p->slot_bytes != 0));
}

static uint32_t part_of(uint32_t n, uint32_t part)
{
    return (uint32_t)(((uint64_t)n * part + GN_PLACE_WHOLE - 1) / GN_PLACE_WHOLE);
}

static struct gn_sim_vgpu *vgpu_of(struct gn_sim_world *world, const struct gn_place_vgpu *m)
{
    return &world->vgpus[m - world->memories];
}

static void tick(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_device *d = gn_container_of(t, struct gn_sim_device, tick);
    gn_sim_heap_set(&world->heap, t, gn_place_tick(d->place, world->now_ns));
    d->result->rearranged = d->place->n_rearranged;
    gn_sim_memory_swap(world, d);
    gn_sim_device_pick(world, d);
}

static void end_swap(struct gn_sim_world *world, struct gn_sim_device *d)
{
    struct gn_sim_vgpu *v = d->swapping;
    d->swapping = NULL;
    gn_sched_set_evicted(&d->sched, &v->e, false, world->now_ns);
}

static void fire_swap_again(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_device *d = gn_container_of(t, struct gn_sim_device, swap_again);
    gn_sim_memory_swap(ctx, d);
    gn_sim_device_pick(ctx, d);
}

static void fire_swap_end(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_device *d = gn_container_of(t, struct gn_sim_device, swap_end);
    end_swap(world, d);
    gn_sim_memory_swap(world, d);
    gn_sim_device_pick(world, d);
}

int gn_sim_memory_init(struct gn_sim_world *world, const struct gn_place_policy *place)
{
    const struct gn_sim_workload *w = world->w;
    if (!w->memory_bytes)
        return 0;
    world->places = calloc(w->n_devices, sizeof *world->places);
    world->memories = calloc(world->n_vgpus, sizeof *world->memories);
    if (!world->places || !world->memories)
        return -ENOMEM;
    for (uint32_t i = 0; i < w->n_devices; i++) {
        struct gn_sim_device *d = &world->devices[i];
        d->place = &world->places[i];
        /* The description has been checked: there is a slot. */
        (void)gn_place_init(d->place, place, w->memory_bytes, w->slot_bytes, 0);
        gn_residency_set_share(d->place, w->swap_share);
        gn_place_note_copy(d->place, true, 1, copy_ns(world, d->place, 1));
        gn_place_note_copy(d->place, false, 1, copy_ns(world, d->place, 1));
        d->tick.fire = tick;
        d->swap_end.fire = fire_swap_end;
        d->swap_again.fire = fire_swap_again;
        gn_sim_heap_set(&world->heap, &d->tick, SECOND_NS);
    }
    world->result->place = place;
    world->result->n_slots = world->places[0].n_slots;
    world->result->slot_bytes = world->places[0].slot_bytes;
    return 0;
}

void gn_sim_memory_fini(struct gn_sim_world *world)
{
    free(world->places);
    free(world->memories);
}

/* ---- vGPUs. The description has been checked: no call of src/place can fail. */

void gn_sim_memory_tenant(struct gn_sim_world *world, struct gn_sim_seat *s)
{
    struct gn_place *p = s->device->place;
    const struct gn_sim_tenant *t = s->owner->tenant;
    (void)world;
    if (p)
        (void)gn_place_tenant_add(p, &s->memory, t->weight, slots_of(p, t->reserve_bytes));
}

void gn_sim_memory_arrive(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_place *p = v->seat->device->place;
    if (!p)
        return;
    const uint32_t n = slots_of(p, v->program->memory_bytes);
    const struct gn_chunk_set needs = gn_chunk_range(part_of(n, v->program->uses));
    v->memory = &world->memories[v - world->vgpus];
    (void)gn_place_add(p, &v->seat->memory, v->memory, v->program->weight, n, world->now_ns);
    gn_place_set_needs(p, v->memory, &needs);
    v->evicted_at = GN_SIM_NEVER;
    if (p->swap_share && n)
        gn_sched_set_evicted(&v->seat->device->sched, &v->e, true, world->now_ns);
}

void gn_sim_memory_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_sim_device *d = v->seat->device;
    if (!d->place)
        return;
    if (d->swapping == v) {
        gn_sim_memory_abort(world, d, &d->swap_end);
        gn_sim_heap_clear(&world->heap, &d->swap_end);
        d->swapping = NULL;
    }
    gn_place_remove(d->place, v->memory, world->now_ns);
    gn_sim_memory_swap(world, d);
    gn_sim_device_pick(world, d);
}

/* A vGPU that has work has no memory: its wait begins. */
static void note_eviction(struct gn_sim_device *d, struct gn_sim_vgpu *v)
{
    if (v->memory->ready && !gn_place_is_resident(v->memory) && v->evicted_at == GN_SIM_NEVER)
        v->evicted_at = d->n_periods;
}

void gn_sim_memory_work(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    if (!v->memory)
        return;
    gn_place_wake(v->seat->device->place, v->memory, world->now_ns);
    note_eviction(v->seat->device, v);
    gn_sim_memory_swap(world, v->seat->device);
}

/* ---- turns and swaps */

static void count_swap(struct gn_sim_world *world, struct gn_sim_device *d, struct gn_sim_vgpu *v,
                       const struct gn_place_plan *plan, uint64_t ns)
{
    const uint64_t left = world->w->time_ns - world->now_ns;
    if (!plan->n_in)
        return;
    v->usage->swaps++;
    v->usage->copied_in += plan->n_in;
    gn_list_for_each(from, &plan->victims, struct gn_place_vgpu, victim)
    {
        const struct gn_chunk_set out = gn_chunk_both(&from->leaving, &from->changed);
        vgpu_of(world, from)->usage->copied_out += gn_chunk_count(&out);
    }
    d->result->swaps++;
    d->result->copied_in += plan->n_in;
    d->result->copied_out += plan->n_changed;
    d->result->copying_ns += ns < left ? ns : left;
    if (v->evicted_at != GN_SIM_NEVER) {
        const uint64_t others = d->n_periods - v->evicted_at;
        const double of_bound =
            (double)others / (double)gn_residency_wait_bound(d->place, v->memory);
        if (others > v->usage->others_between)
            v->usage->others_between = others;
        if (of_bound > v->usage->of_wait_bound)
            v->usage->of_wait_bound = of_bound;
    }
    v->evicted_at = GN_SIM_NEVER;
    d->n_periods++;
}

void gn_sim_memory_abort(struct gn_sim_world *world, struct gn_sim_device *d,
                         const struct gn_sim_timer *copy)
{
    const uint64_t end_ns = copy->at_ns < world->w->time_ns ? copy->at_ns : world->w->time_ns;
    d->result->copying_ns -= end_ns - world->now_ns;
}

/* True if the plan takes memory of the device's holder. */
static bool takes_from_holder(const struct gn_sim_device *d)
{
    gn_list_for_each(m, &d->plan.victims, struct gn_place_vgpu, victim)
    {
        if (d->holder && m == d->holder->memory)
            return true;
    }
    return false;
}

void gn_sim_memory_swap(struct gn_sim_world *world, struct gn_sim_device *d)
{
    struct gn_place_vgpu *m;
    uint64_t again_ns = 0;
    while (d->place && d->place->swap_share && !d->swapping &&
           (m = gn_residency_next(d->place, world->now_ns, &d->plan, &again_ns))) {
        if (takes_from_holder(d)) {
            d->asked = true;
            if (d->state == GN_SIM_RUNS)
                return;
            /* The end of its turn changes the plan. */
            gn_sim_device_give_up(world, d);
            continue;
        }
        struct gn_sim_vgpu *v = vgpu_of(world, m);
        const uint64_t ns = copy_ns(world, d->place, d->plan.n_in + d->plan.n_changed);
        count_swap(world, d, v, &d->plan, ns);
        gn_place_apply(d->place, &d->plan, world->now_ns);
        gn_list_for_each(from, &d->plan.victims, struct gn_place_vgpu, victim)
        {
            if (gn_place_is_resident(from))
                continue;
            gn_sched_set_evicted(&d->sched, &vgpu_of(world, from)->e, true, world->now_ns);
            note_eviction(d, vgpu_of(world, from));
        }
        d->swapping = v;
        if (ns)
            gn_sim_heap_set(&world->heap, &d->swap_end, world->now_ns + ns);
        else
            end_swap(world, d);
    }
    if (again_ns > world->now_ns && !d->swapping)
        gn_sim_heap_set(&world->heap, &d->swap_again, again_ns);
}

uint64_t gn_sim_memory_copy(struct gn_sim_world *world, struct gn_sim_device *d)
{
    struct gn_sim_vgpu *v = d->holder;
    if (!d->place || d->place->swap_share ||
        !gn_place_plan(d->place, v->memory, world->now_ns, &d->plan))
        return 0;
    const uint64_t ns = copy_ns(world, d->place, d->plan.n_in + d->plan.n_changed);
    count_swap(world, d, v, &d->plan, ns);
    gn_place_apply(d->place, &d->plan, world->now_ns);
    return ns;
}

void gn_sim_memory_turn(struct gn_sim_world *world, struct gn_sim_device *d)
{
    if (d->place)
        gn_place_turn(d->place, d->holder->memory, world->now_ns);
}

void gn_sim_memory_yield(struct gn_sim_world *world, struct gn_sim_device *d, uint64_t used_ns,
                         bool more_work)
{
    if (!d->place)
        return;
    struct gn_place_vgpu *m = d->holder->memory;
    const uint32_t n = part_of(gn_chunk_count(&m->needs), d->holder->program->writes);
    const struct gn_chunk_set written = gn_chunk_range(n);
    if (used_ns)
        gn_place_set_changed(m, &written);
    gn_place_yield(d->place, m, used_ns, more_work, world->now_ns);
}
