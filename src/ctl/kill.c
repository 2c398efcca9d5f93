/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry kill`: ends vGPUs, one request for each, and reports the result of each. Main thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "link/link.h"

static const char failure[] = "cannot end the vGPU";

struct killing {
    const struct gn_ctl_args *args;
    struct gn_link *link;
    json_t *results; /* {id, result, why} each */
    int n, n_failed;
    struct gn_error first; /* the first failure */
};

static void add(struct killing *k, const char *id, const char *result, const struct gn_error *err)
{
    json_t *o = json_object();
    k->n++;
    json_object_set_new(o, "id", json_string(id));
    json_object_set_new(o, "result", json_string(result));
    if (err) {
        json_object_set_new(o, "why", json_string(err->what));
        if (k->n_failed++ == 0)
            k->first = *err;
    }
    json_array_append_new(k->results, o);
    if (k->args->json)
        return;
    if (err) {
        char line[sizeof *err + 16];
        snprintf(line, sizeof line, "gantry kill: %s%s%s", err->what, err->fix[0] ? "; " : "",
                 err->fix);
        gn_text_clean(line, strlen(line)); /* the message quotes the command line */
        fprintf(stderr, "%s\n", line);
    } else
        printf("%s ended\n", id);
}

/* Ends one vGPU. 0: the result was added to k; -errno: no more requests can be sent. */
static int end_one(struct killing *k, const char *vgpu, const char *reason, struct gn_error *err)
{
    char *text = gn_control_kill_request(vgpu, reason);
    json_t *reply = NULL;
    int rc = text ? gn_client_ask_on(k->link, text, &reply, err)
                  : gn_fail(err, ENOMEM, NULL, "out of memory");
    const char *id = json_string_value(json_object_get(json_object_get(reply, "kill"), "id"));
    free(text);
    if (rc == 0 && !id)
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply has no \"kill\"");
    if (rc == 0)
        add(k, id, "ended", NULL);
    else if (rc == -ENOENT || rc == -EREMOTEIO)
        add(k, vgpu, rc == -ENOENT ? "gone" : "refused", err);
    json_decref(reply);
    return rc == -ENOENT || rc == -EREMOTEIO ? 0 : rc;
}

/* Sends a request to gantryd and returns the reply; NULL: it failed, and *rc says why. */
static json_t *query(const struct killing *k, const char *name, int *rc, struct gn_error *err)
{
    char *text = gn_control_request(name);
    json_t *reply = NULL;
    *rc = text ? gn_client_ask_on(k->link, text, &reply, err)
               : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return reply;
}

/*
 * Called when this connection sees no vGPU of the tenant. 0: the tenant exists and has none; or
 * -errno with the reason.
 */
static int check_tenant(const struct killing *k, const char *tenant, struct gn_error *err)
{
    json_t *t;
    size_t i;
    int rc;
    bool listed = false;
    json_t *reply = query(k, "tenants", &rc, err);
    json_array_foreach(json_object_get(reply, "tenants"), i, t)
    {
        const char *name = json_string_value(json_object_get(t, "name"));
        listed |= name && strcmp(name, tenant) == 0;
    }
    json_decref(reply);
    if (rc || listed)
        return rc;
    /* gantryd shows its limits only to connections that see every tenant. */
    reply = query(k, "status", &rc, err);
    const bool sees_all =
        json_is_object(json_object_get(json_object_get(reply, "gantryd"), "limits"));
    json_decref(reply);
    if (rc)
        return rc;
    return sees_all ? gn_fail(err, ENOENT, "gantry tenant ls lists them",
                              "there is no tenant \"%.63s\"", tenant)
                    : gn_fail(err, EACCES, "ask an operator to end them",
                              "you see no vGPUs of the tenant \"%.63s\"", tenant);
}

/* Ends all vGPUs of the tenant that exist now and that this connection sees. */
static int end_tenants(struct killing *k, const char *tenant, const char *reason,
                       struct gn_error *err)
{
    json_t *v;
    size_t i;
    int rc;
    json_t *reply = query(k, "ls", &rc, err);
    json_array_foreach(json_object_get(reply, "vgpus"), i, v)
    {
        const char *name = json_string_value(json_object_get(v, "tenant")),
                   *id = json_string_value(json_object_get(v, "id"));
        if (rc == 0 && name && id && strcmp(name, tenant) == 0)
            rc = end_one(k, id, reason, err);
    }
    json_decref(reply);
    return rc || k->n ? rc : check_tenant(k, tenant, err);
}

static int report(struct killing *k)
{
    if (k->args->json) {
        json_t *all = json_pack("{s:i,s:O}", "version", GN_CONTROL_VERSION, "kill", k->results);
        if (k->n_failed) {
            char what[64];
            snprintf(what, sizeof what, "cannot end %d of %d vGPUs", k->n_failed, k->n);
            json_object_set_new(all, "error",
                                json_pack("{s:s,s:s,s:s}", "what", what, "why", k->first.what,
                                          "fix", k->first.fix));
        }
        int rc = gn_ctl_print_json(k->args, all);
        return rc ? rc : k->n_failed ? GN_EXIT_FAILED : GN_EXIT_OK;
    }
    if (!k->n)
        printf("the tenant \"%s\" has no vGPUs\n", k->args->tenant);
    int rc = gn_ctl_flush(k->args);
    return rc ? rc : k->n_failed ? GN_EXIT_FAILED : GN_EXIT_OK;
}

int gn_ctl_kill(const struct gn_ctl_args *args)
{
    struct killing k = {.args = args, .results = json_array()};
    struct gn_error err = {{0}, {0}};
    bool empty = false;
    for (char **vgpu = args->rest; *vgpu; vgpu++)
        empty |= !**vgpu;
    if (empty || !args->rest[0] == !args->tenant) {
        gn_fail(&err, EINVAL,
                "write gantry kill VGPU..., or gantry kill --tenant T; gantry ls lists the vGPUs",
                args->tenant ? "vGPUs and --tenant exclude each other" : "no vGPU is given");
        json_decref(k.results);
        return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
    }
    int rc = gn_link_connect_control(args->connect, GN_ROLE_CONTROL, &k.link, &err);
    for (char **vgpu = args->rest; rc == 0 && *vgpu; vgpu++)
        rc = end_one(&k, *vgpu, args->reason, &err);
    if (rc == 0 && args->tenant)
        rc = end_tenants(&k, args->tenant, args->reason, &err);
    if (k.link)
        gn_link_close(k.link);
    rc = rc ? gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err) : report(&k);
    json_decref(k.results);
    return rc;
}
