/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the owner of a vGPU and recognizes it again (vgpu_owner.h). Called when a vGPU is
 * created and for commands that owners may give, on gantryd's thread. Pure. */
#include "daemon/tenants/vgpu_owner.h"

#include <string.h>

#include "daemon/daemon.h"
#include "daemon/net/transport.h"

struct gn_owner gn_owner_by_user(const struct gn_conn *c, const struct gn_tenant *t)
{
    (void)t;
    return (struct gn_owner){.kind = GN_OWNER_USER, .uid = c->uid};
}

struct gn_owner gn_owner_by_credential(const struct gn_conn *c, const struct gn_tenant *t)
{
    if (c->n_token && gn_tenant_token_is(&t->rules, c->token, c->n_token))
        return (struct gn_owner){.kind = GN_OWNER_TOKEN, .token = t->n_tokens};
    if (c->peer.subject[0] && strcmp(c->peer.subject, t->rules.name) == 0)
        return (struct gn_owner){.kind = GN_OWNER_CERTIFICATE};
    return (struct gn_owner){.kind = GN_OWNER_NOBODY};
}

bool gn_owner_is(const struct gn_owner *o, const struct gn_conn *c, const struct gn_tenant *t)
{
    const struct gn_owner asks = c->transport->owner_of(c, t);
    return c->tenant == t && o->kind != GN_OWNER_NOBODY && o->kind == asks.kind &&
           o->uid == asks.uid && o->token == asks.token;
}
