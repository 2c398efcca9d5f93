/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_SOCKETS_H
#define GN_DAEMON_NET_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/list.h"
#include "daemon/net/listener.h"
#include "daemon/loop.h"
#include "link/role.h"

/*
 * gantryd's Unix sockets: the program socket at the path of --socket, beside it the sockets for
 * viewers and for operators, and below it, at tenants/NAME/gantry.sock, one for each tenant that is
 * configured to have one. A connection gets its role from the socket that accepted it, and its
 * tenant too if that is a tenant's socket. gantryd's thread only.
 */
struct gn_daemon;
struct gn_tenant;

struct gn_socket {
    struct gn_corpse corpse; /* used for tenants' sockets, which are allocated */
    struct gn_daemon *daemon;
    struct gn_source source; /* uses the listener's descriptor */
    struct gn_listener at;
    enum gn_role role;
    struct gn_tenant *tenant; /* the tenant of its peers; NULL: a peer names its tenant */
    /* too many connections or descriptors: accepts none until a connection or a vGPU has ended */
    bool paused;
};

struct gn_sockets {
    struct gn_socket of[GN_ROLE_N];
    bool paused; /* at least one socket is, tenants' sockets included */
    /* closed to accept an operator's connection when no descriptor is left; -1: closed at the
     * moment */
    int spare_fd;
};

/* Call before any other function of this struct. */
void gn_sockets_init(struct gn_sockets *s, struct gn_daemon *d);
/* Binds all sockets but the tenants' under temporary names: programs cannot reach them yet. path:
 * of the program socket. 0 or -errno. */
int gn_sockets_open(struct gn_sockets *s, const char *path, bool make_dir, struct gn_error *err);
/* Creates the tenants' sockets, removes the folders of former tenants, starts to accept, and
 * renames all sockets into place, the program socket last: once it exists, all do. 0 or -errno. */
int gn_sockets_publish(struct gn_sockets *s, struct gn_error *err);
/* Sets the mode of the program socket. others: every user of the machine may connect. 0 or
 * -errno. */
int gn_sockets_set_access(struct gn_sockets *s, bool others, struct gn_error *err);
/* pause: the socket accepts no connections until gn_sockets_resume(), which enables all sockets and
 * reopens the spare descriptor. */
void gn_sockets_pause(struct gn_sockets *s, struct gn_socket *which);
void gn_sockets_resume(struct gn_sockets *s);
void gn_socket_resume(struct gn_socket *it);
/* Closes the spare descriptor. Returns false if it is closed already. */
bool gn_sockets_use_spare(struct gn_sockets *s);
/* Removes the sockets from the file system and closes them. Tenants' folders stay, so that
 * containers that mount them reach the sockets of the next gantryd. May be called twice. */
void gn_sockets_close(struct gn_sockets *s);
/* The path of the program socket as it was given; "" when there is none. */
const char *gn_sockets_path(const struct gn_sockets *s);

/*
 * tenant_sockets.c. open: creates the tenant's socket, accepting and in place; the tenant must not
 * have one. 0, or -errno and sets err. close: also removes its folder, so that a container that
 * still mounts it does not reach a later tenant of that name; its connections stay open, but are
 * admitted to no tenant any more.
 */
int gn_tenant_socket_open(struct gn_daemon *d, struct gn_tenant *t, struct gn_error *err);
void gn_tenant_socket_close(struct gn_tenant *t);
/* The same for all tenants, called by gn_sockets_*. */
int gn_tenant_sockets_open(struct gn_daemon *d, struct gn_error *err);
void gn_tenant_sockets_resume(struct gn_daemon *d);
void gn_tenant_sockets_end(struct gn_daemon *d);

#endif
