/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates programs: they arrive, launch, think and leave. There are four kinds: one that always
 * has work; one that thinks after each burst; one that launches on a schedule; and one with
 * recorded launches, which do not depend on the completion of earlier ones. Timers and device.c
 * call it on the thread of the run. It never grants a device.
 */
#include "sim/sim_internal.h"

static bool always_has_work(const struct gn_sim_program *p)
{
    return !p->recorded && !p->scheduled && p->think.shape == GN_SIM_CONSTANT && !p->think.ns[0];
}

double gn_sim_program_wants(const struct gn_sim_program *p)
{
    if (p->recorded || always_has_work(p))
        return 1;
    const double launch = gn_sim_time_mean(&p->kernel) * p->burst;
    const double wants = p->scheduled ? launch / gn_sim_time_mean(&p->every)
                                      : launch / (launch + gn_sim_time_mean(&p->think));
    return wants < 1 ? wants : 1;
}

static uint64_t later(const struct gn_sim_world *world, uint64_t ns)
{
    return world->now_ns + ns;
}

static uint64_t interval(const struct gn_sim_program *p, struct gn_sim_random *r)
{
    const uint64_t ns = gn_sim_draw(&p->every, r);
    return ns ? ns : 1;
}

static void set_next_launch(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    const struct gn_sim_request *all = world->w->trace.requests;
    if (v->program->scheduled)
        gn_sim_heap_set(&world->heap, &v->step, later(world, interval(v->program, &v->launches)));
    else if (v->program->recorded && v->recorded_next != GN_SIM_NONE)
        gn_sim_heap_set(&world->heap, &v->step, all[v->recorded_next].start_ns);
}

static void launch(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_vgpu *v = gn_container_of(t, struct gn_sim_vgpu, step);
    v->n_launched++;
    if (v->program->recorded)
        v->recorded_next = world->w->trace.requests[v->recorded_next].next;
    else if (!v->program->scheduled)
        v->behind_ns = world->now_ns;
    set_next_launch(world, v);
    gn_sim_device_work(world, v);
}

void gn_sim_program_arrive(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_vgpu *v = gn_container_of(t, struct gn_sim_vgpu, step);
    const struct gn_sim_program *p = v->program;
    v->step.fire = launch;
    gn_sim_seat_claim(world, v);
    if (p->leaves)
        gn_sim_heap_set(&world->heap, &v->leave, later(world, gn_sim_draw(&p->stay, &v->random)));
    if (p->scheduled) {
        v->behind_ns = later(world, interval(p, &v->behind));
        set_next_launch(world, v);
    } else {
        launch(t, ctx);
    }
}

void gn_sim_program_gone(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    gn_sim_set_working(world, v, false);
    gn_sim_seat_leave(world, v);
    v->n_launched = 0;
}

void gn_sim_program_leave(struct gn_sim_timer *t, void *ctx)
{
    struct gn_sim_world *world = ctx;
    struct gn_sim_vgpu *v = gn_container_of(t, struct gn_sim_vgpu, leave);
    gn_sim_heap_clear(&world->heap, &v->step);
    if (gn_sim_device_leave(world, v))
        gn_sim_program_gone(world, v);
}

bool gn_sim_program_has_work(const struct gn_sim_vgpu *v)
{
    return v->n_launched > 0;
}

uint64_t gn_sim_program_begin(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    const struct gn_sim_program *p = v->program;
    if (!v->burst_left)
        v->burst_left = p->burst;
    if (p->recorded)
        return world->w->trace.requests[v->recorded_first].kernel_ns;
    const uint64_t ns = gn_sim_draw(&p->kernel, &v->random);
    return ns ? ns : 1;
}

void gn_sim_program_end(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    const struct gn_sim_program *p = v->program;
    if (--v->burst_left)
        return;
    v->n_launched--;
    if (p->recorded) {
        v->recorded_first = world->w->trace.requests[v->recorded_first].next;
    } else if (p->scheduled) {
        v->behind_ns += interval(p, &v->behind);
    } else {
        const uint64_t think_ns = v->leaving ? 1 : gn_sim_draw(&p->think, &v->random);
        if (!think_ns) {
            v->n_launched++;
            v->behind_ns = world->now_ns;
        } else if (!v->leaving) {
            gn_sim_heap_set(&world->heap, &v->step, later(world, think_ns));
        }
    }
}

uint64_t gn_sim_program_launched(const struct gn_sim_world *world, const struct gn_sim_vgpu *v)
{
    if (v->burst_left || !v->n_launched || always_has_work(v->program))
        return GN_SIM_NEVER;
    return v->program->recorded ? world->w->trace.requests[v->recorded_first].start_ns
                                : v->behind_ns;
}

uint64_t gn_sim_program_left(const struct gn_sim_vgpu *v)
{
    const struct gn_sim_program *p = v->program;
    if ((!p->scheduled && !p->recorded) || !v->n_launched)
        return 0;
    return (v->n_launched - (v->burst_left != 0)) * p->burst + v->burst_left;
}
