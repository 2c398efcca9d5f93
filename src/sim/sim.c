/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a simulation: events in the order of virtual time, then the sums. `gantry sim` calls it on
 * its main thread. It never sleeps or waits for a real clock.
 */
#include "sim/sim_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MAX_EVENTS UINT64_C(1000000000) /* takes some minutes */

/* Returns the least time that reading the clock twice takes. */
static uint64_t clock_cost(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        const uint64_t since = gn_now_ns(), ns = gn_now_ns() - since;
        least = ns < least ? ns : least;
    }
    return least;
}

/* Includes the vGPUs that still wait at the end, which may have waited longest. */
static void count_waiting(struct gn_sim_world *world)
{
    for (uint32_t i = 0; i < world->n_vgpus; i++) {
        struct gn_sim_vgpu *v = &world->vgpus[i];
        if (!v->seat)
            continue;
        v->usage->left += gn_sim_program_left(v);
        if (v->seat->device->holder == v) {
            if (v->seat->device->state == GN_SIM_RUNS && gn_sim_program_left(v))
                v->usage->left--;
            continue;
        }
        if (!v->working)
            continue;
        const uint64_t launched_ns = gn_sim_program_launched(world, v);
        const uint64_t since = launched_ns < v->e.ready_at_ns ? launched_ns : v->e.ready_at_ns;
        if (world->now_ns - since > v->usage->waits.longest_ns)
            v->usage->waits.longest_ns = world->now_ns - since;
    }
}

static int add_usage(struct gn_sim_usage *to, const struct gn_sim_usage *from)
{
    to->n_vgpus += from->n_vgpus;
    to->used_ns += from->used_ns;
    to->kernels += from->kernels;
    to->turns += from->turns;
    to->left += from->left;
    to->swaps += from->swaps;
    to->copied_in += from->copied_in;
    to->copied_out += from->copied_out;
    if (from->others_between > to->others_between)
        to->others_between = from->others_between;
    if (from->of_wait_bound > to->of_wait_bound)
        to->of_wait_bound = from->of_wait_bound;
    return gn_sim_waits_merge(&to->waits, &from->waits);
}

static void judge_owners(const struct gn_sim_world *world, struct gn_sim_result *r)
{
    const double whole = (double)r->time_ns * r->n_devices;
    const struct gn_sim_owner *o = world->owners;
    double least = -1, most = -1;
    for (uint32_t i = 0; i < r->n_tenants; i++) {
        struct gn_sim_tenant_result *t = &r->tenants[i];
        t->share = (double)t->usage.used_ns / whole;
        t->least_ratio = t->most_ratio = -1;
        for (uint32_t k = 0; k < world->w->tenants[i].copies; k++, o++) {
            t->entitled += o->entitled_ns / whole;
            if (o->entitled_ns < 1)
                continue;
            const double ratio = (double)o->used_ns / o->entitled_ns;
            t->least_ratio = t->least_ratio < 0 || ratio < t->least_ratio ? ratio : t->least_ratio;
            t->most_ratio = ratio > t->most_ratio ? ratio : t->most_ratio;
        }
        if (t->least_ratio >= 0) {
            least = least < 0 || t->least_ratio < least ? t->least_ratio : least;
            most = t->most_ratio > most ? t->most_ratio : most;
        }
    }
    r->fairness = most > 0 ? least / most : -1;
}

static int sum_up(struct gn_sim_world *world, struct gn_sim_result *r)
{
    for (uint32_t i = 0; i < r->n_programs; i++) {
        struct gn_sim_usage *tenant = &r->tenants[world->w->programs[i].tenant].usage;
        if (add_usage(tenant, &r->programs[i]) || add_usage(&r->all, &r->programs[i]))
            return -ENOMEM;
    }
    judge_owners(world, r);
    return 0;
}

