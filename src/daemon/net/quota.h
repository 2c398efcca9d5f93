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
 * What one source has of gantryd at a time, and how often it may have gantryd act. A source is a
 * user of this machine, whatever its processes and tenants, or an address elsewhere. There is one
 * quota for all connections and vGPUs of a source; one that nobody uses is remembered for a while,
 * so that nobody gets a fresh one by coming back. Each role of a source has a quota of its own:
 * root of a container uses the program socket, and must not use up the quota of the operator root.
 * gantryd's thread.
 */
#define GN_QUOTAS_REMEMBERED 64u
/* Of a source that has more descriptors that wait to be closed no others are taken. */
#define GN_QUOTA_MOST_CLOSING 64u

struct gn_quotas {
    struct gn_closer *closer;
    struct gn_closing nobodys;
    struct gn_list all; /* those used last first */
    uint32_t n_unused;
    struct gn_bucket
        lines; /* of all sources together: a source of many numbers has no more than others */
};

/* In this order a user's own frames are served. */
enum gn_turn { GN_TURN_GREETING, GN_TURN_FRAME, GN_TURN_ATTACH, GN_TURN_REQUEST, GN_TURNS };

struct gn_quota {
    struct gn_fd_sink sink; /* for frames from the source */
    struct gn_list link;
    struct gn_quotas *of;
    uint64_t source;
    enum gn_role role;                 /* of its connections */
    uint32_t n_users;                  /* connections, vGPUs */
    struct gn_line_limit lines;        /* about the source */
    struct gn_line_limit worker_lines; /* that its workers write */
    struct gn_closing closing;
    /* connection_turns.c: its connections whose frames wait to be served, and its places in the
     * lines of those that have some. */
    struct gn_list waiting[GN_TURNS];
    struct gn_list turn[2];
    struct gn_bucket requests;
    uint32_t n_starting; /* vGPUs that are being made for a program */
    /* connection_limits.c: its connections, the oldest first, and what they hold. */
    struct gn_list conns, ungreeted;
    uint32_t n_ungreeted;
    uint32_t n_fds; /* of those without vGPUs */
    uint64_t n_bytes;
};

/* news_fd: an eventfd, which gn_quotas_await() is about. 0 or -errno. */
int gn_quotas_init(struct gn_quotas *qs, int news_fd, struct gn_error *err);
/* Waits at most timeout_ms for descriptors that are still to be closed. */
void gn_quotas_fini(struct gn_quotas *qs, int timeout_ms);
/* Descriptors that wait to be closed. */
uint32_t gn_quotas_closing(struct gn_quotas *qs);
/* The next descriptor that is closed adds to the eventfd, once. */
void gn_quotas_await(struct gn_quotas *qs);
/* Closes a descriptor that another process has chosen, whichever that is. Never waits. */
void gn_quotas_close(struct gn_quotas *qs, int fd);

uint64_t gn_quota_source_of_user(uid_t uid);
/* HOST:PORT, as in gn_session_tcp_peer; the port is another one each time, and does not count. */
uint64_t gn_quota_source_of_address(const char *address);

/* That of a source in this role; NULL: no memory. Give it back with gn_quota_put(), which takes
 * NULL, too. */
struct gn_quota *gn_quotas_get(struct gn_quotas *qs, uint64_t source, enum gn_role role);
struct gn_quota *gn_quota_hold(struct gn_quota *q);
void gn_quota_put(struct gn_quota *q);

/* Closes a descriptor that the source or its worker has chosen, or whose other end one of them has.
 * Never waits; leaves -1. */
void gn_quota_close(struct gn_quota *q, int *fd);
/* So many descriptors of the source wait to be closed that no others are taken; gn_quotas_await()
 * tells when that may have changed. */
bool gn_quota_is_stuck(struct gn_quota *q);

/* A line of the log that the source may cause. WARN and above pass the limits of `lines`. */
void gn_quota_log(struct gn_quota *q, enum gn_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
