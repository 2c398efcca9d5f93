/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the description of a workload: the keys that a file and a command line share. Each mistake
 * is one sentence; in a file it names the line. `gantry sim` calls it on its main thread. It never
 * runs the workload.
 */
#include "sim/workload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/ini.h"
#include "base/size.h"

#define GIVEN_THINK 1u /* bits of gn_sim_program.given */
#define GIVEN_EVERY 2u

/* Checks a tenant's keys against each other and against other tenants. */
static int judge_tenant(const struct gn_sim_workload *w, const struct gn_sim_tenant *t,
                        struct gn_error *err)
{
    uint64_t floors = 0;
    for (uint32_t i = 0; i < w->n_tenants; i++)
        floors += (uint64_t)w->tenants[i].floor * w->tenants[i].copies;
    if (t->cap && t->floor > t->cap)
        return gn_fail(err, EINVAL, "raise the cap or lower the floor",
                       "the floor of \"%s\" is above its cap", t->name);
    if (floors > GN_SCHED_WHOLE)
        return gn_fail(err, EINVAL, "lower them until they add up to 100 % at most",
                       "with \"%s\" the floors promise %.4g %% of a device", t->name,
                       (double)floors / 1e4);
    return 0;
}

/* ---- keys of programs */

static int set_vgpus(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_count("a number of vGPUs", value, 1, GN_SIM_MAX_VGPUS, &p->n_vgpus, err);
}

static int set_program_weight(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_count("a weight", value, 1, GN_SCHED_WEIGHT_MAX, &p->weight, err);
}

static int set_kernel(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    int rc = gn_sim_parse_time(value, &p->kernel, err);
    for (uint32_t i = 0; rc == 0 && i < p->kernel.n; i++)
        if (!p->kernel.ns[i])
            rc = gn_fail(err, EINVAL, "write 1ns or more", "a kernel of no time");
    return rc;
}

static int set_think(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_time(value, &p->think, err);
}

static int set_every(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    int rc = gn_sim_parse_time(value, &p->every, err);
    for (uint32_t i = 0; rc == 0 && i < p->every.n; i++)
        if (!p->every.ns[i])
            rc = gn_fail(err, EINVAL, "for a program that always has work leave it out",
                         "launches in no time");
    p->scheduled = rc == 0;
    return rc;
}

static int set_burst(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_count("a number of kernels", value, 1, 1000000, &p->burst, err);
}

static int set_arrive(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_time(value, &p->arrive, err);
}

static int set_stay(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    p->leaves = true;
    return gn_sim_parse_time(value, &p->stay, err);
}

static int set_memory(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_size_parse(value, &p->memory_bytes, err);
}

static int set_uses(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    return gn_sim_parse_part("a part of the memory", value, &p->uses, err);
}

static int set_writes(struct gn_sim_program *p, const char *value, struct gn_error *err)
{
    p->writes = 0;
    return strcmp(value, "0") == 0
               ? 0
               : gn_sim_parse_part("a part of the memory", value, &p->writes, err);
}

static const struct program_key {
    const char *key;
    int (*set)(struct gn_sim_program *, const char *value, struct gn_error *err);
    unsigned given;
} program_keys[] = {
    {"kernel", set_kernel, 8},
    {"think", set_think, GIVEN_THINK},
    {"every", set_every, GIVEN_EVERY},
    {"burst", set_burst, 16},
    {"vgpus", set_vgpus, 4},
    {"arrive", set_arrive, 32},
    {"stay", set_stay, 64},
    {"weight", set_program_weight, 128},
    {"memory", set_memory, 256},
    {"uses", set_uses, 512},
    {"writes", set_writes, 1024},
};

#define KEYS_OF_PROGRAMS "kernel, think, every, burst, vgpus, arrive, stay, memory, uses and writes"

static const struct program_key *find_key(const char *key)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(program_keys); i++)
        if (strcmp(key, program_keys[i].key) == 0)
            return &program_keys[i];
    return NULL;
}

