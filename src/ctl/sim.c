/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry sim`: builds a workload from a file and from options, and runs it under each policy.
 * Needs no gantryd. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ctl/sim_output.h"

/* Reports an error in an option's value, with the option's name in front. */
static int name_option(const char *option, const char *value, const struct gn_error *inner,
                       struct gn_error *err)
{
    return gn_fail(err, EINVAL, inner->fix, "--%s %.100s: %.250s", option, value, inner->what);
}

static int take_list(struct gn_sim_workload *w, const char *key, const struct gn_ctl_words *words,
                     struct gn_error *err)
{
    for (int i = 0; i < words->n; i++) {
        struct gn_error inner = {{0}, {0}};
        if (gn_sim_workload_set(w, key, words->items[i], &inner))
            return name_option(key, words->items[i], &inner, err);
    }
    return 0;
}

static int take_settings(struct gn_sim_workload *w, const struct gn_ctl_sim_args *args,
                         struct gn_error *err)
{
    const struct {
        const char *key, *value;
    } all[] = {{"devices", args->devices}, {"time", args->time},
               {"slice", args->slice},     {"spin", args->spin},
               {"seed", args->seed},       {"trace", args->trace},
               {"memory", args->memory},   {"slot", args->slot},
               {"bus", args->bus},         {"swap-share", args->swap_share}};
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        struct gn_error inner = {{0}, {0}};
        if (all[i].value && gn_sim_workload_set(w, all[i].key, all[i].value, &inner))
            return name_option(all[i].key, all[i].value, &inner, err);
    }
    /* Policies on the command line replace the file's policies. */
    if (args->policies.n)
        w->n_policies = 0;
    if (args->places.n)
        w->n_places = 0;
    const int rc = take_list(w, "policy", &args->policies, err);
    return rc ? rc : take_list(w, "place", &args->places, err);
}

static int take_words(struct gn_sim_workload *w, const char *option,
                      const struct gn_ctl_words *words,
                      int (*add)(struct gn_sim_workload *, const char *, struct gn_error *),
                      struct gn_error *err)
{
    for (int i = 0; i < words->n; i++) {
        struct gn_error inner = {{0}, {0}};
        if (add(w, words->items[i], &inner))
            return name_option(option, words->items[i], &inner, err);
    }
    return 0;
}

static int describe(const struct gn_ctl_args *args, struct gn_sim_workload *w, struct gn_error *err)
{
    int rc = args->rest[0] ? gn_sim_workload_read(w, args->rest[0], err) : 0;
    if (rc == 0)
        rc = take_settings(w, &args->sim, err);
    if (rc == 0)
        rc = take_words(w, "tenant", &args->sim.tenants, gn_sim_workload_add_tenant, err);
    if (rc == 0)
        rc = take_words(w, "program", &args->sim.programs, gn_sim_workload_add_program, err);
    return rc ? rc : gn_sim_workload_finish(w, err);
}

static int simulate(struct gn_ctl_simulated *s, struct gn_error *err)
{
    const uint32_t n_places = s->w->memory_bytes ? s->w->n_places : 1;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->w->n_policies * n_places; i++) {
        const struct gn_sched_policy *policy = s->w->policies[i / n_places];
        rc = gn_sim_run(s->w, policy, s->w->places[i % n_places], s->cost, &s->runs[i], err);
        s->n_runs += rc == 0;
        for (uint32_t k = 0; rc == 0 && s->cost && k < GN_CTL_COSTS; k++)
            rc = gn_sim_cost(policy, s->cost_vgpus[k], &s->costs[i][k], err);
    }
    return rc;
}

double gn_ctl_sim_cost(const struct gn_sim_decisions *d)
{
    const uint64_t n = d->n_picks + d->n_yields + d->n_wakes;
    return n ? (double)d->clock_ns / (double)n : 0;
}

char *gn_ctl_sim_name(const struct gn_ctl_simulated *s, uint32_t run, char *text)
{
    const struct gn_sim_result *r = &s->runs[run];
    if (!r->place || s->w->n_places == 1)
        snprintf(text, 48, "%s", r->policy->name);
    else if (s->w->n_policies == 1)
        snprintf(text, 48, "%s", r->place->name);
    else
        snprintf(text, 48, "%s/%s", r->policy->name, r->place->name);
    return text;
}

static int show(const struct gn_ctl_args *args, const struct gn_ctl_simulated *s)
{
    struct gn_error err;
    if (args->json)
        return gn_ctl_print_json(args, gn_ctl_sim_json(s));
    if (gn_ctl_sim_print(s)) {
        gn_fail(&err, ENOMEM, NULL, "out of memory");
        return gn_ctl_fail(args, GN_EXIT_FAILED, "cannot print the results", &err);
    }
    return gn_ctl_flush(args);
}

int gn_ctl_sim(const struct gn_ctl_args *args)
{
    struct gn_sim_workload w;
    struct gn_ctl_simulated s = {
        .w = &w, .cost = args->sim.cost, .cost_vgpus = {10, 100, 1000, 10000}};
    struct gn_error err = {{0}, {0}};
    gn_sim_workload_init(&w);
    int rc = describe(args, &w, &err), status;
    if (rc == 0)
        rc = simulate(&s, &err);
    if (rc == -EINVAL)
        status = gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
    else if (rc)
        status = gn_ctl_fail(args, GN_EXIT_FAILED, "cannot simulate the workload", &err);
    else
        status = show(args, &s);
    for (uint32_t i = 0; i < s.n_runs; i++)
        gn_sim_result_fini(&s.runs[i]);
    gn_sim_workload_fini(&w);
    return status;
}
