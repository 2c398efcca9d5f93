/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_LISTENER_H
#define GN_DAEMON_NET_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* One listening Unix socket. It is bound under a temporary name, and renamed into place when
 * gantryd is ready. */
struct gn_listener {
    int dir_fd; /* the socket's directory */
    int fd;
    bool made_dir;
    bool published;
    char path[512];
    size_t name_at; /* offset in path of the socket's name relative to dir_fd */
    char temporary[64];
    unsigned long long inode;
};
#define GN_LISTENER_NONE                                                                           \
    {                                                                                              \
        .dir_fd = -1, .fd = -1                                                                     \
    }
int gn_listener_open(struct gn_listener *l, const char *path, bool make_dir, struct gn_error *err);
/* The same below an open directory; takes dir_fd, also on failure. The socket's name is the part of
 * path from name_at on. It may be in a folder of that directory, in which nothing but the socket
 * itself is created. */
int gn_listener_open_at(struct gn_listener *l, int dir_fd, const char *path, size_t name_at,
                        struct gn_error *err);
int gn_listener_publish(struct gn_listener *l, struct gn_error *err);
/* Sets mode and group of the socket's file. Group (gid_t)-1: unchanged. */
int gn_listener_set_access(struct gn_listener *l, mode_t mode, gid_t group, struct gn_error *err);
/* Removes the socket of this name if no process listens there. */
void gn_listener_sweep(int dir_fd, const char *name);
/* Tells the service manager, if there is one (NOTIFY_SOCKET), that gantryd is ready. */
void gn_notify_ready(void);
/* Removes the files that open and publish created; the socket only if it is still this one. Does
 * not close fd. */
void gn_listener_remove(struct gn_listener *l);

#endif
