/* SPDX-License-Identifier: Apache-2.0 */
/* Reads gantryd's configuration file: its sections and keys, and the functions that set each
 * setting, which options.c uses for the command line, too. Called at gantryd's start, on its only
 * thread at that time. May block on files and on the user database. */
#include "daemon/config.h"
#include "daemon/vgpu/worker_walls.h"

#include "link/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/ini.h"
#include "base/size.h"
#include "sched/policy.h"

enum section { NO_SECTION, SECTION_GANTRYD, SECTION_DEVICE, SECTION_TENANT };

struct parser {
    struct gn_ini ini;
    enum section section;
    bool socket_seen;
    struct gn_config *config;
};

static int complain(struct parser *p, const char *fix, const char *what, const char *quoted)
{
    return gn_ini_complain(&p->ini, fix, what, quoted);
}

static int pass_on(struct parser *p, const struct gn_error *inner)
{
    return gn_ini_pass_on(&p->ini, inner);
}

int gn_config_set_socket(struct gn_config *config, const char *value, struct gn_error *err)
{
    if (!*value || strlen(value) >= sizeof config->socket)
        return gn_fail(err, EINVAL, "give the path of the socket",
                       "\"%.100s\" is not a valid socket path", value);
    snprintf(config->socket, sizeof config->socket, "%s", value);
    return 0;
}

static int set_tcp(char *to, size_t n, const char *value, struct gn_error *err)
{
    struct gn_address a;
    int rc = gn_address_parse(value, &a, err);
    if (rc)
        return rc;
    if (!a.tcp || strlen(value) >= n)
        return gn_fail(err, EINVAL, "write tcp:HOST:PORT",
                       "\"%.100s\" is not an address to listen at", value);
    snprintf(to, n, "%s", value);
    return 0;
}

int gn_config_set_listen(struct gn_config *config, const char *value, struct gn_error *err)
{
    return set_tcp(config->listen, sizeof config->listen, value, err);
}

int gn_config_set_listen_control(struct gn_config *config, const char *value, struct gn_error *err)
{
    return set_tcp(config->listen_control, sizeof config->listen_control, value, err);
}

int gn_config_add_operator_subject(struct gn_config *config, const char *value,
                                   struct gn_error *err)
{
    const size_t n = strlen(value);
    if (config->n_operator_subjects == GN_CONFIG_MAX_OPERATORS)
        return gn_fail(err, EINVAL, NULL, "more than %d operators are named",
                       GN_CONFIG_MAX_OPERATORS);
    if (!n || n >= sizeof config->operator_subjects[0])
        return gn_fail(err, EINVAL, "give the common name of a certificate, up to 63 bytes",
                       "\"%.100s\" is not a valid operator's name", value);
    memcpy(config->operator_subjects[config->n_operator_subjects++], value, n + 1);
    return 0;
}

int gn_config_set_insecure(struct gn_config *config, const char *value, struct gn_error *err)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return gn_fail(err, EINVAL, "write yes or no", "insecure cannot be \"%.100s\"", value);
    config->insecure = value[0] == 'y';
    return 0;
}

static int set_file(char *to, size_t n, const char *value, struct gn_error *err)
{
    if (!*value || strlen(value) >= n)
        return gn_fail(err, EINVAL, "give the path of a file",
                       "\"%.100s\" is not a valid file path", value);
    snprintf(to, n, "%s", value);
    return 0;
}

int gn_config_set_certificate(struct gn_config *config, const char *value, struct gn_error *err)
{
    return set_file(config->tls_certificate, sizeof config->tls_certificate, value, err);
}

int gn_config_set_key(struct gn_config *config, const char *value, struct gn_error *err)
{
    return set_file(config->tls_key, sizeof config->tls_key, value, err);
}

int gn_config_set_authority(struct gn_config *config, const char *value, struct gn_error *err)
{
    return set_file(config->tls_authority, sizeof config->tls_authority, value, err);
}

static int parse_seconds(const char *what, const char *value, uint32_t *ret_ms,
                         struct gn_error *err)
{
    char *end;
    unsigned long s = value[0] >= '0' && value[0] <= '9' ? strtoul(value, &end, 10) : 0;
    if (!s || *end || s > 3600)
        return gn_fail(err, EINVAL, "write a number of seconds, 1 to 3600",
                       "%s cannot be \"%.100s\"", what, value);
    *ret_ms = (uint32_t)s * 1000;
    return 0;
}

