/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_VGPU_OWNER_H
#define GN_DAEMON_TENANTS_VGPU_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The owner of a vGPU: the peer that attached it, known again by its uid, or over tcp by the token
 * or the certificate of its tenant. What an owner may do is a rule of the tenant. Plain values;
 * gantryd's thread.
 */
struct gn_conn;
struct gn_tenant;

enum gn_owner_kind {
    GN_OWNER_NOBODY, /* of a peer without credentials, say */
    GN_OWNER_USER,
    GN_OWNER_TOKEN,
    GN_OWNER_CERTIFICATE,
};

struct gn_owner {
    enum gn_owner_kind kind;
    uid_t uid;      /* USER */
    uint64_t token; /* TOKEN: which of those that the tenant has had (gn_tenant.n_tokens) */
};

/* Of what the peer of this connection attaches in this tenant. */
struct gn_owner gn_owner_of(const struct gn_conn *c, const struct gn_tenant *t);
/* Is the peer of this connection, which is admitted to this tenant, the owner? */
bool gn_owner_is(const struct gn_owner *o, const struct gn_conn *c, const struct gn_tenant *t);

#endif
