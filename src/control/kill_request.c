/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and handles the request that ends a vGPU. `gantry` builds it; gantryd's loop handles it.
 * It never signals a process itself.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/source.h"
#include "control/json_region.h"

char *gn_control_kill_request(const char *vgpu, const char *reason)
{
    json_t *root = json_pack("{s:i,s:s,s:o}", "version", GN_CONTROL_VERSION, "request", "kill",
                             "vgpu", gn_json_string(vgpu));
    if (root && reason)
        json_object_set_new(root, "reason", gn_json_string(reason));
    return gn_json_text(root, 0);
}

/* Returns NULL if the value is not a string, or has a NUL in it. */
static const char *text_of(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
               ? json_string_value(value)
               : NULL;
}

char *gn_control_parse_kill(const struct gn_control_source *source, const struct json_t *request)
{
    const char *vgpu = text_of(json_object_get(request, "vgpu"));
    const json_t *given = json_object_get(request, "reason");
    const char *reason = given ? text_of(given) : "";
    struct gn_error err = {{0}, {0}};
    uint32_t ended = 0;
    char id[16];
    int rc = !vgpu || !*vgpu
                 ? gn_fail(&err, EINVAL, "gantry ls lists them", "the request names no vGPU")
             : !reason ? gn_fail(&err, EINVAL, NULL, "\"reason\" is not a text")
                       : source->commands->kill(source->ctx, vgpu, reason, &ended, &err);
    if (rc)
        return gn_control_error_of_kind("cannot end the vGPU", &err,
                                        rc == -ENOENT ? GN_CONTROL_KIND_GONE : NULL);
    snprintf(id, sizeof id, "%08x", ended);
    return gn_json_text(json_pack("{s:i,s:{s:s,s:s}}", "version", GN_CONTROL_VERSION, "kill", "id",
                                  id, "result", "ended"),
                        0);
}
