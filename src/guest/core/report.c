/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to the program's stderr: the reason why Gantry gives the program no vGPU, which an ICD
 * loader does not pass on, and problems for which there is no error code. Called on threads of the
 * program and of Gantry, with any lock of an API's front end held. Never waits, raises no signal,
 * and opens no descriptor.
 */
#include "guest/core/report.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/address.h"

#define CONFIGURATION "/etc/gantry"
#define VARIABLES     "GANTRY_"
#define MOST_LINES    8

extern char **environ;

/*
 * Whether the user expects Gantry here. Its ICD may be installed on machines that do not use it;
 * there, a program that finds no gantryd gets no message.
 */
static bool is_gantry_expected(void)
{
    struct gn_address address;
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, VARIABLES, strlen(VARIABLES)) == 0)
            return true;
    return access(CONFIGURATION, F_OK) == 0 || (gn_address_resolve(NULL, &address, NULL) == 0 &&
                                                !address.tcp && access(address.path, F_OK) == 0);
}

/* Does not wait for a reader: a line that does not fit is lost. */
static ssize_t write_at_once(const char *line, size_t n)
{
    struct iovec iov = {(void *)(uintptr_t)line, n};
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct stat st;
    if (fstat(STDERR_FILENO, &st) < 0)
        return -1;
    if (S_ISSOCK(st.st_mode))
        return send(STDERR_FILENO, line, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISREG(st.st_mode))
        return write(STDERR_FILENO, line, n);
    ssize_t done = pwritev2(STDERR_FILENO, &iov, 1, -1, RWF_NOWAIT);
    if (done >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != ESPIPE))
        return done;
    /* A descriptor that polls as writable accepts a line at once. */
    return poll(&p, 1, 0) == 1 && p.revents == POLLOUT ? write(STDERR_FILENO, line, n) : -1;
}

/* Suppresses SIGPIPE and SIGXFSZ, which would end the program. */
static void write_quietly(const char *line, size_t n)
{
    const int saved = errno;
    sigset_t raised, before, pending;
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &raised, &before);
    if (write_at_once(line, n) < 0) {
        const int number = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
        sigemptyset(&raised);
        if (number && !sigismember(&pending, number)) {
            sigaddset(&raised, number);
            (void)sigtimedwait(&raised, NULL, &(struct timespec){0});
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

void gn_report(const char *format, ...)
{
    static _Atomic unsigned n_lines;
    char line[sizeof(struct gn_error) + 16];
    const char *log = getenv("GANTRY_LOG");
    va_list list;
    if ((log && strcmp(log, "none") == 0) ||
        atomic_fetch_add_explicit(&n_lines, 1, memory_order_relaxed) >= MOST_LINES)
        return;
    size_t n = (size_t)snprintf(line, sizeof line, "gantry: ");
    va_start(list, format);
    (void)vsnprintf(line + n, sizeof line - n - 1, format, list);
    va_end(list);
    n = strlen(line);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[n++] = '\n';
    write_quietly(line, n);
}

void gn_session_report(const struct gn_error *err)
{
    static _Atomic bool said;
    if (is_gantry_expected() && !atomic_exchange_explicit(&said, true, memory_order_relaxed))
        gn_report("%s%s%s", err->what, err->fix[0] ? "; " : "", err->fix);
}
