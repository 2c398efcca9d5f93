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
 * gantryd's Unix sockets: the program socket at the path of --socket, beside it those for viewers
 * and for operators, and below it, at tenants/NAME/gantry.sock, one for each tenant that wants one.
 * The socket that accepts a connection sets its role, and a tenant's socket its tenant. gantryd's
 * thread.
 */
struct gn_daemon;
struct gn_tenant;

struct gn_socket {
    struct gn_corpse corpse; /* of a tenant's */
    struct gn_daemon *daemon;
    struct gn_source source; /* its descriptor is the listener's */
    struct gn_listener at;
    enum gn_role role;
    struct gn_tenant *tenant; /* that its peers belong to; NULL: they name one */
    bool paused; /* too many connections or descriptors: accepts nobody until a connection or a vGPU
                    has gone */
};

struct gn_sockets {
    struct gn_socket of[GN_ROLE_N];
    bool paused;  /* one of them or of the tenants' sockets is */
    int spare_fd; /* closed when no descriptor is left for an operator's connection; -1: it is
                     closed */
};

/* Before anything else of this struct is used. */
void gn_sockets_init(struct gn_sockets *s, struct gn_daemon *d);
/* Binds all but tenants' under temporary names: none is reached yet. path: the program socket's. 0
 * or -errno. */
int gn_sockets_open(struct gn_sockets *s, const char *path, bool make_dir, struct gn_error *err);
/*
 * Makes the tenants' sockets, removes folders of tenants that are no more, begins to accept, and
 * puts all in their places, the program socket last: once it is there, all are. 0 or -errno.
 */
int gn_sockets_publish(struct gn_sockets *s, struct gn_error *err);
/* Sets the mode of the program socket. others: it is for every user of the machine. 0 or -errno. */
int gn_sockets_set_access(struct gn_sockets *s, bool others, struct gn_error *err);
/* One socket accepts nobody until gn_sockets_resume(), by which all accept again and the spare
 * descriptor is opened again. */
void gn_sockets_pause(struct gn_sockets *s, struct gn_socket *which);
void gn_sockets_resume(struct gn_sockets *s);
void gn_socket_resume(struct gn_socket *it);
/* Closes the spare descriptor; false: it is closed already. */
bool gn_sockets_use_spare(struct gn_sockets *s);
/* Removes them from the file system and closes them. The folders of tenants stay: containers that
 * mount them find the next gantryd's sockets there. May be called twice. */
void gn_sockets_close(struct gn_sockets *s);
/* The program socket's, as it was given; "" when there is none. */
const char *gn_sockets_path(const struct gn_sockets *s);

/*
 * tenant_sockets.c. The socket of a tenant that has none: made, accepting and in its place. 0, or
 * -errno and a sentence. Its end: its folder goes, too, so that what has it mounted reaches no
 * later tenant of that name; its connections stay, and are admitted to nothing more.
 */
int gn_tenant_socket_open(struct gn_daemon *d, struct gn_tenant *t, struct gn_error *err);
void gn_tenant_socket_close(struct gn_tenant *t);
/* Of all tenants at once, for gn_sockets_*. */
int gn_tenant_sockets_open(struct gn_daemon *d, struct gn_error *err);
void gn_tenant_sockets_resume(struct gn_daemon *d);
void gn_tenant_sockets_end(struct gn_daemon *d);

#endif
