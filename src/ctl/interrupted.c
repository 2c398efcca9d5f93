/* SPDX-License-Identifier: Apache-2.0 */
/* The message of a command that is interrupted while gantryd handles its request; see ctl.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "ctl/ctl.h"

/* Prepared in advance: a signal handler must not allocate memory. */
static char line[512], *object;

static void say(const char *text, int fd)
{
    const char *end = text + strlen(text);
    ssize_t n = 1;
    for (; text < end && n > 0; text += n)
        n = write(fd, text, (size_t)(end - text));
}

static void end(int number)
{
    (void)number;
    say(line, STDERR_FILENO);
    if (object)
        say(object, STDOUT_FILENO);
    _exit(GN_EXIT_FAILED);
}

void gn_ctl_when_interrupted(const struct gn_ctl_args *args, const char *what, const char *then,
                             const char *fix)
{
    const struct sigaction says = {.sa_handler = end};
    struct sigaction before;
    snprintf(line, sizeof line, "%sgantry %s: interrupted: %s; %s\n",
             isatty(STDERR_FILENO) ? "\r\033[K" : "", args->command, then, fix);
    char *text = args->json ? gn_control_error(what, then, fix) : NULL;
    if (text && asprintf(&object, "%s\n", text) < 0)
        object = NULL;
    free(text);
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &says, NULL);
}
