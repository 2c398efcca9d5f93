/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections by Unix sockets (net/transport.h): the kernel names the peer's process and user, and
 * frames bring descriptors. Called through c->transport by connections, tenants, vgpu and migrate,
 * which this file calls in turn; so it is in none of these folders, like programs.c. gantryd's
 * thread; it never waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/migrate/checkpoint.h"
#include "daemon/migrate/inbound.h"
#include "daemon/net/program_watch.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/segments.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* ---- the connection */

/* No descriptor is in the socket's receive queue and none can arrive any more, so closing it
 * cannot block on one. */
static bool has_no_queued_fds(int fd)
{
    static char bytes[256u << 10]; /* more than a socket's queue holds */
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr all = {.msg_iov = &iov, .msg_iovlen = 1};
    int n = 0;
    if (ioctl(fd, FIONREAD, &n) < 0)
        return false;
    /* MSG_PEEK leaves the descriptors in the queue, so none is closed. Without room for control
     * data MSG_CTRUNC reports that there are some. */
    return !n || (recvmsg(fd, &all, MSG_PEEK | MSG_DONTWAIT) == n && !(all.msg_flags & MSG_CTRUNC));
}

static void greeted(struct gn_conn *c, const struct gn_link_hello *h)
{
    (void)c; /* the kernel has told its process */
    (void)h;
}

/* ---- the peer's identity */

static void name_user(const struct gn_conn *c, char *ret, size_t n)
{
    snprintf(ret, n, "uid %u", (unsigned)c->uid);
}

static int user_socket(const struct gn_conn *c)
{
    return c->socket.fd;
}

static bool is_admitted_by_user(const struct gn_conn *c)
{
    return !c->n_token && !c->is_bound;
}

/* The peer's supplementary groups at the time it connected, malloc'd; NULL: none, or the kernel
 * does not tell. */
static gid_t *groups_of(int socket, uint32_t *ret_n)
{
    socklen_t bytes = 0;
    *ret_n = 0;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE ||
        !bytes)
        return NULL;
    gid_t *groups = malloc(bytes);
    if (groups && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0)
        *ret_n = bytes / sizeof *groups;
    return groups;
}

static gid_t *identify(const struct gn_conn *c, struct gn_peer *peer)
{
    gid_t *groups = groups_of(c->socket.fd, &peer->n_groups);
    peer->is_default = c->uid == geteuid() || c->uid == 0;
    peer->groups = groups;
    return groups;
}

static void advise_refused(const struct gn_conn *c, const char *tenant, char *ret, size_t n)
{
    snprintf(ret, n,
             "ask an operator for the right (gantry tenant set %s --uid %u), or set GANTRY_TENANT "
             "and GANTRY_TOKEN",
             tenant, (unsigned)c->uid);
}

/* An operator may, by the role of its socket; no tenant may. */
static bool may_announce(const struct gn_conn *c, const char *tenant)
{
    (void)c;
    (void)tenant;
    return false;
}

/* ---- frames */

static bool serve_wait(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_wait w;
    struct gn_error err;
    int fds[GN_LINK_WAIT_FDS];
    if (!gn_frame_payload(f, &w, sizeof w) || f->n_fds != GN_LINK_WAIT_FDS ||
        w.n_segments > GN_LINK_MAX_SEGMENTS)
        return false;
    for (int i = 0; i < GN_LINK_WAIT_FDS; i++)
        fds[i] = gn_frame_take_fd(&c->reader, i);
    const int rc = gn_program_waits(c, f->seq, &w, fds, &err);
    for (int i = 0; i < GN_LINK_WAIT_FDS; i++)
        gn_quota_close(c->quota, &fds[i]);
    explicit_bzero(&w, sizeof w);
    if (rc)
        gn_conn_refuse(c, f->seq, rc, &err);
    return true;
}

/* The session ends with its connection, so no program comes back. */
static bool serve_return(struct gn_conn *c, const struct gn_frame *f)
{
    (void)c;
    (void)f;
    return false;
}

/* ---- vGPUs from another gantryd */

/* A program that is attached over tcp cannot come here. */
static int judge_announced(const struct gn_conn *c, const struct gn_control_about *about,
                           struct gn_error *err)
{
    (void)c;
    if (!about->remote)
        return 0;
    return gn_fail(err, EOPNOTSUPP, "name tcp:HOST:PORT of another gantryd",
                   "its program is attached over tcp, and cannot reach a socket of this machine");
}

static bool is_stream(int fd)
{
    int kind = 0, domain = 0;
    socklen_t n = sizeof kind;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &n) == 0 && kind == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX;
}

static int get_stream(struct gn_conn *c, int *ret_fd, struct gn_error *err)
{
    const int rc = gn_migration_set_file(c, ret_fd, err);
    if (rc || is_stream(*ret_fd))
        return rc;
    return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                   "the descriptor for the vGPU's contents is no socket");
}

/* The program is on this machine in any case. */
static void add_near_address(const struct gn_conn *c, const struct gn_control_about *about,
                             struct gn_control_receipt *ret)
{
    (void)c;
    (void)about;
    (void)ret;
}

/* With the session's ring; and with the socket by which the session comes, when it was over tcp
 * until now. */
static bool read_claim(struct gn_conn *c, const struct gn_frame *f, struct gn_claim *ret)
{
    const bool near = f->n_fds == 2;
    *ret = (struct gn_claim){.ring_fd = -1, .hand_fd = -1, .named = near, .near = near};
    if (f->n_fds != 1 + near || !gn_frame_payload(f, &ret->frame, sizeof ret->frame) ||
        ret->frame.n_segments > GN_LINK_MAX_SEGMENTS)
        return false;
    ret->ring_fd = gn_frame_take_fd(&c->reader, 0);
    if (near)
        ret->hand_fd = gn_frame_take_fd(&c->reader, 1);
    ret->is_session = gn_segment_is_session(ret->ring_fd) && (!near || is_stream(ret->hand_fd));
    return true;
}

const struct gn_transport gn_transport_local = {
    .output_flags = GN_LINK_HAS_STDOUT | GN_LINK_HAS_STDERR,
    .session = &gn_record_session_shm,
    .closes_at_once = has_no_queued_fds,
    .greeted = greeted,
    .watch_program = gn_conn_watch_program,
    .judge_in_process = gn_conn_may_run_in_process,
    .name_user = name_user,
    .user_socket = user_socket,
    .is_admitted_by_user = is_admitted_by_user,
    .identify = identify,
    .admits = gn_tenant_admits_user,
    .advise_refused = advise_refused,
    .owner_of = gn_owner_by_user,
    .may_announce = may_announce,
    .serve_wait = serve_wait,
    .serve_return = serve_return,
    .judge_announced = judge_announced,
    .get_stream = get_stream,
    .add_near_address = add_near_address,
    .read_claim = read_claim,
};
