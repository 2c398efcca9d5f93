/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_H
#define GN_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/devices.h"
#include "daemon/loop.h"
#include "daemon/net/connection.h"
#include "daemon/net/quota.h"
#include "daemon/net/sockets.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/schedule/tracing.h"
#include "daemon/tenants/fault_throttle.h"
#include "daemon/tenants/refusals.h"
#include "daemon/tenants/tenants.h"
#include "daemon/vgpu/kernel_caches.h"
#include "daemon/vgpu/vgpu_record.h"
#include "daemon/vgpu/worker_walls.h"

/*
 * gantryd's objects. One thread owns all of them; the scheduler's own thread (scheduler.h) touches
 * nothing here.
 *
 *   connection --1:1-- vGPU --n:1-- template (a driver's)
 *
 * A connection's hang-up, or its program's death, ends its vGPU; a vGPU with a dead worker stays
 * listed as lost until its connection goes. A template that died is started again by the next
 * attach.
 */
struct gn_daemon {
    struct gn_loop loop;
    struct gn_machine machine;
    struct gn_walls walls;
    struct gn_caches caches;
    struct gn_template *hosts; /* one a driver */
    struct gn_quotas quotas;
    struct {
        struct gn_list lines[2]; /* quotas of users with waiting greetings ([true]), and with other
                                    waiting frames */
        struct gn_source timer;
    } turns;
    struct gn_source closed; /* eventfd: the closer has closed some descriptors */
    struct gn_list conns, vgpus;
    const struct gn_conn_ops *programs; /* the frames and ends of connections */
    uint32_t n_conns;
    struct { /* connection_limits.c; the counts that are shown never go back */
        uint32_t n_own_fds, n_fds, n_with_vgpus, n_vgpus;
        uint64_t n_bytes, reported_ns;
        uint32_t n_unreported, n_peak;
        uint64_t n_evicted, n_refused_vgpus;
    } conn_limits;
    uint64_t full_told_ns; /* connections.c */
    struct gn_sockets sockets;
    struct gn_source signals;
    struct gn_source grace; /* timerfd, armed only while there is a deadline of a vGPU */
    struct gn_tcp_listener *tcp, *tcp_control; /* NULL: none */
    uint64_t grace_at_ns;                      /* 0: not armed */
    uint32_t tcp_grace_ms, start_limit_ms;
    uint64_t watch_at_ns; /* program_process.c; 0: there is no vGPU to watch */
    bool insecure;        /* over tcp, programs without credentials may use the tenant `default` */
    struct gn_tenants tenants;
    struct gn_source lease_timer; /* timerfd, armed only while a worker waits for memory */
    uint64_t lease_timer_ns;      /* when it expires; 0: it is not armed */
    uint32_t n_held;              /* replies */
    struct gn_refusals refusals;
    /* attach.c */
    uint64_t breach_pause_ns;
    struct gn_fault_throttle breaches;
    struct gn_list late_attaches;
    struct gn_source attach_timer; /* timerfd, armed only while one of them waits */
    struct gn_scheduler *scheduler;
    uint64_t scheduler_started_ns;
    bool takes_turns; /* there is a policy: vGPUs that start from now on take turns */
    struct gn_tracing tracing;
    struct gn_source placed; /* eventfd: the placement has orders for workers */
    struct gn_source late;   /* eventfd: the scheduler waits for holders of devices */
    bool stopping;
    bool draining;                           /* programs get no new vGPUs */
    struct gn_list migrations;               /* of struct gn_migration */
    const struct gn_owner_deadlines *owners; /* deadlines of owners of records */
};

#endif
