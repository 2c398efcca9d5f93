/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry: the command line of Gantry. A process runs one subcommand, which sends requests to
 * gantryd or examines the machine, and prints the result. commands.c lists the subcommands.
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "link/address.h"

static int n_commands(void)
{
    int n = 0;
    while (gn_ctl_commands[n].name)
        n++;
    return n;
}

static const char *command_name(int i)
{
    return gn_ctl_commands[i].name;
}

/* Reports an unknown command. With --json anywhere on the line this error is a JSON object, too. */
static int unknown(const char *word, const struct gn_ctl_args *args)
{
    struct gn_error err;
    char fix[128] = "gantry help lists the commands";
    const char *near = gn_ctl_nearest(word, command_name, n_commands());
    if (near && word[0] != '-')
        snprintf(fix, sizeof fix, "did you mean %s?", near);
    gn_fail(&err, EINVAL, fix,
            word[0] == '-' ? "unknown option %.100s" : "there is no command \"%.100s\"", word);
    return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
}

int gn_ctl_help(const struct gn_ctl_args *args)
{
    if (args->rest[0]) {
        const struct gn_ctl_command *c = gn_ctl_find(args->rest[0]);
        if (!c)
            return unknown(args->rest[0], args);
        gn_ctl_print_help(c);
    } else {
        gn_ctl_print_overview();
    }
    return gn_ctl_flush(args);
}

int main(int argc, char **argv)
{
    struct gn_ctl_args args = {.command = NULL};
    struct gn_error err = {{0}, {0}};
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        gn_fail(&err, EINVAL, "gantry help lists them", "no command is given");
        return gn_ctl_fail(&args, GN_EXIT_USAGE, "wrong usage", &err);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        gn_ctl_print_overview();
        return gn_ctl_flush(&args);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("gantry %s\n", GN_VERSION);
        return gn_ctl_flush(&args);
    }
    const struct gn_ctl_command *command = gn_ctl_find(argv[1]);
    bool json = false;
    for (int i = 2; i < argc && (!command || (command->options & GN_OPTION_JSON)); i++)
        json = json || strcmp(argv[i], "--json") == 0;
    if (!command) {
        args.json = json;
        return unknown(argv[1], &args);
    }
    struct gn_address address;
    int rc = gn_ctl_parse(command, argc - 1, argv + 1, &args, &err);
    if (rc == 0 && args.connect && !args.help)
        rc = gn_address_parse(args.connect, &address, &err);
    if (rc) {
        args.json = json;
        return gn_ctl_fail(&args, command->max_rest < 0 ? GN_EXIT_RUN_FAILED : GN_EXIT_USAGE,
                           "wrong usage", &err);
    }
    if (args.help) {
        gn_ctl_print_help(command);
        return gn_ctl_flush(&args);
    }
    return command->run(&args);
}