static int twice(const char *key, struct gn_error *err)
{
    return gn_fail(err, EINVAL, "keep one of them", "given twice: \"%s\"", key);
}

static int set_key(struct gn_sim_program *p, const struct program_key *k, const char *value,
                   struct gn_error *err)
{
    if (p->given & k->given)
        return twice(k->key, err);
    p->given |= k->given;
    if ((p->given & GIVEN_THINK) && (p->given & GIVEN_EVERY))
        return gn_fail(
            err, EINVAL, "keep the one that is meant",
            "\"%s\" launches either a while after the last kernel (think) or on a schedule (every)",
            p->name);
    return k->set(p, value, err);
}

static int set_program(struct gn_sim_workload *w, uint32_t program, const char *key,
                       const char *value, struct gn_error *err)
{
    struct gn_sim_program *p = &w->programs[program];
    const struct program_key *k = find_key(key);
    if (strcmp(key, "tenant") == 0) {
        if (p->tenant != GN_SIM_NONE)
            return twice(key, err);
        p->tenant = gn_sim_workload_find_tenant(w, value);
        return p->tenant != GN_SIM_NONE
                   ? 0
                   : gn_fail(err, EINVAL, "describe the tenant before its programs",
                             "there is no tenant \"%.100s\" so far", value);
    }
    if (!k)
        return gn_fail(err, EINVAL,
                       "the keys of [program NAME] are tenant, weight, " KEYS_OF_PROGRAMS,
                       "unknown key \"%.100s\"", key);
    return set_key(p, k, value, err);
}

/* ---- keys of tenants; the other keys belong to the program of the same name */

static int set_tenant(struct gn_sim_workload *w, uint32_t tenant, const char *key,
                      const char *value, struct gn_error *err)
{
    static const char *const keys[] = {"weight", "cap", "floor", "copies", "reserve"};
    struct gn_sim_tenant *t = &w->tenants[tenant];
    int rc = 0;
    for (unsigned i = 0; i < GN_ARRAY_SIZE(keys); i++) {
        if (strcmp(key, keys[i]) != 0)
            continue;
        if (t->given & (1u << i))
            return twice(key, err);
        t->given |= 1u << i;
        if (i == 0)
            return gn_sim_parse_count("a weight", value, 1, GN_SCHED_WEIGHT_MAX, &t->weight, err);
        if (i == 4)
            return gn_size_parse(value, &t->reserve_bytes, err);
        if (i == 1)
            rc = gn_sim_parse_part("a cap", value, &t->cap, err);
        else if (i == 2)
            rc = gn_sim_parse_part("a floor", value, &t->floor, err);
        else
            rc = gn_sim_parse_count("a number of tenants", value, 1, GN_SIM_MAX_VGPUS, &t->copies,
                                    err);
        return rc ? rc : judge_tenant(w, t, err);
    }
    const struct program_key *k = find_key(key);
    if (!k)
        return gn_fail(
            err, EINVAL,
            "the keys of [tenant NAME] are weight, cap, floor, copies, reserve, " KEYS_OF_PROGRAMS,
            "unknown key \"%.100s\"", key);
    uint32_t own = gn_sim_workload_find_program(w, t->name);
    if (own != GN_SIM_NONE && w->programs[own].tenant != tenant)
        return gn_fail(err, EINVAL, "give it another name",
                       "a second description of the program \"%s\"", t->name);
    if (own == GN_SIM_NONE && (rc = gn_sim_workload_new_program(w, t->name, tenant, err)))
        return rc;
    return set_key(&w->programs[own == GN_SIM_NONE ? w->n_programs - 1 : own], k, value, err);
}

/* ---- keys of the whole simulation */

static int set_devices(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    return gn_sim_parse_count("a number of devices", value, 1, GN_SIM_MAX_DEVICES, &w->n_devices,
                              err);
}