int gn_config_set_grace(struct gn_config *config, const char *value, struct gn_error *err)
{
    return parse_seconds("the grace", value, &config->tcp_grace_ms, err);
}

int gn_config_set_start_limit(struct gn_config *config, const char *value, struct gn_error *err)
{
    return parse_seconds("the limit of a start", value, &config->start_limit_ms, err);
}

int gn_policy_parse(const char *name, const struct gn_sched_policy **ret, struct gn_error *err)
{
    char names[128], fix[160];
    const bool none = strcmp(name, GN_POLICY_NONE) == 0;
    const struct gn_sched_policy *policy = none ? NULL : gn_sched_policy_find(name);
    if (!policy && !none) {
        snprintf(fix, sizeof fix, "the policies are " GN_POLICY_NONE ", %s",
                 gn_sched_policy_names(names, sizeof names));
        return gn_fail(err, EINVAL, fix, "there is no policy \"%.100s\"", name);
    }
    *ret = policy;
    return 0;
}

int gn_config_set_policy(struct gn_config *config, const char *value, struct gn_error *err)
{
    int rc = gn_policy_parse(value, &config->policy, err);
    config->policy_set = rc == 0;
    return rc;
}

static int parse_slice(const char *value, uint64_t *ret_ns, struct gn_error *err)
{
    char *end = NULL;
    double ms = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0;
    if (!end || *end || !(ms >= 0.1 && ms <= 10000))
        return gn_fail(err, EINVAL, "write a number of milliseconds, 0.1 to 10000",
                       "the slice cannot be \"%.100s\"", value);
    *ret_ns = (uint64_t)(ms * 1e6);
    return 0;
}

int gn_config_set_slice(struct gn_config *config, const char *value, struct gn_error *err)
{
    return parse_slice(value, &config->slice_ns, err);
}

int gn_config_set_kernel_limit(struct gn_config *config, const char *value, struct gn_error *err)
{
    char *end = NULL;
    double s = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0;
    if (!end || *end || !(s == 0 || (s >= 0.1 && s <= 1e6)))
        return gn_fail(err, EINVAL, "write a number of seconds, at least 0.1, or 0 for none",
                       "the limit of a kernel cannot be \"%.100s\"", value);
    config->kernel_limit_set = true;
    config->kernel_limit_ns = (uint64_t)(s * 1e9);
    return 0;
}

int gn_config_set_breach_pause(struct gn_config *config, const char *value, struct gn_error *err)
{
    char *end = NULL;
    double ms = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0;
    if (!end || *end || !(ms == 0 || (ms >= 1 && ms <= 60000)))
        return gn_fail(err, EINVAL, "write a number of milliseconds, 1 to 60000, or 0 for none",
                       "the pause after breaches cannot be \"%.100s\"", value);
    config->breach_pause_set = true;
    config->breach_pause_ns = (uint64_t)(ms * 1e6);
    return 0;
}

int gn_config_set_walls(struct gn_config *config, const char *value, struct gn_error *err)
{
    config->walls_set = gn_walls_mode_parse(value, &config->walls) == 0;
    if (config->walls_set)
        return 0;
    return gn_fail(err, EINVAL, "write required, available or none", "walls cannot be \"%.100s\"",
                   value);
}

int gn_config_set_cache(struct gn_config *config, const char *value, struct gn_error *err)
{
    if (value[0] != '/' || strlen(value) >= sizeof config->cache)
        return gn_fail(err, EINVAL, "give an absolute path",
                       "\"%.100s\" is not a valid folder for kernel caches", value);
    snprintf(config->cache, sizeof config->cache, "%s", value);
    return 0;
}

int gn_config_add_device(struct gn_config *config, const char *value, struct gn_error *err)
{
    if (config->n_devices == GN_CONFIG_MAX_DEVICES)
        return gn_fail(err, EINVAL, NULL, "more than %d devices are selected",
                       GN_CONFIG_MAX_DEVICES);
    int rc = gn_selector_parse(value, &config->devices[config->n_devices], err);
    if (rc == 0)
        config->n_devices++;
    return rc;
}

