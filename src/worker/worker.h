/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WORKER_H
#define GN_WORKER_H

#include <stdbool.h>

#include "backend/backend.h"
#include "wall/wall.h"

/*
 * gantry-worker is several programs in one, chosen by its first argument. Each talks to gantryd
 * over descriptor GN_WORKER_SOCKET. All functions below but gn_worker_run and gn_worker_refuse
 * return an exit status.
 */
#define GN_WORKER_SOCKET 3

/* Reports the installed drivers of every API. */
int gn_worker_list_drivers(int socket);

/* Brings one driver up and reports its platforms and devices. */
int gn_worker_probe(int socket, const char *api, const char *library);

/*
 * Loads one driver's library, calls nothing in it, and forks a worker for each request until
 * gantryd is gone. `late`: the workers load the library, for a driver that starts threads when it
 * is loaded. `title`: an argument of this process, which each worker overwrites with its vGPU's id.
 */
int gn_worker_template(int socket, const char *api, const char *library, enum gn_wall_mode walls,
                       bool late, char *title);

/* Raises the walls around a child process and reports which of them this machine has. */
int gn_worker_try_walls(int socket, enum gn_wall_mode walls);

/*
 * Copies the new files of a user's layered kernel cache, mounted at `at` (wall/layers.h), into the
 * folder `kept`, and trims that to most_mib. `mode`: "keep" while workers use the cache; "close"
 * when none does, and then unmounts it.
 */
int gn_worker_keep_cache(const char *mode, const char *at, const char *kept, const char *most_mib);
/* Removes the kernel caches in `root` that have not been used for `days` days. */
int gn_worker_sweep_caches(const char *root, const char *days);

/* Runs a worker from its fork to its end. `library` is NULL when the worker loads it itself, from
 * `path`. */
struct gn_worker_start {
    const struct gn_backend_ops *backend;
    void *library;
    const char *path;
    int control_fd;
    struct gn_wall_forker forker;
    char *title; /* an argument of this process; the vGPU's id replaces it, for ps */
};
_Noreturn void gn_worker_run(const struct gn_worker_start *start);

/* Tells gantryd that request seq has failed. */
struct gn_error;
void gn_worker_refuse(int socket, unsigned seq, int code, const struct gn_error *err);

#endif
