/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry policy`: shows the current scheduling policy and the available ones, or sets another one.
 * Main thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

static int print(const struct gn_ctl_args *args, const json_t *reply)
{
    static const struct gn_table_column columns[] = {
        {"POLICY", false}, {"STATE", false}, {"WHAT", false}};
    const char *in_force = json_string_value(json_object_get(reply, "policy"));
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
        return gn_ctl_fail(args, GN_EXIT_FAILED, "cannot list the policies", &err);
    }
    return gn_ctl_flush(args);
}

int gn_ctl_policy(const struct gn_ctl_args *args)
{
    const char *name = args->rest[0];
    const char *failure = name ? "cannot change the policy" : "cannot list the policies";
    char *text = name ? gn_control_policy_request(name) : gn_control_request("policy");
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
    rc = name ? GN_EXIT_OK : print(args, reply);
    json_decref(reply);
    return rc;
}
