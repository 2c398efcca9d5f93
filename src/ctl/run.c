/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry run`: sets the environment by which an ICD loader finds Gantry and Gantry finds gantryd,
 * and executes the program in this process. The program's output, signals and exit status are
 * therefore its own. Main thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "ctl/ctl.h"

int gn_ctl_run(const struct gn_ctl_args *args)
{
    struct gn_error err = {{0}, {0}};
    const char *program = args->rest[0];
    const struct gn_client_run run = {.connect = args->connect,
                                      .tenant = args->tenant,
                                      .token_file = args->token_file,
                                      .mode = args->mode,
                                      .weight = args->weight,
                                      .memory_bytes = args->memory_bytes};
    if (!program) {
        gn_fail(&err, EINVAL, "write gantry run -- PROGRAM...", "no program is given");
        return gn_ctl_fail(args, GN_EXIT_RUN_FAILED, "", &err);
    }
    if (gn_client_set_environment(&run, &err))
        return gn_ctl_fail(args, GN_EXIT_RUN_FAILED, "", &err);
    execvp(program, args->rest);
    int code = errno;
    bool there = strchr(program, '/') && access(program, F_OK) == 0;
    if (code == ENOENT && !there) {
        gn_fail(&err, code, NULL, "there is no program %.300s", program);
        return gn_ctl_fail(args, GN_EXIT_RUN_NOT_FOUND, "", &err);
    }
    const char *fix =
        code == ENOENT ? "its interpreter may be missing"
        : code == EACCES
            ? "make it executable (chmod +x), and its directories searchable, for this user"
        : code == ENOEXEC ? "name a program of this machine, or begin a script with #!"
                          : NULL;
    gn_fail(&err, code, fix, "cannot run %.300s: %s", program, strerror(code));
    return gn_ctl_fail(args, GN_EXIT_RUN_NOT_EXECUTABLE, "", &err);
}
