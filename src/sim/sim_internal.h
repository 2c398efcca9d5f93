/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_INTERNAL_H
#define GN_SIM_INTERNAL_H

#include "base/list.h"
#include "place/residency.h"
#include "sched/choose.h"
#include "sim/entitle.h"
#include "sim/heap.h"
#include "sim/sim.h"

/*
 * The simulated world: world.c has the devices and the tenants on them, device.c the behaviour of a
 * device, memory.c that of its memory, program.c the behaviour of programs.
 */

#define GN_SIM_NEVER UINT64_MAX

struct gn_sim_owner; /* one copy of a tenant */
struct gn_sim_vgpu;

enum gn_sim_device_state {
    GN_SIM_FREE,
    GN_SIM_COPIES, /* the holder's memory is swapped in */
    GN_SIM_RUNS,
    GN_SIM_HOLDS /* without work */
};

struct gn_sim_device {
    struct gn_sched sched;
    /*
     * FREE: when a cap allows the next turn. COPIES: the copies' end. RUNS: the kernel's end.
     * HOLDS: the end of spinning.
     */
    struct gn_sim_timer timer;
    enum gn_sim_device_state state;
    struct gn_sim_vgpu *holder;             /* NULL: FREE */
    bool asked;                             /* the holder must give it back after this kernel */
    uint64_t granted_ns, slice_ns, used_ns; /* of this grant */
    uint64_t wasted_ns;                     /* of this grant; charged as well */
    /* Since when another vGPU has waited during this grant; GN_SIM_NEVER: none waits. */
    uint64_t contended_ns;
    /* RUNS: the kernel's begin; the time up to which it is accounted for. */
    uint64_t began_ns, settled_ns;
    uint64_t idle_ns; /* HOLDS: since when it has had no work */
    struct gn_list seats;
    /* Present tenants count by weight whether busy or not: future work of programs is unknown. */
    struct gn_sched_load load;
    uint64_t epoch_ns; /* since when the same vGPUs have been here */
    struct gn_sim_device_result *result;
    struct gn_place *place; /* NULL: memory is not simulated */
    struct gn_sim_timer tick, swap_end, swap_again;
    struct gn_sim_vgpu *swapping; /* with periods: it is being swapped in */
    struct gn_place_plan plan;
    uint64_t n_periods; /* swaps in so far */
};

/* A tenant on a device. */
struct gn_sim_seat {
    struct gn_sched_tenant t;
    struct gn_place_tenant memory;
    struct gn_sim_owner *owner;
    struct gn_sim_device *device;
    struct gn_list in_device, in_owner;
    uint32_t n_vgpus, n_working;
    double wants; /* Sum of the parts that its vGPUs would each use alone. */
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
    struct gn_sim_seat *seat; /* NULL: it has not arrived */
    struct gn_sim_timer step; /* its arrival, or the next launch */
    struct gn_sim_timer leave;
    /* Random streams: kernels and thinking; launches; the launches again, read later. */
    struct gn_sim_random random, launches, behind;
    uint64_t behind_ns; /* when the current launch was made */
    /* Launches that have not ended. Meaningless for a program that always has work. */
    uint64_t n_launched;
    uint32_t burst_left;                    /* of the current launch; 0: it has not begun */
    uint32_t recorded_next, recorded_first; /* indexes of requests: next to launch, next to run */
    bool working, leaving;
    struct gn_place_vgpu *memory; /* NULL: memory is not simulated */
    /* The device's n_periods since it has had work and been evicted; GN_SIM_NEVER: it has not. */
    uint64_t evicted_at;
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
    struct gn_sim_seat *seats; /* room for one per vGPU, which is the maximum */
    uint32_t n_seats;
    struct gn_sim_claim *claims; /* room for one per owner */
    /* One a device, and one a vGPU. NULL: memory is not simulated. */
    struct gn_place *places;
    struct gn_place_vgpu *memories;
    bool measure;
    uint64_t clock_cost_ns;
    bool out_of_memory; /* ends the run */
};

