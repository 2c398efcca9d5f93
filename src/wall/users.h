/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_USERS_H
#define GN_WALL_USERS_H

#include <sys/types.h>

/* Right after entering a user namespace: the one user and group in it, under their own numbers. 0
 * or -errno.
 */
int gn_wall_map_user(uid_t uid, gid_t gid);

#endif