static int set_time(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    int rc = gn_sim_parse_ns(value, &w->time_ns, err);
    return rc || w->time_ns
               ? rc
               : gn_fail(err, EINVAL, "write 10s or so", "a simulation of no time shows nothing");
}

static int set_slice(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    int rc = gn_sim_parse_ns(value, &w->slice_ns, err);
    return rc || w->slice_ns ? rc
                             : gn_fail(err, EINVAL, "write 6ms or so",
                                       "a slice of no time gives nobody the device");
}

static int set_spin(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    return gn_sim_parse_ns(value, &w->spin_ns, err);
}

static int set_seed(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    uint32_t seed;
    int rc = gn_sim_parse_count("a seed", value, 0, 999999999, &seed, err);
    if (rc == 0)
        w->seed = seed;
    return rc;
}

static int unknown_policy(const char *name, struct gn_error *err)
{
    const struct gn_sched_policy *p;
    char fix[192] = "write ";
    for (unsigned i = 0; (p = gn_sched_policy_at(i)); i++) {
        const size_t n = strlen(fix);
        snprintf(fix + n, sizeof fix - n, "%s, ", p->name);
    }
    const size_t n = strlen(fix);
    snprintf(fix + n - 2, sizeof fix - n + 2, " or all");
    return gn_fail(err, EINVAL, fix, "there is no policy \"%.100s\"", name);
}

static int add_policy(struct gn_sim_workload *w, const struct gn_sched_policy *p,
                      struct gn_error *err)
{
    for (uint32_t i = 0; i < w->n_policies; i++)
        if (w->policies[i] == p)
            return gn_fail(err, EINVAL, "name it once", "the policy %s is named twice", p->name);
    w->policies[w->n_policies++] = p;
    return 0;
}

/* "NAME[,NAME]..." or "all". */
static int set_policies(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    const struct gn_sched_policy *p;
    int rc = 0;
    for (unsigned i = 0; strcmp(value, "all") == 0; i++) {
        if (!(p = gn_sched_policy_at(i)))
            return rc;
        if ((rc = add_policy(w, p, err)))
            return rc;
    }
    for (const char *at = value; at && rc == 0;) {
        const size_t n = strcspn(at, ",");
        char name[GN_SIM_NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, at);
        if (!(p = gn_sched_policy_find(name)))
            return unknown_policy(name, err);
        rc = add_policy(w, p, err);
        at = at[n] ? at + n + 1 : NULL;
    }
    return rc;
}

static int set_trace(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    if (strlen(value) >= sizeof w->trace_path)
        return gn_fail(err, EINVAL, "use a shorter path", "too long: \"%.100s\"", value);
    snprintf(w->trace_path, sizeof w->trace_path, "%s", value);
    return 0;
}

static int set_device_memory(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    return gn_size_parse(value, &w->memory_bytes, err);
}

static int set_slot(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    int rc = gn_size_parse(value, &w->slot_bytes, err);
    return rc || w->slot_bytes
               ? rc
               : gn_fail(err, EINVAL, "write 64M or so", "a slot of no memory holds nothing");
}

static int set_bus(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    return gn_size_parse(value, &w->bus_bytes, err);
}

static int set_swap_share(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    w->swap_share = 0;
    return strcmp(value, "none") == 0
               ? 0
               : gn_sim_parse_part("a share of copies", value, &w->swap_share, err);
}

static int add_place(struct gn_sim_workload *w, const struct gn_place_policy *p,
                     struct gn_error *err)
{
    for (uint32_t i = 0; i < w->n_places; i++)
        if (w->places[i] == p)
            return gn_fail(err, EINVAL, "name it once", "the placement %s is named twice", p->name);
    w->places[w->n_places++] = p;
    return 0;
}

