/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands and their help. The man pages in man/ say the same at length; a test compares the options.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"

#define CONNECT_HELP                                                                                         \
    "  --connect ADDR  where gantryd listens: unix:PATH. Otherwise $GANTRY_CONNECT,\n"                       \
    "                  $XDG_RUNTIME_DIR/gantry/gantry.sock if it is there, or\n"                             \
    "                  /run/gantry/gantry.sock\n"
#define JSON_HELP "  --json          print one JSON object instead, for programs\n"
#define HELP_HELP "  --help          print this\n"

const struct gn_ctl_command gn_ctl_commands[] = {
    {"run", "[OPTION]... [--] PROGRAM [ARGUMENT]...", "run a program on a vGPU",
     "Runs an OpenCL program, unchanged, with Gantry as its only OpenCL driver. Its\n"
     "output and its exit status are its own.\n"
     "\n"
     "  --tenant T      the tenant that the vGPU belongs to; otherwise $GANTRY_TENANT,\n"
     "                  or default\n"
     "  --weight N      the vGPU's weight inside its tenant, 1 to 1000000; otherwise 100\n"
     "  --memory SIZE   the vGPU's memory limit inside its tenant: a number with K, M,\n"
     "                  G or T (powers of 1024)\n"
     "  --mode remote   how the vGPU is hosted: by a worker process. The only mode of\n"
     "                  this version\n" CONNECT_HELP HELP_HELP "\n"
     "In this version weights and memory limits are recorded and shown by gantry ls,\n"
     "no more.\n"
     "\n"
     "Exit status: the program's; 128 + N as shells count it when signal N ended it;\n"
     "125 when Gantry failed, 126 when the program cannot be run, 127 when it is not\n"
     "found.\n"
     "\n"
     "Examples:\n"
     "  gantry run -- clinfo -l\n"
     "  gantry run --weight 200 --memory 2G -- hashcat -b\n"
     "  gantry run --connect unix:/tmp/g.sock -- clpeak --kernel-latency\n",
     GN_OPTION_CONNECT | GN_OPTION_RUN, -1, gn_ctl_run},
    {"ls", "[OPTION]...", "list the vGPUs: who uses the devices now",
     "Lists the vGPUs, one line each: id, tenant, the program's pid and name, state\n"
     "(running, idle or lost), weight, device memory held, limit, calls made, and of\n"
     "them those whose program waited for an answer.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry ls\n"
     "  gantry ls --json | jq '.vgpus[] | {id, program, calls}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_ls},
    {"devices", "[OPTION]...", "list the devices that gantryd offers",
     "Lists the devices that gantryd offers, one line each: name, type (\"cpu as gpu\":\n"
     "a CPU shown to programs as a GPU), compute units, clock, memory, the largest\n"
     "buffer, vGPUs that may use it, platform, the driver's version.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry devices\n"
     "  gantry devices --json | jq -r '.devices[].name'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_devices},
    {"doctor", "[OPTION]...", "check the installation and explain what is wrong",
     "Checks gantryd, this installation, the OpenCL loader, the drivers and the kernel.\n"
     "Each finding is a line: ok, warn (it works, but) or fail, and the way out. It\n"
     "changes nothing. The exit status is 1 when something fails.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry doctor\n"
     "  gantry doctor --connect unix:/tmp/g.sock\n"
     "  gantry doctor --json | jq '.findings[] | select(.status != \"ok\")'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_doctor},
    {"help", "[COMMAND]", "explain a command",
     "Prints what a command does, its options and examples; without a command, the list\n"
     "of them.\n"
     "\n" HELP_HELP "\n"
     "Examples:\n"
     "  gantry help\n"
     "  gantry help run\n",
     0, 1, gn_ctl_help},
    {.name = NULL},
};

const struct gn_ctl_command *gn_ctl_find(const char *name)
{
    for (const struct gn_ctl_command *c = gn_ctl_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

void gn_ctl_print_help(const struct gn_ctl_command *command)
{
    printf("usage: gantry %s %s\n\n%s", command->name, command->synopsis, command->details);
}

void gn_ctl_print_overview(void)
{
    printf("usage: gantry COMMAND [OPTION]...\n"
           "       gantry --help | --version\n"
           "\n"
           "Lets many OpenCL programs share devices. gantryd, the daemon, must be running.\n"
           "\n"
           "Commands:\n");
    for (const struct gn_ctl_command *c = gn_ctl_commands; c->name; c++)
        printf("  %-8s  %s\n", c->name, c->summary);
    printf("\n"
           "  --help          print this\n"
           "  --version       print the version\n"
           "\n"
           "Examples:\n"
           "  gantryd --socket /tmp/g.sock &\n"
           "  export GANTRY_CONNECT=unix:/tmp/g.sock\n"
           "  gantry run -- clinfo -l         a program, unchanged, on a vGPU\n"
           "  gantry ls                       who uses the devices now\n"
           "  gantry doctor                   when something does not work\n"
           "\n"
           "gantry help COMMAND explains a command; so does man gantry-COMMAND.\n");
}
