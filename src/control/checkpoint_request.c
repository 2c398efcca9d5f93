/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and parses the requests for a checkpoint and a restore, and builds their replies. `gantry`
 * builds requests; gantryd's loop does the rest. It never opens the file of a checkpoint.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/source.h"
#include "control/json_region.h"

static char *dump(json_t *root)
{
    return gn_json_text(root, 0);
}

char *gn_control_checkpoint_request(const struct gn_control_wish *wish)
{
    return dump(json_pack("{s:i,s:s,s:o,s:b,s:I}", "version", GN_CONTROL_VERSION, "request",
                          "checkpoint", "vgpu", gn_json_string(wish->vgpu), "stop", wish->stop,
                          "drain_timeout_ms", (json_int_t)wish->drain_timeout_ms));
}

char *gn_control_checkpoint_reply(const struct gn_control_checkpoint *c)
{
    char id[16];
    snprintf(id, sizeof id, "%08x", c->id);
    return dump(json_pack("{s:i,s:{s:s,s:s,s:I,s:{s:I,s:I,s:I},s:{s:I,s:I},s:I}}", "version",
                          GN_CONTROL_VERSION, "checkpoint", "id", id, "state", c->state,
                          "downtime_ns", (json_int_t)c->downtime_ns, "phases_ns", "hold",
                          (json_int_t)c->hold_ns, "drain", (json_int_t)c->drain_ns, "save",
                          (json_int_t)c->save_ns, "pages", "total", (json_int_t)c->pages, "zero",
                          (json_int_t)c->pages_zero, "bytes", (json_int_t)c->bytes));
}

char *gn_control_restore_request(const struct gn_control_restore *wish)
{
    char id[16], key[2 * GN_CONTROL_KEY_BYTES + 1];
    snprintf(id, sizeof id, "%08x", wish->id);
    gn_control_print_hex(wish->key, sizeof wish->key, key);
    return dump(json_pack("{s:i,s:s,s:s,s:s,s:s,s:I}", "version", GN_CONTROL_VERSION, "request",
                          "restore", "vgpu", id, "tenant", wish->tenant, "key", key, "ring_at",
                          (json_int_t)wish->ring_at));
}

char *gn_control_restore_reply(const struct gn_control_restored *r)
{
    char id[16];
    snprintf(id, sizeof id, "%08x", r->id);
    return dump(json_pack("{s:i,s:{s:s,s:s,s:{s:I,s:I},s:I}}", "version", GN_CONTROL_VERSION,
                          "restore", "id", id, "result", "restored", "phases_ns", "boot",
                          (json_int_t)r->boot_ns, "load", (json_int_t)r->load_ns, "bytes",
                          (json_int_t)r->bytes));
}

static char *refused(const char *what, const struct gn_error *err)
{
    return gn_control_error(what, err->what, err->fix[0] ? err->fix : NULL);
}

char *gn_control_parse_checkpoint(const struct gn_control_source *source,
                                  const struct json_t *request)
{
    struct gn_control_wish wish;
    struct gn_error err = {{0}, {0}};
    if (gn_control_parse_wish(request, &wish, &err) ||
        source->commands->checkpoint(source->ctx, &wish, &err))
        return refused("cannot save the vGPU", &err);
    return strdup("");
}

char *gn_control_parse_keep(const struct gn_control_source *source, const struct json_t *request)
{
    (void)request;
    struct gn_error err = {{0}, {0}};
    return source->commands->keep(source->ctx, &err) ? refused("cannot stop the vGPU", &err)
                                                     : strdup("");
}

static bool parse_hex(const json_t *value, unsigned char *ret, size_t n)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) && gn_control_parse_hex(text, ret, n);
}

static int parse_restore(const json_t *root, struct gn_control_restore *ret, struct gn_error *err)
{
    const json_t *tenant = json_object_get(root, "tenant"),
                 *ring_at = json_object_get(root, "ring_at");
    unsigned char id[4];
    memset(ret, 0, sizeof *ret);
    if (!parse_hex(json_object_get(root, "vgpu"), id, sizeof id) ||
        !parse_hex(json_object_get(root, "key"), ret->key, sizeof ret->key) ||
        !json_is_string(tenant) || json_string_length(tenant) >= sizeof ret->tenant ||
        !json_is_integer(ring_at))
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request does not say what the file is of");
    ret->id = (uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3];
    memcpy(ret->tenant, json_string_value(tenant), json_string_length(tenant));
    ret->ring_at = (uint64_t)json_integer_value(ring_at);
    return 0;
}

char *gn_control_parse_restore(const struct gn_control_source *source, const struct json_t *request)
{
    struct gn_control_restore wish;
    struct gn_error err = {{0}, {0}};
    bool absent = false;
    int rc = parse_restore(request, &wish, &err);
    if (rc == 0)
        rc = source->commands->restore(source->ctx, &wish, &absent, &err);
    explicit_bzero(wish.key, sizeof wish.key);
    if (rc == 0)
        return strdup("");
    if (!absent)
        return refused("cannot restore the vGPU", &err);
    return dump(json_pack("{s:i,s:{s:s,s:o}}", "version", GN_CONTROL_VERSION, "restore", "result",
                          "absent", "why", gn_json_string(err.what)));
}
