/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANTS_H
#define GN_DAEMON_TENANTS_TENANTS_H

#include "daemon/tenants/leases.h"
#include "daemon/tenants/tenant_rules.h"
#include "link/tls.h"

/* The tenants as gantryd has them now: their rules and the accounts of their memory. The tenant
 * `default` always exists. gantryd's thread owns them. A tenant is freed when it is removed, which
 * is refused while it has vGPUs. */
struct gn_daemon;
struct gn_machine;
struct gn_socket;
struct gn_tenant_shares;

#define GN_TENANT_DEFAULT "default"
#define GN_MAX_TENANTS    4096u

struct gn_tenant {
    struct gn_list link;
    struct gn_tenant_rules rules;
    struct gn_lease_account memory;
    /* on each device that it may use, as the rules' reserve_bytes; owned */
    struct gn_lease_reserve *reserves;
    uint32_t n_reserves;
    uint32_t n_vgpus;
    /* Counters since the tenant was created, for display. */
    uint64_t n_refused_vgpus;  /* connection_limits.c */
    uint64_t n_tokens;         /* how often its token has changed */
    uint64_t n_refused_leases; /* memory.c */
    uint64_t late_told_ns;     /* attach.c: when it was last logged that its programs wait */
    struct gn_socket *socket;  /* NULL: none (rules.socket) */
    /* owned by the scheduler; NULL before the tenant's first vGPU */
    struct gn_tenant_shares *shares;
    /* shares.c, during a calculation: the weights of its vGPUs that have work on a device */
    uint64_t busy_weights;
    bool is_there, is_busy; /* device_load.c, while it weighs a device */
    /* tcp_sessions.c: the TLS key derived from the token, and that token. */
    struct gn_tls_psk psk;
    uint32_t psk_n_token;
    unsigned char psk_token[GN_LINK_TOKEN_BYTES];
};

struct gn_tenants {
    struct gn_list all; /* `default` first, then in the order of creation */
    uint32_t n;
    const struct gn_lease_ops *ops;
};

/* Creates the table from n rules; those for `default` are optional. 0 or -errno: out of memory, or
 * a name used twice. */
int gn_tenants_init(struct gn_tenants *t, const struct gn_lease_ops *ops,
                    const struct gn_tenant_rules *rules, int n, struct gn_error *err);
void gn_tenants_fini(struct gn_tenants *t);

/* "" means `default`. NULL: there is none. */
struct gn_tenant *gn_tenants_find(const struct gn_tenants *t, const char *name);

/* Checks that the floors on each device add up to at most the whole device, if these rules apply:
 * to `it`, or to a new tenant (NULL). only_before: counts only tenants before `it` in the list. 0,
 * or -ENOSPC and sets err. */
int gn_tenants_floors_check(const struct gn_tenants *t, const struct gn_tenant *it,
                            bool only_before, const struct gn_tenant_rules *rules,
                            const struct gn_machine *m, struct gn_error *err);

/* The same for the reserves of memory. */
int gn_tenants_reserves_check(const struct gn_tenants *t, const struct gn_tenant *it,
                              bool only_before, const struct gn_tenant_rules *rules,
                              const struct gn_machine *m, struct gn_error *err);
/* Puts the reserves in force that `rules` give the tenant, instead of its earlier ones. 0, or
 * -ENOMEM: nothing has changed. */
int gn_tenant_reserve(struct gn_tenant *it, const struct gn_tenant_rules *rules,
                      struct gn_machine *m, struct gn_error *err);

/* Returns 0 or -errno. */
int gn_tenants_add(struct gn_tenants *t, const struct gn_tenant_rules *rules,
                   struct gn_tenant **ret, struct gn_error *err);
/* Returns 0 or -errno: `default` and tenants with vGPUs cannot be removed. */
int gn_tenants_may_remove(const struct gn_tenant *tenant, struct gn_error *err);
/* Removes and frees a tenant that may be removed and has no socket. */
void gn_tenants_remove(struct gn_tenants *t, struct gn_tenant *tenant);

/* Whether any tenant admits users that `default` without settings does not: the program socket must
 * then be open to all users. */
bool gn_tenants_admit_others(const struct gn_tenants *t);

/* A peer that asks for a tenant. */
struct gn_peer {
    /* Over tcp. gantryd runs with --insecure: `default` admits the peer. */
    bool anybody;
    /* Over tcp: the name in its verified certificate, which is a tenant's name. NULL, "": none. */
    const char *subject;
    /* Of a peer of this machine, as the kernel tells them. */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups; /* supplementary groups */
    const gid_t *groups;
    bool is_operator; /* connected through the control socket */
    /* gantryd's own user or uid 0: `default` admits both while it has no rule for users */
    bool is_default;
    const void *token; /* n_token 0: none was sent */
    size_t n_token;
};

/* Whether the peer may attach, as a user of this machine or over tcp, in either case by the
 * tenant's token. 0; -EACCES: no; -EPERM: no, its token is wrong. */
int gn_tenant_admits_user(const struct gn_tenant_rules *r, const struct gn_peer *peer);
int gn_tenant_admits_tcp(const struct gn_tenant_rules *r, const struct gn_peer *peer);

/* The devices of a platform that the tenant may use, as bits. */
uint64_t gn_tenant_devices(const struct gn_tenant_rules *r, const struct gn_machine *m,
                           uint32_t platform);
/* Checks that every selector matches a device: 0, or -ENODEV. */
int gn_tenant_devices_check(const struct gn_tenant_rules *r, const struct gn_machine *m,
                            struct gn_error *err);

#endif
