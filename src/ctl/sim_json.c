/* SPDX-License-Identifier: Apache-2.0 */
/* The object of `gantry sim --json`. Numbers that are not defined are left out. */
#include "ctl/sim_output.h"

static void add_usage(json_t *o, const struct gn_sim_usage *u)
{
    json_object_set_new(o, "vgpus", json_integer(u->n_vgpus));
    json_object_set_new(o, "used_ns", json_integer((json_int_t)u->used_ns));
    json_object_set_new(o, "kernels", json_integer((json_int_t)u->kernels));
    json_object_set_new(o, "left", json_integer((json_int_t)u->left));
    json_object_set_new(o, "turns", json_integer((json_int_t)u->turns));
    json_object_set_new(o, "waits", json_integer((json_int_t)u->waits.n));
    if (u->waits.n) {
        json_object_set_new(o, "wait_mean_ns",
                            json_integer((json_int_t)gn_sim_waits_mean(&u->waits)));
        json_object_set_new(o, "wait_p95_ns",
                            json_integer((json_int_t)gn_sim_waits_percentile(&u->waits, 95)));
    }
    if (u->waits.n || u->waits.longest_ns)
        json_object_set_new(o, "wait_longest_ns", json_integer((json_int_t)u->waits.longest_ns));
}

static void add_memory(json_t *o, const struct gn_sim_usage *u, const struct gn_sim_result *r)
{
    if (!r->place)
        return;
    json_object_set_new(o, "swaps", json_integer((json_int_t)u->swaps));
    json_object_set_new(o, "swap_in_bytes",
                        json_integer((json_int_t)(u->copied_in * r->slot_bytes)));
    json_object_set_new(o, "swap_out_bytes",
                        json_integer((json_int_t)(u->copied_out * r->slot_bytes)));
    json_object_set_new(o, "others_between", json_integer((json_int_t)u->others_between));
    json_object_set_new(o, "of_wait_bound", json_real(u->of_wait_bound));
}

static json_t *tenant_object(const struct gn_sim_tenant *t, const struct gn_sim_tenant_result *r,
                             const struct gn_sim_result *run)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(t->name));
    json_object_set_new(o, "weight", json_integer(t->weight));
    if (t->cap)
        json_object_set_new(o, "cap", json_real((double)t->cap / GN_SCHED_WHOLE));
    if (t->floor)
        json_object_set_new(o, "floor", json_real((double)t->floor / GN_SCHED_WHOLE));
    json_object_set_new(o, "copies", json_integer(t->copies));
    json_object_set_new(o, "share", json_real(r->share));
    json_object_set_new(o, "entitled", json_real(r->entitled));
    if (r->least_ratio >= 0) {
        json_object_set_new(o, "ratio_least", json_real(r->least_ratio));
        json_object_set_new(o, "ratio_most", json_real(r->most_ratio));
    }
    if (run->place && t->reserve_bytes)
        json_object_set_new(o, "reserve_bytes", json_integer((json_int_t)t->reserve_bytes));
    add_usage(o, &r->usage);
    add_memory(o, &r->usage, run);
    return o;
}

static json_t *program_object(const struct gn_sim_workload *w, uint32_t i,
                              const struct gn_sim_result *run)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(w->programs[i].name));
    json_object_set_new(o, "tenant", json_string(w->tenants[w->programs[i].tenant].name));
    add_usage(o, &run->programs[i]);
    if (run->place)
        json_object_set_new(o, "memory_bytes",
                            json_integer((json_int_t)w->programs[i].memory_bytes));
    add_memory(o, &run->programs[i], run);
    return o;
}

