/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_LISTENER_H
#define GN_DAEMON_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* One listening Unix socket: bound under a temporary name first, put in its place when everything else stands. */
struct gn_listener {
    int dir_fd; /* of the socket's directory */
    int fd;
    bool made_dir;
    bool published;
    char path[512];
    char temporary[64];
    unsigned long long inode;
};
#define GN_LISTENER_NONE                                                                                                                   \
    {                                                                                                                                      \
        .dir_fd = -1, .fd = -1                                                                                                             \
    }
int gn_listener_open(struct gn_listener *l, const char *path, bool make_dir, struct gn_error *err);
int gn_listener_publish(struct gn_listener *l, struct gn_error *err);
/* The permissions of the socket's file; group (gid_t)-1: as it is. */
int gn_listener_set_access(struct gn_listener *l, mode_t mode, gid_t group, struct gn_error *err);
/* Removes what open and publish have made; the socket only while it is still ours. Does not close fd. */
void gn_listener_remove(struct gn_listener *l);

#endif
