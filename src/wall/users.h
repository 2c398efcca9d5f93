/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_USERS_H
#define GN_WALL_USERS_H

#include <sys/types.h>

/*
 * Maps the one user and group of a new user namespace to their own numbers. Call it right after
 * entering the namespace. Returns 0 or -errno.
 */
int gn_wall_map_user(uid_t uid, gid_t gid);

#endif
