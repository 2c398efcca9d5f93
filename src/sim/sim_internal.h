/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_INTERNAL_H
#define GN_SIM_INTERNAL_H

#include "base/list.h"
#include "sched/choose.h"
#include "sim/entitle.h"
#include "sim/heap.h"
#include "sim/sim.h"

/* The world that is simulated: world.c has devices and who sits on them, device.c what a device
 * does, program.c what programs do. */

#define GN_SIM_NEVER UINT64_MAX

struct gn_sim_owner; /* a tenant: one copy */
struct gn_sim_vgpu;

enum gn_sim_device_state { GN_SIM_FREE, GN_SIM_RUNS, GN_SIM_HOLDS /* without work */ };

struct gn_sim_device {
    struct gn_sched sched;
    struct gn_sim_timer
        timer; /* FREE: when a cap gives way; RUNS: the kernel's end; HOLDS: patience ends */
    enum gn_sim_device_state state;
    struct gn_sim_vgpu *holder;             /* NULL: FREE */
    bool asked;                             /* it is to be given back after this kernel */
    uint64_t granted_ns, slice_ns, used_ns; /* of this grant */
    uint64_t wasted_ns;                     /* of this grant: charged, too */
    uint64_t contended_ns; /* since when somebody waits, in this grant; GN_SIM_NEVER: nobody does */
    uint64_t began_ns, settled_ns; /* RUNS: the kernel; it is accounted for until then */
    uint64_t idle_ns;              /* HOLDS: since when */
    struct gn_list seats;
    struct gn_sched_load
        load; /* who is there counts as busy: what programs will do is not known beforehand */
    uint64_t epoch_ns; /* since when the same vGPUs are here */
    struct gn_sim_device_result *result;
};

/* A tenant on a device. */
struct gn_sim_seat {
    struct gn_sched_tenant t;
    struct gn_sim_owner *owner;
    struct gn_sim_device *device;
    struct gn_list in_device, in_owner;
    uint32_t n_vgpus, n_working;
    double wants; /* what its vGPUs would use if they were alone: a sum */
    /* In this epoch. */
    uint64_t used_ns, worked_ns, working_since_ns;
};

struct gn_sim_owner {
    const struct gn_sim_tenant *tenant;
    struct gn_list seats;
    uint64_t used_ns;
    double entitled_ns;
};

struct gn_sim_vgpu {
    struct gn_sched_entity e;
    const struct gn_sim_program *program;
    struct gn_sim_usage *usage;
    struct gn_sim_owner *owner;
    struct gn_sim_seat *seat; /* NULL: it has not come */
    struct gn_sim_timer step; /* it comes; or the next launch */
    struct gn_sim_timer leave;
    struct gn_sim_random random, launches,
        behind;          /* kernels and thoughts; launches; the same, later */
    uint64_t behind_ns;  /* when the launch in hand was */
    uint64_t n_launched; /* not all of it ended; of a program that always has work: of no meaning */
    uint32_t burst_left; /* of the launch in hand; 0: it has not begun */
    uint32_t recorded_next, recorded_first; /* requests: to be launched, to be run */
    bool working, leaving;
};

struct gn_sim_world {
    const struct gn_sim_workload *w;
    struct gn_sim_result *result;
    uint64_t now_ns;
    struct gn_sim_heap heap;
    struct gn_sim_device *devices;
    struct gn_sim_owner *owners;
    uint32_t n_owners;
    struct gn_sim_vgpu *vgpus;
    uint32_t n_vgpus;
    struct gn_sim_seat *seats; /* room for one a vGPU: more are never taken */
    uint32_t n_seats;
    struct gn_sim_claim *claims; /* room for one an owner */
    bool measure;
    uint64_t clock_cost_ns;
    bool out_of_memory; /* the run ends */
};

/* world.c */
/* 0 or -ENOMEM; to be ended with fini in either case. The result's lists are there. */
int gn_sim_world_init(struct gn_sim_world *world, const struct gn_sim_workload *w,
                      const struct gn_sched_policy *policy, struct gn_sim_result *result);
void gn_sim_world_fini(struct gn_sim_world *world);
/* Finds it a place on the least loaded device. */
void gn_sim_seat_take(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_seat_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_set_working(struct gn_sim_world *world, struct gn_sim_vgpu *v, bool working);
/* What was used and entitled to since the last time. */
void gn_sim_device_settle(struct gn_sim_world *world, struct gn_sim_device *d);
void gn_sim_epoch_end(struct gn_sim_world *world, struct gn_sim_device *d);
void gn_sim_add_wait(struct gn_sim_world *world, struct gn_sim_vgpu *v, uint64_t ns);

/* device.c */
void gn_sim_device_fire(struct gn_sim_timer *t, void *world);
/* The vGPU, which has a seat, has work. */
void gn_sim_device_work(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* It goes; true: at once, false: when its kernel ends. */
bool gn_sim_device_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* Time is over. */
void gn_sim_device_finish(struct gn_sim_world *world, struct gn_sim_device *d);

/* program.c */
void gn_sim_program_arrive(struct gn_sim_timer *t, void *world);
void gn_sim_program_leave(struct gn_sim_timer *t, void *world);
/* The part of a device that a vGPU of it would use if it were alone. */
double gn_sim_program_wants(const struct gn_sim_program *p);
void gn_sim_program_gone(struct gn_sim_world *world, struct gn_sim_vgpu *v);
bool gn_sim_program_has_work(const struct gn_sim_vgpu *v);
/* The next kernel's time. Has work. */
uint64_t gn_sim_program_begin(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_program_end(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* When the launch was whose first kernel is next; GN_SIM_NEVER: none is, or it always has work. */
uint64_t gn_sim_program_launched(const struct gn_sim_world *world, const struct gn_sim_vgpu *v);
/* Kernels launched on a schedule that did not begin. */
uint64_t gn_sim_program_left(const struct gn_sim_vgpu *v);

#endif
