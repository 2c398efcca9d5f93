/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of a gantryd: parsing, printing, and the default when none is given. Programs, `gantry`
 * and gantryd call this, on any thread. Reads only its arguments, the environment and, for the
 * default, the existence of one socket file; it opens no connection.
 */
#include "link/address.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/gantry/gantry.sock"
#define USER_SOCKET   "/gantry/gantry.sock"
#define PROGRAM_END   ".sock"

static int set_path(const char *prefix, const char *path, struct gn_address *ret,
                    struct gn_error *err)
{
    size_t n = strlen(prefix), m = strlen(path);
    if (n + m > GN_ADDRESS_MAX_PATH)
        return gn_fail(err, ENAMETOOLONG, "use a shorter path",
                       "the socket path %s%s is too long: at most %d bytes fit", prefix, path,
                       GN_ADDRESS_MAX_PATH);
    ret->tcp = false;
    memcpy(ret->path, prefix, n);
    memcpy(ret->path + n, path, m + 1);
    return 0;
}

static int parse_tcp(const char *text, const char *at, struct gn_address *ret, struct gn_error *err)
{
    const char *host = at, *end = at[0] == '[' ? strchr(at, ']') : strrchr(at, ':'), *colon = end;
    if (at[0] == '[') {
        host++;
        colon = end ? end + 1 : NULL;
    }
    char *after = NULL;
    unsigned long port = colon && *colon == ':' && colon[1] >= '0' && colon[1] <= '9'
                             ? strtoul(colon + 1, &after, 10)
                             : ULONG_MAX;
    size_t n = end ? (size_t)(end - host) : 0;
    /* Without brackets, a second colon (an IPv6 address) would make the port ambiguous. */
    if (port > UINT16_MAX || *after || !n || n > GN_ADDRESS_MAX_HOST ||
        (at[0] != '[' && memchr(host, ':', n)))
        return gn_fail(err, EINVAL, "write tcp:HOST:PORT, an IPv6 address in brackets",
                       "\"%s\" is not an address", text);
    ret->tcp = true;
    ret->port = (uint16_t)port;
    memcpy(ret->host, host, n);
    ret->host[n] = 0;
    ret->path[0] = 0;
    return 0;
}

int gn_address_parse(const char *text, struct gn_address *ret, struct gn_error *err)
{
    if (strncmp(text, "unix:", 5) == 0 && text[5])
        return set_path("", text + 5, ret, err);
    if (strncmp(text, "tcp:", 4) == 0)
        return parse_tcp(text, text + 4, ret, err);
    return gn_fail(err, EINVAL, "write unix:PATH or tcp:HOST:PORT", "\"%s\" is not an address",
                   text);
}

void gn_address_print(const struct gn_address *a, char ret[static GN_ADDRESS_TEXT_BYTES])
{
    bool brackets = strchr(a->host, ':') != NULL;
    if (a->tcp)
        snprintf(ret, GN_ADDRESS_TEXT_BYTES, "tcp:%s%s%s:%u", brackets ? "[" : "", a->host,
                 brackets ? "]" : "", a->port);
    else
        snprintf(ret, GN_ADDRESS_TEXT_BYTES, "unix:%s", a->path);
}

int gn_address_resolve(const char *text, struct gn_address *ret, struct gn_error *err)
{
    if (!text)
        text = getenv("GANTRY_CONNECT");
    if (text && *text)
        return gn_address_parse(text, ret, err);
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    if (xdg && xdg[0] == '/' && set_path(xdg, USER_SOCKET, ret, NULL) == 0 &&
        access(ret->path, F_OK) == 0)
        return 0;
    return set_path("", SYSTEM_SOCKET, ret, err);
}

int gn_address_of_role(const char *path, enum gn_role role,
                       char ret[static GN_ADDRESS_MAX_PATH + 1], struct gn_error *err)
{
    static const char *const ends[GN_ROLE_N] = {PROGRAM_END, ".view", ".control"};
    const size_t n = strlen(path), n_end = strlen(PROGRAM_END);
    const bool ends_so = n > n_end && strcmp(path + n - n_end, PROGRAM_END) == 0;
    const int n_stem = (int)(ends_so ? n - n_end : n);
    const char *end = role == GN_ROLE_PROGRAM && !ends_so ? "" : ends[role];
    if ((size_t)snprintf(ret, GN_ADDRESS_MAX_PATH + 1, "%.*s%s", n_stem, path, end) >
        GN_ADDRESS_MAX_PATH)
        return gn_fail(err, ENAMETOOLONG, "use a shorter path",
                       "the socket path %.*s%s is too long: at most %d bytes fit", n_stem, path,
                       end, GN_ADDRESS_MAX_PATH);
    return 0;
}

int gn_address_default_socket(unsigned uid, const char *xdg_runtime_dir, struct gn_address *ret,
                              struct gn_error *err)
{
    if (uid == 0)
        return set_path("", SYSTEM_SOCKET, ret, err);
    if (!xdg_runtime_dir || xdg_runtime_dir[0] != '/')
        return gn_fail(err, ENOENT, "give --socket PATH",
                       "there is no XDG_RUNTIME_DIR to make a socket in");
    return set_path(xdg_runtime_dir, USER_SOCKET, ret, err);
}
