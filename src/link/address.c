/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of a gantryd, and the one that holds when none is given. Pure but for the environment and one
 * access(2). */
#include "link/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/gantry/gantry.sock"
#define USER_SOCKET   "/gantry/gantry.sock"

static int set_path(const char *prefix, const char *path, struct gn_address *ret, struct gn_error *err)
{
    size_t n = strlen(prefix), m = strlen(path);
    if (n + m > GN_ADDRESS_MAX_PATH)
        return gn_fail(err, ENAMETOOLONG, "use a shorter path",
                       "the socket path %s%s is too long: at most %d bytes fit", prefix, path,
                       GN_ADDRESS_MAX_PATH);
    memcpy(ret->path, prefix, n);
    memcpy(ret->path + n, path, m + 1);
    return 0;
}

int gn_address_parse(const char *text, struct gn_address *ret, struct gn_error *err)
{
    if (strncmp(text, "unix:", 5) == 0 && text[5])
        return set_path("", text + 5, ret, err);
    if (strncmp(text, "tcp:", 4) == 0)
        return gn_fail(err, EPROTONOSUPPORT, "use unix:PATH", "%s: tcp addresses are not supported yet",
                       text);
    return gn_fail(err, EINVAL, "write unix:PATH", "\"%s\" is not an address", text);
}

int gn_address_resolve(const char *text, struct gn_address *ret, struct gn_error *err)
{
    if (!text)
        text = getenv("GANTRY_CONNECT");
    if (text && *text)
        return gn_address_parse(text, ret, err);
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    if (xdg && xdg[0] == '/' && set_path(xdg, USER_SOCKET, ret, NULL) == 0 && access(ret->path, F_OK) == 0)
        return 0;
    return set_path("", SYSTEM_SOCKET, ret, err);
}

int gn_address_default_socket(unsigned uid, const char *xdg_runtime_dir, struct gn_address *ret,
                              struct gn_error *err)
{
    if (uid == 0)
        return set_path("", SYSTEM_SOCKET, ret, err);
    if (!xdg_runtime_dir || xdg_runtime_dir[0] != '/')
        return gn_fail(err, ENOENT, "give --socket PATH", "there is no XDG_RUNTIME_DIR to make a socket in");
    return set_path(xdg_runtime_dir, USER_SOCKET, ret, err);
}
