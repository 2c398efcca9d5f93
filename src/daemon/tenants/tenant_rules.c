/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks the settings of a tenant (tenant_rules.h). Called by config.c at gantryd's
 * start and by tenant_change.c later, on gantryd's thread. May block at the start, when it looks up
 * users and groups or reads a token file. */
#include "daemon/tenants/tenant_rules.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/part.h"
#include "base/size.h"
#include "link/token.h"

static const struct {
    const char *name;
    uint32_t mode;
} modes[] = {{"remote", GN_MODE_REMOTE}, {"passthrough", GN_MODE_PASSTHROUGH}};

uint32_t gn_mode_parse(const char *text)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(modes); i++)
        if (strcmp(text, modes[i].name) == 0)
            return modes[i].mode;
    return 0;
}

const char *gn_mode_name(uint32_t mode)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(modes); i++)
        if (mode == modes[i].mode)
            return modes[i].name;
    return "";
}

static const char *const owner_rights[GN_RIGHT_N] = {"kill", "checkpoint", "restore", "migrate",
                                                     "mode"};

const char *gn_right_name(uint32_t i)
{
    return owner_rights[i];
}

static bool find_right(const char *name, size_t n, uint32_t *ret)
{
    for (uint32_t i = 0; i < GN_RIGHT_N; i++) {
        if (strlen(owner_rights[i]) == n && memcmp(owner_rights[i], name, n) == 0) {
            *ret |= 1u << i;
            return true;
        }
    }
    return false;
}

int gn_tenant_add_owner(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    uint32_t rights = 0;
    const bool none = strcmp(value, "none") == 0;
    for (const char *at = value; !none;) {
        at += strspn(at, ", \t");
        const size_t n = strcspn(at, ", \t");
        if (!n && rights)
            break;
        if (!find_right(at, n, &rights))
            return gn_fail(err, EINVAL,
                           "write some of kill, checkpoint, restore, migrate and mode, or none",
                           "\"%.100s\" is nothing that an owner can be allowed", value);
        at += n;
    }
    r->owner = (r->owner_said && !none ? r->owner : 0) | rights;
    r->owner_said = true;
    return 0;
}

void gn_tenant_rules_init(struct gn_tenant_rules *r, const char *name)
{
    memset(r, 0, sizeof *r);
    memcpy(r->name, name, strnlen(name, sizeof r->name - 1));
    r->weight = GN_TENANT_WEIGHT;
    r->owner = GN_RIGHT_KILL;
}

int gn_tenant_name_check(const char *name, struct gn_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t n = strlen(name);
    const bool is_folder = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (n == 0 || n >= GN_LINK_TENANT_BYTES || strspn(name, allowed) != n || is_folder)
        return gn_fail(err, EINVAL, "use up to 63 letters, digits, _ . and -",
                       "\"%.100s\" is not a tenant's name", name);
    return 0;
}

/* Parses a decimal number of at most `most`; false for any other text. */
static bool parse_number(const char *text, unsigned long long most, unsigned long long *ret)
{
    size_t n = strlen(text);
    if (n == 0 || n > 10 || strspn(text, "0123456789") != n)
        return false;
    *ret = strtoull(text, NULL, 10);
    return *ret <= most;
}

int gn_tenant_set_weight(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    unsigned long long n;
    if (!parse_number(value, GN_TENANT_MAX_WEIGHT, &n) || n == 0)
        return gn_fail(err, EINVAL, "write a whole number from 1 to 1000000",
                       "\"%.100s\" is not a weight", value);
    r->weight = (uint32_t)n;
    return 0;
}

int gn_tenant_set_cap(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    return gn_part_parse(value, &r->cap, err);
}

int gn_tenant_set_floor(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    return gn_part_parse(value, &r->floor, err);
}

int gn_tenant_rules_check(const struct gn_tenant_rules *r, struct gn_error *err)
{
    char cap[16], floor[16];
    if (!gn_tenant_reserve_fits(r))
        return gn_fail(
            err, EINVAL, "lower the reserve, or raise the memory limit",
            "the reserve of the tenant \"%s\", %llu bytes, is above its memory limit, %llu",
            r->name, (unsigned long long)r->reserve_bytes,
            (unsigned long long)r->memory_limit_bytes);
    if (!r->cap || r->floor <= r->cap)
        return 0;
    return gn_fail(err, EINVAL, "lower the floor, or raise the cap",
                   "the floor of the tenant \"%s\", %s, is above its cap, %s", r->name,
                   gn_part_format(r->floor, floor), gn_part_format(r->cap, cap));
}

int gn_tenant_set_memory(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    uint64_t n = 0;
    int rc = strcmp(value, "none") == 0 ? 0 : gn_size_parse(value, &n, err);
    if (rc)
        return rc;
    if (n == 0 && strcmp(value, "none") != 0)
        return gn_fail(err, EINVAL, "write none for no limit",
                       "a memory limit of 0 leaves nothing");
    r->memory_limit_bytes = n;
    return 0;
}