/* "NAME[,NAME]..." or "all". */
static int set_places(struct gn_sim_workload *w, const char *value, struct gn_error *err)
{
    const struct gn_place_policy *p;
    int rc = 0;
    for (unsigned i = 0; strcmp(value, "all") == 0; i++) {
        if (!(p = gn_place_policy_at(i)))
            return rc;
        if ((rc = add_place(w, p, err)))
            return rc;
    }
    for (const char *at = value; at && rc == 0;) {
        const size_t n = strcspn(at, ",");
        char name[GN_SIM_NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, at);
        if (!(p = gn_place_policy_find(name)))
            return gn_fail(err, EINVAL, "write turn, first-fit, size, utilization or all",
                           "there is no placement \"%.100s\"", name);
        rc = add_place(w, p, err);
        at = at[n] ? at + n + 1 : NULL;
    }
    return rc;
}

static const struct {
    const char *key;
    int (*set)(struct gn_sim_workload *, const char *value, struct gn_error *err);
} sim_keys[] = {{"devices", set_devices},
                {"time", set_time},
                {"slice", set_slice},
                {"spin", set_spin},
                {"seed", set_seed},
                {"trace", set_trace},
                {"policy", set_policies},
                {"memory", set_device_memory},
                {"slot", set_slot},
                {"bus", set_bus},
                {"swap-share", set_swap_share},
                {"place", set_places}};

int gn_sim_workload_set(struct gn_sim_workload *w, const char *key, const char *value,
                        struct gn_error *err)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(sim_keys); i++)
        if (strcmp(key, sim_keys[i].key) == 0)
            return sim_keys[i].set(w, value, err);
    return gn_fail(
        err, EINVAL,
        "the keys of [sim] are devices, time, slice, spin, seed, trace, policy, memory, slot, "
        "bus, place and swap-share",
        "unknown key \"%.100s\"", key);
}

/* ---- the file */

struct parser {
    struct gn_ini ini;
    struct gn_sim_workload *w;
    enum { NO_SECTION, SECTION_SIM, SECTION_TENANT, SECTION_PROGRAM } section;
    uint32_t index; /* index of the tenant or program */
    unsigned given; /* keys of [sim] that were given */
};

static int start_section(struct gn_ini *ini, char *name)
{
    struct parser *p = ini->ctx;
    struct gn_error inner = {{0}, {0}};
    int rc;
    if (strcmp(name, "sim") == 0) {
        p->section = SECTION_SIM;
        return 0;
    }
    if (strncmp(name, "tenant", 6) == 0 && (name[6] == ' ' || name[6] == '\t')) {
        rc = gn_sim_workload_new_tenant(p->w, gn_ini_trim(name + 6), &inner);
        p->section = SECTION_TENANT;
        p->index = p->w->n_tenants - 1;
    } else if (strncmp(name, "program", 7) == 0 && (name[7] == ' ' || name[7] == '\t')) {
        rc = gn_sim_workload_new_program(p->w, gn_ini_trim(name + 7), GN_SIM_NONE, &inner);
        p->section = SECTION_PROGRAM;
        p->index = p->w->n_programs - 1;
    } else {
        return gn_ini_complain(ini, "the sections are [sim], [tenant NAME] and [program NAME]",
                               "unknown section", name);
    }
    return rc ? gn_ini_pass_on(ini, &inner) : 0;
}

/* A path in the file is relative to the file's folder. */
static int set_trace_beside(struct parser *p, const char *value, struct gn_error *err)
{
    const char *slash = strrchr(p->ini.path, '/');
    char path[sizeof p->w->trace_path + 1];
    if (value[0] == '/' || !slash)
        return set_trace(p->w, value, err);
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - p->ini.path), p->ini.path, value);
    return set_trace(p->w, path, err);
}

static int set_sim(struct parser *p, const char *key, const char *value, struct gn_error *err)
{
    for (unsigned i = 0; i < GN_ARRAY_SIZE(sim_keys); i++) {
        if (strcmp(key, sim_keys[i].key) != 0)
            continue;
        if (sim_keys[i].set != set_policies && sim_keys[i].set != set_places &&
            (p->given & (1u << i)))
            return twice(key, err);
        p->given |= 1u << i;
        if (sim_keys[i].set == set_trace)
            return set_trace_beside(p, value, err);
    }
    return gn_sim_workload_set(p->w, key, value, err);
}

