/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry migrate`: a running program's vGPU to another worker. */
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

int gn_ctl_migrate(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot move the vGPU";
    struct gn_control_wish wish = {.vgpu = args->rest[0],
                                   .to = args->rest[0] ? args->rest[1] : NULL,
                                   .drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS,
                                   .rounds = args->stop_and_copy ? 0
                                             : args->rounds      ? args->rounds
                                                                 : GN_CONTROL_ROUNDS,
                                   .bandwidth_bytes = args->bandwidth_bytes};
    struct gn_error err = {{0}, {0}};
    json_t *reply = NULL;
    if (!wish.vgpu || !wish.to) {
        gn_fail(&err, EINVAL, "write gantry migrate VGPU local; gantry ls lists the vGPUs", "which vGPU, and where to?");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    char *text = gn_control_move_request(&wish);
    int rc = text ? gn_ctl_ask_text(args->connect, text, &reply, &err) : gn_fail(&err, ENOMEM, NULL, "out of memory");
    free(text);
    const json_t *move = json_object_get(reply, "move");
    if (rc == 0 && !json_is_object(move))
        rc = gn_fail(&err, EPROTO, "use the gantry command that came with it", "gantryd's reply has no \"move\"");
    if (rc) {
        json_decref(reply);
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    const json_t *phases = json_object_get(move, "phases_ns"), *pages = json_object_get(move, "pages");
    printf("%s moved; it stood still for %.1f ms (drain %.1f, save %.1f, load to its end)\n",
           json_string_value(json_object_get(move, "id")), ms(move, "downtime_ns"), ms(phases, "drain"), ms(phases, "save"));
    printf("%lld of its %lld pages were sent ahead in %.1f ms, %lld in the stop\n", number(pages, "precopy"), number(pages, "total"),
           ms(move, "precopy_ns"), number(pages, "stop"));
    json_decref(reply);
    return gn_ctl_flush(args);
}
