/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and parses the request for a migration, and builds its reply. `gantry` builds requests;
 * gantryd's loop does the rest. It never checks whether the migration is possible.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/control.h"
#include "control/json_region.h"

#define MAX_DRAIN_MS 3600000

char *gn_control_move_request(const struct gn_control_wish *wish)
{
    json_t *root =
        json_pack("{s:i,s:s,s:o,s:o,s:I,s:I,s:I}", "version", GN_CONTROL_VERSION, "request",
                  "migrate", "vgpu", gn_json_string(wish->vgpu), "to", gn_json_string(wish->to),
                  "drain_timeout_ms", (json_int_t)wish->drain_timeout_ms, "rounds",
                  (json_int_t)wish->rounds, "bandwidth_bytes", (json_int_t)wish->bandwidth_bytes);
    if (root && wish->ticket)
        json_object_set_new(root, "ticket", json_string(wish->ticket));
    if (root && wish->device)
        json_object_set_new(root, "device", gn_json_string(wish->device));
    if (root && wish->name)
        json_object_set_new(root, "name", json_string(wish->name));
    if (root && wish->secure)
        json_object_set_new(root, "secure", json_true());
    if (root && wish->near && wish->kernel) {
        json_object_set_new(root, "near", gn_json_string(wish->near));
        json_object_set_new(root, "kernel", json_string(wish->kernel));
    }
    return gn_json_text(root, 0);
}

static const char *text_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
               ? json_string_value(value)
               : NULL;
}

int gn_control_parse_wish(const struct json_t *root, struct gn_control_wish *ret,
                          struct gn_error *err)
{
    const json_t *drain = json_object_get(root, "drain_timeout_ms");
    ret->vgpu = text_of(root, "vgpu");
    ret->to = text_of(root, "to");
    ret->ticket = text_of(root, "ticket");
    ret->device = text_of(root, "device");
    ret->name = text_of(root, "name");
    ret->secure = json_is_true(json_object_get(root, "secure"));
    ret->near = text_of(root, "near");
    ret->kernel = text_of(root, "kernel");
    ret->stop = json_is_true(json_object_get(root, "stop"));
    ret->drain_timeout_ms = GN_CONTROL_DRAIN_MS;
    ret->rounds = GN_CONTROL_ROUNDS;
    ret->bandwidth_bytes = 0;
    if (!ret->vgpu || !*ret->vgpu)
        return gn_fail(err, EINVAL, "gantry ls lists them", "the request names no vGPU");
    if (drain && (!json_is_integer(drain) || json_integer_value(drain) < 1 ||
                  json_integer_value(drain) > MAX_DRAIN_MS))
        return gn_fail(err, EINVAL, NULL,
                       "the drain's timeout is no number of milliseconds up to an hour");
    if (drain)
        ret->drain_timeout_ms = (uint32_t)json_integer_value(drain);
    const json_t *rounds = json_object_get(root, "rounds"),
                 *bandwidth = json_object_get(root, "bandwidth_bytes");
    if (rounds && (!json_is_integer(rounds) || json_integer_value(rounds) < 0 ||
                   json_integer_value(rounds) > GN_CONTROL_MAX_ROUNDS))
        return gn_fail(err, EINVAL, NULL, "the rounds are no number up to %u",
                       GN_CONTROL_MAX_ROUNDS);
    if (bandwidth && (!json_is_integer(bandwidth) || json_integer_value(bandwidth) < 0))
        return gn_fail(err, EINVAL, NULL, "the bandwidth is no number of bytes");
    if (rounds)
        ret->rounds = (uint32_t)json_integer_value(rounds);
    if (bandwidth)
        ret->bandwidth_bytes = (uint64_t)json_integer_value(bandwidth);
    return 0;
}

char *gn_control_move_reply(const struct gn_control_move *m)
{
    char id[16];
    snprintf(id, sizeof id, "%08x", m->id);
    json_t *phases = json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "boot", (json_int_t)m->boot_ns, "hold",
        (json_int_t)m->hold_ns, "drain", (json_int_t)m->drain_ns, "save", (json_int_t)m->save_ns,
        "load", (json_int_t)m->load_ns, "stand", (json_int_t)m->stand_ns, "driver",
        (json_int_t)m->driver_ns, "ends", (json_int_t)m->ends_ns, "tables",
        (json_int_t)m->tables_ns, "contents", (json_int_t)m->contents_ns, "loaded",
        (json_int_t)m->loaded_ns, "commit", (json_int_t)m->commit_ns);
    json_t *pages =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "total", (json_int_t)m->pages, "kept",
                  (json_int_t)m->pages_kept, "zero", (json_int_t)m->pages_zero, "sampled",
                  (json_int_t)m->pages_sampled, "hashed", (json_int_t)m->pages_hashed, "device",
                  (json_int_t)m->pages_device, "precopy", (json_int_t)m->pages_precopy, "stop",
                  (json_int_t)m->pages_stop);
    json_t *all =
        json_pack("{s:i,s:{s:s,s:s,s:s,s:s,s:I,s:I,s:o,s:o,s:I,s:I}}", "version",
                  GN_CONTROL_VERSION, "move", "id", id, "from", "local", "to", m->to, "result",
                  "moved", "precopy_ns", (json_int_t)m->precopy_ns, "downtime_ns",
                  (json_int_t)m->downtime_ns, "phases_ns", phases, "pages", pages, "bytes_sent",
                  (json_int_t)m->bytes, "stop_read_bytes", (json_int_t)m->read_bytes);
    return gn_json_text(all, 0);
}
