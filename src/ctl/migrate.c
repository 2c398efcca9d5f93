/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry migrate` and `gantry mode`: a running program's vGPU to another host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "ctl/ctl.h"

static double ms(const json_t *move, const char *key)
{
    return (double)json_integer_value(json_object_get(move, key)) / 1e6;
}

static long long number(const json_t *of, const char *key)
{
    return (long long)json_integer_value(json_object_get(of, key));
}

static struct gn_control_wish wish_of(const struct gn_ctl_args *args)
{
    return (struct gn_control_wish){.vgpu = args->rest[0],
                                    .to = args->rest[0] ? args->rest[1] : NULL,
                                    .drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS,
                                    .rounds = args->stop_and_copy ? 0
                                              : args->rounds      ? args->rounds
                                                                  : GN_CONTROL_ROUNDS,
                                    .bandwidth_bytes = args->bandwidth_bytes};
}

static int move(const struct gn_ctl_args *args, const struct gn_control_wish *wish, const char *failure, const char *done)
{
    struct gn_error err = {{0}, {0}};
    json_t *reply = NULL;
    char *text = gn_control_move_request(wish);
    int rc = text ? gn_ctl_ask_text(args->connect, text, &reply, &err) : gn_fail(&err, ENOMEM, NULL, "out of memory");
    free(text);
    const json_t *moved = json_object_get(reply, "move");
    if (rc == 0 && !json_is_object(moved))
        rc = gn_fail(&err, EPROTO, "use the gantry command that came with it", "gantryd's reply has no \"move\"");
    if (rc) {
        json_decref(reply);
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    const json_t *phases = json_object_get(moved, "phases_ns"), *pages = json_object_get(moved, "pages");
    printf("%s %s; it stood still for %.1f ms (drain %.1f, save %.1f, load to its end)\n",
           json_string_value(json_object_get(moved, "id")), done, ms(moved, "downtime_ns"), ms(phases, "drain"), ms(phases, "save"));
    printf("%lld of its %lld pages were sent ahead in %.1f ms, %lld in the stop\n", number(pages, "precopy"), number(pages, "total"),
           ms(moved, "precopy_ns"), number(pages, "stop"));
    json_decref(reply);
    return gn_ctl_flush(args);
}

int gn_ctl_migrate(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot move the vGPU";
    const struct gn_control_wish wish = wish_of(args);
    struct gn_error err;
    if (!wish.vgpu || !wish.to) {
        gn_fail(&err, EINVAL, "write gantry migrate VGPU local; gantry ls lists the vGPUs", "which vGPU, and where to?");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, "moved");
}

int gn_ctl_mode(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot switch the vGPU";
    const struct gn_control_wish wish = wish_of(args);
    struct gn_error err;
    if (!wish.vgpu || !wish.to || (strcmp(wish.to, "remote") != 0 && strcmp(wish.to, "passthrough") != 0)) {
        gn_fail(&err, EINVAL, "write gantry mode VGPU remote, or gantry mode VGPU passthrough; gantry ls lists the vGPUs",
                "which vGPU, and which mode?");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, wish.to);
}
