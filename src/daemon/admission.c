/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to which tenant. gantryd's thread; a refusal is logged, so far as the log is not to be
 * filled with them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/admission.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* The peer's supplementary groups as they were when he connected; malloc'd, NULL: none, or the kernel does
 * not tell. */
static gid_t *groups_of(int socket, uint32_t *ret_n)
{
    socklen_t bytes = 0;
    *ret_n = 0;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE || !bytes)
        return NULL;
    gid_t *groups = malloc(bytes);
    if (groups && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0)
        *ret_n = bytes / sizeof *groups;
    return groups;
}

static int judge(struct gn_conn *c, const struct gn_tenant_rules *rules)
{
    struct gn_peer peer = {.remote = c->remote,
                           .anybody = c->remote && c->daemon->insecure,
                           .subject = c->peer.subject,
                           .uid = c->uid,
                           .gid = c->gid,
                           .is_operator = c->role == GN_ROLE_CONTROL,
                           .is_default = !c->remote && (c->uid == geteuid() || c->uid == 0),
                           .token = c->token,
                           .n_token = c->n_token};
    gid_t *groups = rules->n_gids && !c->remote ? groups_of(c->socket.fd, &peer.n_groups) : NULL;
    peer.groups = groups;
    int rc = gn_tenant_admits(rules, &peer);
    free(groups);
    return rc;
}

const char *gn_conn_name_user(const struct gn_conn *c, char ret[static GN_CONN_USER_BYTES])
{
    if (c->remote)
        snprintf(ret, GN_CONN_USER_BYTES, "%s", c->peer.address);
    else
        snprintf(ret, GN_CONN_USER_BYTES, "uid %u", (unsigned)c->uid);
    return ret;
}

void gn_admit_refused(struct gn_conn *c, bool wrong_token, const struct gn_error *err)
{
    char who[GN_CONN_USER_BYTES], before[48] = "";
    uint32_t more = 0;
    if (!gn_refusals_note(&c->daemon->refusals, c->quota->source, wrong_token, gn_now_ns(), &more))
        return;
    if (more)
        snprintf(before, sizeof before, " (and %u times before)", more);
    gn_log(GN_LOG_WARN, "refused \"%s\" (pid %d, %s)%s: %s", c->program, (int)c->pid, gn_conn_name_user(c, who), before, err->what);
}

struct gn_tenant *gn_admit(struct gn_conn *c, const char *name, int *ret_code, struct gn_error *err)
{
    static const char ask[] = "ask who runs gantryd for the right (gantry tenant set), or set GANTRY_TENANT and "
                              "GANTRY_TOKEN to those you have";
    struct gn_daemon *d = c->daemon;
    struct gn_tenant *t = gn_tenants_find(&d->tenants, name);
    const uint64_t now = gn_now_ns();
    const char *shown = *name ? name : GN_TENANT_DEFAULT;
    char who[GN_CONN_USER_BYTES];
    int rc = -EACCES;
    if (*name && gn_tenant_name_check(name, NULL)) {
        *ret_code = gn_fail(err, EINVAL, "use letters, digits, _ . and -", "the tenant's name is malformed");
        return NULL;
    }
    if (t && c->n_token && t->rules.n_token && c->role != GN_ROLE_CONTROL && !gn_refusals_may_try(&d->refusals, c->quota->source, now)) {
        *ret_code = gn_fail(err, EAGAIN, "wait some seconds", "too many wrong tokens came from %s: none is looked at now",
                            gn_conn_name_user(c, who));
        return NULL;
    }
    if (t)
        rc = judge(c, &t->rules);
    if (rc == 0)
        return t;
    bool wrong_token = rc == -EPERM;
    if (!t && c->role == GN_ROLE_CONTROL)
        rc = gn_fail(err, ENOENT, "gantry tenant add makes one, gantry tenant ls lists them", "there is no tenant \"%s\"", shown);
    else if (wrong_token)
        rc = gn_fail(err, EACCES, "correct GANTRY_TOKEN, or unset it", "the token is not that of the tenant \"%s\"", shown);
    else /* the same for one that is not there: who may not use it need not know */
        rc = gn_fail(err, EACCES, ask, "%s may not attach to the tenant \"%s\"", gn_conn_name_user(c, who), shown);
    *ret_code = rc;
    gn_admit_refused(c, wrong_token, err);
    return NULL;
}

int gn_admit_anybody(const struct gn_daemon *d, struct gn_error *err)
{
    return !d->draining ? 0
                        : gn_fail(err, ESHUTDOWN, "use another gantryd (GANTRY_CONNECT), or try again later",
                                  "this gantryd is being emptied, and takes in no new programs");
}
