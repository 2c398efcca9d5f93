/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a control request to gantryd and reads the reply. Any thread; it blocks until the reply has
 * come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "client/client.h"
#include "link/link.h"

/* Turns a reply's error object into *err. Returns -errno. */
static int refused(json_t *error, struct gn_error *err)
{
    const char *what = json_string_value(json_object_get(error, "what"));
    const char *why = json_string_value(json_object_get(error, "why"));
    const char *kind = json_string_value(json_object_get(error, "kind"));
    const int code = kind && !strcmp(kind, GN_CONTROL_KIND_GONE)     ? ENOENT
                     : kind && !strcmp(kind, GN_CONTROL_KIND_MEMORY) ? ENOBUFS
                     : kind && !strcmp(kind, GN_CONTROL_KIND_USAGE)  ? EINVAL
                                                                     : EREMOTEIO;
    /*
     * This text follows the command's own failure sentence, so the reason is preferred to the
     * reply's summary.
     */
    return gn_fail(err, code, json_string_value(json_object_get(error, "fix")), "%s",
                   why    ? why
                   : what ? what
                          : "gantryd refused");
}

int gn_client_ask(const char *connect, const char *query, json_t **ret, struct gn_error *err)
{
    char *text = gn_control_request(query);
    int rc = text ? gn_client_ask_text(connect, GN_ROLE_VIEW, text, ret, err)
                  : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return rc;
}

int gn_client_ask_text(const char *connect, enum gn_role role, const char *text, json_t **ret,
                       struct gn_error *err)
{
    struct gn_link *link = NULL;
    int rc = gn_link_connect_control(connect, role, &link, err);
    if (rc)
        return rc;
    rc = gn_client_ask_on(link, text, ret, err);
    gn_link_close(link);
    return rc;
}

int gn_client_ask_on(struct gn_link *link, const char *text, json_t **ret, struct gn_error *err)
{
    char *reply = NULL;
    int rc = gn_link_control(link, text, &reply, err);
    if (rc)
        return rc;
    json_t *root = json_loads(reply, JSON_REJECT_DUPLICATES, NULL);
    free(reply);
    json_t *error = json_object_get(root, "error");
    if (!json_is_object(root))
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply is not a JSON object");
    else if (error)
        rc = refused(error, err);
    if (rc)
        json_decref(root);
    else
        *ret = root;
    return rc;
}
