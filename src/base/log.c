/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes log lines. All of Gantry calls it, on any thread. It never blocks on anything but the
 * write of a line, and keeps errno.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};

/* gn_log_init sets these once, before threads start. */
static const char *log_name = "gantry";
static enum gn_log_level log_level = GN_LOG_NONE;
static int log_fd = STDERR_FILENO;
static void (*log_write)(const char *line, size_t n);

void gn_log_init(const char *process_name, enum gn_log_level fallback)
{
    const char *wanted = getenv("GANTRY_LOG");
    log_name = process_name;
    log_level = fallback;
    for (int i = GN_LOG_NONE; wanted && i <= GN_LOG_DEBUG; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            log_level = (enum gn_log_level)i;
}

void gn_log_to(int fd)
{
    log_fd = fd;
}

void gn_log_through(void (*write_line)(const char *line, size_t n))
{
    log_write = write_line;
}

int gn_log_enabled(enum gn_log_level level)
{
    return level <= log_level;
}

void gn_log_line(char *line, size_t n)
{
    gn_text_clean(line, n);
    line[n++] = '\n';
    if (log_write) {
        log_write(line, n);
        return;
    }
    if (write(log_fd, line, n) < 0) {
        /* There is no other place to report this error. */
    }
}

void gn_log(enum gn_log_level level, const char *fmt, ...)
{
    char line[1024];
    int saved = errno;
    if (!gn_log_enabled(level))
        return;
    int n = snprintf(line, sizeof line, "%s: %s: ", log_name, level_names[level]);
    va_list ap;
    va_start(ap, fmt);
    errno = saved; /* for %m */
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (m < 0)
        m = 0;
    n += m;
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    gn_log_line(line, (size_t)n);
    errno = saved;
}
