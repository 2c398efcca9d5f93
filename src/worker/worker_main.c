/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry-worker: the processes in which gantryd has drivers run, since it loads none itself. Only
 * gantryd starts it. main runs on the main thread, reads the first argument and never returns: each
 * part ends the process.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "worker/worker.h"

static int usage(void)
{
    fprintf(stderr, "gantry-worker: gantryd starts this program; it does nothing by itself\n");
    return 2;
}

/* Neither return nor exit(): some drivers crash in their exit handlers, and gantryd, which has its
 * answer, may kill this process meanwhile. */
static _Noreturn void end(int status)
{
    fflush(NULL);
    _exit(status);
}

/*
 * By default these signals end a process, and vGPUs with it; no part of Gantry sends them. Called
 * before a driver is loaded, so that a driver's own handler stays. Programs that a driver executes
 * ignore them, too.
 */
static void ignore_stray_signals(void)
{
    static const int stray[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof stray / sizeof stray[0]; i++)
        signal(stray[i], SIG_IGN);
}

int main(int argc, char **argv)
{
    int type;
    socklen_t n = sizeof type;
    if (argc < 2 || getsockopt(GN_WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
        type != SOCK_STREAM)
        return usage();
    gn_log_init("gantry-worker", GN_LOG_WARN);
    ignore_stray_signals();
    /* This process ends with gantryd, even when gantryd has ended before this line. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct pollfd parent = {.fd = GN_WORKER_SOCKET};
    if (poll(&parent, 1, 0) == 1)
        return 0;
    if (strcmp(argv[1], "--list-drivers") == 0 && argc == 2)
        end(gn_worker_list_drivers(GN_WORKER_SOCKET));
    if (strcmp(argv[1], "--probe") == 0 && argc == 4)
        end(gn_worker_probe(GN_WORKER_SOCKET, argv[2], argv[3]));
    if (strcmp(argv[1], "--walls") == 0 && argc == 3)
        end(gn_worker_try_walls(GN_WORKER_SOCKET, (enum gn_wall_mode)atoi(argv[2])));
    if (strcmp(argv[1], "--keep-cache") == 0 && argc == 6)
        end(gn_worker_keep_cache(argv[2], argv[3], argv[4], argv[5]));
    if (strcmp(argv[1], "--sweep-caches") == 0 && argc == 4)
        end(gn_worker_sweep_caches(argv[2], argv[3]));
    if (strcmp(argv[1], "--template") == 0 && argc == 5)
        end(gn_worker_template(GN_WORKER_SOCKET, argv[2], argv[3], (enum gn_wall_mode)atoi(argv[4]),
                               false, argv[1]));
    if (strcmp(argv[1], "--late-template") == 0 && argc == 5)
        end(gn_worker_template(GN_WORKER_SOCKET, argv[2], argv[3], (enum gn_wall_mode)atoi(argv[4]),
                               true, argv[1]));
    return usage();
}