int gn_tenant_set_reserve(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    r->reserve_bytes = 0;
    return strcmp(value, "none") == 0 ? 0 : gn_size_parse(value, &r->reserve_bytes, err);
}

int gn_tenant_set_socket(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return gn_fail(err, EINVAL, "write yes or no", "socket cannot be \"%.100s\"", value);
    r->socket = value[0] == 'y';
    return 0;
}

int gn_tenant_set_vgpus(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    unsigned long long n = 0;
    if (strcmp(value, "none") != 0 && (!parse_number(value, GN_TENANT_MAX_VGPUS, &n) || n == 0))
        return gn_fail(err, EINVAL, "write a whole number from 1 to 1000000, or none",
                       "\"%.100s\" is not a number of vGPUs", value);
    r->vgpus = (uint32_t)n;
    return 0;
}

int gn_tenant_add_uid(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    const struct passwd *user;
    unsigned long long n;
    const bool none = strcmp(value, "none") == 0;
    if (none ? r->any_uid || r->n_uids : r->no_uid)
        return gn_fail(err, EINVAL, "leave out one of them",
                       "uid = none cannot be combined with others");
    if (none) {
        r->no_uid = true;
        return 0;
    }
    if (strcmp(value, "any") == 0) {
        r->any_uid = true;
        return 0;
    }
    if (!parse_number(value, UINT32_MAX - 1, &n)) {
        if (!(user = getpwnam(value)))
            return gn_fail(err, EINVAL, "write a user's number or name, any or none",
                           "there is no user \"%.100s\"", value);
        n = user->pw_uid;
    }
    if (r->n_uids == GN_TENANT_MAX_IDS)
        return gn_fail(err, EINVAL, "use a group", "more than %d users are named",
                       GN_TENANT_MAX_IDS);
    r->uids[r->n_uids++] = (uid_t)n;
    return 0;
}

int gn_tenant_add_gid(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    const struct group *group;
    unsigned long long n;
    if (!parse_number(value, UINT32_MAX - 1, &n)) {
        if (!(group = getgrnam(value)))
            return gn_fail(err, EINVAL, "write a group's number or name",
                           "there is no group \"%.100s\"", value);
        n = group->gr_gid;
    }
    if (r->n_gids == GN_TENANT_MAX_IDS)
        return gn_fail(err, EINVAL, NULL, "more than %d groups are named", GN_TENANT_MAX_IDS);
    r->gids[r->n_gids++] = (gid_t)n;
    return 0;
}

int gn_tenant_set_token(struct gn_tenant_rules *r, const char *token, size_t n,
                        struct gn_error *err)
{
    int rc = n ? gn_token_check(token, n, err) : 0;
    if (rc)
        return rc;
    memset(r->token, 0, sizeof r->token);
    if (n)
        memcpy(r->token, token, n);
    r->n_token = (uint32_t)n;
    return 0;
}

int gn_tenant_read_token(struct gn_tenant_rules *r, const char *path, struct gn_error *err)
{
    char token[GN_LINK_TOKEN_BYTES] = "";
    int shared = 0;
    int rc = strcmp(path, "none") == 0 ? 0 : gn_token_read(path, token, &shared, err);
    if (rc == 0 && shared)
        gn_log(GN_LOG_WARN, "others may read the token file %s, too", path);
    if (rc == 0)
        rc = gn_tenant_set_token(r, token, strlen(token), err);
    explicit_bzero(token, sizeof token);
    return rc;
}

bool gn_tenant_token_is(const struct gn_tenant_rules *r, const void *token, size_t n)
{
    const unsigned char *given = token;
    /* Compares the whole field, for any lengths, so that the time tells nothing about the token. */
    unsigned differ = r->n_token ^ (unsigned)n;
    for (size_t i = 0; i < sizeof r->token; i++) {
        volatile unsigned char mine = r->token[i];
        differ |= (unsigned)(mine ^ (i < n ? given[i] : 0));
    }
    return differ == 0 && r->n_token;
}

int gn_tenant_add_mode(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    uint32_t mode = gn_mode_parse(value);
    if (!mode)
        return gn_fail(err, EINVAL, "write remote or passthrough", "\"%.100s\" is not a mode",
                       value);
    r->modes |= mode;
    return 0;
}

int gn_tenant_add_device(struct gn_tenant_rules *r, const char *value, struct gn_error *err)
{
    struct gn_selector s;
    if (strcmp(value, "any") == 0) {
        r->n_devices = 0;
        return 0;
    }
    int rc = gn_selector_parse(value, &s, err);
    if (rc)
        return rc;
    if (s.present_as)
        return gn_fail(err, EINVAL, "put present-as into a section [device NAME]",
                       "present-as applies to all tenants: \"%.100s\"", value);
    if (r->n_devices == GN_TENANT_MAX_DEVICES)
        return gn_fail(err, EINVAL, NULL, "more than %d devices are named", GN_TENANT_MAX_DEVICES);
    r->devices[r->n_devices++] = s;
    return 0;
}
