/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_SERVING_PROCESS_H
#define GN_DAEMON_VGPU_SERVING_PROCESS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/tenants/tenant_rules.h"

/*
 * The process that serves a vGPU: one table for each kind. A worker is forked by a template
 * (worker_process.c); in passthrough the vGPU's own program serves it (program_process.c).
 * v->serving is set when the record is made, and changes when two records exchange their processes
 * (gn_vgpus_swap_workers). v->process, v->worker_pid and v->control are the pidfd of that process,
 * its id, and the socket to it. Code outside the two files calls the table, or asks for a property;
 * it never asks for the kind. All calls are on gantryd's thread, and none waits.
 */
struct gn_conn;
struct gn_vgpu_record;
struct gn_worker_boot_wall;

/* Requests that such a process may be unable to follow. */
enum gn_serving_request { GN_SERVING_END, GN_SERVING_CHECKPOINT, GN_SERVING_MOVE_AWAY };
enum { GN_SERVING_N_REQUESTS = GN_SERVING_MOVE_AWAY + 1 };

struct gn_serving_refusal {
    const char *reason, *remedy; /* reason NULL: the request is not refused */
};

/* A process that gantryd awaits an answer of. The descriptor stays the record's. */
struct gn_awaited_process {
    pid_t pid;
    int pidfd;
    const char *program; /* its name; NULL: it is a worker */
};

struct gn_serving_process_ops {
    /* ---- words */

    const char *name;         /* in a sentence, before the process id */
    const char *link;         /* as `gantry ls` shows it; NULL: as the session is named */
    const char *start_failed; /* a sentence: the process has ended before the vGPU was ready */
    uint32_t mode;            /* the mode that the tenant must allow, GN_MODE_* */
    const char *mode_remedy;  /* when the tenant does not allow it; NULL: there is none */
    struct gn_serving_refusal refusals[GN_SERVING_N_REQUESTS];

    /* ---- properties */

    /* The user may suspend the process (SIGSTOP), which is no fault while it holds a device; no
     * migration that needs its answer begins meanwhile. */
    bool may_be_suspended;
    /* It may refuse the vGPU also when its driver is up. */
    bool may_refuse_late;
    /* It uses the driver that the program has loaded. */
    bool uses_program_driver;

    /* ---- the start */

    /* Whether the program at c may be served so. 0 or -errno. NULL: each may. */
    int (*may_serve)(const struct gn_conn *c, struct gn_error *err);
    /* Fills in the parts of the walls that are this vGPU's own. `program` may be NULL. NULL: there
     * are no walls around the process. */
    void (*confine)(struct gn_vgpu_record *v, const struct gn_conn *program,
                    struct gn_worker_boot_wall *wall);
    /* Starts the process, whose boot message is in the socket of v->worker_fd, or asks for the
     * start. 0 or -errno. A program that cannot be asked loses its connection, which may end v. */
    int (*start)(struct gn_vgpu_record *v, struct gn_error *err);
    /* When the driver must be up; 0: there is no such deadline now. NULL: there is never one. */
    uint64_t (*start_deadline)(const struct gn_vgpu_record *v);
    /* That deadline has passed. */
    void (*start_expired)(struct gn_vgpu_record *v);
    /* The program is about to be told its session. NULL: nothing to do. */
    void (*attached)(struct gn_vgpu_record *v);

    /* ---- while it serves */

    /* The process, if it is known and has not ended. */
    bool (*process)(const struct gn_vgpu_record *v, struct gn_awaited_process *ret);
    /* The lease has changed. NULL: the kernel's limits of the process do not depend on it. */
    void (*follow_lease)(struct gn_vgpu_record *v);

    /* ---- its end */

    /* The control socket has ended, or cannot be read. */
    void (*hung_up)(struct gn_vgpu_record *v);
    /* A message could not be sent, -errno. */
    void (*unreachable)(struct gn_vgpu_record *v, int rc);
    /* The process was told to end, and has not within the grace. */
    void (*overdue)(struct gn_vgpu_record *v);
    /* The process does not serve v any more: its descriptors are closed. NULL: nothing to do. */
    void (*ended)(struct gn_vgpu_record *v);
};

extern const struct gn_serving_process_ops gn_serving_worker, gn_serving_program;

/* mode: GN_MODE_*. */
static inline const struct gn_serving_process_ops *gn_serving_in_mode(uint32_t mode)
{
    return mode == GN_MODE_PASSTHROUGH ? &gn_serving_program : &gn_serving_worker;
}

/* 0 or -EOPNOTSUPP. */
static inline int gn_serving_permits(const struct gn_serving_process_ops *serving,
                                     enum gn_serving_request request, struct gn_error *err)
{
    const struct gn_serving_refusal *r = &serving->refusals[request];
    return r->reason ? gn_fail(err, EOPNOTSUPP, r->remedy, "%s", r->reason) : 0;
}

#endif