void gn_config_fini(struct gn_config *config)
{
    if (config->tenants)
        explicit_bzero(config->tenants, (size_t)config->n_tenants * sizeof *config->tenants);
    free(config->tenants);
    config->tenants = NULL;
    config->n_tenants = 0;
}

static int start_tenant(struct parser *p, const char *name)
{
    struct gn_config *c = p->config;
    struct gn_error inner = {{0}, {0}};
    if (gn_tenant_name_check(name, &inner))
        return pass_on(p, &inner);
    for (int i = 0; i < c->n_tenants; i++)
        if (strcmp(c->tenants[i].rules.name, name) == 0)
            return complain(p, "put all of it into one section", "a second section of the tenant",
                            name);
    if (c->n_tenants == GN_CONFIG_MAX_TENANTS)
        return complain(p, NULL, "too many tenants before", name);
    struct gn_config_tenant *grown =
        realloc(c->tenants, (size_t)(c->n_tenants + 1) * sizeof *grown);
    if (!grown)
        return complain(p, NULL, "out of memory at", name);
    c->tenants = grown;
    grown += c->n_tenants++;
    memset(grown, 0, sizeof *grown);
    gn_tenant_rules_init(&grown->rules, name);
    p->section = SECTION_TENANT;
    return 0;
}

static int start_section(struct gn_ini *ini, char *name)
{
    struct parser *p = ini->ctx;
    struct gn_error inner = {{0}, {0}};
    if (strcmp(name, "gantryd") == 0) {
        p->section = SECTION_GANTRYD;
        return 0;
    }
    if (strncmp(name, "tenant", 6) == 0 && (name[6] == ' ' || name[6] == '\t'))
        return start_tenant(p, gn_ini_trim(name + 6));
    if (strncmp(name, "device", 6) != 0 || (name[6] != ' ' && name[6] != '\t'))
        return complain(p, "the sections are [gantryd], [device NAME] and [tenant NAME]",
                        "unknown section", name);
    if (p->config->n_settings == GN_CONFIG_MAX_DEVICES)
        return complain(p, NULL, "too many sections before", name);
    struct gn_selector *s = &p->config->settings[p->config->n_settings];
    if (gn_selector_parse(gn_ini_trim(name + 6), s, &inner))
        return pass_on(p, &inner);
    if (s->present_as)
        return complain(p, "put present-as on a line of its own",
                        "a setting in a section's name:", name);
    p->config->n_settings++;
    p->section = SECTION_DEVICE;
    return 0;
}

