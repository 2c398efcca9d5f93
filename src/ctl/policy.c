/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry policy` and `gantry place`: show the current policy and the available ones, or set
 * another one. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

struct kind {
    const char *key; /* the request, and the key of the policy in force */
    const char *cannot_list, *cannot_change;
    const char *none; /* if no policy is in force */
    char *(*change)(const char *name);
};

static int print(const struct gn_ctl_args *args, const struct kind *kind, const json_t *reply)
{
    static const struct gn_table_column columns[] = {
        {"POLICY", false}, {"STATE", false}, {"WHAT", false}};
    const char *in_force = json_string_value(json_object_get(reply, kind->key));
    struct gn_table t;
    json_t *item;
    size_t i;
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    json_array_foreach(json_object_get(reply, "policies"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        gn_table_add(&t, name);
        gn_table_add(&t, name && in_force && strcmp(name, in_force) == 0 ? "in force" : NULL);
        gn_table_add(&t, json_string_value(json_object_get(item, "about")));
    }
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    if (rc) {
        struct gn_error err;
        gn_fail(&err, -rc, NULL, "out of memory");
        return gn_ctl_fail(args, GN_EXIT_FAILED, kind->cannot_list, &err);
    }
    /* On stderr: scripts read the table. */
    if (!in_force && kind->none)
        fprintf(stderr, "gantry %s: %s\n", args->command, kind->none);
    return gn_ctl_flush(args);
}

static int show_or_change(const struct gn_ctl_args *args, const struct kind *kind)
{
    const char *name = args->rest[0];
    const char *failure = name ? kind->cannot_change : kind->cannot_list;
    char *text = name ? kind->change(name) : gn_control_request(kind->key);
    struct gn_error err = {{0}, {0}};
    json_t *reply = NULL;
    int rc = text ? gn_client_ask_text(args->connect, name ? GN_ROLE_CONTROL : GN_ROLE_VIEW, text,
                                       &reply, &err)
                  : gn_fail(&err, ENOMEM, NULL, "out of memory");
    free(text);
    if (rc == 0 && !json_is_array(json_object_get(reply, "policies")))
        rc = gn_fail(&err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply has no \"policies\"");
    if (rc) {
        json_decref(reply);
        return gn_ctl_fail(args, rc == -EINVAL ? GN_EXIT_USAGE : GN_EXIT_FAILED, failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    rc = name ? GN_EXIT_OK : print(args, kind, reply);
    json_decref(reply);
    return rc;
}

int gn_ctl_policy(const struct gn_ctl_args *args)
{
    static const struct kind kind = {"policy", "cannot list the policies",
                                     "cannot change the policy", NULL, gn_control_policy_request};
    return show_or_change(args, &kind);
}

int gn_ctl_place(const struct gn_ctl_args *args)
{
    static const struct kind kind = {
        "place", "cannot list the placement policies", "cannot change the placement policy",
        "no device's memory is placed: each vGPU's memory stays on its device; gantryd "
        "--oversubscribe changes that",
        gn_control_place_request};
    return show_or_change(args, &kind);
}
