/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and parses a change of tenants. `gantry` builds it; gantryd's loop parses it. It never
 * decides whether a change is allowed: it checks the form only.
 */
#include "control/control.h"
#include "control/json_region.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/part.h"

static int wrong(struct gn_error *err, const char *key, const char *should)
{
    return gn_fail(err, EINVAL, "use a gantry of gantryd's version", "\"%.60s\" is not %s", key,
                   should);
}

static int take_ids(const json_t *list, const char *key, uint32_t *ret, uint32_t *ret_n,
                    struct gn_error *err)
{
    json_t *item;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > GN_CONTROL_MAX_IDS)
        return wrong(err, key, "a list of at most 64 numbers");
    json_array_foreach(list, i, item)
    {
        json_int_t n = json_integer_value(item);
        if (!json_is_integer(item) || n < 0 || n >= UINT32_MAX)
            return wrong(err, key, "a list of at most 64 numbers");
        ret[(*ret_n)++] = (uint32_t)n;
    }
    return 0;
}

static int take_texts(const json_t *list, const char *key, size_t most, const char **ret,
                      uint32_t *ret_n, struct gn_error *err)
{
    json_t *item;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > most)
        return wrong(err, key, "a list of a few texts");
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return wrong(err, key, "a list of a few texts");
        ret[(*ret_n)++] = json_string_value(item);
    }
    return 0;
}

static int take_uids(const json_t *value, struct gn_control_change *c, struct gn_error *err)
{
    c->has_uids = true;
    c->any_uid = json_is_string(value) && strcmp(json_string_value(value), "any") == 0;
    return c->any_uid ? 0 : take_ids(value, "uids", c->uids, &c->n_uids, err);
}

static int take_part(const json_t *value, const char *key, uint32_t *ret, struct gn_error *err)
{
    const double part = json_number_value(value);
    if (!json_is_number(value) || !(part >= 0 && part <= 1))
        return wrong(err, key, "a part of a device, from 0 to 1");
    *ret = (uint32_t)(part * GN_PART_WHOLE + 0.5);
    /* A value above 0 must not become 0, which means no limit. */
    if (part > 0 && *ret == 0)
        *ret = 1;
    return 0;
}

static int take_field(const char *key, const json_t *value, struct gn_control_change *c,
                      struct gn_error *err)
{
    const json_int_t n = json_integer_value(value);
    if (strcmp(key, "weight") == 0) {
        c->has_weight = true;
        c->weight = (uint32_t)n;
        return json_is_integer(value) && n > 0 && n <= UINT32_MAX ? 0 : wrong(err, key, "a weight");
    }
    if (strcmp(key, "cap") == 0) {
        c->has_cap = true;
        return take_part(value, key, &c->cap, err);
    }
    if (strcmp(key, "floor") == 0) {
        c->has_floor = true;
        return take_part(value, key, &c->floor, err);
    }
    if (strcmp(key, "memory_limit_bytes") == 0) {
        c->has_memory = true;
        c->memory_limit_bytes = (uint64_t)n;
        return json_is_integer(value) && n >= 0 ? 0 : wrong(err, key, "a number of bytes");
    }
    if (strcmp(key, "reserve_bytes") == 0) {
        c->has_reserve = true;
        c->reserve_bytes = (uint64_t)n;
        return json_is_integer(value) && n >= 0 ? 0 : wrong(err, key, "a number of bytes");
    }
    if (strcmp(key, "vgpu_limit") == 0) {
        c->has_vgpus = true;
        c->vgpus = (uint32_t)n;
        return json_is_integer(value) && n >= 0 && n <= GN_CONTROL_MAX_VGPUS
                   ? 0
                   : wrong(err, key, "a number of vGPUs");
    }
    if (strcmp(key, "uids") == 0)
        return take_uids(value, c, err);
    if (strcmp(key, "gids") == 0) {
        c->has_gids = true;
        return take_ids(value, key, c->gids, &c->n_gids, err);
    }
    if (strcmp(key, "token") == 0) {
        c->has_token = true;
        c->token = json_string_value(value);
        c->n_token = json_string_length(value);
        return json_is_string(value) ? 0 : wrong(err, key, "a text");
    }
    if (strcmp(key, "socket") == 0) {
        c->has_socket = true;
        c->socket = json_is_true(value);
        return json_is_boolean(value) ? 0 : wrong(err, key, "true or false");
    }
    if (strcmp(key, "owner") == 0) {
        c->has_owner = true;
        return take_texts(value, key, GN_CONTROL_MAX_OWNER, c->owner, &c->n_owner, err);
    }
    if (strcmp(key, "modes") == 0) {
        c->has_modes = true;
        return take_texts(value, key, GN_CONTROL_MAX_MODES, c->modes, &c->n_modes, err);
    }
    if (strcmp(key, "devices") == 0) {
        c->has_devices = true;
        return take_texts(value, key, GN_CONTROL_MAX_DEVICES, c->devices, &c->n_devices, err);
    }
    return wrong(err, key, "a setting of a tenant");
}

