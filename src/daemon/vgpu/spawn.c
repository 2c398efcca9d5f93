/* SPDX-License-Identifier: Apache-2.0 */
/* Starts gantry-worker as a probe or a template. gantryd's main thread. */
#include "daemon/vgpu/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKER_SOCKET 3 /* gantry-worker's convention */

static struct rlimit first_limit;

void gn_raise_descriptor_limit(void)
{
    if (getrlimit(RLIMIT_NOFILE, &first_limit) < 0)
        return;
    struct rlimit more = {.rlim_cur = first_limit.rlim_max, .rlim_max = first_limit.rlim_max};
    /* With fewer descriptors gantryd serves fewer programs, and says so when it refuses one. */
    (void)setrlimit(RLIMIT_NOFILE, &more);
}

int gn_worker_find(char *ret_path, size_t n, struct gn_error *err)
{
    static const char *const places[] = {"../libexec/gantry/gantry-worker",
                                         "../worker/gantry-worker"};
    const char *given = getenv("GANTRY_WORKER");
    char self[4096];
    if (given && *given) {
        if ((size_t)snprintf(ret_path, n, "%s", given) < n && access(ret_path, X_OK) == 0)
            return 0;
        return gn_fail(err, ENOENT, "correct GANTRY_WORKER",
                       "cannot run %s, which GANTRY_WORKER names", given);
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0)
        return gn_fail(err, errno, NULL, "cannot read /proc/self/exe: %s", strerror(errno));
    self[len] = 0;
    *(strrchr(self, '/') + 1) = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if ((size_t)snprintf(ret_path, n, "%s%s", self, places[i]) < n &&
            access(ret_path, X_OK) == 0)
            return 0;
    return gn_fail(err, ENOENT, "install Gantry as a whole",
                   "gantry-worker is not where it belongs, %s%s", self, places[0]);
}

/* Between fork and exec. */
static _Noreturn void become(const char *path, char *const argv[], int socket)
{
    sigset_t none;
    setsid(); /* a terminal's Ctrl-C is for gantryd, which ends the rest in order */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (first_limit.rlim_cur)
        (void)setrlimit(RLIMIT_NOFILE, &first_limit);
    int null = open("/dev/null", O_RDWR);
    /* Descriptors and signals that are for gantryd alone. */
    unsetenv("NOTIFY_SOCKET");
    unsetenv("GANTRY_TOKEN");
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(127);
    /* dup2 onto itself would leave close-on-exec set. */
    if (socket == WORKER_SOCKET ? fcntl(socket, F_SETFD, 0) < 0 : dup2(socket, WORKER_SOCKET) < 0)
        _exit(127);
    close_range(WORKER_SOCKET + 1, ~0u, 0);
    execv(path, argv);
    _exit(127);
}

int gn_worker_spawn(const char *path, char *const argv[], enum gn_wall_mode walls, int *ret_socket,
                    pid_t *ret_pid, struct gn_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    pid_t pid = gn_wall_spawn(walls);
    if (pid == 0)
        become(path, argv, ends[1]);
    int code = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return gn_fail(err, code, NULL, "cannot start %s: %s", path, strerror(code));
    }
    *ret_socket = ends[0];
    *ret_pid = pid;
    return 0;
}
