/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANTS_H
#define GN_DAEMON_TENANTS_TENANTS_H

#include "daemon/tenants/leases.h"
#include "daemon/tenants/tenant_rules.h"
#include "link/tls.h"

/*
 * The tenants as gantryd knows them now: rules, and the books of their memory. `default` is there
 * always. Owned by gantryd's thread; a tenant is freed when it is removed, which nobody does while
 * it has vGPUs.
 */
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
    uint32_t n_vgpus;
    /* Since its making, for people. */
    uint64_t n_refused_vgpus;        /* connection_limits.c */
    uint64_t n_tokens;               /* so many times has its token changed */
    uint64_t n_refused_leases;       /* memory.c */
    uint64_t late_told_ns;           /* attach.c: that its programs wait was logged then */
    struct gn_socket *socket;        /* NULL: none (rules.socket) */
    struct gn_tenant_shares *shares; /* the scheduler's; NULL before its first vGPU */
    uint64_t busy_weights; /* shares.c, while it reckons: of its vGPUs that have work on a device */
    bool is_there, is_busy; /* device_load.c, while it weighs a device */
    /* tcp_sessions.c: the key that the token is for TLS, and that token. */
    struct gn_tls_psk psk;
    uint32_t psk_n_token;
    unsigned char psk_token[GN_LINK_TOKEN_BYTES];
};

struct gn_tenants {
    struct gn_list all; /* `default` first, then as they came */
    uint32_t n;
    const struct gn_lease_ops *ops;
};

/* The `n` rules may say something of `default`, too. 0 or -errno; errors are of memory, or a name
 * used twice.
 */
int gn_tenants_init(struct gn_tenants *t, const struct gn_lease_ops *ops,
                    const struct gn_tenant_rules *rules, int n, struct gn_error *err);
void gn_tenants_fini(struct gn_tenants *t);

/* "" is `default`. NULL: there is none. */
struct gn_tenant *gn_tenants_find(const struct gn_tenants *t, const char *name);

/* Whether the floors of a device are no more than the device, with these rules: `it`'s from now on,
 * or a new tenant's (NULL). only_before: against those that stand before `it` alone. 0, or -ENOSPC
 * and a sentence. */
int gn_tenants_floors_check(const struct gn_tenants *t, const struct gn_tenant *it,
                            bool only_before, const struct gn_tenant_rules *rules,
                            const struct gn_machine *m, struct gn_error *err);

/* 0 or -errno. */
int gn_tenants_add(struct gn_tenants *t, const struct gn_tenant_rules *rules,
                   struct gn_tenant **ret, struct gn_error *err);
/* 0, or -errno: not `default`, and none that has vGPUs. */
int gn_tenants_may_remove(const struct gn_tenant *tenant, struct gn_error *err);
/* One that may be removed, and has no socket. */
void gn_tenants_remove(struct gn_tenants *t, struct gn_tenant *tenant);

/* Whether any tenant admits users beside those that `default` admits without a rule: then others
 * must reach the socket. */
bool gn_tenants_admit_others(const struct gn_tenants *t);

/* Who asks. On this machine the kernel names him. */
struct gn_peer {
    bool remote;  /* from another machine: of the rest only what follows, and the token, counts */
    bool anybody; /* gantryd was told to trust the network: `default` admits him */
    const char *subject; /* of a certificate that he has shown: a tenant's name. NULL, "": none */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups; /* supplementary ones */
    const gid_t *groups;
    bool is_operator; /* came by the control socket */
    bool is_default;  /* gantryd's own user, or uid 0: `default` admits both while it has no rule */
    const void *token; /* n_token 0: none was shown */
    size_t n_token;
};

/* May he attach? 0; -EACCES: no; -EPERM: no, and the token that he showed is a wrong one. */
int gn_tenant_admits(const struct gn_tenant_rules *r, const struct gn_peer *peer);

/* The devices of a platform that the tenant may use, as bits. */
uint64_t gn_tenant_devices(const struct gn_tenant_rules *r, const struct gn_machine *m,
                           uint32_t platform);
/* Every selector means some device: 0, or -ENODEV. */
int gn_tenant_devices_check(const struct gn_tenant_rules *r, const struct gn_machine *m,
                            struct gn_error *err);

#endif
