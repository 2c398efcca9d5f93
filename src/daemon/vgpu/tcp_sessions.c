/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vGPUs with programs on other machines: names and keys of their sessions, data connections on
 * their way to workers, and programs that have a grace to come back after their connection broke.
 * Called by programs.c, on gantryd's thread; it never waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/tcp_sessions.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"

int gn_vgpus_make_session(struct gn_vgpu_record *v, const struct gn_conn *c)
{
    v->named = true;
    v->secure = c->peer.secure;
    if (getrandom(v->session, sizeof v->session, 0) != sizeof v->session ||
        getrandom(v->key, sizeof v->key, 0) != sizeof v->key)
        return -errno;
    return 0;
}

/* Always looks at all of them: the time it takes says nothing about the secret. */
static struct gn_vgpu_record *by_name(const struct gn_daemon *d, const unsigned char *session)
{
    struct gn_vgpu_record *found = NULL;
    gn_list_for_each(v, (struct gn_list *)(uintptr_t)&d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->named && gn_secret_same(v->session, session, sizeof v->session))
            found = v;
    }
    return found;
}

static struct gn_vgpu_record *by_key(const struct gn_daemon *d, const unsigned char *session,
                                     const unsigned char *key)
{
    struct gn_vgpu_record *v = by_name(d, session);
    return v && gn_secret_same(v->key, key, sizeof v->key) ? v : NULL;
}

struct gn_vgpu_record *gn_vgpus_of_conn(const struct gn_conn *c, const unsigned char *session,
                                        const unsigned char *key)
{
    struct gn_vgpu_record *v = by_key(c->daemon, session, key);
    return v && v->secure && !c->peer.secure ? NULL : v;
}

struct gn_vgpu_record *gn_vgpus_for_data(struct gn_daemon *d, const unsigned char *session,
                                         const unsigned char *proof)
{
    struct gn_vgpu_record *v = by_name(d, session);
    return v && v->secure ? v : by_key(d, session, proof);
}

/* A program that has come from another gantryd may have no token of this one. */
int gn_vgpus_find_key(const struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret)
{
    const struct gn_vgpu_record *v = by_name(d, name);
    if (!v || !v->secure)
        return -ENOENT;
    memcpy(ret->identity, v->session, sizeof ret->identity);
    memcpy(ret->key, v->key, sizeof ret->key);
    return 0;
}

/* Its program may come back: it has a worker, or it is in a file, or all of it is saved for a
 * worker that is about to take over. */
static bool is_kept(const struct gn_vgpu_record *v)
{
    return gn_record_is_served(v) || gn_record_is_stopped(v) ||
           (gn_record_is_listed(v) && !v->ending && gn_vgpus_saved(v) == GN_RECORD_SAVED_HERE);
}

static void notify_owner(struct gn_vgpu_record *v, bool is_back)
{
    if (v->owned_by && v->owned_by->ops->link)
        v->owned_by->ops->link(v->owned_by, v, is_back);
}

void gn_vgpus_link(struct gn_vgpu_record *v, int fd)
{
    if (!gn_record_is_served(v))
        return;
    /* A worker that does not read loses this connection. */
    (void)gn_vgpus_push(v, GN_WORKER_LINK, 0, NULL, 0, fd);
}

int gn_vgpus_return(struct gn_vgpu_record *v, struct gn_conn *c, struct gn_error *err)
{
    if (!is_kept(v))
        return gn_fail(err, ENODEV, NULL, "the session's worker is gone");
    if (c->vgpu && c->vgpu != v)
        return gn_fail(err, EBUSY, NULL, "this connection has a vGPU already");
    struct gn_conn *old = v->conn;
    if (old && old != c) {
        /* It broke, and gantryd has not heard of that yet. */
        old->vgpu = NULL;
        gn_conn_close(old);
    }
    v->conn = c;
    c->vgpu = v;
    v->return_by_ns = 0;
    notify_owner(v, true);
    return v->conn == c && is_kept(v) ? 0
                                      : gn_fail(err, ENODEV, NULL, "the session's worker is gone");
}

void gn_vgpus_notify_session(struct gn_vgpu_record *v, uint32_t seq)
{
    struct gn_link_attached_remote a = {.vgpu_id = v->id,
                                        .platform = v->platform,
                                        .data_bytes = v->data_bytes,
                                        .memory_limit_bytes = gn_holder_limit(&v->lease),
                                        .grace_ms = v->daemon->tcp_grace_ms};
    memcpy(a.session, v->session, sizeof a.session);
    memcpy(a.key, v->key, sizeof a.key);
    gn_conn_queue(v->conn, GN_LINK_ATTACHED_REMOTE, seq, &a, sizeof a);
    explicit_bzero(&a, sizeof a);
}

bool gn_vgpus_await_return(struct gn_vgpu_record *v)
{
    if (!is_kept(v) || v->daemon->stopping)
        return false;
    v->conn = NULL;
    notify_owner(v, false);
    v->return_by_ns = gn_now_ns() + v->daemon->tcp_grace_ms * UINT64_C(1000000);
    gn_vgpus_arm(v->daemon);
    return true;
}