static int result_init(struct gn_sim_result *r, const struct gn_sim_workload *w,
                       const struct gn_sched_policy *policy)
{
    memset(r, 0, sizeof *r);
    r->policy = policy;
    r->time_ns = w->time_ns;
    r->n_tenants = w->n_tenants;
    r->n_programs = w->n_programs;
    r->n_devices = w->n_devices;
    r->tenants = calloc(w->n_tenants, sizeof *r->tenants);
    r->programs = calloc(w->n_programs, sizeof *r->programs);
    r->devices = calloc(w->n_devices, sizeof *r->devices);
    return r->tenants && r->programs && r->devices ? 0 : -ENOMEM;
}

void gn_sim_result_fini(struct gn_sim_result *r)
{
    for (uint32_t i = 0; r->tenants && i < r->n_tenants; i++)
        gn_sim_waits_fini(&r->tenants[i].usage.waits);
    for (uint32_t i = 0; r->programs && i < r->n_programs; i++)
        gn_sim_waits_fini(&r->programs[i].waits);
    gn_sim_waits_fini(&r->all.waits);
    free(r->tenants);
    free(r->programs);
    free(r->devices);
    memset(r, 0, sizeof *r);
}

int gn_sim_run(const struct gn_sim_workload *w, const struct gn_sched_policy *policy,
               const struct gn_place_policy *place, bool measure, struct gn_sim_result *ret,
               struct gn_error *err)
{
    struct gn_sim_world world = {.w = w};
    struct gn_sim_result r;
    uint64_t n_events = 0;
    int rc = result_init(&r, w, policy);
    if (rc == 0)
        rc = gn_sim_world_init(&world, w, policy, place, &r);
    world.measure = measure;
    world.clock_cost_ns = measure ? clock_cost() : 0;
    for (struct gn_sim_timer *t; rc == 0 && (t = gn_sim_heap_next(&world.heap, w->time_ns - 1));) {
        world.now_ns = t->at_ns;
        t->fire(t, &world);
        if (world.out_of_memory)
            rc = -ENOMEM;
        else if (++n_events == MAX_EVENTS)
            rc = -E2BIG;
    }
    if (rc == 0) {
        world.now_ns = w->time_ns;
        count_waiting(&world);
        for (uint32_t i = 0; i < w->n_devices; i++)
            gn_sim_device_finish(&world, &world.devices[i]);
        rc = sum_up(&world, &r);
    }
    gn_sim_world_fini(&world);
    if (rc) {
        gn_sim_result_fini(&r);
        return rc == -ENOMEM ? gn_fail(err, ENOMEM, NULL, "out of memory")
                             : gn_fail(err, E2BIG, "simulate a shorter time, or longer kernels",
                                       "more than a thousand million launches and kernels");
    }
    *ret = r;
    return 0;
}

int gn_sim_cost(const struct gn_sched_policy *policy, uint32_t n_vgpus,
                struct gn_sim_decisions *ret, struct gn_error *err)
{
    struct gn_sim_workload w;
    struct gn_sim_result r;
    char busy[64], lazy[64];
    gn_sim_workload_init(&w);
    snprintf(busy, sizeof busy, "busy,copies=%u,kernel=6ms", (unsigned)(n_vgpus - n_vgpus / 2));
    snprintf(lazy, sizeof lazy, "lazy,copies=%u,kernel=6ms,think=exp:1s", (unsigned)(n_vgpus / 2));
    int rc = gn_sim_workload_set(&w, "time", "120s", err);
    if (rc == 0)
        rc = gn_sim_workload_add_tenant(&w, busy, err);
    if (rc == 0 && n_vgpus > 1)
        rc = gn_sim_workload_add_tenant(&w, lazy, err);
    if (rc == 0)
        rc = gn_sim_workload_finish(&w, err);
    if (rc == 0)
        rc = gn_sim_run(&w, policy, w.places[0], true, &r, err);
    if (rc == 0) {
        *ret = r.decisions;
        gn_sim_result_fini(&r);
    }
    gn_sim_workload_fini(&w);
    return rc;
}