static json_t *device_object(const struct gn_sim_result *r, uint32_t i)
{
    json_t *o = json_object();
    const struct gn_sim_device_result *d = &r->devices[i];
    json_object_set_new(o, "busy", json_real((double)d->busy_ns / (double)r->time_ns));
    json_object_set_new(o, "wasted", json_real((double)d->wasted_ns / (double)r->time_ns));
    json_object_set_new(o, "turns", json_integer((json_int_t)d->turns));
    json_object_set_new(o, "vgpus", json_integer(d->n_vgpus));
    if (!r->place)
        return o;
    json_object_set_new(o, "slots", json_integer(r->n_slots));
    json_object_set_new(o, "slot_bytes", json_integer((json_int_t)r->slot_bytes));
    json_object_set_new(o, "swaps", json_integer((json_int_t)d->swaps));
    json_object_set_new(o, "chunk_copies", json_integer((json_int_t)d->copied_in));
    json_object_set_new(o, "swap_in_bytes",
                        json_integer((json_int_t)(d->copied_in * r->slot_bytes)));
    json_object_set_new(o, "swap_out_bytes",
                        json_integer((json_int_t)(d->copied_out * r->slot_bytes)));
    json_object_set_new(o, "copier_busy", json_real((double)d->copying_ns / (double)r->time_ns));
    json_object_set_new(o, "rearranged", json_integer((json_int_t)d->rearranged));
    return o;
}

static json_t *cost_list(const struct gn_ctl_simulated *s, uint32_t run)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < GN_CTL_COSTS; k++) {
        json_t *o = json_object();
        json_object_set_new(o, "vgpus", json_integer(s->cost_vgpus[k]));
        json_object_set_new(o, "real_ns", json_real(gn_ctl_sim_cost(&s->costs[run][k])));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *run_object(const struct gn_ctl_simulated *s, uint32_t run)
{
    const struct gn_sim_result *r = &s->runs[run];
    json_t *o = json_object(), *tenants = json_array(), *programs = json_array(),
           *devices = json_array();
    uint64_t busy = 0, wasted = 0;
    for (uint32_t i = 0; i < r->n_tenants; i++)
        json_array_append_new(tenants, tenant_object(&s->w->tenants[i], &r->tenants[i], r));
    for (uint32_t i = 0; i < r->n_programs; i++)
        json_array_append_new(programs, program_object(s->w, i, r));
    for (uint32_t i = 0; i < r->n_devices; i++) {
        json_array_append_new(devices, device_object(r, i));
        busy += r->devices[i].busy_ns;
        wasted += r->devices[i].wasted_ns;
    }
    json_object_set_new(o, "policy", json_string(r->policy->name));
    if (r->place)
        json_object_set_new(o, "place", json_string(r->place->name));
    if (r->fairness >= 0)
        json_object_set_new(o, "fairness", json_real(r->fairness));
    json_object_set_new(o, "busy", json_real((double)busy / (double)r->time_ns / r->n_devices));
    json_object_set_new(o, "wasted", json_real((double)wasted / (double)r->time_ns / r->n_devices));
    add_usage(o, &r->all);
    add_memory(o, &r->all, r);
    json_object_set_new(o, "picks", json_integer((json_int_t)r->decisions.n_picks));
    json_object_set_new(o, "yields", json_integer((json_int_t)r->decisions.n_yields));
    json_object_set_new(o, "wakes", json_integer((json_int_t)r->decisions.n_wakes));
    json_object_set_new(o, "tenants", tenants);
    json_object_set_new(o, "programs", programs);
    json_object_set_new(o, "devices", devices);
    if (s->cost) {
        json_object_set_new(o, "real_ns", json_real(gn_ctl_sim_cost(&r->decisions)));
        json_object_set_new(o, "cost", cost_list(s, run));
    }
    return o;
}

json_t *gn_ctl_sim_json(const struct gn_ctl_simulated *s)
{
    json_t *root = json_object(), *runs = json_array();
    for (uint32_t i = 0; i < s->n_runs; i++)
        json_array_append_new(runs, run_object(s, i));
    json_object_set_new(root, "version", json_integer(1));
    json_object_set_new(root, "time_ns", json_integer((json_int_t)s->w->time_ns));
    json_object_set_new(root, "slice_ns", json_integer((json_int_t)s->w->slice_ns));
    json_object_set_new(root, "spin_ns", json_integer((json_int_t)s->w->spin_ns));
    json_object_set_new(root, "seed", json_integer((json_int_t)s->w->seed));
    if (json_object_set_new(root, "runs", runs) == 0)
        return root;
    json_decref(root);
    return NULL;
}
