/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, publishes, pauses and closes gantryd's Unix sockets and sets their permissions
 * (sockets.h). Called at gantryd's start and end, by connections.c, and when a change of tenants
 * changes the users that may attach; on gantryd's thread. Accepts no connections: connections.c
 * does. Opening may block for a while, to look up groups and to lock a directory.
 */
#include "daemon/net/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/checked.h"
#include "daemon/daemon.h"
#include "daemon/net/listener.h"
#include "link/address.h"

#define NO_GROUP ((gid_t)-1)
#define NO_SPARE (-2) /* value of spare_fd before the start and after the end */

/* The group that may open the socket of a role, if gantryd runs as root and the group exists. */
static const char *const group_names[GN_ROLE_N] = {NULL, "gantry-view", "gantry-operator"};

/* The program socket is last, because programs find gantryd by it. */
static const enum gn_role in_order[] = {GN_ROLE_CONTROL, GN_ROLE_VIEW, GN_ROLE_PROGRAM};

void gn_sockets_init(struct gn_sockets *s, struct gn_daemon *d)
{
    memset(s, 0, sizeof *s);
    s->spare_fd = NO_SPARE;
    for (enum gn_role role = 0; role < GN_ROLE_N; role++)
        s->of[role] = (struct gn_socket){
            .daemon = d, .source = {.fd = -1}, .at = GN_LISTENER_NONE, .role = role};
}

/* Called at the start only: the lookup may ask a directory server and block. */
static gid_t group_of(enum gn_role role)
{
    const struct group *g =
        group_names[role] && geteuid() == 0 ? getgrnam(group_names[role]) : NULL;
    return g ? g->gr_gid : NO_GROUP;
}

static int open_spare(void)
{
    return open("/", O_PATH | O_CLOEXEC);
}

int gn_sockets_open(struct gn_sockets *s, const char *path, bool make_dir, struct gn_error *err)
{
    char beside[GN_ADDRESS_MAX_PATH + 1];
    int rc = gn_listener_open(&s->of[GN_ROLE_PROGRAM].at, path, make_dir, err);
    for (enum gn_role role = GN_ROLE_PROGRAM + 1; role < GN_ROLE_N && rc == 0; role++) {
        rc = gn_address_of_role(path, role, beside, err);
        if (rc == 0)
            rc = gn_listener_open(&s->of[role].at, beside, false, err);
        const gid_t group = rc == 0 ? group_of(role) : NO_GROUP;
        if (rc == 0)
            rc = gn_listener_set_access(&s->of[role].at, group == NO_GROUP ? 0600 : 0660, group,
                                        err);
    }
    s->spare_fd = open_spare();
    return rc;
}

int gn_sockets_publish(struct gn_sockets *s, struct gn_error *err)
{
    int rc = gn_tenant_sockets_open(s->of[0].daemon, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < GN_ARRAY_SIZE(in_order); i++) {
        struct gn_socket *it = &s->of[in_order[i]];
        it->source.fd = it->at.fd;
        rc = gn_loop_add(&it->daemon->loop, &it->source, EPOLLIN, gn_conns_accept);
        if (rc)
            return gn_fail(err, -rc, NULL, "cannot listen at %s: %s", it->at.path, strerror(-rc));
        rc = gn_listener_publish(&it->at, err);
        if (rc)
            return rc;
    }
    return 0;
}

int gn_sockets_set_access(struct gn_sockets *s, bool others, struct gn_error *err)
{
    return gn_listener_set_access(&s->of[GN_ROLE_PROGRAM].at, others ? 0666 : 0600, NO_GROUP, err);
}

void gn_sockets_pause(struct gn_sockets *s, struct gn_socket *which)
{
    s->paused = which->paused = true;
    gn_loop_change(&which->daemon->loop, &which->source, 0);
}

bool gn_sockets_use_spare(struct gn_sockets *s)
{
    if (s->spare_fd < 0)
        return false;
    close(s->spare_fd);
    s->spare_fd = -1;
    return true;
}

void gn_sockets_resume(struct gn_sockets *s)
{
    if (s->spare_fd == -1)
        s->spare_fd = open_spare();
    if (!s->paused)
        return;
    s->paused = false;
    for (enum gn_role role = 0; role < GN_ROLE_N; role++)
        gn_socket_resume(&s->of[role]);
    gn_tenant_sockets_resume(s->of[0].daemon);
}

void gn_socket_resume(struct gn_socket *it)
{
    if (it->paused && it->source.fd >= 0)
        gn_loop_change(&it->daemon->loop, &it->source, EPOLLIN);
    it->paused = false;
}

void gn_sockets_close(struct gn_sockets *s)
{
    gn_tenant_sockets_end(s->of[0].daemon);
    (void)gn_sockets_use_spare(s);
    s->spare_fd = NO_SPARE;
    for (enum gn_role role = GN_ROLE_N; role-- > 0;) {
        struct gn_socket *it = &s->of[role];
        gn_listener_remove(&it->at);
        if (it->source.fd >= 0)
            gn_loop_close(&it->daemon->loop, &it->source);
        else if (it->at.fd >= 0)
            close(it->at.fd);
        it->at.fd = -1;
    }
}

const char *gn_sockets_path(const struct gn_sockets *s)
{
    return s->of[GN_ROLE_PROGRAM].at.path;
}
