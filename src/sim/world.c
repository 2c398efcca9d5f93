/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated devices, the tenants on them, and the accounts: the time that each used and the
 * time that it was entitled to. All memory is allocated at the start, except for classes of waiting
 * times. sim.c and program.c call it on the thread of the run. It never chooses the next vGPU.
 *
 * Entitlements are computed for epochs, in which the same vGPUs are on a device. A tenant that had
 * work (nearly) all the time wanted the time that it would have used alone; any other tenant wanted
 * the time that it used.
 */
#include "sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Streams of random numbers: each vGPU has its own, so that a policy cannot change another vGPU's
 * numbers.
 */
enum { STREAM_KERNELS, STREAM_LAUNCHES, N_STREAMS };

/* A tenant with work for this part of an epoch counts as having had work always. */
#define ALWAYS 0.95

static void owners_init(struct gn_sim_world *world)
{
    struct gn_sim_owner *o = world->owners;
    for (uint32_t i = 0; i < world->w->n_tenants; i++) {
        for (uint32_t k = 0; k < world->w->tenants[i].copies; k++, o++) {
            o->tenant = &world->w->tenants[i];
            gn_list_init(&o->seats);
        }
    }
}

/* Returns the index of a tenant's first copy among the owners. */
static uint32_t first_owner(const struct gn_sim_workload *w, uint32_t tenant)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < tenant; i++)
        at += w->tenants[i].copies;
    return at;
}

static void vgpu_init(struct gn_sim_world *world, struct gn_sim_vgpu *v, uint32_t program,
                      struct gn_sim_owner *owner)
{
    const uint64_t id = (uint64_t)(v - world->vgpus);
    v->program = &world->w->programs[program];
    v->usage = &world->result->programs[program];
    v->owner = owner;
    v->step.fire = gn_sim_program_arrive;
    v->leave.fire = gn_sim_program_leave;
    gn_sim_random_init(&v->random, world->w->seed, id * N_STREAMS + STREAM_KERNELS);
    gn_sim_random_init(&v->launches, world->w->seed, id * N_STREAMS + STREAM_LAUNCHES);
    v->behind = v->launches;
    v->recorded_first = v->recorded_next = GN_SIM_NONE;
    v->usage->n_vgpus++;
}

static void vgpus_init(struct gn_sim_world *world)
{
    const struct gn_sim_workload *w = world->w;
    struct gn_sim_vgpu *v = world->vgpus;
    for (uint32_t i = 0; i < w->n_programs; i++) {
        const struct gn_sim_program *p = &w->programs[i];
        const uint32_t first = first_owner(w, p->tenant);
        for (uint32_t copy = 0; !p->recorded && copy < w->tenants[p->tenant].copies; copy++) {
            for (uint32_t k = 0; k < p->n_vgpus; k++, v++) {
                vgpu_init(world, v, i, &world->owners[first + copy]);
                gn_sim_heap_set(&world->heap, &v->step, gn_sim_draw(&p->arrive, &v->random));
            }
        }
        for (uint32_t k = 0; p->recorded && k < w->trace.n_vgpus; k++) {
            if (w->trace.vgpus[k].tenant != p->tenant)
                continue;
            vgpu_init(world, v, i, &world->owners[first]);
            v->recorded_first = v->recorded_next = w->trace.vgpus[k].first;
            gn_sim_heap_set(&world->heap, &v->step, w->trace.requests[v->recorded_first].start_ns);
            v++;
        }
    }
}

int gn_sim_world_init(struct gn_sim_world *world, const struct gn_sim_workload *w,
                      const struct gn_sched_policy *policy, const struct gn_place_policy *place,
                      struct gn_sim_result *result)
{
    memset(world, 0, sizeof *world);
    world->w = w;
    world->result = result;
    world->n_vgpus = gn_sim_workload_vgpus(w);
    world->n_owners = first_owner(w, w->n_tenants);
    world->devices = calloc(w->n_devices, sizeof *world->devices);
    world->owners = calloc(world->n_owners, sizeof *world->owners);
    world->vgpus = calloc(world->n_vgpus, sizeof *world->vgpus);
    world->seats = calloc(world->n_vgpus, sizeof *world->seats);
    world->claims = calloc(world->n_owners, sizeof *world->claims);
    if (!world->devices || !world->owners || !world->vgpus || !world->seats || !world->claims ||
        gn_sim_heap_init(&world->heap, 2 * (size_t)world->n_vgpus + 4 * (size_t)w->n_devices))
        return -ENOMEM;
    for (uint32_t i = 0; i < w->n_devices; i++) {
        struct gn_sim_device *d = &world->devices[i];
        gn_sched_init(&d->sched, policy, w->slice_ns, 0);
        gn_list_init(&d->seats);
        d->timer.fire = gn_sim_device_fire;
        d->result = &result->devices[i];
    }
    owners_init(world);
    if (gn_sim_memory_init(world, place))
        return -ENOMEM;
    vgpus_init(world);
    return 0;
}

void gn_sim_world_fini(struct gn_sim_world *world)
{
    gn_sim_heap_fini(&world->heap);
    gn_sim_memory_fini(world);
    free(world->devices);
    free(world->owners);
    free(world->vgpus);
    free(world->seats);
    free(world->claims);
}

/* ---- the accounts */

