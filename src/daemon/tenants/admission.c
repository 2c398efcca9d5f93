/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a connection may use a tenant (admission.h). Called by connections.c for
 * greetings, by attach.c for attaches and by the control requests, on gantryd's thread. Logs
 * refusals within the limits of refusals.h. Never blocks, and changes no tenant. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/transport.h"
#include "daemon/tenants/admission.h"

/* The peer's properties that the tenants' rules are checked against. The caller frees
 * *ret_groups. */
static struct gn_peer peer_of(struct gn_conn *c, gid_t **ret_groups)
{
    struct gn_peer peer = {.subject = c->peer.subject,
                           .uid = c->uid,
                           .gid = c->gid,
                           .is_operator = c->role == GN_ROLE_CONTROL,
                           .token = c->token,
                           .n_token = c->n_token};
    *ret_groups = c->transport->identify(c, &peer);
    return peer;
}

/* The only tenant that admits the peer without a token; NULL: none or several do. `names`: a list
 * of those that do. */
static struct gn_tenant *only_tenant(const struct gn_conn *c, struct gn_peer peer, char *names,
                                     size_t n)
{
    struct gn_tenant *found = NULL;
    unsigned n_found = 0, n_left_out = 0;
    size_t at = 0;
    peer.n_token = 0; /* a token must not be tried on every tenant */
    names[0] = 0;
    gn_list_for_each(t, &c->daemon->tenants.all, struct gn_tenant, link)
    {
        const char *name = t->rules.name;
        if (c->transport->admits(&t->rules, &peer))
            continue;
        found = t;
        n_found++;
        if (n_left_out || at + strlen(name) + sizeof ", and 4294967295 more" > n)
            n_left_out++;
        else
            at += (size_t)snprintf(names + at, n - at, "%s%s", at ? ", " : "", name);
    }
    if (n_left_out)
        snprintf(names + at, n - at, " and %u more", n_left_out);
    return n_found == 1 ? found : NULL;
}

const char *gn_conn_name_user(const struct gn_conn *c, char ret[static GN_CONN_USER_BYTES])
{
    c->transport->name_user(c, ret, GN_CONN_USER_BYTES);
    return ret;
}

void gn_admit_refused(struct gn_conn *c, bool wrong_token, const struct gn_error *err)
{
    char user[GN_CONN_USER_BYTES], before[48] = "";
    uint32_t more = 0;
    if (!gn_refusals_note(&c->daemon->refusals, c->quota->source, wrong_token, gn_now_ns(), &more))
        return;
    if (more)
        snprintf(before, sizeof before, " (and %u times before)", more);
    gn_log(GN_LOG_WARN, "refused \"%s\" (pid %d, %s)%s: %s", c->program, (int)c->pid,
           gn_conn_name_user(c, user), before, err->what);
}

/* Sets the error for a peer that may not attach to this tenant. The same error is used for a tenant
 * that does not exist, so that peers cannot find out which tenants there are. */
static int refuse(const struct gn_conn *c, const char *shown, const char *others,
                  struct gn_error *err)
{
    char user[GN_CONN_USER_BYTES], fix[sizeof err->fix];
    gn_conn_name_user(c, user);
    if (*others)
        snprintf(fix, sizeof fix, "set GANTRY_TENANT to one of: %s", others);
    else
        c->transport->advise_refused(c, shown, fix, sizeof fix);
    return gn_fail(err, EACCES, fix, "%s may not attach to \"%s\"", user, shown);
}

/* A connection of a tenant's socket may use that tenant and no other. The user id of its peer does
 * not matter. */
static struct gn_tenant *admit_bound(struct gn_conn *c, const char *name, int *ret_code,
                                     struct gn_error *err)
{
    struct gn_tenant *t = c->bound_to;
    if (t && (!*name || strcmp(name, t->rules.name) == 0))
        return t;
    if (!t)
        *ret_code =
            gn_fail(err, EACCES, "connect again",
                    "the tenant of this socket has been removed, or has no socket any more");
    else
        *ret_code = gn_fail(err, EACCES, "unset GANTRY_TENANT",
                            "this socket belongs to the tenant \"%s\" and admits to no other",
                            t->rules.name);
    gn_admit_refused(c, false, err);
    return NULL;
}

struct gn_tenant *gn_admit(struct gn_conn *c, const char *name, int *ret_code, struct gn_error *err)
{
    if (c->is_bound)
        return admit_bound(c, name, ret_code, err);
    struct gn_daemon *d = c->daemon;
    struct gn_tenant *t = gn_tenants_find(&d->tenants, name);
    const uint64_t now = gn_now_ns();
    const char *shown = *name ? name : GN_TENANT_DEFAULT;
    char user[GN_CONN_USER_BYTES], others[200] = "";
    int rc = -EACCES;
    if (*name && gn_tenant_name_check(name, NULL)) {
        *ret_code = gn_fail(err, EINVAL, "use letters, digits, _ . and -",
                            "the tenant's name is malformed");
        return NULL;
    }
    if (t && c->n_token && t->rules.n_token && c->role != GN_ROLE_CONTROL &&
        !gn_refusals_may_try(&d->refusals, c->quota->source, now)) {
        *ret_code = gn_fail(err, EAGAIN, "wait some seconds",
                            "too many wrong tokens came from %s: its tokens are refused for now",
                            gn_conn_name_user(c, user));
        return NULL;
    }
    gid_t *groups;
    const struct gn_peer peer = peer_of(c, &groups);
    if (t)
        rc = c->transport->admits(&t->rules, &peer);
    if (rc == -EACCES) {
        struct gn_tenant *only = only_tenant(c, peer, others, sizeof others);
        t = *name ? t : only;
        rc = !*name && only ? 0 : rc;
    }
    free(groups);
    if (rc == 0)
        return t;
    const bool wrong_token = rc == -EPERM;
    if (!t && *name && c->role == GN_ROLE_CONTROL)
        rc = gn_fail(err, ENOENT, "gantry tenant add makes one, gantry tenant ls lists them",
                     "there is no tenant \"%s\"", shown);
    else if (wrong_token)
        rc = gn_fail(err, EACCES, "correct GANTRY_TOKEN, or unset it",
                     "the token is not that of the tenant \"%s\"", shown);
    else
        rc = refuse(c, shown, others, err);
    *ret_code = rc;
    gn_admit_refused(c, wrong_token, err);
    return NULL;
}

int gn_admit_anybody(const struct gn_daemon *d, struct gn_error *err)
{
    return !d->draining
               ? 0
               : gn_fail(err, ESHUTDOWN, "use another gantryd (GANTRY_CONNECT), or try again later",
                         "this gantryd is draining and accepts no new programs");
}
