/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry migrate` and `gantry mode`: moves a running program's vGPU to another gantryd or into
 * another mode.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "client/tokens.h"
#include "link/address.h"
#include "link/link.h"

static double ms(const json_t *move, const char *key)
{
    return (double)json_integer_value(json_object_get(move, key)) / 1e6;
}

static long long number(const json_t *of, const char *key)
{
    return (long long)json_integer_value(json_object_get(of, key));
}

static int move_here(struct gn_link *here, const struct gn_control_wish *wish, json_t **ret,
                     struct gn_error *err)
{
    char *text = gn_control_move_request(wish);
    int rc =
        text ? gn_client_ask_on(here, text, ret, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return rc;
}

static int move(const struct gn_ctl_args *args, const struct gn_control_wish *wish,
                const char *failure, const char *done)
{
    struct gn_error err = {{0}, {0}};
    struct gn_link *here = NULL;
    json_t *reply = NULL;
    struct gn_client_tokens tokens;
    int rc = gn_client_tokens_read(args->token_files.items, args->token_files.n, &tokens, &err);
    if (!rc)
        rc = gn_link_connect_control(args->connect, GN_ROLE_CONTROL, &here, &err);
    if (!rc) {
        const bool away = strchr(wish->to, ':') != NULL;
        gn_ctl_when_interrupted(
            args, failure,
            away ? "gantryd completes or aborts the migration" : "gantryd continues the migration",
            away ? "gantry ls at both shows where the vGPU is" : "gantry ls shows its progress");
        gn_link_set_patience(here, -1); /* gantryd has its own timeout */
        struct gn_ctl_watch *watch = gn_ctl_watch_start(args, wish->vgpu);
        rc = away ? gn_ctl_migrate_outbound(here, wish, &tokens, &reply, &err)
                  : move_here(here, wish, &reply, &err);
        gn_ctl_watch_end(watch);
        gn_link_close(here);
    }
    gn_client_tokens_forget(&tokens);
    const json_t *moved = json_object_get(reply, "move");
    if (rc == 0 && !json_is_object(moved))
        rc = gn_fail(&err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply has no \"move\"");
    if (rc) {
        json_decref(reply);
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    const json_t *phases = json_object_get(moved, "phases_ns"),
                 *pages = json_object_get(moved, "pages");
    printf("%s %s; it was paused for %.1f ms (drain %.1f, save %.1f, then load)\n",
           gn_ctl_id_of(moved), done, ms(moved, "downtime_ns"), ms(phases, "drain"),
           ms(phases, "save"));
    /* total is 0 when no pages had to be sent. */
    if (number(pages, "total"))
        printf("%lld of its %lld pages were sent before the stop in %.1f ms, %lld after it\n",
               number(pages, "precopy"), number(pages, "total"), ms(moved, "precopy_ns"),
               number(pages, "stop"));
    json_decref(reply);
    return gn_ctl_flush(args);
}

int gn_ctl_migrate(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot move the vGPU";
    struct gn_control_wish wish = gn_ctl_move_wish(args);
    wish.vgpu = args->rest[0];
    wish.to = wish.vgpu ? args->rest[1] : NULL;
    struct gn_error err;
    static const char fix[] =
        "write gantry migrate VGPU local, unix:PATH or tcp:HOST:PORT; gantry ls lists the vGPUs";
    struct gn_address a;
    if (!wish.vgpu || !*wish.vgpu || !wish.to) {
        gn_fail(&err, EINVAL, fix,
                wish.vgpu && *wish.vgpu ? "no destination is given" : "no vGPU is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    if (strcmp(wish.to, "local") != 0 && gn_address_parse(wish.to, &a, &err)) {
        gn_fail(&err, EINVAL, fix, "\"%.100s\" is not a destination", wish.to);
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    if (wish.device && strcmp(wish.to, "local") != 0) {
        gn_fail(&err, EINVAL, "write gantry migrate VGPU local --device NAME",
                "--device needs the destination local");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, "moved");
}

int gn_ctl_mode(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot switch the vGPU";
    struct gn_control_wish wish = gn_ctl_move_wish(args);
    wish.vgpu = args->rest[0];
    wish.to = wish.vgpu ? args->rest[1] : NULL;
    struct gn_error err;
    const bool named = wish.vgpu && *wish.vgpu;
    if (!named || !wish.to ||
        (strcmp(wish.to, "remote") != 0 && strcmp(wish.to, "passthrough") != 0)) {
        gn_fail(
            &err, EINVAL,
            "write gantry mode VGPU remote, or gantry mode VGPU passthrough; gantry ls lists the "
            "vGPUs",
            !named     ? "no vGPU is given"
            : !wish.to ? "no mode is given"
                       : "\"%.100s\" is not a mode",
            wish.to);
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, wish.to);
}
