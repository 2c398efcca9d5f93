/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and handles the requests about a migration between two gantryds. `gantry` carries them;
 * each gantryd's loop handles them. It never trusts a request: the client may have changed it.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/source.h"
#include "control/json_region.h"

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool gn_control_parse_hex(const char *text, unsigned char *ret, size_t n)
{
    if (strlen(text) != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void gn_control_print_hex(const unsigned char *bytes, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

char *gn_control_about_request(const char *vgpu)
{
    return gn_json_text(json_pack("{s:i,s:s,s:o}", "version", GN_CONTROL_VERSION, "request",
                                  "about", "vgpu", gn_json_string(vgpu)),
                        0);
}

char *gn_control_receive_request(struct json_t *about)
{
    return gn_json_text(json_pack("{s:i,s:s,s:O}", "version", GN_CONTROL_VERSION, "request",
                                  "receive", "about", about),
                        0);
}

char *gn_control_parse_about(const struct gn_control_source *source, const struct json_t *request)
{
    static const char failure[] = "cannot move the vGPU";
    const char *vgpu = json_string_value(json_object_get(request, "vgpu"));
    struct gn_control_about a = {.id = 0};
    struct gn_error err = {{0}, {0}};
    char id[16];
    int rc = vgpu && *vgpu
                 ? source->queries->about(source->ctx, vgpu, &a, &err)
                 : gn_fail(&err, EINVAL, "gantry ls lists them", "the request names no vGPU");
    if (rc)
        return gn_control_error_of_kind(failure, &err, rc == -ENOENT ? GN_CONTROL_KIND_GONE : NULL);
    json_t *devices = json_array();
    for (uint32_t i = 0; i < a.n_devices; i++) {
        const struct gn_control_about_device *d = &a.devices[i];
        json_array_append_new(
            devices,
            json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I}", "name", gn_json_string(d->name),
                      "vendor", gn_json_string(d->vendor), "version", gn_json_string(d->version),
                      "driver_version", gn_json_string(d->driver_version), "present_as",
                      gn_json_string(d->shown_as), "memory_bytes", (json_int_t)d->memory_bytes,
                      "max_allocation_bytes", (json_int_t)d->max_allocation_bytes,
                      "local_memory_bytes", (json_int_t)d->local_memory_bytes, "compute_units",
                      (json_int_t)d->compute_units));
    }
    snprintf(id, sizeof id, "%08x", a.id);
    return gn_json_text(
        json_pack("{s:i,s:{s:s,s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:b,s:b,s:o}}", "version",
                  GN_CONTROL_VERSION, "about", "id", id, "tenant", a.tenant, "program",
                  gn_json_string(a.program), "api", gn_json_string(a.api), "platform",
                  gn_json_string(a.platform), "weight", (json_int_t)a.weight, "need_bytes",
                  (json_int_t)a.need_bytes, "memory_limit_bytes", (json_int_t)a.limit_bytes,
                  "remote", a.remote, "secure", a.secure, "devices", devices),
        0);
}

/* Returns NULL if the value is not a string, or has a NUL in it. */
static const char *text_in(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
               ? json_string_value(value)
               : NULL;
}

static bool number_in(const json_t *o, const char *key, uint64_t most, uint64_t *ret)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static bool parse_device(const json_t *o, struct gn_control_about_device *ret)
{
    uint64_t units = 0;
    *ret = (struct gn_control_about_device){.name = text_in(o, "name"),
                                            .vendor = text_in(o, "vendor"),
                                            .version = text_in(o, "version"),
                                            .driver_version = text_in(o, "driver_version"),
                                            .shown_as = text_in(o, "present_as")};
    bool good = ret->name && ret->vendor && ret->version && ret->driver_version && ret->shown_as &&
                number_in(o, "memory_bytes", INT64_MAX, &ret->memory_bytes) &&
                number_in(o, "max_allocation_bytes", INT64_MAX, &ret->max_allocation_bytes) &&
                number_in(o, "local_memory_bytes", INT64_MAX, &ret->local_memory_bytes) &&
                number_in(o, "compute_units", UINT32_MAX, &units);
    ret->compute_units = (uint32_t)units;
    return good;
}

static int parse_about(const json_t *o, struct gn_control_about *ret, struct gn_error *err)
{
    const json_t *devices = json_object_get(o, "devices");
    const char *id = text_in(o, "id");
    unsigned char id_bytes[4] = {0};
    uint64_t weight = 0;
    *ret = (struct gn_control_about){.tenant = text_in(o, "tenant"),
                                     .program = text_in(o, "program"),
                                     .api = text_in(o, "api"),
                                     .platform = text_in(o, "platform"),
                                     .remote = json_is_true(json_object_get(o, "remote")),
                                     .secure = json_is_true(json_object_get(o, "secure")),
                                     .n_devices = (uint32_t)json_array_size(devices)};
    bool good = id && gn_control_parse_hex(id, id_bytes, sizeof id_bytes) && ret->tenant &&
                ret->program && ret->api && ret->platform &&
                number_in(o, "weight", UINT32_MAX, &weight) &&
                number_in(o, "need_bytes", INT64_MAX, &ret->need_bytes) &&
                number_in(o, "memory_limit_bytes", INT64_MAX, &ret->limit_bytes) &&
                json_array_size(devices) && json_array_size(devices) <= GN_CONTROL_MOVE_DEVICES;
    ret->id = (uint32_t)id_bytes[0] << 24 | (uint32_t)id_bytes[1] << 16 |
              (uint32_t)id_bytes[2] << 8 | id_bytes[3];
    ret->weight = (uint32_t)weight;
    for (uint32_t i = 0; good && i < ret->n_devices; i++)
        good = parse_device(json_array_get(devices, i), &ret->devices[i]);
    return good ? 0
                : gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                          "the request does not say well what is to come");
}

char *gn_control_parse_receive(const struct gn_control_source *source, const struct json_t *request)
{
    char hex[2 * GN_CONTROL_TICKET_BYTES + 1], name[2 * GN_CONTROL_TICKET_BYTES + 1],
        kernel[2 * GN_KERNEL_BYTES + 1];
    struct gn_control_receipt receipt = {.named = false};
    struct gn_control_about *a = malloc(sizeof *a);
    struct gn_error err = {{0}, {0}};
    bool short_of_memory = false;
    int rc = a ? parse_about(json_object_get(request, "about"), a, &err)
               : gn_fail(&err, ENOMEM, NULL, "out of memory");
    if (rc == 0) {
        rc = source->commands->receive(source->ctx, a, &receipt, &err);
        short_of_memory = rc == -ENOMEM;
    }
    free(a);
    if (rc)
        return gn_control_error_of_kind("it is not accepted there", &err,
                                        short_of_memory ? GN_CONTROL_KIND_MEMORY : NULL);
    gn_control_print_hex(receipt.ticket, sizeof receipt.ticket, hex);
    gn_control_print_hex(receipt.name, sizeof receipt.name, name);
    gn_control_print_hex(receipt.kernel, sizeof receipt.kernel, kernel);
    json_t *near = receipt.near[0] ? gn_json_string(receipt.near) : NULL;
    char *reply =
        gn_json_text(json_pack("{s:i,s:{s:s,s:s*,s:o*,s:s*}}", "version", GN_CONTROL_VERSION,
                               "receive", "ticket", hex, "name", receipt.named ? name : NULL,
                               "near", near, "kernel", near ? kernel : NULL),
                     0);
    explicit_bzero(&receipt, sizeof receipt);
    explicit_bzero(hex, sizeof hex);
    return reply;
}
