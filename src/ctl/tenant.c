/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry tenant`: sends gantryd a change built from the options, or lists the tenants. gantryd
 * checks the change. Main thread.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "link/token.h"

static bool is_number(const char *text, uint32_t *ret)
{
    size_t n = strlen(text);
    unsigned long long value;
    if (n == 0 || n > 10 || strspn(text, "0123456789") != n ||
        (value = strtoull(text, NULL, 10)) >= UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* User names are resolved here, on this machine; gantryd receives numbers. */
static int find_user(const char *name, uint32_t *ret, struct gn_error *err)
{
    const struct passwd *user;
    if (is_number(name, ret))
        return 0;
    if (!(user = getpwnam(name)))
        return gn_fail(err, EINVAL, "write a user's number or name, any or none",
                       "there is no user \"%.100s\"", name);
    *ret = user->pw_uid;
    return 0;
}

static int find_group(const char *name, uint32_t *ret, struct gn_error *err)
{
    const struct group *group;
    if (is_number(name, ret))
        return 0;
    if (!(group = getgrnam(name)))
        return gn_fail(err, EINVAL, "write a group's number or name, or none",
                       "there is no group \"%.100s\"", name);
    *ret = group->gr_gid;
    return 0;
}

/* Whether the only value is "none", which stands for an empty list. */
static bool is_none(const struct gn_ctl_words *words)
{
    return words->n == 1 && strcmp(words->items[0], "none") == 0;
}

static int take_ids(const struct gn_ctl_words *words,
                    int (*find)(const char *, uint32_t *, struct gn_error *), uint32_t *ret,
                    uint32_t *ret_n, struct gn_error *err)
{
    int rc = 0;
    for (int i = 0; i < words->n && !is_none(words) && rc == 0; i++)
        rc = find(words->items[i], &ret[(*ret_n)++], err);
    return rc;
}

static int take_devices(const struct gn_ctl_words *words, struct gn_control_change *c,
                        struct gn_error *err)
{
    c->has_devices = words->n > 0;
    if (words->n == 1 && strcmp(words->items[0], "any") == 0)
        return 0;
    if (words->n > GN_CONTROL_MAX_DEVICES)
        return gn_fail(err, EINVAL, NULL, "at most %d devices may be named",
                       GN_CONTROL_MAX_DEVICES);
    for (int i = 0; i < words->n; i++)
        c->devices[c->n_devices++] = words->items[i];
    return 0;
}

static int make_change(const struct gn_ctl_args *args, struct gn_control_change *c, char *token,
                       struct gn_error *err)
{
    int rc = 0, shared;
    c->has_weight = args->weight != 0;
    c->weight = args->weight;
    c->has_cap = args->has_cap;
    c->cap = args->cap;
    c->has_socket = args->has_socket;
    c->socket = args->socket;
    c->has_floor = args->has_floor;
    c->floor = args->floor;
    c->has_memory = args->memory_bytes || args->no_memory_limit;
    c->memory_limit_bytes = args->memory_bytes;
    c->has_reserve = args->has_reserve;
    c->reserve_bytes = args->reserve_bytes;
    c->has_vgpus = args->has_vgpus;
    c->vgpus = args->vgpus;
    c->has_uids = args->uids.n > 0;
    c->any_uid = args->uids.n == 1 && strcmp(args->uids.items[0], "any") == 0;
    c->has_gids = args->gids.n > 0;
    if (!c->any_uid)
        rc = take_ids(&args->uids, find_user, c->uids, &c->n_uids, err);
    if (rc == 0)
        rc = take_ids(&args->gids, find_group, c->gids, &c->n_gids, err);
    c->has_owner = args->owner.n > 0;
    for (int i = 0; i < args->owner.n && c->n_owner < GN_CONTROL_MAX_OWNER; i++)
        c->owner[c->n_owner++] = args->owner.items[i];
    c->has_modes = args->modes.n > 0;
    for (int i = 0; i < args->modes.n && c->n_modes < GN_CONTROL_MAX_MODES; i++)
        c->modes[c->n_modes++] = args->modes.items[i];
    if (rc == 0)
        rc = take_devices(&args->devices, c, err);
    c->has_token = args->token_file != NULL;
    c->token = token;
    if (rc == 0 && args->token_file && strcmp(args->token_file, "none") != 0)
        rc = gn_token_read(args->token_file, token, &shared, err);
    c->n_token = strlen(token);
    return rc;
}

static bool says_something(const struct gn_control_change *c)
{
    return c->has_weight || c->has_cap || c->has_floor || c->has_memory || c->has_reserve ||
           c->has_vgpus || c->has_uids || c->has_gids || c->has_token || c->has_socket ||
           c->has_owner || c->has_modes || c->has_devices;
}

static int usage(const struct gn_ctl_args *args, const struct gn_error *err)
{
    return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", err);
}

static int send_change(const struct gn_ctl_args *args, const struct gn_control_change *c,
                       const char *failure)
{
    struct gn_error err = {{0}, {0}};
    json_t *reply = NULL;
    char *text = gn_control_change_request(c);
    int rc = text ? gn_client_ask_text(args->connect, GN_ROLE_CONTROL, text, &reply, &err)
                  : gn_fail(&err, EINVAL, "use letters and digits", "a value is not text");
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    if (rc)
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    if (args->json)
        return gn_ctl_print_json(args, reply);
    json_decref(reply);
    return GN_EXIT_OK;
}

static const struct verb {
    const char *name;
    enum gn_control_what what; /* 0: the verb lists the tenants */
    const char *failure;
} verbs[] = {{"add", GN_CONTROL_ADD, "cannot add the tenant"},
             {"set", GN_CONTROL_SET, "cannot change the tenant"},
             {"rm", GN_CONTROL_REMOVE, "cannot remove the tenant"},
             {"ls", 0, NULL}};

/* Checks that the verb, the name and the options fit together. 0 or -EINVAL. */
static int judge(const struct verb *verb, const char *name, const struct gn_control_change *c,
                 struct gn_error *err)
{
    if (!verb->what && name)
        return gn_fail(err, EINVAL, "gantry help tenant shows its arguments",
                       "unexpected argument \"%.100s\"", name);
    if (verb->what && !name)
        return gn_fail(err, EINVAL, "write gantry tenant add NAME, set NAME, rm NAME or ls",
                       "no tenant is named");
    if (name && gn_client_check_tenant(name, err))
        return -EINVAL;
    if (verb->what == GN_CONTROL_SET && !says_something(c))
        return gn_fail(err, EINVAL, "gantry help tenant lists the options", "no change is given");
    if ((!verb->what || verb->what == GN_CONTROL_REMOVE) && says_something(c))
        return gn_fail(err, EINVAL, NULL, "gantry tenant %s takes no settings", verb->name);
    return 0;
}

int gn_ctl_tenant(const struct gn_ctl_args *args)
{
    const char *word = args->rest[0], *name = word ? args->rest[1] : NULL;
    char token[GN_LINK_TOKEN_BYTES] = "";
    struct gn_control_change c = {.name = name};
    struct gn_error err = {{0}, {0}};
    const struct verb *verb = NULL;
    for (size_t i = 0; word && i < GN_ARRAY_SIZE(verbs); i++)
        if (strcmp(word, verbs[i].name) == 0)
            verb = &verbs[i];
    if (!verb) {
        gn_fail(&err, EINVAL, "write gantry tenant add NAME, set NAME, rm NAME or ls",
                word ? "there is no gantry tenant \"%.100s\"" : "no command is given", word);
        return usage(args, &err);
    }
    int rc = make_change(args, &c, token, &err);
    if (rc && rc != -EINVAL)
        return gn_ctl_fail(args, GN_EXIT_FAILED, verb->failure, &err);
    if (rc || judge(verb, name, &c, &err))
        return usage(args, &err);
    if (!verb->what)
        return gn_ctl_list_tenants(args);
    c.what = verb->what;
    rc = send_change(args, &c, verb->failure);
    explicit_bzero(token, sizeof token);
    return rc;
}
