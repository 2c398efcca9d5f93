/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a workload: its tenants and programs with default values, and the checks at the end of its
 * description. `gantry sim` calls it on its main thread. It never parses a description: describe.c
 * does.
 */
#include "sim/workload.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

#define DEFAULT_TIME   (10 * S)
#define DEFAULT_SLICE  (6 * MS)
#define DEFAULT_SPIN   (50 * US)
#define DEFAULT_KERNEL (1 * MS)
#define DEFAULT_WEIGHT 100u

void gn_sim_workload_init(struct gn_sim_workload *w)
{
    memset(w, 0, sizeof *w);
    w->n_devices = 1;
    w->slice_ns = DEFAULT_SLICE;
    w->spin_ns = DEFAULT_SPIN;
    w->seed = 1;
    w->swap_share = GN_PLACE_SHARE;
}

void gn_sim_workload_fini(struct gn_sim_workload *w)
{
    free(w->tenants);
    free(w->programs);
    free(w->trace.requests);
    free(w->trace.vgpus);
    memset(w, 0, sizeof *w);
}

/* ---- tenants and programs */

int gn_sim_check_name(const char *name, struct gn_error *err)
{
    size_t n = strlen(name);
    for (const char *p = name; *p; p++)
        if (!isascii(*p) || !(isalnum(*p) || strchr("_.-", *p)))
            n = 0;
    if (n == 0 || n >= GN_SIM_NAME_BYTES)
        return gn_fail(err, EINVAL, "use up to 63 letters, digits, _ . and -",
                       "\"%.100s\" is not a name", name);
    return 0;
}

uint32_t gn_sim_workload_find_program(const struct gn_sim_workload *w, const char *name)
{
    for (uint32_t i = 0; i < w->n_programs; i++)
        if (strcmp(w->programs[i].name, name) == 0)
            return i;
    return GN_SIM_NONE;
}

uint32_t gn_sim_workload_find_tenant(const struct gn_sim_workload *w, const char *name)
{
    for (uint32_t i = 0; i < w->n_tenants; i++)
        if (strcmp(w->tenants[i].name, name) == 0)
            return i;
    return GN_SIM_NONE;
}

int gn_sim_workload_new_tenant(struct gn_sim_workload *w, const char *name, struct gn_error *err)
{
    int rc = gn_sim_check_name(name, err);
    if (rc)
        return rc;
    if (gn_sim_workload_find_tenant(w, name) != GN_SIM_NONE)
        return gn_fail(err, EINVAL, "describe it in one place",
                       "a second description of the tenant \"%s\"", name);
    if (w->n_tenants == GN_SIM_MAX_TENANTS)
        return gn_fail(err, EINVAL, "use copies = N for tenants that are alike",
                       "more than %d tenants are described", GN_SIM_MAX_TENANTS);
    struct gn_sim_tenant *grown = realloc(w->tenants, (w->n_tenants + 1) * sizeof *grown);
    if (!grown)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    w->tenants = grown;
    struct gn_sim_tenant *t = &w->tenants[w->n_tenants++];
    *t = (struct gn_sim_tenant){.weight = DEFAULT_WEIGHT, .copies = 1};
    snprintf(t->name, sizeof t->name, "%s", name);
    return 0;
}

int gn_sim_workload_new_program(struct gn_sim_workload *w, const char *name, uint32_t tenant,
                                struct gn_error *err)
{
    int rc = gn_sim_check_name(name, err);
    if (rc)
        return rc;
    if (gn_sim_workload_find_program(w, name) != GN_SIM_NONE)
        return gn_fail(err, EINVAL, "give it another name",
                       "a second description of the program \"%s\"", name);
    if (w->n_programs == GN_SIM_MAX_PROGRAMS)
        return gn_fail(err, EINVAL, "use vgpus = N for programs that are alike",
                       "more than %d programs are described", GN_SIM_MAX_PROGRAMS);
    struct gn_sim_program *grown = realloc(w->programs, (w->n_programs + 1) * sizeof *grown);
    if (!grown)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    w->programs = grown;
    struct gn_sim_program *p = &w->programs[w->n_programs++];
    *p = (struct gn_sim_program){.tenant = tenant,
                                 .n_vgpus = 1,
                                 .weight = DEFAULT_WEIGHT,
                                 .burst = 1,
                                 .uses = GN_PLACE_WHOLE,
                                 .writes = GN_PLACE_WHOLE};
    p->kernel = (struct gn_sim_time){.n = 1, .ns = {DEFAULT_KERNEL}};
    p->think = p->arrive = (struct gn_sim_time){.n = 1, .ns = {0}};
    snprintf(p->name, sizeof p->name, "%s", name);
    return 0;
}

