/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry ls` and `gantry devices`: send a request to gantryd and print the reply as a table or as
 * JSON. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "client/client.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "ctl/table.h"

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static unsigned long long number_of(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? (unsigned long long)n : 0;
}

/* A number that is missing when it is not known. */
static void add_optional(struct gn_table *t, const json_t *o, const char *key,
                         void (*add)(struct gn_table *, unsigned long long))
{
    if (json_object_get(o, key))
        add(t, number_of(o, key));
    else
        gn_table_add(t, NULL);
}

/* In whole percents; a part above zero is never shown as 0%. */
static void add_part(struct gn_table *t, double part)
{
    char text[16];
    const int percent = (int)(part * 100 + 0.5);
    snprintf(text, sizeof text, "%d%%", percent);
    gn_table_add(t, part > 0 && percent == 0 ? "<1%" : text);
}

/* The share of the device on which the vGPU has the largest share. */
static void add_share(struct gn_table *t, const json_t *devices)
{
    double most = -1;
    json_t *item;
    size_t i;
    json_array_foreach(devices, i, item)
    {
        const json_t *share = json_object_get(item, "share");
        if (json_is_number(share) && json_number_value(share) > most)
            most = json_number_value(share);
    }
    if (most < 0 || most > 1)
        gn_table_add(t, NULL);
    else
        add_part(t, most);
}

/* The indices of the devices that the vGPU uses. */
static void add_devices(struct gn_table *t, const json_t *devices)
{
    char text[64] = "";
    json_t *item;
    size_t i, n = 0;
    json_array_foreach(devices, i, item)
    {
        if (json_is_true(json_object_get(item, "used")) && n < sizeof text - 24)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu", n ? "," : "",
                                  number_of(item, "index"));
    }
    gn_table_add(t, n ? text : NULL);
}

static void add_state(struct gn_table *t, const json_t *v)
{
    struct gn_moving m;
    char text[GN_MOVING_STATE_BYTES];
    if (gn_moving_read(v, &m)) {
        gn_moving_state(&m, ":", ":", text); /* without blanks */
        gn_table_add(t, text);
    } else {
        gn_table_add(t, text_of(v, "state"));
    }
}

/* "1.2G of 3G": the memory that is on the vGPU's devices, of the memory that it has there. */
static void add_resident(struct gn_table *t, const json_t *devices)
{
    unsigned long long resident = 0, memory = 0;
    bool placed = false;
    char text[48], sizes[2][16];
    json_t *item;
    size_t i;
    json_array_foreach(devices, i, item)
    {
        placed |= json_object_get(item, "placement_state") != NULL;
        resident += number_of(item, "resident_bytes");
        memory += number_of(item, "memory_bytes");
    }
    snprintf(text, sizeof text, "%s of %s", gn_ctl_format_size(resident, sizes[0]),
             gn_ctl_format_size(memory, sizes[1]));
    gn_table_add(t, placed ? text : NULL);
}

static bool has_placed_vgpu(const json_t *vgpus)
{
    json_t *v, *item;
    size_t i, k;
    json_array_foreach(vgpus, i, v)
    {
        json_array_foreach(json_object_get(v, "devices"), k, item)
        {
            if (json_object_get(item, "placement_state"))
                return true;
        }
    }
    return false;
}

static const struct gn_table_column vgpu_columns[] = {
    {"VGPU", false},  {"TENANT", false}, {"PID", true},    {"PROGRAM", false}, {"STATE", false},
    {"WEIGHT", true}, {"SHARE", true},   {"MEMORY", true}, {"LIMIT", true},    {"CALLS", true},
    {"WAITED", true}, {"LINK", false},   {"MODE", false},  {"DEVICE", false},  {"PLATFORM", false},
};
static const struct gn_table_column placed_vgpu_columns[] = {
    {"VGPU", false},    {"TENANT", false}, {"PID", true},     {"PROGRAM", false},
    {"STATE", false},   {"WEIGHT", true},  {"SHARE", true},   {"MEMORY", true},
    {"RESIDENT", true}, {"LIMIT", true},   {"CALLS", true},   {"WAITED", true},
    {"LINK", false},    {"MODE", false},   {"DEVICE", false}, {"PLATFORM", false},
};

static void add_vgpu(struct gn_table *t, const json_t *v, bool placed)
{
    gn_table_add(t, text_of(v, "id"));
    gn_table_add(t, text_of(v, "tenant"));
    add_optional(t, v, "pid", gn_table_add_number);
    gn_table_add(t, text_of(v, "program"));
    add_state(t, v);
    gn_table_add_number(t, number_of(v, "weight"));
    add_share(t, json_object_get(v, "devices"));
    gn_table_add_size(t, number_of(v, "memory_bytes"));
    if (placed)
        add_resident(t, json_object_get(v, "devices"));
    add_optional(t, v, "memory_limit_bytes", gn_table_add_size);
    gn_table_add_number(t, number_of(v, "calls"));
    gn_table_add_number(t, number_of(v, "sync_calls"));
    gn_table_add(t, text_of(v, "link"));
    gn_table_add(t, json_is_true(json_object_get(v, "driver_stays")) ? "remote+driver"
                                                                     : text_of(v, "mode"));
    add_devices(t, json_object_get(v, "devices"));
    gn_table_add(t, text_of(v, "platform"));
}

static const struct gn_table_column device_columns[] = {
    {"NUMBER", false}, {"DEVICE", false},   {"TYPE", false},   {"UNITS", true},
    {"CLOCK", true},   {"MEMORY", true},    {"BUFFER", true},  {"LEASED", true},
    {"VGPUS", true},   {"PLATFORM", false}, {"DRIVER", false},
};
static const struct gn_table_column placed_device_columns[] = {
    {"NUMBER", false},  {"DEVICE", false}, {"TYPE", false},  {"UNITS", true},     {"CLOCK", true},
    {"MEMORY", true},   {"BUFFER", true},  {"LEASED", true}, {"SLOTS", true},     {"FREE", true},
    {"RESERVED", true}, {"SWAP", true},    {"VGPUS", true},  {"PLATFORM", false}, {"DRIVER", false},
};

static bool has_placed_device(const json_t *devices)
{
    json_t *d;
    size_t i;
    json_array_foreach(devices, i, d)
    {
        if (json_object_get(d, "slots"))
            return true;
    }
    return false;
}

static void add_slots(struct gn_table *t, const json_t *d)
{
    char text[48], size[16];
    snprintf(text, sizeof text, "%llux%s", number_of(d, "slots"),
             gn_ctl_format_size(number_of(d, "slot_bytes"), size));
    gn_table_add(t, json_object_get(d, "slots") ? text : NULL);
    add_optional(t, d, "free_slots", gn_table_add_number);
    add_optional(t, d, "reserved_slots", gn_table_add_number);
    add_optional(t, d, "swap_bytes", gn_table_add_size);
}

static void add_device(struct gn_table *t, const json_t *d, bool placed)
{
    char type[64], clock[32];
    const char *is = text_of(d, "type"), *shown = text_of(d, "present_as");
    if (is && shown && strcmp(is, shown) != 0)
        snprintf(type, sizeof type, "%.20s-as-%.20s", is, shown);
    else
        snprintf(type, sizeof type, "%.40s", is ? is : "");
    snprintf(clock, sizeof clock, "%lluMHz", number_of(d, "clock_mhz"));
    gn_table_add_number(t, number_of(d, "index"));
    gn_table_add(t, text_of(d, "name"));
    gn_table_add(t, type);
    gn_table_add_number(t, number_of(d, "compute_units"));
    gn_table_add(t, number_of(d, "clock_mhz") ? clock : NULL);
    gn_table_add_size(t, number_of(d, "memory_bytes"));
    gn_table_add_size(t, number_of(d, "max_allocation_bytes"));
    gn_table_add_size(t, number_of(d, "leased_bytes"));
    if (placed)
        add_slots(t, d);
    gn_table_add_number(t, number_of(d, "vgpus"));
    gn_table_add(t, text_of(d, "platform"));
    gn_table_add(t, text_of(d, "driver_version"));
}

/*
 * Appends the items of a list of numbers or names, each preceded by `before`, separated by commas:
 * a cell holds no blanks.
 */
static void append_list(char *to, size_t n, const json_t *list, const char *before)
{
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        size_t have = strlen(to);
        if (json_is_string(item))
            snprintf(to + have, n - have, "%s%s%s", have ? "," : "", before,
                     json_string_value(item));
        else
            snprintf(to + have, n - have, "%s%s%lld", have ? "," : "", before,
                     (long long)json_integer_value(item));
    }
}

/* A cap or a floor. */
static void add_bound(struct gn_table *t, const json_t *bound)
{
    char text[24];
    if (!json_is_number(bound)) {
        gn_table_add(t, NULL);
        return;
    }
    snprintf(text, sizeof text, "%.6g%%", json_number_value(bound) * 100);
    gn_table_add(t, text);
}

/* "3", or "3/10" for a tenant with a limit of 10. */
static void add_vgpus(struct gn_table *t, const json_t *o)
{
    char text[48];
    snprintf(text, sizeof text, "%llu/%llu", number_of(o, "vgpus"), number_of(o, "vgpu_limit"));
    if (!json_object_get(o, "vgpu_limit"))
        *strchr(text, '/') = 0;
    gn_table_add(t, text);
}

static const struct gn_table_column tenant_columns[] = {
    {"TENANT", false}, {"WEIGHT", true}, {"CAP", true},    {"FLOOR", true},
    {"VGPUS", true},   {"MEMORY", true}, {"LEASED", true}, {"LIMIT", true},
    {"RESERVE", true}, {"WHO", false},   {"MODES", false}, {"DEVICES", false},
};

static void add_tenant(struct gn_table *t, const json_t *o, bool placed)
{
    (void)placed;
    char who[512] = "", modes[64] = "", devices[1024] = "";
    const json_t *uids = json_object_get(o, "uids");
    gn_table_add(t, text_of(o, "name"));
    gn_table_add_number(t, number_of(o, "weight"));
    add_bound(t, json_object_get(o, "cap"));
    add_bound(t, json_object_get(o, "floor"));
    add_vgpus(t, o);
    gn_table_add_size(t, number_of(o, "memory_bytes"));
    gn_table_add_size(t, number_of(o, "leased_bytes"));
    add_optional(t, o, "memory_limit_bytes", gn_table_add_size);
    add_optional(t, o, "reserve_bytes", gn_table_add_size);
    if (json_is_string(uids))
        snprintf(who, sizeof who, "any");
    append_list(who, sizeof who, uids, "uid:");
    append_list(who, sizeof who, json_object_get(o, "gids"), "gid:");
    if (json_is_true(json_object_get(o, "token")) && strlen(who) < sizeof who - 16)
        strcat(who, who[0] ? ",token" : "token");
    if (json_object_get(o, "socket") && strlen(who) < sizeof who - 8)
        strcat(who, who[0] ? ",socket" : "socket");
    append_list(modes, sizeof modes, json_object_get(o, "modes"), "");
    append_list(devices, sizeof devices, json_object_get(o, "devices"), "");
    gn_table_add(t, who);
    gn_table_add(t, modes);
    gn_table_add(t, devices[0] ? devices : "any");
}

struct listing {
    const char *request;
    const char *list; /* the key in the reply */
    const char *failure;
    const struct gn_table_column *columns;
    int n_columns;
    void (*add)(struct gn_table *, const json_t *, bool placed);
    /* Where device memory is placed. NULL: the table is the same. */
    bool (*has_placed)(const json_t *list);
    const struct gn_table_column *placed_columns;
    int n_placed_columns;
};

static int list(const struct gn_ctl_args *args, const struct listing *l)
{
    struct gn_error err = {{0}, {0}};
    json_t *reply = NULL, *item;
    struct gn_table t;
    size_t i;
    int rc = gn_client_ask(args->connect, l->request, &reply, &err);
    if (rc)
        return gn_ctl_fail(args, GN_EXIT_FAILED, l->failure, &err);
    if (!json_is_array(json_object_get(reply, l->list))) {
        json_decref(reply);
        gn_fail(&err, EPROTO, "use a gantry of gantryd's version", "gantryd's reply has no \"%s\"",
                l->list);
        return gn_ctl_fail(args, GN_EXIT_FAILED, l->failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    const bool placed = l->has_placed && l->has_placed(json_object_get(reply, l->list));
    gn_table_init(&t, placed ? l->placed_columns : l->columns,
                  placed ? l->n_placed_columns : l->n_columns);
    json_array_foreach(json_object_get(reply, l->list), i, item) l->add(&t, item, placed);
    rc = gn_table_print(&t);
    gn_table_fini(&t);
    /* On stderr: scripts read the table. */
    if (json_is_true(json_object_get(reply, "draining")))
        fprintf(stderr,
                "gantry %s: this gantryd is draining and accepts no new programs; gantry drain "
                "--undo ends that\n",
                args->command);
    json_decref(reply);
    if (rc) {
        gn_fail(&err, -rc, NULL, "out of memory");
        return gn_ctl_fail(args, GN_EXIT_FAILED, l->failure, &err);
    }
    return gn_ctl_flush(args);
}

int gn_ctl_list_tenants(const struct gn_ctl_args *args)
{
    static const struct listing l = {.request = "tenants",
                                     .list = "tenants",
                                     .failure = "cannot list the tenants",
                                     .columns = tenant_columns,
                                     .n_columns = GN_ARRAY_SIZE(tenant_columns),
                                     .add = add_tenant};
    return list(args, &l);
}

int gn_ctl_ls(const struct gn_ctl_args *args)
{
    static const struct listing l = {.request = "ls",
                                     .list = "vgpus",
                                     .failure = "cannot list the vGPUs",
                                     .columns = vgpu_columns,
                                     .n_columns = GN_ARRAY_SIZE(vgpu_columns),
                                     .add = add_vgpu,
                                     .has_placed = has_placed_vgpu,
                                     .placed_columns = placed_vgpu_columns,
                                     .n_placed_columns = GN_ARRAY_SIZE(placed_vgpu_columns)};
    return list(args, &l);
}

int gn_ctl_devices(const struct gn_ctl_args *args)
{
    static const struct listing l = {.request = "devices",
                                     .list = "devices",
                                     .failure = "cannot list the devices",
                                     .columns = device_columns,
                                     .n_columns = GN_ARRAY_SIZE(device_columns),
                                     .add = add_device,
                                     .has_placed = has_placed_device,
                                     .placed_columns = placed_device_columns,
                                     .n_placed_columns = GN_ARRAY_SIZE(placed_device_columns)};
    return list(args, &l);
}
