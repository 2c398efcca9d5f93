/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_ADDRESS_H
#define GN_LINK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/role.h"

/* The longest path that a Unix socket's address holds, without its NUL. */
#define GN_ADDRESS_MAX_PATH 107

#define GN_ADDRESS_MAX_HOST 255

/* Where a gantryd listens; a bare absolute path is not an address. */
struct gn_address {
    bool tcp;
    char path[GN_ADDRESS_MAX_PATH + 1]; /* of a Unix socket */
    char host[GN_ADDRESS_MAX_HOST + 1]; /* tcp: a name or an address, without brackets */
    uint16_t port;
};

/* "unix:PATH", "tcp:HOST:PORT" (an IPv6 address stands in brackets). 0, -EINVAL (not an address),
 * -ENAMETOOLONG. */
int gn_address_parse(const char *text, struct gn_address *ret, struct gn_error *err);

/* The room that every address needs as text, its NUL included. */
#define GN_ADDRESS_TEXT_BYTES (sizeof("tcp:[]:65535") + GN_ADDRESS_MAX_HOST)

/* The address as gn_address_parse takes it. */
void gn_address_print(const struct gn_address *a, char ret[static GN_ADDRESS_TEXT_BYTES]);

/* A given address, else $GANTRY_CONNECT, else $XDG_RUNTIME_DIR/gantry/gantry.sock if there, else
 * /run/gantry/gantry.sock. `text` may be NULL. Reads the environment; errors as gn_address_parse.
 */
int gn_address_resolve(const char *text, struct gn_address *ret, struct gn_error *err);

/*
 * The socket for a role beside the program socket at `path`: X.sock has X.view and X.control, any
 * other X has X.view and X.control too. 0, or -ENAMETOOLONG.
 */
int gn_address_of_role(const char *path, enum gn_role role,
                       char ret[static GN_ADDRESS_MAX_PATH + 1], struct gn_error *err);

/* Where a gantryd without --socket listens: /run/gantry/gantry.sock for root, else under
 * $XDG_RUNTIME_DIR. */
int gn_address_default_socket(unsigned uid, const char *xdg_runtime_dir, struct gn_address *ret,
                              struct gn_error *err);

#endif
