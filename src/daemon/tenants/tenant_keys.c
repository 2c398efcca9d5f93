/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants' tokens as keys for TLS: a connection over tcp is admitted to the tenant whose token it
 * was made with, without showing the token. gantryd's thread.
 */
#include "daemon/tenants/tenant_keys.h"

#include <errno.h>
#include <string.h>

#include "base/secret.h"

/* Made once a token: a stranger may ask for keys as often as it likes. */
static const struct gn_tls_psk *psk_of(struct gn_tenant *t, const struct gn_tls_ops *ops)
{
    const struct gn_tenant_rules *r = &t->rules;
    if (r->n_token < GN_TLS_TOKEN_MIN)
        return NULL;
    if (t->psk_n_token == r->n_token && gn_secret_same(t->psk_token, r->token, sizeof r->token))
        return &t->psk;
    t->psk_n_token = 0;
    if (ops->derive(r->token, r->n_token, &t->psk))
        return NULL;
    t->psk_n_token = r->n_token;
    memcpy(t->psk_token, r->token, sizeof r->token);
    return &t->psk;
}

int gn_tenants_find_psk(struct gn_tenants *all, const unsigned char *identity,
                        struct gn_tls_psk *ret)
{
    const struct gn_tls_ops *ops = gn_tls_load(NULL);
    int rc = -ENOENT;
    /* Always looks at all of them: the time it takes says nothing about the secret. */
    gn_list_for_each(t, &all->all, struct gn_tenant, link)
    {
        const struct gn_tls_psk *psk = ops ? psk_of(t, ops) : NULL;
        if (psk && ops->same(psk->identity, identity, sizeof psk->identity)) {
            *ret = *psk;
            rc = 0;
        }
    }
    return rc;
}

bool gn_tenants_have_tokens(const struct gn_tenants *all)
{
    gn_list_for_each(t, (struct gn_list *)(uintptr_t)&all->all, struct gn_tenant, link)
    {
        if (t->rules.n_token >= GN_TLS_TOKEN_MIN)
            return true;
    }
    return false;
}
