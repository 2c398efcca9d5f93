/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections by tcp (net/transport.h): the peer is identified by its credentials, its frames bring
 * no descriptors, and gantryd does not see its process. Called through c->transport by connections,
 * tenants, vgpu and migrate, which this file calls in turn; so it is in none of these folders, like
 * programs.c. gantryd's thread; it never waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/migrate/checkpoint.h"
#include "daemon/migrate/inbound.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/tcp_sessions.h"

/* ---- the connection */

/* No descriptor can be in its receive queue. */
static bool closes_at_once(int fd)
{
    (void)fd;
    return true;
}

static void greeted(struct gn_conn *c, const struct gn_link_hello *h)
{
    c->pid = (pid_t)h->pid; /* For display only: the number means nothing on this machine. */
}

static void watch_program(struct gn_conn *c)
{
    (void)c;
}

static int judge_in_process(const struct gn_conn *c, struct gn_error *err)
{
    (void)c;
    return gn_fail(err, EOPNOTSUPP, "use the mode remote",
                   "a program in passthrough must run on this machine");
}

/* ---- the peer's identity */

static void name_user(const struct gn_conn *c, char *ret, size_t n)
{
    snprintf(ret, n, "%s", c->peer.address);
}

static int user_socket(const struct gn_conn *c)
{
    (void)c;
    return -1;
}

static bool is_admitted_by_user(const struct gn_conn *c)
{
    (void)c;
    return false;
}

static gid_t *identify(const struct gn_conn *c, struct gn_peer *peer)
{
    peer->anybody = c->daemon->insecure;
    return NULL;
}

static void advise_refused(const struct gn_conn *c, const char *tenant, char *ret, size_t n)
{
    (void)c;
    (void)tenant;
    snprintf(ret, n, "set GANTRY_TENANT to your tenant, and GANTRY_TOKEN to its token");
}

/* A peer that may attach a program to its tenant may bring a vGPU there as well. */
static bool may_announce(const struct gn_conn *c, const char *tenant)
{
    return c->tenant && strcmp(c->tenant->rules.name, tenant) == 0;
}

/* ---- frames */

static bool serve_wait(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_wait_tcp w;
    struct gn_error err;
    if (!gn_frame_payload(f, &w, sizeof w) || f->n_fds != 0 ||
        w.wait.n_segments > GN_LINK_MAX_SEGMENTS)
        return false;
    const int rc = gn_program_waits_tcp(c, f->seq, &w, &err);
    explicit_bzero(&w, sizeof w);
    if (rc)
        gn_conn_refuse(c, f->seq, rc, &err);
    return true;
}

static bool serve_return(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_return r;
    struct gn_error err;
    if (!gn_frame_payload(f, &r, sizeof r))
        return false;
    struct gn_vgpu_record *v = gn_vgpus_of_conn(c, r.session, r.key);
    int rc = !v ? gn_fail(&err, ENODEV, NULL, "the session has ended")
             : gn_record_is_stopped(v)
                 ? gn_fail(&err, EAGAIN, NULL, "its vGPU is stopped: it is in a checkpoint")
                 : gn_vgpus_return(v, c, &err);
    if (rc) {
        gn_conn_refuse(c, f->seq, rc, &err);
        return true;
    }
    gn_checkpoint_returned(v);
    gn_conn_send(c, GN_LINK_RETURNED, f->seq, NULL, 0, NULL, 0);
    return true;
}

/* ---- vGPUs from another gantryd */

/* A session over tcp stays one, with TLS or without. One in shared memory becomes one over tcp, as
 * the other gantryd was reached. */
static int judge_announced(const struct gn_conn *c, const struct gn_control_about *about,
                           struct gn_error *err)
{
    if (!about->remote || about->secure == c->peer.secure)
        return 0;
    return gn_fail(err, EACCES,
                   about->secure ? "give --token-file, and the other gantryd that tenant's token"
                                 : "attach the program with a token (GANTRY_TOKEN)",
                   about->secure ? "its program uses TLS, and the other gantryd was reached without"
                                 : "its program is attached without TLS, and the other gantryd was "
                                   "reached with TLS");
}

static int get_stream(struct gn_conn *c, int *ret_fd, struct gn_error *err)
{
    (void)c;
    (void)ret_fd;
    (void)err;
    return 0;
}

static void add_near_address(const struct gn_conn *c, const struct gn_control_about *about,
                             struct gn_control_receipt *ret)
{
    if (!about->remote)
        return;
    char *path = realpath(gn_sockets_path(&c->daemon->sockets), NULL);
    const int n = path ? snprintf(ret->near, sizeof ret->near, "unix:%s", path) : 0;
    if (n <= 0 || (size_t)n >= sizeof ret->near || !gn_kernel_id(ret->kernel))
        ret->near[0] = 0;
    free(path);
}

/* The session is a new one here, and has no segments yet. */
static bool read_claim(struct gn_conn *c, const struct gn_frame *f, struct gn_claim *ret)
{
    (void)c;
    *ret = (struct gn_claim){.ring_fd = -1, .hand_fd = -1, .is_session = true, .named = true};
    return f->n_fds == 0 && gn_frame_payload(f, &ret->frame, sizeof ret->frame) &&
           ret->frame.n_segments == 0;
}

const struct gn_transport gn_transport_tcp = {
    .output_flags = 0,
    .session = &gn_record_session_tcp,
    .names_streams = true,
    .closes_at_once = closes_at_once,
    .greeted = greeted,
    .watch_program = watch_program,
    .judge_in_process = judge_in_process,
    .name_user = name_user,
    .user_socket = user_socket,
    .is_admitted_by_user = is_admitted_by_user,
    .identify = identify,
    .admits = gn_tenant_admits_tcp,
    .advise_refused = advise_refused,
    .owner_of = gn_owner_by_credential,
    .may_announce = may_announce,
    .serve_wait = serve_wait,
    .serve_return = serve_return,
    .judge_announced = judge_announced,
    .get_stream = get_stream,
    .add_near_address = add_near_address,
    .read_claim = read_claim,
};