static int set_gantryd(struct parser *p, const char *key, const char *value)
{
    struct gn_error inner = {{0}, {0}};
    int rc;
    if (strcmp(key, "socket") == 0) {
        if (p->socket_seen)
            return complain(p, "keep one of them", "given twice:", key);
        p->socket_seen = true;
        rc = gn_config_set_socket(p->config, value, &inner);
    } else if (strcmp(key, "device") == 0) {
        rc = gn_config_add_device(p->config, value, &inner);
    } else if (strcmp(key, "listen") == 0) {
        rc = gn_config_set_listen(p->config, value, &inner);
    } else if (strcmp(key, "listen-control") == 0) {
        rc = gn_config_set_listen_control(p->config, value, &inner);
    } else if (strcmp(key, "operator-subject") == 0) {
        rc = gn_config_add_operator_subject(p->config, value, &inner);
    } else if (strcmp(key, "insecure") == 0) {
        rc = gn_config_set_insecure(p->config, value, &inner);
    } else if (strcmp(key, "tls-certificate") == 0) {
        rc = gn_config_set_certificate(p->config, value, &inner);
    } else if (strcmp(key, "tls-key") == 0) {
        rc = gn_config_set_key(p->config, value, &inner);
    } else if (strcmp(key, "tls-client-authority") == 0) {
        rc = gn_config_set_authority(p->config, value, &inner);
    } else if (strcmp(key, "tcp-grace") == 0) {
        rc = gn_config_set_grace(p->config, value, &inner);
    } else if (strcmp(key, "policy") == 0) {
        rc = gn_config_set_policy(p->config, value, &inner);
    } else if (strcmp(key, "slice") == 0) {
        rc = gn_config_set_slice(p->config, value, &inner);
    } else if (strcmp(key, "kernel-limit") == 0) {
        rc = gn_config_set_kernel_limit(p->config, value, &inner);
    } else if (strcmp(key, "breach-pause") == 0) {
        rc = gn_config_set_breach_pause(p->config, value, &inner);
    } else if (strcmp(key, "oversubscribe") == 0) {
        rc = gn_config_set_oversubscribe(p->config, value, &inner);
    } else if (strcmp(key, "place") == 0) {
        rc = gn_config_set_place(p->config, value, &inner);
    } else if (strcmp(key, "swap-memory") == 0) {
        rc = gn_config_set_swap_memory(p->config, value, &inner);
    } else if (strcmp(key, "swap-share") == 0) {
        rc = gn_config_set_swap_share(p->config, value, &inner);
    } else if (strcmp(key, "residency-max") == 0) {
        rc = gn_config_set_residency_max(p->config, value, &inner);
    } else if (strcmp(key, "idle-after") == 0) {
        rc = gn_config_set_idle_after(p->config, value, &inner);
    } else if (strcmp(key, "start-limit") == 0) {
        rc = gn_config_set_start_limit(p->config, value, &inner);
    } else if (strcmp(key, "walls") == 0) {
        if (p->config->walls_set)
            return complain(p, "keep one of them", "given twice:", key);
        rc = gn_config_set_walls(p->config, value, &inner);
    } else if (strcmp(key, "cache") == 0) {
        if (p->config->cache[0])
            return complain(p, "keep one of them", "given twice:", key);
        rc = gn_config_set_cache(p->config, value, &inner);
    } else {
        return complain(
            p,
            "the keys of [gantryd] are socket, listen, listen-control, operator-subject, "
            "insecure, tls-certificate, tls-key, "
            "tls-client-authority, tcp-grace, policy, slice, kernel-limit, breach-pause, "
            "start-limit, oversubscribe, place, swap-memory, swap-share, residency-max, "
            "idle-after, device, walls and cache",
            "unknown key", key);
    }
    return rc ? pass_on(p, &inner) : 0;
}

static int set_device(struct parser *p, const char *key, const char *value)
{
    struct gn_selector *s = &p->config->settings[p->config->n_settings - 1];
    struct gn_error inner = {{0}, {0}};
    const bool slice = strcmp(key, "slice") == 0, memory = strcmp(key, "memory") == 0,
               slot = strcmp(key, "slot") == 0;
    if (!slice && !memory && !slot && strcmp(key, "present-as") != 0)
        return complain(p, "the keys of [device NAME] are present-as, slice, memory and slot",
                        "unknown key", key);
    if (slice    ? s->slice_ns != 0
        : memory ? s->memory_bytes != 0
        : slot   ? s->slot_bytes != 0
                 : s->present_as != 0)
        return complain(p, "keep one of them", "given twice:", key);
    if (slot)
        return gn_slot_parse(value, &s->slot_bytes, &inner) ? pass_on(p, &inner) : 0;
    if (slice)
        return parse_slice(value, &s->slice_ns, &inner) ? pass_on(p, &inner) : 0;
    if (memory) {
        if (gn_size_parse(value, &s->memory_bytes, &inner))
            return pass_on(p, &inner);
        return s->memory_bytes
                   ? 0
                   : complain(p, "give a size, or leave the key out for all of the device's memory",
                              "a device cannot have memory =", value);
    }
    s->present_as = gn_kind_parse(value);
    if (!s->present_as)
        return complain(p, "write gpu, cpu or accelerator", "a device cannot be presented as",
                        value);
    return 0;
}

static int set_token_file(struct parser *p, struct gn_config_tenant *t, const char *value)
{
    if (strlen(value) >= sizeof t->token_file)
        return complain(p, "use a shorter path", "too long:", value);
    snprintf(t->token_file, sizeof t->token_file, "%s", value);
    t->token_line = p->ini.line;
    return 0;
}

static const struct {
    const char *key;
    int (*set)(struct gn_tenant_rules *, const char *value,
               struct gn_error *); /* NULL: the token file */
    bool repeated;
} tenant_keys[] = {
    {"weight", gn_tenant_set_weight, false},   {"cap", gn_tenant_set_cap, false},
    {"floor", gn_tenant_set_floor, false},     {"memory", gn_tenant_set_memory, false},
    {"vgpus", gn_tenant_set_vgpus, false},     {"uid", gn_tenant_add_uid, true},
    {"gid", gn_tenant_add_gid, true},          {"token-file", NULL, false},
    {"socket", gn_tenant_set_socket, false},   {"owner", gn_tenant_add_owner, true},
    {"mode", gn_tenant_add_mode, true},        {"device", gn_tenant_add_device, true},
    {"reserve", gn_tenant_set_reserve, false},
};