static int set_any(struct gn_ini *ini, const char *key, const char *value)
{
    struct parser *p = ini->ctx;
    struct gn_error inner = {{0}, {0}};
    int rc = 0;
    switch (p->section) {
    case NO_SECTION:
        return gn_ini_complain(ini, "put [sim] or [tenant NAME] above it",
                               "a key before any section:", key);
    case SECTION_SIM:
        rc = set_sim(p, key, value, &inner);
        break;
    case SECTION_TENANT:
        rc = set_tenant(p->w, p->index, key, value, &inner);
        break;
    case SECTION_PROGRAM:
        rc = set_program(p->w, p->index, key, value, &inner);
        break;
    }
    return rc ? gn_ini_pass_on(ini, &inner) : 0;
}

static void parser_init(struct parser *p, struct gn_sim_workload *w, const char *path,
                        struct gn_error *err)
{
    *p = (struct parser){
        .ini = {.path = path, .section = start_section, .key = set_any, .err = err}, .w = w};
    p->ini.ctx = p;
}

int gn_sim_workload_parse(struct gn_sim_workload *w, const char *path, const char *text, size_t n,
                          struct gn_error *err)
{
    struct parser p;
    parser_init(&p, w, path, err);
    return gn_ini_parse(&p.ini, text, n);
}

int gn_sim_workload_read(struct gn_sim_workload *w, const char *path, struct gn_error *err)
{
    struct parser p;
    parser_init(&p, w, path, err);
    return gn_ini_read(&p.ini, "workload");
}

/* ---- words of a command line */

static int take_pairs(struct gn_sim_workload *w, char *at, uint32_t index,
                      int (*set)(struct gn_sim_workload *, uint32_t, const char *, const char *,
                                 struct gn_error *),
                      struct gn_error *err)
{
    for (char *pair; (pair = strsep(&at, ","));) {
        char *equals = strchr(pair, '=');
        if (!equals || equals == pair || !equals[1])
            return gn_fail(err, EINVAL, "write KEY=VALUE", "\"%.100s\" sets nothing", pair);
        *equals = 0;
        int rc = set(w, index, pair, equals + 1, err);
        if (rc)
            return rc;
    }
    return 0;
}

int gn_sim_workload_add_tenant(struct gn_sim_workload *w, const char *words, struct gn_error *err)
{
    char copy[512], *rest = copy;
    if ((size_t)snprintf(copy, sizeof copy, "%s", words) >= sizeof copy)
        return gn_fail(err, EINVAL, "describe it in a file", "a tenant of too many words");
    char *name = strsep(&rest, ","), *weight = strchr(name, ':');
    if (weight)
        *weight++ = 0;
    int rc = gn_sim_workload_new_tenant(w, name, err);
    if (rc == 0 && weight)
        rc = set_tenant(w, w->n_tenants - 1, "weight", weight, err);
    return rc ? rc : take_pairs(w, rest, w->n_tenants - 1, set_tenant, err);
}

int gn_sim_workload_add_program(struct gn_sim_workload *w, const char *words, struct gn_error *err)
{
    char copy[512], *rest = copy;
    if ((size_t)snprintf(copy, sizeof copy, "%s", words) >= sizeof copy)
        return gn_fail(err, EINVAL, "describe it in a file", "a program of too many words");
    int rc = gn_sim_workload_new_program(w, strsep(&rest, ","), GN_SIM_NONE, err);
    if (rc == 0)
        rc = take_pairs(w, rest, w->n_programs - 1, set_program, err);
    if (rc == 0 && w->programs[w->n_programs - 1].tenant == GN_SIM_NONE)
        rc = gn_fail(err, EINVAL, "write tenant=NAME behind its name",
                     "the program \"%s\" has no tenant", w->programs[w->n_programs - 1].name);
    return rc;
}