void gn_sim_device_settle(struct gn_sim_world *world, struct gn_sim_device *d)
{
    if (d->state != GN_SIM_RUNS)
        return;
    const uint64_t ns = world->now_ns - d->settled_ns;
    d->settled_ns = world->now_ns;
    d->result->busy_ns += ns;
    d->holder->seat->used_ns += ns;
    d->holder->usage->used_ns += ns;
}

static struct gn_sim_claim claim_of(struct gn_sim_world *world, struct gn_sim_seat *s,
                                    uint64_t epoch_ns)
{
    const struct gn_sim_tenant *t = s->owner->tenant;
    if (s->n_working) {
        s->worked_ns += world->now_ns - s->working_since_ns;
        s->working_since_ns = world->now_ns;
    }
    const double len = (double)epoch_ns;
    double wanted = (double)s->used_ns / len;
    if ((double)s->worked_ns >= ALWAYS * len && s->wants > wanted)
        wanted = s->wants;
    const double cap = t->cap ? (double)t->cap / GN_SCHED_WHOLE : 1,
                 floor = (double)t->floor / GN_SCHED_WHOLE;
    struct gn_sim_claim c = {.weight = t->weight, .least = floor, .most = cap};
    c.most = wanted < c.most ? wanted : c.most;
    c.least = c.least < c.most ? c.least : c.most;
    return c;
}

void gn_sim_epoch_end(struct gn_sim_world *world, struct gn_sim_device *d)
{
    const uint64_t len = world->now_ns - d->epoch_ns;
    uint32_t n = 0;
    if (!len)
        return;
    gn_sim_device_settle(world, d);
    gn_list_for_each(s, &d->seats, struct gn_sim_seat, in_device)
    {
        world->claims[n++] = claim_of(world, s, len);
    }
    gn_sim_entitle(world->claims, n);
    n = 0;
    gn_list_for_each(s, &d->seats, struct gn_sim_seat, in_device)
    {
        s->owner->entitled_ns += world->claims[n++].part * (double)len;
        s->owner->used_ns += s->used_ns;
        s->used_ns = s->worked_ns = 0;
    }
    d->epoch_ns = world->now_ns;
}

void gn_sim_set_working(struct gn_sim_world *world, struct gn_sim_vgpu *v, bool working)
{
    struct gn_sim_seat *s = v->seat;
    if (v->working == working)
        return;
    v->working = working;
    if (working && s->n_working++ == 0)
        s->working_since_ns = world->now_ns;
    if (!working && --s->n_working == 0)
        s->worked_ns += world->now_ns - s->working_since_ns;
}

void gn_sim_add_wait(struct gn_sim_world *world, struct gn_sim_vgpu *v, uint64_t ns)
{
    if (gn_sim_waits_add(&v->usage->waits, ns))
        world->out_of_memory = true;
}

/* ---- seats */

static struct gn_sim_device *least_loaded(struct gn_sim_world *world)
{
    struct gn_sim_device *best = world->devices;
    for (uint32_t i = 1; i < world->w->n_devices; i++) {
        if (gn_sched_less_loaded(&world->devices[i].load, &best->load))
            best = &world->devices[i];
    }
    return best;
}

static struct gn_sim_seat *find_seat(struct gn_sim_world *world, struct gn_sim_owner *o,
                                     struct gn_sim_device *d)
{
    gn_list_for_each(s, &o->seats, struct gn_sim_seat, in_owner)
    {
        if (s->device == d)
            return s;
    }
    struct gn_sim_seat *s = &world->seats[world->n_seats++];
    s->owner = o;
    s->device = d;
    gn_list_init(&s->in_device);
    gn_list_append(&o->seats, &s->in_owner);
    /* The description has been checked: none of these calls can fail. */
    (void)gn_sched_tenant_add(&d->sched, &s->t, o->tenant->weight, world->now_ns);
    (void)gn_sched_tenant_set_cap(&d->sched, &s->t, o->tenant->cap, world->now_ns);
    (void)gn_sched_tenant_set_floor(&d->sched, &s->t, o->tenant->floor, world->now_ns);
    gn_sim_memory_tenant(world, s);
    return s;
}

void gn_sim_seat_claim(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_sim_device *d = least_loaded(world);
    struct gn_sim_seat *s = find_seat(world, v->owner, d);
    gn_sim_epoch_end(world, d);
    if (s->n_vgpus++ == 0) {
        gn_list_append(&d->seats, &s->in_device);
        d->load.weights += v->owner->tenant->weight;
    }
    s->wants += gn_sim_program_wants(v->program);
    d->load.n++;
    d->result->n_vgpus++;
    v->seat = s;
    (void)gn_sched_add(&d->sched, &s->t, &v->e, v->program->weight, world->now_ns);
    gn_sim_memory_arrive(world, v);
}

void gn_sim_seat_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v)
{
    struct gn_sim_seat *s = v->seat;
    struct gn_sim_device *d = s->device;
    gn_sim_epoch_end(world, d);
    gn_sim_memory_leave(world, v);
    s->wants -= gn_sim_program_wants(v->program);
    if (--s->n_vgpus == 0) {
        gn_list_remove(&s->in_device);
        s->wants = 0;
        d->load.weights -= v->owner->tenant->weight;
    }
    d->load.n--;
    v->seat = NULL;
}