/* world.c */
/* Returns 0 or -ENOMEM; call fini in either case. The result's arrays must exist. */
int gn_sim_world_init(struct gn_sim_world *world, const struct gn_sim_workload *w,
                      const struct gn_sched_policy *policy, const struct gn_place_policy *place,
                      struct gn_sim_result *result);
void gn_sim_world_fini(struct gn_sim_world *world);
/* Places the vGPU on the least loaded device. */
void gn_sim_seat_claim(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_seat_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_set_working(struct gn_sim_world *world, struct gn_sim_vgpu *v, bool working);
/* Accounts for used time since the last call. gn_sim_epoch_end also accounts for entitled time. */
void gn_sim_device_settle(struct gn_sim_world *world, struct gn_sim_device *d);
void gn_sim_epoch_end(struct gn_sim_world *world, struct gn_sim_device *d);
void gn_sim_add_wait(struct gn_sim_world *world, struct gn_sim_vgpu *v, uint64_t ns);

/* device.c */
void gn_sim_device_fire(struct gn_sim_timer *t, void *world);
/* The vGPU, which has a seat, has work now. */
void gn_sim_device_work(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* The vGPU leaves. True: it has left; false: it leaves when its kernel ends. */
bool gn_sim_device_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* Closes the accounts at the end of the run. */
void gn_sim_device_finish(struct gn_sim_world *world, struct gn_sim_device *d);

/* Ends the turn of a holder that has no work; another may be picked then. */
void gn_sim_device_give_up(struct gn_sim_world *world, struct gn_sim_device *d);
/* Picks the next holder if the device is free. */
void gn_sim_device_pick(struct gn_sim_world *world, struct gn_sim_device *d);

/* memory.c: does nothing if memory is not simulated */
/* Returns 0 or -ENOMEM; call fini in either case. */
int gn_sim_memory_init(struct gn_sim_world *world, const struct gn_place_policy *place);
void gn_sim_memory_fini(struct gn_sim_world *world);
void gn_sim_memory_tenant(struct gn_sim_world *world, struct gn_sim_seat *s);
void gn_sim_memory_arrive(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_memory_leave(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_memory_work(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/* With periods: begins the swap that is due, if there is one. */
void gn_sim_memory_swap(struct gn_sim_world *world, struct gn_sim_device *d);
/* Without: swaps the holder's memory in, and returns the time of the copies. */
uint64_t gn_sim_memory_copy(struct gn_sim_world *world, struct gn_sim_device *d);
/* The vGPU of a copy goes before the copy ends. */
void gn_sim_memory_abort(struct gn_sim_world *world, struct gn_sim_device *d,
                         const struct gn_sim_timer *copy);
/* The holder's turn begins; it ends. */
void gn_sim_memory_turn(struct gn_sim_world *world, struct gn_sim_device *d);
void gn_sim_memory_yield(struct gn_sim_world *world, struct gn_sim_device *d, uint64_t used_ns,
                         bool more_work);

/* program.c */
void gn_sim_program_arrive(struct gn_sim_timer *t, void *world);
void gn_sim_program_leave(struct gn_sim_timer *t, void *world);
/* Returns the part of a device that one vGPU of the program would use alone. */
double gn_sim_program_wants(const struct gn_sim_program *p);
void gn_sim_program_gone(struct gn_sim_world *world, struct gn_sim_vgpu *v);
bool gn_sim_program_has_work(const struct gn_sim_vgpu *v);
/* Begins the next kernel of a vGPU with work, and returns its duration. */
uint64_t gn_sim_program_begin(struct gn_sim_world *world, struct gn_sim_vgpu *v);
void gn_sim_program_end(struct gn_sim_world *world, struct gn_sim_vgpu *v);
/*
 * Returns the time of the launch that begins with the next kernel. GN_SIM_NEVER: no launch begins,
 * or the program always has work.
 */
uint64_t gn_sim_program_launched(const struct gn_sim_world *world, const struct gn_sim_vgpu *v);
/* Returns the number of scheduled or recorded kernels that did not begin. */
uint64_t gn_sim_program_left(const struct gn_sim_vgpu *v);

#endif
