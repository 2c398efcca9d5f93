/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses INI files into lines, sections, keys and values. gantryd calls it for its configuration,
 * and `gantry sim` for workloads, on their main threads. It never interprets a key. Only
 * gn_ini_read does I/O.
 */
#include "base/ini.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1u << 20)
#define MAX_LINE_BYTES 1024

int gn_ini_complain(struct gn_ini *ini, const char *fix, const char *what, const char *quoted)
{
    return gn_fail(ini->err, EBADMSG, fix, "%s:%d: %s \"%.200s\"", ini->path, ini->line, what,
                   quoted);
}

int gn_ini_pass_on(struct gn_ini *ini, const struct gn_error *inner)
{
    return gn_fail(ini->err, EBADMSG, inner->fix, "%s:%d: %.300s", ini->path, ini->line,
                   inner->what);
}

char *gn_ini_trim(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = 0;
    return s;
}

static int take_section(struct gn_ini *ini, char *line)
{
    size_t n = strlen(line);
    if (line[n - 1] != ']')
        return gn_ini_complain(ini, "close the section's name with ]", "malformed section", line);
    line[n - 1] = 0;
    return ini->section(ini, gn_ini_trim(line + 1));
}

static int take_line(struct gn_ini *ini, char *line)
{
    line = gn_ini_trim(line);
    if (!*line || *line == '#' || *line == ';')
        return 0;
    if (*line == '[')
        return take_section(ini, line);
    char *equals = strchr(line, '=');
    if (!equals || equals == line)
        return gn_ini_complain(ini, "write KEY = VALUE, [SECTION] or # COMMENT", "malformed line",
                               line);
    *equals = 0;
    const char *key = gn_ini_trim(line), *value = gn_ini_trim(equals + 1);
    if (!*value)
        return gn_ini_complain(ini, NULL, "no value for", key);
    return ini->key(ini, key, value);
}

int gn_ini_parse(struct gn_ini *ini, const char *text, size_t n)
{
    ini->line = 0;
    for (size_t at = 0; at < n;) {
        char line[MAX_LINE_BYTES];
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - (text + at)) : n - at;
        ini->line++;
        if (len >= sizeof line || memchr(text + at, 0, len))
            return gn_fail(ini->err, EBADMSG, NULL, "%s:%d: not a line of text", ini->path,
                           ini->line);
        memcpy(line, text + at, len);
        line[len] = 0;
        int rc = take_line(ini, line);
        if (rc)
            return rc;
        at += len + 1;
    }
    return 0;
}

int gn_ini_read(struct gn_ini *ini, const char *what)
{
    struct stat st;
    char *text = NULL;
    size_t n = 0;
    int rc = 0;
    int fd = gn_fd_open(ini->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        rc = gn_fail(ini->err, errno, "name a file that this user can read",
                     "cannot read the %s %s: %s", what, ini->path, strerror(errno));
    else if (!S_ISREG(st.st_mode) || st.st_size > (off_t)MAX_FILE_BYTES)
        rc = gn_fail(ini->err, EBADMSG, "name a plain file of that size",
                     "the %s %s is not a file of at most 1 MiB", what, ini->path);
    else if (!(text = malloc((size_t)st.st_size + 1)))
        rc = gn_fail(ini->err, ENOMEM, NULL, "out of memory");
    while (rc == 0 && n < (size_t)st.st_size) {
        ssize_t got = read(fd, text + n, (size_t)st.st_size - n);
        if (got < 0)
            rc = gn_fail(ini->err, errno, "name a file that this user can read",
                         "cannot read the %s %s: %s", what, ini->path, strerror(errno));
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (rc == 0)
        rc = gn_ini_parse(ini, text, n);
    free(text);
    if (fd >= 0)
        close(fd);
    return rc;
}
