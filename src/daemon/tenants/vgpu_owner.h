/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_VGPU_OWNER_H
#define GN_DAEMON_TENANTS_VGPU_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The owner of a vGPU: the peer that attached it. It is recognized by its user id, or over tcp by
 * the token or the certificate of its tenant. The tenant's rules list the operations that an owner
 * may request. Plain values; gantryd's thread. */
struct gn_conn;
struct gn_tenant;

enum gn_owner_kind {
    GN_OWNER_NOBODY, /* no owner, for instance for a peer without credentials */
    GN_OWNER_USER,
    GN_OWNER_TOKEN,
    GN_OWNER_CERTIFICATE,
};

struct gn_owner {
    enum gn_owner_kind kind;
    uid_t uid;      /* for USER */
    uint64_t token; /* for TOKEN: which token of the tenant (gn_tenant.n_tokens) */
};

/* The owner of a vGPU that the peer of this connection attaches in this tenant: a user of this
 * machine, or the holder of a credential. Called through c->transport. */
struct gn_owner gn_owner_by_user(const struct gn_conn *c, const struct gn_tenant *t);
struct gn_owner gn_owner_by_credential(const struct gn_conn *c, const struct gn_tenant *t);
/* Whether the peer of this connection, which is admitted to this tenant, is the owner. */
bool gn_owner_is(const struct gn_owner *o, const struct gn_conn *c, const struct gn_tenant *t);

#endif
