/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_VGPU_RECORD_H
#define GN_DAEMON_VGPU_VGPU_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/loop.h"
#include "daemon/net/quota.h"
#include "daemon/schedule/placement.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/tenants/leases.h"
#include "daemon/tenants/vgpu_owner.h"
#include "daemon/vgpu/kernel_caches.h"
#include "daemon/vgpu/memory_groups.h"
#include "daemon/vgpu/owner.h"
#include "daemon/vgpu/serving_process.h"
#include "daemon/vgpu/worker_log.h"
#include "link/frame.h"
#include "link/link_wire.h"

/* All that gantryd knows of one vGPU. gantryd's thread. */
struct gn_conn;
struct gn_daemon;
struct gn_record_session_ops;
struct gn_tenant;

/*
 * The life of a vGPU, by its program. gn_record_set_state() makes each step.
 *
 *     state       the program                                               next
 *     PENDING     does not have it: it starts, or comes from another        ATTACHED, STOPPED
 *                 gantryd. The record of a migration's destination stays so
 *     ATTACHED    has it, although its process may have ended               STOPPED, RELEASED
 *     STOPPED     waits for it: it is in a file (checkpoint.c)              ATTACHED
 *     RELEASED    has it at another gantryd; the record waits for the       -
 *                 worker's end
 *
 * The life of the process that serves it is another one: a vGPU has several processes in turn. The
 * facts about a process are no states of one life, as each comes from another side and in any
 * order: `spawning` and `reaped` from the template, driver_up from the process itself, `process`
 * from the kernel, and `ending` from gantryd. `starting` is a unit of a quota's count.
 */
enum gn_record_state {
    GN_RECORD_PENDING,
    GN_RECORD_ATTACHED,
    GN_RECORD_STOPPED,
    GN_RECORD_RELEASED
};
enum { GN_RECORD_N_STATES = GN_RECORD_RELEASED + 1 };

struct gn_vgpu_record {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_daemon *daemon;
    struct gn_quota *quota;                          /* of its program's user or address */
    const struct gn_record_session_ops *session_ops; /* record_session.h */
    struct gn_conn *conn;                            /* NULL: the program is gone */
    uint32_t attach_seq;
    uint32_t id;
    uint32_t platform;
    uint64_t devices; /* of the platform, as bits: those of its tenant, or those that it was
                         migrated to */
    uint8_t order[GN_WORKER_MAX_DEVICES]; /* the same by number, in the order of its program and its
                                             worker */
    uint8_t ranks[GN_WORKER_MAX_DEVICES]; /* of those: the order in which a program that does not
                                             choose is offered them; 0 first */
    struct gn_tenant *tenant;             /* there as long as this is */
    char program[GN_LINK_NAME_BYTES];
    pid_t program_pid;
    struct gn_owner owner;
    uint32_t weight;
    struct gn_lease_holder lease;
    struct gn_placement placement; /* of its worker's memory */
    uint64_t pinned_bytes;         /* of the lease; its worker's word */
    uint32_t held_seq;             /* placed_memory.c: an answer that waits for room */
    uint64_t held_bytes;           /* 0: none */
    uint32_t refusals_told;        /* memory.c: bits of enum gn_lease_refusal */
    struct gn_shares shares;
    bool takes_turns;  /* its worker waits for grants */
    bool driver_stays; /* its program has loaded a driver that cannot be unloaded */
    const struct gn_serving_process_ops *serving; /* a worker, or its program in passthrough */
    uint32_t n_segments;
    struct gn_cache *cache;       /* its worker's kernel cache; NULL: none */
    struct gn_memory_group group; /* its worker's */

    enum gn_record_state state;

    bool starting; /* counted in its quota: its program waits for it */
    bool spawning; /* the template has not answered yet */
    pid_t template_pid;
    uint64_t asked_ns; /* when the template was asked for a worker; then when the worker was asked
                          to start its driver */
    bool driver_up;
    bool ending; /* ending: killed at kill_at_ns, 0: killed already */
    uint64_t kill_at_ns;
    bool reaped; /* the template has told how the worker ended, or will never tell */
    pid_t worker_pid;
    pid_t inner_pid;          /* the same in the template's namespace */
    struct gn_source process; /* pidfd of the worker */
    struct gn_source control;
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;

    struct gn_record_owner *owned_by; /* owner.h; NULL: it serves its program, or waits stopped */

    /* checkpoint.c. STOPPED: the holder of the key may give it a worker again. */
    unsigned char stop_key[GN_LINK_STOP_KEY_BYTES];
    uint32_t wait_seq; /* of the program's WAIT */
    int hand_fd;       /* by which the program hands over its session; -1: the program does not wait
                          yet, or is on another machine */
    uint64_t
        ring_at; /* of a worker that loads a file, which is in data_fd: where the ring stands */

    /* A session over tcp. named: it has its name and its key; secure: it uses TLS. */
    bool named, secure;
    uint64_t return_by_ns; /* its connection broke: it has until then; 0: it is connected */
    unsigned char session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];

    struct gn_worker_log log;
    int worker_fd; /* the worker's end of `control`, until a worker has it; closed through
                      gn_quota_close(), as descriptors wait in its queue */
    int counters_fd;
    int ring_fd; /* kept for the counts that the program makes itself */
    /* Descriptors for the program, until it has them. */
    int session_fd, events_fd, data_fd;
    uint64_t ring_bytes, events_bytes, data_bytes;
};

bool gn_record_may_become(enum gn_record_state from, enum gn_record_state to);
/* A step of the table; any other one is a fault of gantryd's own, and ends it. */
void gn_record_set_state(struct gn_vgpu_record *v, enum gn_record_state state);

/* Its program has it or waits for it, so that commands list it and may name it. */
static inline bool gn_record_is_listed(const struct gn_vgpu_record *v)
{
    return v->state == GN_RECORD_ATTACHED || v->state == GN_RECORD_STOPPED;
}

/* It is listed, and has a process that can be reached and is not to end. */
static inline bool gn_record_is_served(const struct gn_vgpu_record *v)
{
    return gn_record_is_listed(v) && !v->ending && v->process.fd >= 0 && v->control.fd >= 0;
}

static inline bool gn_record_is_stopped(const struct gn_vgpu_record *v)
{
    return v->state == GN_RECORD_STOPPED;
}

#endif
