/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_ADDRESS_H
#define GN_LINK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/role.h"

/* The longest path of a Unix socket (sun_path), without its NUL. */
#define GN_ADDRESS_MAX_PATH 107

#define GN_ADDRESS_MAX_HOST 255

/* Where a gantryd listens. */
struct gn_address {
    bool tcp;
    char path[GN_ADDRESS_MAX_PATH + 1]; /* of a Unix socket */
    char host[GN_ADDRESS_MAX_HOST + 1]; /* tcp: a name or a numeric address, without brackets */
    uint16_t port;
};

/*
 * Parses "unix:PATH" or "tcp:HOST:PORT"; an IPv6 address stands in brackets, and a bare path is
 * refused. 0, -EINVAL (not an address) or -ENAMETOOLONG.
 */
int gn_address_parse(const char *text, struct gn_address *ret, struct gn_error *err);

/* Large enough for any address as text, including its NUL. */
#define GN_ADDRESS_TEXT_BYTES (sizeof("tcp:[]:65535") + GN_ADDRESS_MAX_HOST)

/* Writes the address in the form that gn_address_parse accepts. */
void gn_address_print(const struct gn_address *a, char ret[static GN_ADDRESS_TEXT_BYTES]);

/*
 * Chooses an address: `text` unless it is NULL or empty, else $GANTRY_CONNECT, else
 * $XDG_RUNTIME_DIR/gantry/gantry.sock if that file exists, else /run/gantry/gantry.sock. Errors as
 * gn_address_parse.
 */
int gn_address_resolve(const char *text, struct gn_address *ret, struct gn_error *err);

/*
 * The path of the socket for a role, in the same directory as the program socket at `path`: for
 * X.sock these are X.view and X.control; for a path X without that ending, too. 0 or -ENAMETOOLONG.
 */
int gn_address_of_role(const char *path, enum gn_role role,
                       char ret[static GN_ADDRESS_MAX_PATH + 1], struct gn_error *err);

/*
 * The socket of a gantryd that is started without --socket: /run/gantry/gantry.sock for root, else
 * gantry/gantry.sock under $XDG_RUNTIME_DIR; -ENOENT without that variable.
 */
int gn_address_default_socket(unsigned uid, const char *xdg_runtime_dir, struct gn_address *ret,
                              struct gn_error *err);

#endif
