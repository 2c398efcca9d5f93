/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANT_RULES_H
#define GN_DAEMON_TENANTS_TENANT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/tenants/selector.h"
#include "link/link_wire.h"

/* The settings of a tenant, from the configuration file or a control request. Plain values, owned
 * by no thread. */

#define GN_TENANT_MAX_IDS     64
#define GN_TENANT_MAX_DEVICES 16
#define GN_TENANT_MAX_WEIGHT  1000000u
#define GN_TENANT_MAX_VGPUS   1000000u
#define GN_TENANT_WEIGHT      100u

/* Operations that the owner of a vGPU may request on a program socket. */
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
    /* of each device that the tenant may use, in millionths (base/part.h); 0: none */
    uint32_t cap, floor;
    uint64_t memory_limit_bytes; /* 0: none */
    uint64_t reserve_bytes;      /* on each device that the tenant may use; 0: none */
    uint32_t vgpus; /* at a time; 0: as many as gantryd's descriptors allow (connection_limits.c) */
    /* The users of this machine that may attach: those that match any of these fields. */
    bool any_uid;
    bool no_uid; /* `uid = none`; n_uids is 0 then */
    uint32_t n_uids, n_gids;
    uid_t uids[GN_TENANT_MAX_IDS];
    gid_t gids[GN_TENANT_MAX_IDS];
    /* the tenant has a socket of its own, and every peer that uses it may attach */
    bool socket;
    uint32_t n_token; /* 0: no token, so none admits a peer */
    unsigned char token[GN_LINK_TOKEN_BYTES];
    uint32_t owner; /* GN_RIGHT_* */
    bool owner_said;
    uint32_t modes; /* GN_MODE_* */
    uint32_t n_devices;
    struct gn_selector devices[GN_TENANT_MAX_DEVICES]; /* none: all devices */
};

/* Sets the rules of a tenant without any settings. */
void gn_tenant_rules_init(struct gn_tenant_rules *r, const char *name);

/* Checks for 1 to 63 letters, digits, `_ . -`. 0 or -EINVAL. */
int gn_tenant_name_check(const char *name, struct gn_error *err);

/*
 * Parse one setting of a [tenant NAME] section. Settings that may be repeated add to earlier ones.
 * "none" means: for cap and memory no limit, for floor and reserve none, for vgpus the default, for
 * token-file no token, for uid no user. "any" means every user or every device. Users and groups
 * are numbers or names; a name is looked up in this machine's user database, which may block.
 * Return 0 or -errno.
 */
int gn_tenant_set_weight(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_cap(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_floor(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_memory(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_reserve(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_socket(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_set_vgpus(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_uid(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_gid(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_read_token(struct gn_tenant_rules *r, const char *path, struct gn_error *err);
/* value: names of rights separated by commas, or "none". The first call replaces the default. */
int gn_tenant_add_owner(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_mode(struct gn_tenant_rules *r, const char *value, struct gn_error *err);
int gn_tenant_add_device(struct gn_tenant_rules *r, const char *value, struct gn_error *err);

/* Checks that the settings fit together: the floor is not above the cap, nor the reserve above the
 * memory limit. 0 or -EINVAL. */
int gn_tenant_rules_check(const struct gn_tenant_rules *r, struct gn_error *err);

/* Sets the token; n 0 removes it. Errors as gn_token_check. */
int gn_tenant_set_token(struct gn_tenant_rules *r, const char *token, size_t n,
                        struct gn_error *err);

/* Whether the reserve is not above the memory limit. */
static inline bool gn_tenant_reserve_fits(const struct gn_tenant_rules *r)
{
    return !r->memory_limit_bytes || r->reserve_bytes <= r->memory_limit_bytes;
}

/* Compares in constant time. False if the tenant has no token. */
bool gn_tenant_token_is(const struct gn_tenant_rules *r, const void *token, size_t n);

/* Returns the bit GN_MODE_* of a name; 0 for any other text. */
uint32_t gn_mode_parse(const char *text);
const char *gn_mode_name(uint32_t mode);
/* Returns the name of the right 1u << i; i < GN_RIGHT_N. */
const char *gn_right_name(uint32_t i);

/* Whether the rules say which users of this machine may attach. A token does not count: it admits
 * any user that has it. */
static inline bool gn_tenant_has_rule(const struct gn_tenant_rules *r)
{
    return r->any_uid || r->no_uid || r->n_uids || r->n_gids;
}

/* Whether the rules admit users that `default` without settings does not. */
static inline bool gn_tenant_admits_others(const struct gn_tenant_rules *r)
{
    return r->any_uid || r->n_uids || r->n_gids || r->n_token;
}

#endif
