/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the frames and ends of connections: leads each frame to tenants, vgpu, migrate or the
 * control requests. Those call connections, and connections call back through the table here
 * (net/connection.h), so that no folders call each other in a circle. gantryd's thread; it never
 * waits.
 */
#include "daemon/programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_commands.h"
#include "daemon/daemon.h"
#include "daemon/migrate/inbound.h"
#include "daemon/migrate/outbound.h"
#include "daemon/net/attach.h"
#include "daemon/net/connection_limits.h"
#include "daemon/net/transport.h"
#include "daemon/tenants/memory.h"
#include "daemon/tenants/tenant_keys.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/segments.h"
#include "daemon/vgpu/tcp_sessions.h"
#include "daemon/migrate/migration.h"

#define MAX_REQUEST_BYTES (64u << 10) /* a control request's; far more than any */

/* ---- frames: each function returns a violation, or NULL */

static const char *serve_segment(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_segment s;
    struct gn_error err;
    if (!gn_frame_payload(f, &s, sizeof s))
        return "sent a malformed request for a segment";
    int rc = c->vgpu ? gn_vgpus_add_segment(c->vgpu, f->seq, s.bytes, &err)
                     : gn_fail(&err, EINVAL, NULL, "this connection has no vGPU");
    if (rc)
        gn_conn_refuse(c, f->seq, rc, &err);
    return NULL;
}

static void answer_request(struct gn_conn *c, uint32_t seq)
{
    struct gn_tenant *wait_for = NULL;
    c->request_seq = seq;
    char *reply =
        gn_daemon_answer(c->daemon, c, c->request ? c->request : "", c->n_request, &wait_for);
    free(c->request);
    c->request = NULL;
    c->n_request = 0;
    /* A file that the request did not take is of no use to the next one, and its other end must not
     * be waited at. */
    gn_quota_close(c->quota, &c->file_fd);
    if (!reply) {
        gn_conn_close(c);
    } else if (!*reply) {
        free(reply); /* it comes when the request is carried out */
    } else {
        gn_memory_hold(c, wait_for, seq, reply);
        gn_memory_settle(c->daemon);
    }
}

/* A control request in parts. */
static const char *serve_control(struct gn_conn *c, const struct gn_frame *f)
{
    if (c->n_request + f->n_payload > MAX_REQUEST_BYTES)
        return "sent a control request that is too long";
    if (f->n_payload) {
        char *grown = realloc(c->request, c->n_request + f->n_payload);
        if (!grown) {
            gn_conn_close(c);
            return NULL;
        }
        c->request = grown;
        memcpy(c->request + c->n_request, f->payload, f->n_payload);
        c->n_request += f->n_payload;
    }
    if (f->flags & GN_FRAME_MORE)
        gn_conn_limits_account(c);
    else
        answer_request(c, f->seq);
    return NULL;
}

static const char *serve(struct gn_conn *c, const struct gn_frame *f)
{
    switch (f->op) {
    case GN_LINK_ATTACH:
        return gn_attach_frame(c, f) ? NULL : "sent a malformed attach";
    case GN_LINK_SEGMENT:
        return serve_segment(c, f);
    case GN_LINK_CONTROL:
        return serve_control(c, f);
    case GN_LINK_RETURN:
        return c->transport->serve_return(c, f) ? NULL : "sent a malformed request to return";
    case GN_LINK_WAIT:
        return !c->control_only && c->transport->serve_wait(c, f)
                   ? NULL
                   : "sent a malformed request to wait for its vGPU";
    case GN_LINK_CLAIM:
    case GN_LINK_PASS:
    case GN_LINK_GO:
        return gn_inbound_frame(c, &c->reader, f)
                   ? NULL
                   : "sent a frame of an inbound migration out of sequence";
    case GN_LINK_COMES:
    case GN_LINK_COMES_NEAR:
    case GN_LINK_STAY:
    case GN_LINK_LEFT:
        return gn_outbound_frame(c, f) ? NULL
                                       : "sent a frame of an outbound migration out of sequence";
    default:
        return "sent an unknown frame";
    }
}

/* ---- ends */

static void forget(struct gn_conn *c)
{
    gn_memory_drop_held(c);
    gn_attach_forget(c);
    gn_tracing_conn_gone(c->daemon, c);
    gn_migrations_forget(c->daemon, c);
}

static void leave(struct gn_conn *c)
{
    struct gn_vgpu_record *v = c->vgpu;
    c->vgpu = NULL;
    if (v && (c->bye || !v->session_ops->await_return(v)))
        gn_vgpus_leave(v);
}

/* ---- over tcp */

static bool serve_data(struct gn_daemon *d, const struct gn_link_data *name, int fd)
{
    if (gn_inbound_accept_stream(d, name->session, name->proof, fd))
        return true;
    struct gn_vgpu_record *v = gn_vgpus_for_data(d, name->session, name->proof);
    if (v)
        gn_vgpus_link(v, fd); /* the worker's copy is its own */
    return v != NULL;
}

static int find_key(struct gn_daemon *d, const unsigned char *identity, struct gn_tls_psk *ret)
{
    int rc = gn_tenants_find_psk(&d->tenants, identity, ret);
    if (rc)
        rc = gn_inbound_find_key(d, identity, ret);
    return rc ? gn_vgpus_find_key(d, identity, ret) : 0;
}

const struct gn_conn_ops gn_programs = {.frame = serve,
                                        .forget = forget,
                                        .leave = leave,
                                        .data = serve_data,
                                        .find_key = find_key,
                                        .local = &gn_transport_local,
                                        .tcp = &gn_transport_tcp};
