/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_SPAWN_H
#define GN_DAEMON_VGPU_SPAWN_H

#include <sys/types.h>

#include "base/error.h"
#include "wall/wall.h"

/* Where gantry-worker is: $GANTRY_WORKER (for tests), else beside this executable's installation or
 * in its build tree. */
int gn_worker_find(char *ret_path, size_t n, struct gn_error *err);

/* Starts gantry-worker with these arguments (NULL-terminated, argv[0] included) and a socket to it.
 * Behind walls it can give its children: processes of their own. */
int gn_worker_spawn(const char *path, char *const argv[], enum gn_wall_mode walls, int *ret_socket,
                    pid_t *ret_pid, struct gn_error *err);

/* gantryd needs many descriptors. Its children get the limit that it was started with. */
void gn_raise_descriptor_limit(void);

#endif
