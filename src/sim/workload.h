/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_WORKLOAD_H
#define GN_SIM_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "place/place.h"
#include "sched/sched.h"
#include "sim/draw.h"

/*
 * A workload to simulate: devices, tenants, and the programs of the tenants, from a file, from
 * words of a command line, or recorded. Plain values; no thread owns them.
 */
#define GN_SIM_MAX_DEVICES  1000
#define GN_SIM_MAX_VGPUS    100000
#define GN_SIM_MAX_TENANTS  10000 /* descriptions; each may have many copies */
#define GN_SIM_MAX_PROGRAMS 10000
#define GN_SIM_MAX_REQUESTS 10000000 /* of a recorded workload */
#define GN_SIM_MAX_POLICIES 8
#define GN_SIM_MAX_PLACES   4
#define GN_SIM_NAME_BYTES   64

struct gn_sim_tenant {
    char name[GN_SIM_NAME_BYTES];
    uint32_t weight;
    uint32_t cap, floor;    /* parts of GN_SCHED_WHOLE, on each device; 0: none */
    uint32_t copies;        /* number of equal tenants */
    uint64_t reserve_bytes; /* on each device */
    unsigned given;         /* bits of the keys that were given */
    bool recorded;          /* the trace has programs of this tenant */
};

struct gn_sim_program {
    char name[GN_SIM_NAME_BYTES];
    uint32_t tenant;  /* index */
    uint32_t n_vgpus; /* for each copy of the tenant */
    uint32_t weight;  /* of a vGPU inside its tenant */
    uint32_t burst;   /* kernels launched at once */
    struct gn_sim_time kernel;
    /* From the end of a burst to the next launch; 0: there is always work. */
    struct gn_sim_time think;
    /* Time between launches, independent of completions; with `scheduled`. */
    struct gn_sim_time every;
    struct gn_sim_time arrive; /* when a vGPU arrives */
    struct gn_sim_time stay;   /* how long it stays; with `leaves` */
    bool scheduled, leaves;
    bool recorded;         /* its launches are in the trace */
    uint64_t memory_bytes; /* of each vGPU */
    uint32_t uses, writes; /* the parts of it that kernels name and change, of GN_PLACE_WHOLE */
    unsigned given;
};

/* A recorded launch. */
struct gn_sim_request {
    uint64_t start_ns, kernel_ns;
    uint32_t vgpu;
    uint32_t next; /* index of the same vGPU's next request, or GN_SIM_NONE */
};

#define GN_SIM_NONE UINT32_MAX

struct gn_sim_recorded_vgpu {
    uint32_t tenant;
    uint32_t first; /* index of its first request */
};

struct gn_sim_trace {
    struct gn_sim_request *requests; /* sorted by start_ns */
    uint32_t n_requests;
    struct gn_sim_recorded_vgpu *vgpus;
    uint32_t n_vgpus;
};

struct gn_sim_workload {
    uint32_t n_devices;
    uint64_t time_ns; /* length of the run; may be 0 until gn_sim_workload_finish */
    uint64_t slice_ns, spin_ns;
    uint64_t seed;
    const struct gn_sched_policy *policies[GN_SIM_MAX_POLICIES];
    uint32_t n_policies;
    /* Of each device. 0: memory is not simulated. */
    uint64_t memory_bytes, slot_bytes;
    uint64_t bus_bytes;  /* that a copy moves a second; 0: copies take no time */
    uint32_t swap_share; /* the part of the time that copies may take; 0: a swap at each turn */
    const struct gn_place_policy *places[GN_SIM_MAX_PLACES];
    uint32_t n_places;
    struct gn_sim_tenant *tenants;
    uint32_t n_tenants;
    struct gn_sim_program *programs;
    uint32_t n_programs;
    struct gn_sim_trace trace;
    char trace_path[512]; /* "": no trace */
};

void gn_sim_workload_init(struct gn_sim_workload *w);
void gn_sim_workload_fini(struct gn_sim_workload *w);

/*
 * Reads a file on top of the present description. Returns 0 or -errno; -EBADMSG is a mistake, with
 * its line in the error.
 */
int gn_sim_workload_read(struct gn_sim_workload *w, const char *path, struct gn_error *err);
/* The same for a text of n bytes; paths in it are relative to path's folder. */
int gn_sim_workload_parse(struct gn_sim_workload *w, const char *path, const char *text, size_t n,
                          struct gn_error *err);

/*
 * Sets a value by its key in [sim]. It replaces an earlier value, but policies are added. -EINVAL:
 * a mistake.
 */
int gn_sim_workload_set(struct gn_sim_workload *w, const char *key, const char *value,
                        struct gn_error *err);
/*
 * Add "NAME[:WEIGHT][,KEY=VALUE]..." and "NAME[,KEY=VALUE]...", with the keys of a file's sections.
 */
int gn_sim_workload_add_tenant(struct gn_sim_workload *w, const char *words, struct gn_error *err);
int gn_sim_workload_add_program(struct gn_sim_workload *w, const char *words, struct gn_error *err);

/*
 * Ends the description: reads the trace, gives a program to tenants without one, and checks
 * properties that no single line has. Returns 0 or -errno. Afterwards each program has at least one
 * vGPU.
 */
int gn_sim_workload_finish(struct gn_sim_workload *w, struct gn_error *err);

uint32_t gn_sim_workload_vgpus(const struct gn_sim_workload *w);

/* trace.c: append the programs and tenants that the trace names. path: as errors name it. */
int gn_sim_trace_read(struct gn_sim_workload *w, const char *path, struct gn_error *err);
int gn_sim_trace_parse(struct gn_sim_workload *w, const char *path, FILE *f, struct gn_error *err);

/* For describe.c and trace.c: return the index of that name, or GN_SIM_NONE. */
uint32_t gn_sim_workload_find_tenant(const struct gn_sim_workload *w, const char *name);
uint32_t gn_sim_workload_find_program(const struct gn_sim_workload *w, const char *name);
/* Add one with default values. Return 0, -EINVAL or -ENOMEM. */
int gn_sim_workload_new_tenant(struct gn_sim_workload *w, const char *name, struct gn_error *err);
int gn_sim_workload_new_program(struct gn_sim_workload *w, const char *name, uint32_t tenant,
                                struct gn_error *err);
int gn_sim_check_name(const char *name, struct gn_error *err);

#endif
