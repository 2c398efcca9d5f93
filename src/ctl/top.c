/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry top`: sends requests to gantryd on one connection, once per frame of the live screen, or
 * twice for a single frame with --once. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/top.h"
#include "link/link.h"

#define DELAY_NS 1000000000u

static const char failure[] = "cannot show the vGPUs";

struct asker {
    const char *connect;
    struct gn_link *link; /* NULL: connect before the next request */
    json_t *root;         /* the JSON of the last sample */
};

static int ask_one(struct gn_link *link, const char *request, const char *list, json_t *root,
                   struct gn_error *err)
{
    char *text = gn_control_request(request);
    json_t *reply = NULL;
    int rc = text ? gn_client_ask_on(link, text, &reply, err)
                  : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    if (rc == 0 && !json_object_get(reply, list))
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply has no \"%s\"", list);
    if (rc == 0 && json_object_set(root, list, json_object_get(reply, list)))
        rc = gn_fail(err, ENOMEM, NULL, "out of memory");
    json_decref(reply);
    return rc;
}

static int ask(void *ctx, struct gn_top_sample *ret, struct gn_error *err)
{
    struct asker *a = ctx;
    json_decref(a->root);
    a->root = json_object();
    int rc = a->link ? 0 : gn_link_connect_control(a->connect, GN_ROLE_VIEW, &a->link, err);
    if (rc == 0)
        rc = ask_one(a->link, "devices", "devices", a->root, err);
    if (rc == 0)
        rc = ask_one(a->link, "tenants", "tenants", a->root, err);
    if (rc == 0)
        rc = ask_one(a->link, "policy", "policy", a->root, err);
    if (rc == 0)
        rc = ask_one(a->link, "ls", "vgpus", a->root, err);
    if (rc == 0 && gn_top_sample_read(a->root, gn_now_ns(), ret)) {
        gn_top_sample_fini(ret);
        rc = gn_fail(err, ENOMEM, NULL, "out of memory");
    }
    if (rc && a->link) {
        gn_link_close(a->link);
        a->link = NULL;
    }
    return rc;
}

/* ---- one frame */

static void wait_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* The terminal's width, or COLUMNS; 0: unlimited. */
static int width_of_stdout(void)
{
    struct winsize w;
    const char *columns = getenv("COLUMNS");
    if (columns && atoi(columns) > 0)
        return atoi(columns);
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static int print_frame(const struct gn_ctl_args *args, const struct gn_top_sample *now,
                       const struct gn_top_rows *rows)
{
    struct gn_top_view view = {.width = width_of_stdout(), .device = -1};
    struct gn_top_frame frame;
    int rc = gn_top_frame_make(now, rows, &view, &frame);
    for (int i = 0; rc == 0 && i < frame.n_lines; i++)
        puts(frame.lines[i].text);
    gn_top_frame_fini(&frame);
    if (rc) {
        struct gn_error err;
        gn_fail(&err, -rc, NULL, "out of memory");
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    }
    return gn_ctl_flush(args);
}

/* Returns the first item in which the string `key` equals `value`; NULL: none. */
static json_t *item_of(json_t *list, const char *key, const char *value)
{
    json_t *o;
    size_t i;
    json_array_foreach(list, i, o)
    {
        const char *has = json_string_value(json_object_get(o, key));
        if (has && strcmp(has, value) == 0)
            return o;
    }
    return NULL;
}

static void add_rates(json_t *vgpus, const struct gn_top_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct gn_top_row *r = &rows->rows[i];
        json_t *o = r->vgpu ? item_of(vgpus, "id", r->vgpu->id) : NULL;
        if (!o || r->calls < 0)
            continue;
        json_object_set_new(o, "calls_per_s", json_real(r->calls));
        json_object_set_new(o, "sync_calls_per_s", json_real(r->syncs));
        json_object_set_new(o, "waiting", json_real(r->waits));
    }
}

/* Adds the loads to the devices, which are in gantryd's order. */
static void add_loads(json_t *devices, const struct gn_top_sample *now,
                      const struct gn_top_rows *rows)
{
    for (uint32_t d = 0; d < now->n_devices; d++) {
        json_t *o = json_array_get(devices, d);
        json_object_set_new(o, "busy", json_real(rows->loads[d].busy));
        json_object_set_new(o, "turns_per_s", json_real(rows->loads[d].grants));
        json_object_set_new(o, "waiting", json_real(rows->loads[d].waiting));
        if (now->devices[d].n_slots)
            json_object_set_new(o, "copying", json_real(rows->loads[d].copying));
    }
}

/* Adds the tenants' shares of device d. */
static void add_shares(json_t *tenants, const struct gn_top_sample *now, uint32_t d,
                       const struct gn_top_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct gn_top_row *r = &rows->rows[i];
        json_t *o =
            r->vgpu || r->others || r->share < 0 ? NULL : item_of(tenants, "name", r->tenant);
        if (!o)
            continue;
        if (!json_object_get(o, "shares"))
            json_object_set_new(o, "shares", json_array());
        json_array_append_new(
            json_object_get(o, "shares"),
            json_pack("{s:I,s:s,s:f,s:f}", "index", (json_int_t)now->devices[d].index, "name",
                      now->devices[d].name, "share", r->share, "entitled", r->entitled));
    }
}

static int print_json(const struct gn_ctl_args *args, json_t *root,
                      const struct gn_top_sample *before, const struct gn_top_sample *now,
                      const struct gn_top_rows *rows)
{
    json_t *out = json_object();
    int rc = 0;
    json_object_set_new(out, "version", json_integer(GN_CONTROL_VERSION));
    json_object_set_new(out, "interval_ns", json_integer((json_int_t)(now->at_ns - before->at_ns)));
    add_rates(json_object_get(root, "vgpus"), rows);
    add_loads(json_object_get(root, "devices"), now, rows);
    for (uint32_t d = 0; rc == 0 && d < now->n_devices; d++) {
        struct gn_top_rows of;
        rc = gn_top_rows_make(before, now, (int)d, GN_TOP_BY_NAME, false, &of);
        if (rc == 0)
            add_shares(json_object_get(root, "tenants"), now, d, &of);
        gn_top_rows_fini(&of);
    }
    json_object_update(out, root);
    if (rc) {
        json_decref(out);
        out = NULL; /* reported as out of memory */
    }
    return gn_ctl_print_json(args, out);
}

static int show_once(const struct gn_ctl_args *args, struct asker *a, uint64_t delay_ns,
                     enum gn_top_order order)
{
    struct gn_top_sample before = {0}, now = {0};
    struct gn_top_rows rows = {0};
    struct gn_error err = {{0}, {0}};
    int rc = ask(a, &before, &err), status;
    if (rc == 0) {
        wait_ns(delay_ns);
        rc = ask(a, &now, &err);
    }
    if (rc == 0 && (rc = gn_top_rows_make(&before, &now, -1, order, false, &rows)))
        gn_fail(&err, -rc, NULL, "out of memory");
    if (rc)
        status = gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    else if (args->json)
        status = print_json(args, a->root, &before, &now, &rows);
    else
        status = print_frame(args, &now, &rows);
    gn_top_rows_fini(&rows);
    gn_top_sample_fini(&now);
    gn_top_sample_fini(&before);
    return status;
}

static int find_order(const char *name, enum gn_top_order *ret, struct gn_error *err)
{
    *ret = GN_TOP_BY_SHARE;
    for (int i = 0; name && i < GN_TOP_N_ORDERS; i++) {
        if (strcmp(name, gn_top_order_name(i)) == 0) {
            *ret = (enum gn_top_order)i;
            return 0;
        }
    }
    return name ? gn_fail(err, EINVAL, "write share, name, memory, calls, sync, wait or time",
                          "\"%.100s\" is not a sort key", name)
                : 0;
}

int gn_ctl_top(const struct gn_ctl_args *args)
{
    const uint64_t delay_ns = args->delay_ns ? args->delay_ns : DELAY_NS;
    struct gn_error err = {{0}, {0}};
    enum gn_top_order order;
    struct asker a = {.connect = args->connect};
    if (find_order(args->sort, &order, &err))
        return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
    int status = GN_EXIT_OK;
    if (gn_link_connect_control(a.connect, GN_ROLE_VIEW, &a.link, &err))
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    if (args->once || args->json)
        status = show_once(args, &a, delay_ns, order);
    else if (gn_top_screen(&(struct gn_top_source){.ctx = &a, .ask = ask}, delay_ns, order, &err))
        status = gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    json_decref(a.root);
    if (a.link)
        gn_link_close(a.link);
    return status;
}