/* ---- end of the description */

uint32_t gn_sim_workload_vgpus(const struct gn_sim_workload *w)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < w->n_programs; i++)
        n += (uint64_t)w->programs[i].n_vgpus * w->tenants[w->programs[i].tenant].copies;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static int give_programs(struct gn_sim_workload *w, struct gn_error *err)
{
    for (uint32_t t = 0; t < w->n_tenants; t++) {
        bool has = false;
        for (uint32_t i = 0; i < w->n_programs; i++)
            has = has || w->programs[i].tenant == t;
        if (!has && gn_sim_workload_new_program(w, w->tenants[t].name, t, err))
            return -EINVAL;
    }
    return 0;
}

/* At most UINT32_MAX, so that sums of them do not overflow. */
static uint64_t to_slots(uint64_t bytes, uint64_t slot_bytes)
{
    const uint64_t n = bytes / slot_bytes + (bytes % slot_bytes != 0);
    return n < UINT32_MAX ? n : UINT32_MAX;
}

/* Each vGPU must be able to have all of its memory at once, beside the others' reserves. */
static int check_memory(const struct gn_sim_workload *w, struct gn_error *err)
{
    struct gn_place p;
    uint64_t reserved = 0;
    if (!w->memory_bytes) {
        for (uint32_t i = 0; i < w->n_programs; i++)
            if (w->programs[i].memory_bytes)
                return gn_fail(err, EINVAL, "give the devices a memory, too: --memory 8G",
                               "\"%s\" has memory, and the devices have none", w->programs[i].name);
        return 0;
    }
    if (gn_place_init(&p, gn_place_policy_at(0), w->memory_bytes, w->slot_bytes, 0))
        return gn_fail(err, EINVAL, "write more memory, or a smaller slot",
                       "the memory of a device is less than a slot");
    for (uint32_t i = 0; i < w->n_tenants; i++)
        reserved += to_slots(w->tenants[i].reserve_bytes, p.slot_bytes) * w->tenants[i].copies;
    if (reserved > p.n_slots)
        return gn_fail(err, EINVAL, "lower them until they fit",
                       "the reserves are more than a device has");
    for (uint32_t i = 0; i < w->n_programs; i++) {
        const struct gn_sim_tenant *t = &w->tenants[w->programs[i].tenant];
        const uint64_t others = reserved - to_slots(t->reserve_bytes, p.slot_bytes);
        if (to_slots(w->programs[i].memory_bytes, p.slot_bytes) + others > p.n_slots)
            return gn_fail(err, EINVAL, "give the devices more, or reserve less",
                           "\"%s\" has more memory than a device has beside the reserves",
                           w->programs[i].name);
    }
    return 0;
}

/* Without a given time, a recorded workload ends when its last kernel would, if it ran alone. */
static uint64_t recorded_time(const struct gn_sim_trace *t)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < t->n_requests; i++)
        if (t->requests[i].start_ns + t->requests[i].kernel_ns > end)
            end = t->requests[i].start_ns + t->requests[i].kernel_ns;
    return end;
}

int gn_sim_workload_finish(struct gn_sim_workload *w, struct gn_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < w->n_programs; i++)
        if (w->programs[i].tenant == GN_SIM_NONE)
            return gn_fail(err, EBADMSG, "write tenant = NAME in its section",
                           "the program \"%s\" has no tenant", w->programs[i].name);
    if (w->trace_path[0] && (rc = gn_sim_trace_read(w, w->trace_path, err)))
        return rc;
    if (!w->n_tenants)
        return gn_fail(err, EINVAL, "try gantry sim --tenant a:3 --tenant b:1",
                       "no tenants are described");
    if ((rc = give_programs(w, err)))
        return rc;
    if ((rc = check_memory(w, err)))
        return rc;
    if (!w->n_places)
        w->places[w->n_places++] = gn_place_policy_at(0);
    if (!w->n_policies)
        w->policies[w->n_policies++] = gn_sched_policy_at(0);
    if (!w->time_ns)
        w->time_ns = w->trace.n_requests ? recorded_time(&w->trace) : DEFAULT_TIME;
    if (gn_sim_workload_vgpus(w) > GN_SIM_MAX_VGPUS)
        return gn_fail(err, EINVAL, "describe fewer", "these are more than %d vGPUs",
                       GN_SIM_MAX_VGPUS);
    return 0;
}
