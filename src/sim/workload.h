/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_WORKLOAD_H
#define GN_SIM_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "sched/sched.h"
#include "sim/draw.h"

/*
 * What is simulated: devices, tenants, and the programs of the tenants, described in a file, by
 * words of a command line, or recorded. Plain values; no thread owns them.
 */
#define GN_SIM_MAX_DEVICES  1000
#define GN_SIM_MAX_VGPUS    100000
#define GN_SIM_MAX_TENANTS  10000 /* descriptions; each may be many tenants */
#define GN_SIM_MAX_PROGRAMS 10000
#define GN_SIM_MAX_REQUESTS 10000000 /* of a recorded workload */
#define GN_SIM_MAX_POLICIES 8
#define GN_SIM_NAME_BYTES   64

struct gn_sim_tenant {
    char name[GN_SIM_NAME_BYTES];
    uint32_t weight;
    uint32_t cap, floor; /* parts of GN_SCHED_WHOLE, on each device; 0: none */
    uint32_t copies;     /* so many tenants alike */
    unsigned given;      /* keys that have been given */
    bool recorded;       /* the trace has programs of it */
};

struct gn_sim_program {
    char name[GN_SIM_NAME_BYTES];
    uint32_t tenant;  /* index */
    uint32_t n_vgpus; /* of each copy of the tenant */
    uint32_t weight;  /* of a vGPU inside its tenant */
    uint32_t burst;   /* kernels that are launched at once */
    struct gn_sim_time kernel;
    struct gn_sim_time
        think; /* from the end of a burst to the next launch; 0: there is always work */
    struct gn_sim_time every;  /* from launch to launch, whatever has ended; with `scheduled` */
    struct gn_sim_time arrive; /* when a vGPU comes */
    struct gn_sim_time stay;   /* how long; with `leaves` */
    bool scheduled, leaves;
    bool recorded; /* its launches are those of the trace */
    unsigned given;
};

/* A recorded launch. */
struct gn_sim_request {
    uint64_t start_ns, kernel_ns;
    uint32_t vgpu;
    uint32_t next; /* index of the same vGPU's next; GN_SIM_NONE */
};

#define GN_SIM_NONE UINT32_MAX

struct gn_sim_recorded_vgpu {
    uint32_t tenant;
    uint32_t first; /* request */
};

struct gn_sim_trace {
    struct gn_sim_request *requests; /* by start_ns */
    uint32_t n_requests;
    struct gn_sim_recorded_vgpu *vgpus;
    uint32_t n_vgpus;
};

struct gn_sim_workload {
    uint32_t n_devices;
    uint64_t time_ns; /* how long; 0 until gn_sim_workload_finish */
    uint64_t slice_ns, spin_ns;
    uint64_t seed;
    const struct gn_sched_policy *policies[GN_SIM_MAX_POLICIES];
    uint32_t n_policies;
    struct gn_sim_tenant *tenants;
    uint32_t n_tenants;
    struct gn_sim_program *programs;
    uint32_t n_programs;
    struct gn_sim_trace trace;
    char trace_path[512]; /* "": none */
};

void gn_sim_workload_init(struct gn_sim_workload *w);
void gn_sim_workload_fini(struct gn_sim_workload *w);

/* A file, over what is there. 0 or -errno; a mistake names the line and is -EBADMSG. */
int gn_sim_workload_read(struct gn_sim_workload *w, const char *path, struct gn_error *err);
/* The same, of a text of n bytes; paths in it are relative to path's folder. */
int gn_sim_workload_parse(struct gn_sim_workload *w, const char *path, const char *text, size_t n,
                          struct gn_error *err);

/* A setting by its key in [sim]; one that was given before gives way, but policies are added.
 * -EINVAL: a mistake. */
int gn_sim_workload_set(struct gn_sim_workload *w, const char *key, const char *value,
                        struct gn_error *err);
/* "NAME[:WEIGHT][,KEY=VALUE]...", "NAME[,KEY=VALUE]...": as sections of a file. */
int gn_sim_workload_add_tenant(struct gn_sim_workload *w, const char *words, struct gn_error *err);
int gn_sim_workload_add_program(struct gn_sim_workload *w, const char *words, struct gn_error *err);

/*
 * At the end of the description: reads the trace, gives tenants that have no program one, and
 * judges what no single line says. 0 or -errno. Afterwards each program has at least one vGPU.
 */
int gn_sim_workload_finish(struct gn_sim_workload *w, struct gn_error *err);

uint32_t gn_sim_workload_vgpus(const struct gn_sim_workload *w);

/* trace.c: appends programs and tenants that the trace names. path: as errors name it. */
int gn_sim_trace_read(struct gn_sim_workload *w, const char *path, struct gn_error *err);
int gn_sim_trace_take(struct gn_sim_workload *w, const char *path, FILE *f, struct gn_error *err);

/* For describe.c and trace.c: the index of the one of that name, GN_SIM_NONE: there is none. */
uint32_t gn_sim_workload_find_tenant(const struct gn_sim_workload *w, const char *name);
uint32_t gn_sim_workload_find_program(const struct gn_sim_workload *w, const char *name);
/* A new one as by default. 0, or -EINVAL, -ENOMEM. */
int gn_sim_workload_new_tenant(struct gn_sim_workload *w, const char *name, struct gn_error *err);
int gn_sim_workload_new_program(struct gn_sim_workload *w, const char *name, uint32_t tenant,
                                struct gn_error *err);
int gn_sim_check_name(const char *name, struct gn_error *err);

#endif