int gn_control_parse_change(const json_t *request, enum gn_control_what what,
                            struct gn_control_change *ret, struct gn_error *err)
{
    const json_t *name = json_object_get(request, "name");
    const char *key;
    json_t *value;
    memset(ret, 0, sizeof *ret);
    ret->what = what;
    ret->name = json_string_value(name);
    if (!ret->name || strlen(ret->name) != json_string_length(name))
        return wrong(err, "name", "the name of a tenant");
    json_object_foreach((json_t *)(uintptr_t)request, key, value)
    {
        if (strcmp(key, "version") == 0 || strcmp(key, "request") == 0 || strcmp(key, "name") == 0)
            continue;
        int rc = what == GN_CONTROL_REMOVE ? wrong(err, key, "a word of this request")
                                           : take_field(key, value, ret, err);
        if (rc)
            return rc;
    }
    return 0;
}

static json_t *ids(uint32_t n, const uint32_t *items)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(items[i]));
    return list;
}

static json_t *texts(uint32_t n, const char *const *items)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(items[i]));
    return list;
}

char *gn_control_change_request(const struct gn_control_change *c)
{
    static const char *const names[] = {"", "tenant-add", "tenant-set", "tenant-rm"};
    json_t *o = json_object();
    json_object_set_new(o, "version", json_integer(GN_CONTROL_VERSION));
    json_object_set_new(o, "request", json_string(names[c->what]));
    json_object_set_new(o, "name", json_string(c->name));
    if (c->has_weight)
        json_object_set_new(o, "weight", json_integer(c->weight));
    if (c->has_cap)
        json_object_set_new(o, "cap", json_real(c->cap / (double)GN_PART_WHOLE));
    if (c->has_floor)
        json_object_set_new(o, "floor", json_real(c->floor / (double)GN_PART_WHOLE));
    if (c->has_memory)
        json_object_set_new(o, "memory_limit_bytes",
                            json_integer((json_int_t)c->memory_limit_bytes));
    if (c->has_reserve)
        json_object_set_new(o, "reserve_bytes", json_integer((json_int_t)c->reserve_bytes));
    if (c->has_vgpus)
        json_object_set_new(o, "vgpu_limit", json_integer(c->vgpus));
    if (c->has_uids)
        json_object_set_new(o, "uids", c->any_uid ? json_string("any") : ids(c->n_uids, c->uids));
    if (c->has_gids)
        json_object_set_new(o, "gids", ids(c->n_gids, c->gids));
    if (c->has_token)
        json_object_set_new(o, "token", json_stringn(c->token, c->n_token));
    if (c->has_socket)
        json_object_set_new(o, "socket", json_boolean(c->socket));
    if (c->has_owner)
        json_object_set_new(o, "owner", texts(c->n_owner, c->owner));
    if (c->has_modes)
        json_object_set_new(o, "modes", texts(c->n_modes, c->modes));
    if (c->has_devices)
        json_object_set_new(o, "devices", texts(c->n_devices, c->devices));
    /* A value that is not UTF-8 was not set, and nothing was set without memory. */
    if (json_object_size(o) == 3u + c->has_weight + c->has_cap + c->has_floor + c->has_memory +
                                   c->has_reserve + c->has_vgpus + c->has_uids + c->has_gids +
                                   c->has_token + c->has_socket + c->has_owner + c->has_modes +
                                   c->has_devices)
        return gn_json_text(o, 0);
    json_decref(o);
    return NULL;
}
