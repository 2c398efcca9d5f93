/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WORKER_H
#define GN_WORKER_H

#include <stdbool.h>

#include "backend/backend.h"
#include "wall/wall.h"

/*
 * gantry-worker is one program in three parts, each of which talks with gantryd over descriptor
 * GN_WORKER_SOCKET. All return an exit status.
 */
#define GN_WORKER_SOCKET 3

/* Names the drivers installed here, of every API. */
int gn_worker_list_drivers(int socket);

/* Brings one driver up and tells its platforms and devices. */
int gn_worker_probe(int socket, const char *api, const char *library);

/*
 * Loads one driver's library, calls nothing in it, and forks a worker a request until gantryd is
 * gone. `late`: the library is loaded in the workers instead, for a driver that starts threads when
 * it is loaded.
 */
int gn_worker_template(int socket, const char *api, const char *library, enum gn_wall_mode walls,
                       bool late, char *title);

/* Raises the walls around a process that is there for nothing else, and tells what could be had. */
int gn_worker_try_walls(int socket, enum gn_wall_mode walls);

/*
 * A user's layered kernel cache, mounted in `at` (wall/layers.h): what is new goes into the folder
 * `kept`, which has at most so many MiB then. `mode`: "keep", while workers use it; "close": nobody
 * does, and it is unmounted.
 */
int gn_worker_keep_cache(const char *mode, const char *at, const char *kept, const char *most_mib);
/* Removes caches that nobody has used for so many days. */
int gn_worker_sweep_caches(const char *root, const char *days);

/* A worker's life, from the fork to its end. `library` is NULL when it is to be loaded here, from
 * `path`. */
struct gn_worker_start {
    const struct gn_backend_ops *backend;
    void *library;
    const char *path;
    int control_fd;
    struct gn_wall_forker forker;
    char
        *title; /* an argument of this process, to be overwritten with the vGPU's id: ps shows it */
};
_Noreturn void gn_worker_run(const struct gn_worker_start *start);

/* Tells gantryd that a request failed; the seq is the request's. */
struct gn_error;
void gn_worker_refuse(int socket, unsigned seq, int code, const struct gn_error *err);

#endif
