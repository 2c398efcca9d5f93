/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_USERS_H
#define GN_WALL_USERS_H

#include <sys/types.h>

/* Maps one user and one group, under their own numbers, into the user namespace that the process
 * has just entered. 0 or -errno. */
int gn_wall_map_user(uid_t uid, gid_t gid);

#endif
