/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How subcommands report: results on stdout, one sentence on stderr for an error, and the object of
 * --json.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/text.h"

int gn_ctl_fail(const struct gn_ctl_args *args, int status, const char *what,
                const struct gn_error *err)
{
    char line[sizeof *err + 64];
    snprintf(line, sizeof line, "gantry%s%s: %s%s%s", args->command ? " " : "",
             args->command ? args->command : "", err->what, err->fix[0] ? "; " : "", err->fix);
    /* The text may come from a worker or from another machine. */
    char *plain = gn_text_printable(line);
    fprintf(stderr, "%s\n", plain ? plain : "gantry: out of memory");
    free(plain);
    if (args->json) {
        char *object = gn_control_error(what, err->what, err->fix);
        if (object)
            puts(object);
        free(object);
        fflush(stdout);
    }
    return status;
}

int gn_ctl_flush(const struct gn_ctl_args *args)
{
    struct gn_error err;
    if (!ferror(stdout) && fflush(stdout) == 0)
        return 0;
    gn_fail(&err, errno, NULL, "cannot write the output: %s", strerror(errno));
    /* With --json an error goes to stdout, too; stdout has just failed. */
    struct gn_ctl_args quiet = {.command = args->command};
    return gn_ctl_fail(&quiet, GN_EXIT_FAILED, "", &err);
}

const char *gn_ctl_id_of(const json_t *o)
{
    const char *id = json_string_value(json_object_get(o, "id"));
    return id && strspn(id, "0123456789abcdef") == strlen(id) ? id : "?";
}

int gn_ctl_print_json(const struct gn_ctl_args *args, json_t *root)
{
    char *text =
        root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(root);
    if (!text) {
        struct gn_error err;
        gn_fail(&err, ENOMEM, NULL, "out of memory");
        return gn_ctl_fail(args, GN_EXIT_FAILED, "cannot make the output", &err);
    }
    puts(text);
    free(text);
    return gn_ctl_flush(args);
}
