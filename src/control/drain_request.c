/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and handles the request that drains a gantryd, so that it accepts no new programs.
 * `gantry` builds it; gantryd's loop handles it. It never ends a vGPU.
 */
#include <errno.h>
#include <jansson.h>

#include "control/source.h"
#include "control/json_region.h"

char *gn_control_drain_request(bool on)
{
    json_t *root = json_pack("{s:i,s:s}", "version", GN_CONTROL_VERSION, "request", "drain");
    if (root && !on)
        json_object_set_new(root, "undo", json_true());
    return gn_json_text(root, 0);
}

char *gn_control_parse_drain(const struct gn_control_source *source, const struct json_t *request)
{
    const json_t *undo = json_object_get(request, "undo");
    struct gn_control_drain d = {.draining = false};
    struct gn_error err = {{0}, {0}};
    int rc = undo && !json_is_boolean(undo)
                 ? gn_fail(&err, EINVAL, "use a gantry of gantryd's version",
                           "\"undo\" is neither true nor false")
                 : source->commands->drain(source->ctx, !json_is_true(undo), &d, &err);
    if (rc)
        return gn_control_error("cannot change whether new programs are accepted", err.what,
                                err.fix);
    return gn_json_text(json_pack("{s:i,s:{s:b,s:I}}", "version", GN_CONTROL_VERSION, "drain",
                                  "draining", d.draining, "coming", (json_int_t)d.n_coming),
                        0);
}
