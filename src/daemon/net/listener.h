/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_LISTENER_H
#define GN_DAEMON_NET_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* One listening Unix socket: bound under a temporary name first, put in its place when everything
 * else stands. */
struct gn_listener {
    int dir_fd; /* of the socket's directory */
    int fd;
    bool made_dir;
    bool published;
    char path[512];
    size_t name_at; /* in path: the socket's name as seen from the directory */
    char temporary[64];
    unsigned long long inode;
};
#define GN_LISTENER_NONE                                                                           \
    {                                                                                              \
        .dir_fd = -1, .fd = -1                                                                     \
    }
int gn_listener_open(struct gn_listener *l, const char *path, bool make_dir, struct gn_error *err);
/*
 * The same below a directory that is open: takes dir_fd. Its name is path from name_at on, and may
 * lie in a folder of that directory, where nothing but the socket itself is put.
 */
int gn_listener_open_at(struct gn_listener *l, int dir_fd, const char *path, size_t name_at,
                        struct gn_error *err);
int gn_listener_publish(struct gn_listener *l, struct gn_error *err);
/* The permissions of the socket's file; group (gid_t)-1: as it is. */
int gn_listener_set_access(struct gn_listener *l, mode_t mode, gid_t group, struct gn_error *err);
/* Removes the socket of this name if nobody listens there. */
void gn_listener_sweep(int dir_fd, const char *name);
/* Tells the service manager, if there is one (NOTIFY_SOCKET), that gantryd is ready. */
void gn_notify_ready(void);
/* Removes what open and publish have made; the socket only while it is still ours. Does not close
 * fd. */
void gn_listener_remove(struct gn_listener *l);

#endif
