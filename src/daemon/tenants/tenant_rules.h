/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANT_RULES_H
#define GN_DAEMON_TENANTS_TENANT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/tenants/selector.h"
#include "link/link_wire.h"

/* What an operator says of a tenant, in the configuration file or live. Plain values; no thread
 * owns them. */

#define GN_TENANT_MAX_IDS     64
#define GN_TENANT_MAX_DEVICES 16
#define GN_TENANT_MAX_WEIGHT  1000000u
#define GN_TENANT_MAX_VGPUS   1000000u
#define GN_TENANT_WEIGHT      100u

/* What the owner of a vGPU may do with it by a socket for programs. */
#define GN_RIGHT_KILL       1u
#define GN_RIGHT_CHECKPOINT 2u
#define GN_RIGHT_RESTORE    4u
#define GN_RIGHT_MIGRATE    8u /* within this gantryd */
#define GN_RIGHT_MODE       16u
#define GN_RIGHT_N          5

#define GN_MODE_REMOTE      1u
#define GN_MODE_PASSTHROUGH 2u

struct gn_tenant_rules {
    char name[GN_LINK_TENANT_BYTES];
    uint32_t weight;
    uint32_t cap, floor; /* of each device that it may use, in millionths (base/part.h); 0: none */
    uint64_t memory_limit_bytes; /* 0: none */
    uint32_t vgpus; /* at a time; 0: as many as gantryd's descriptors allow (connection_limits.c) */
    /* The users of this machine that may attach: any of these. */
    bool any_uid;
    bool no_uid; /* said to be nobody; then there are none below */
    uint32_t n_uids, n_gids;
    uid_t uids[GN_TENANT_MAX_IDS];
    gid_t gids[GN_TENANT_MAX_IDS];
    bool socket;      /* whoever comes by a socket of its own may attach */
    uint32_t n_token; /* 0: no token lets anybody in */
    unsigned char token[GN_LINK_TOKEN_BYTES];
    uint32_t owner; /* GN_RIGHT_* */
    bool owner_said;
    uint32_t modes; /* GN_MODE_* */
    uint32_t n_devices;
    struct gn_selector devices[GN_TENANT_MAX_DEVICES]; /* none: all */
};

/* The rules of a tenant of whom nothing is said but his name. */
void gn_tenant_rules_init(struct gn_tenant_rules *r, const char *name);

/* Letters, digits, `_ . -`, up to 63 of them. 0 or -EINVAL. */
int gn_tenant_name_check(const char *name, struct gn_error *err);

/*
 * One setting, as text: the keys of [tenant NAME]. Those that may be repeated add to what is there.
 * "none" for cap, floor, memory, vgpus, token-file and uid, "any" for uid and device mean no limit,
 * no claim, the default, no token, nobody; everybody, every device. Users and groups go by number
 * or by name (which asks this machine's user database, and may block). 0 or -errno.
 */
int gn_tenant_set_weight(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_cap(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_floor(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_memory(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_socket(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_vgpus(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_uid(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_gid(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_read_token(struct gn_tenant_rules *r, const char *path, struct gn_error *err);
/* Some of their names, with commas between, or none; the first takes the place of the default. */
int gn_tenant_add_owner(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_mode(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_device(struct gn_tenant_rules *r, const char *value, struct gn_error *err);

/* What the settings have to be together: the floor is not above the cap. 0 or -EINVAL. */
int gn_tenant_rules_check(const struct gn_tenant_rules *r, struct gn_error *err);

/* n 0 removes it. Errors as gn_token_check. */
int gn_tenant_set_token(struct gn_tenant_rules *r, const char *token, size_t n,
                        struct gn_error *err);

/* In a time that does not depend on where they differ. False when there is no token. */
bool gn_tenant_token_is(const struct gn_tenant_rules *r, const void *token, size_t n);

/* A bit of GN_MODE_*; 0 for anything else. */
uint32_t gn_mode_parse(const char *text);
const char *gn_mode_name(uint32_t mode);
/* The name of 1u << i, i below GN_RIGHT_N. */
const char *gn_right_name(uint32_t i);

/* Does it say which users of this machine it admits? A token is no such rule: it admits whoever
 * shows it. */
static inline bool gn_tenant_has_rule(const struct gn_tenant_rules *r)
{
    return r->any_uid || r->no_uid || r->n_uids || r->n_gids;
}

/* Does it admit others than those that a `default` without a rule admits? */
static inline bool gn_tenant_admits_others(const struct gn_tenant_rules *r)
{
    return r->any_uid || r->n_uids || r->n_gids || r->n_token;
}

#endif
