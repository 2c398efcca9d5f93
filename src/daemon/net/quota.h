/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_QUOTA_H
#define GN_DAEMON_NET_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/bucket.h"
#include "daemon/closer.h"
#include "link/frame.h"
#include "link/role.h"

/*
 * Limits for each source of connections: the descriptors, memory and vGPUs that it uses in gantryd
 * at a time, and how often it may make gantryd act. A source is a user of this machine, over all
 * its processes and tenants, or an address of another machine. All connections and vGPUs of a
 * source share one quota. An unused quota is remembered for a while, so that a peer cannot get a
 * fresh one by reconnecting.
 *
 * Each role of a source has a quota of its own: root in a container uses the program socket, and
 * must not use up the quota of root as an operator. gantryd's thread only.
 */
#define GN_QUOTAS_REMEMBERED 64u
/* A source with more descriptors than this waiting to be closed is not read. */
#define GN_QUOTA_MOST_CLOSING 64u

struct gn_quotas {
    struct gn_closer *closer;
    struct gn_closing nobodys;
    struct gn_list all; /* most recently used first */
    uint32_t n_unused;
    struct gn_bucket
        lines; /* limit over all sources together: many addresses give a source no more log lines */
};

/* The kinds of frames, in the order in which they are served within one user. */
enum gn_turn { GN_TURN_GREETING, GN_TURN_FRAME, GN_TURN_ATTACH, GN_TURN_REQUEST, GN_TURNS };

struct gn_quota {
    struct gn_fd_sink sink; /* receives descriptors of frames that are not used */
    struct gn_list link;
    struct gn_quotas *of;
    uint64_t source;
    enum gn_role role;                 /* the role of its connections */
    uint32_t n_users;                  /* connections and vGPUs */
    struct gn_line_limit lines;        /* log lines about the source */
    struct gn_line_limit worker_lines; /* log lines that its workers write */
    struct gn_closing closing;
    /* connection_turns.c: connections with a queued frame, by kind, and the quota's places in the
     * queues of users ([true]: for greetings). */
    struct gn_list waiting[GN_TURNS];
    struct gn_list turn[2];
    struct gn_bucket requests;
    uint32_t n_starting; /* vGPUs that are starting while their programs wait */
    /* connection_limits.c: its connections, oldest first, and the memory and descriptors
     * they hold. */
    struct gn_list conns, ungreeted;
    uint32_t n_ungreeted;
    uint32_t n_fds; /* of connections without a vGPU */
    uint64_t n_bytes;
};

/* news_fd: the eventfd that gn_quotas_await() makes readable; it stays the caller's. 0 or
 * -errno. */
int gn_quotas_init(struct gn_quotas *qs, int news_fd, struct gn_error *err);
/* Waits at most timeout_ms for descriptors that are still to be closed. */
void gn_quotas_fini(struct gn_quotas *qs, int timeout_ms);
/* The number of descriptors that wait to be closed. */
uint32_t gn_quotas_closing(struct gn_quotas *qs);
/* Adds to the eventfd once, when the next descriptor has been closed. */
void gn_quotas_await(struct gn_quotas *qs);
/* Closes a descriptor that came from another process and belongs to no quota. Never blocks: the
 * closer thread calls close(). */
void gn_quotas_close(struct gn_quotas *qs, int fd);

uint64_t gn_quota_source_of_user(uid_t uid);
/* address is HOST:PORT, as in gn_session_tcp_peer. The port is ignored: it differs for each
 * connection. */
uint64_t gn_quota_source_of_address(const char *address);

/* Returns the quota of a source in this role with a reference, creating it if needed; NULL: no
 * memory. Release it with gn_quota_put(), which ignores NULL. */
struct gn_quota *gn_quotas_get(struct gn_quotas *qs, uint64_t source, enum gn_role role);
struct gn_quota *gn_quota_hold(struct gn_quota *q);
void gn_quota_put(struct gn_quota *q);

/* Closes a descriptor that came from the source or its worker, or is connected to one of them: its
 * close() may block, so the closer thread calls it. Never blocks; sets *fd to -1. */
void gn_quota_close(struct gn_quota *q, int *fd);
/* Whether too many descriptors of the source wait to be closed to accept more. gn_quotas_await()
 * tells when that may have changed. */
bool gn_quota_is_stuck(struct gn_quota *q);

/* Writes a log line that the source has caused. WARN and more severe levels are subject to the
 * limit in `lines`. */
void gn_quota_log(struct gn_quota *q, enum gn_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