static int set_tenant(struct parser *p, const char *key, const char *value)
{
    struct gn_config_tenant *t = &p->config->tenants[p->config->n_tenants - 1];
    struct gn_error inner = {{0}, {0}};
    for (size_t i = 0; i < GN_ARRAY_SIZE(tenant_keys); i++) {
        if (strcmp(key, tenant_keys[i].key) != 0)
            continue;
        if (!tenant_keys[i].repeated && (t->keys & (1u << i)))
            return complain(p, "keep one of them", "given twice:", key);
        t->keys |= 1u << i;
        if (tenant_keys[i].set == gn_tenant_set_cap)
            t->cap_line = p->ini.line;
        if (tenant_keys[i].set == gn_tenant_set_floor)
            t->floor_line = p->ini.line;
        if (tenant_keys[i].set == gn_tenant_set_memory)
            t->memory_line = p->ini.line;
        if (tenant_keys[i].set == gn_tenant_set_reserve)
            t->reserve_line = p->ini.line;
        if (!tenant_keys[i].set)
            return set_token_file(p, t, value);
        return tenant_keys[i].set(&t->rules, value, &inner) ? pass_on(p, &inner) : 0;
    }
    return complain(
        p,
        "the keys of [tenant NAME] are weight, cap, floor, memory, reserve, vgpus, uid, gid, "
        "token-file, socket, owner, mode and device",
        "unknown key", key);
}

static int set_key(struct gn_ini *ini, const char *key, const char *value)
{
    struct parser *p = ini->ctx;
    switch (p->section) {
    case SECTION_GANTRYD:
        return set_gantryd(p, key, value);
    case SECTION_DEVICE:
        return set_device(p, key, value);
    case SECTION_TENANT:
        return set_tenant(p, key, value);
    case NO_SECTION:
        break;
    }
    return complain(p, "put [gantryd] above it", "a key before any section:", key);
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

static int check_tenants(struct parser *p)
{
    for (int i = 0; i < p->config->n_tenants; i++) {
        const struct gn_config_tenant *t = &p->config->tenants[i];
        struct gn_error inner = {{0}, {0}};
        p->ini.line = gn_tenant_reserve_fits(&t->rules) ? later(t->cap_line, t->floor_line)
                                                        : later(t->memory_line, t->reserve_line);
        if (gn_tenant_rules_check(&t->rules, &inner))
            return pass_on(p, &inner);
    }
    return 0;
}

static int read_tokens(const char *path, struct gn_config *config, struct gn_error *err)
{
    for (int i = 0; i < config->n_tenants; i++) {
        struct gn_config_tenant *t = &config->tenants[i];
        struct gn_ini ini = {.path = path, .line = t->token_line, .err = err};
        struct gn_error inner = {{0}, {0}};
        if (t->token_file[0] && gn_tenant_read_token(&t->rules, t->token_file, &inner))
            return gn_ini_pass_on(&ini, &inner);
    }
    return 0;
}

static void parser_init(struct parser *p, const char *path, struct gn_config *config,
                        struct gn_error *err)
{
    *p =
        (struct parser){.ini = {.path = path, .section = start_section, .key = set_key, .err = err},
                        .config = config};
    p->ini.ctx = p;
}

int gn_config_parse(const char *path, const char *text, size_t n, struct gn_config *config,
                    struct gn_error *err)
{
    struct parser p;
    parser_init(&p, path, config, err);
    config->path = path;
    int rc = gn_ini_parse(&p.ini, text, n);
    return rc ? rc : check_tenants(&p);
}

int gn_config_read(const char *path, struct gn_config *config, struct gn_error *err)
{
    struct parser p;
    parser_init(&p, path, config, err);
    config->path = path;
    int rc = gn_ini_read(&p.ini, "configuration");
    if (rc == 0)
        rc = check_tenants(&p);
    return rc ? rc : read_tokens(path, config, err);
}
