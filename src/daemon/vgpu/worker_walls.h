/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_WORKER_WALLS_H
#define GN_DAEMON_VGPU_WORKER_WALLS_H

#include "daemon/devices.h"
#include "daemon/vgpu/memory_groups.h"
#include "wall/wall.h"

/* The walls of this gantryd's workers: set at start, read-only afterwards but for memory_groups. */
struct gn_walls {
    enum gn_wall_mode mode;
    struct gn_worker_walls can;
    char have_names[128], missing_names[128];
    bool follows_leases; /* this gantryd may move the limits of workers that it runs as others */
    char cache[768];     /* where tenants' kernel caches lie; "": there are none */
    /* the user of workers of the superuser's programs */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups;
    uint32_t groups[GN_WORKER_MAX_GROUPS];
    struct gn_memory_groups memory_groups;
};

/* Tries in a process of its own which walls this machine supports, and logs in one line those that
 * it does not. `cache`: the operator's folder for kernel caches, "" for the default. -EPERM: walls
 * are required and not supported. Blocks for milliseconds. */
int gn_walls_init(struct gn_walls *w, const struct gn_machine *m, enum gn_wall_mode mode,
                  const char *cache, struct gn_error *err);

/* When no worker is left. */
void gn_walls_fini(struct gn_walls *w);

/* required, available, none; -EINVAL for anything else. */
int gn_walls_mode_parse(const char *name, enum gn_wall_mode *ret);
const char *gn_walls_mode_name(enum gn_wall_mode mode);

/* Those of one worker, but for its cache. `peer` is the program's socket, -1 when it is not on this
 * machine. */
void gn_walls_of(const struct gn_walls *w, const struct gn_platform_record *platform, int peer,
                 struct gn_worker_boot_wall *ret);
/* The folder of all kernel caches, which is made: a descriptor of O_PATH, or -errno. */
int gn_walls_open_cache_root(const struct gn_walls *w);

/* The lease of a worker has changed. On devices whose memory is this machine's, the worker's
 * private memory is bounded by its lease and a driver's needs. `worker` is the process of the
 * pidfd; -1: there is none. */
void gn_walls_follow_lease(const struct gn_walls *w, const struct gn_platform_record *platform,
                           int pidfd, pid_t worker, uint64_t leased_bytes);
/* The memory that all processes of a worker may have together, its data area included; 0: there is
 * no bound. has_area: the data area is the worker's own memory, not the program's. limit_bytes: of
 * the vGPU's device memory; 0: all. */
uint64_t gn_walls_bound_together(const struct gn_walls *w,
                                 const struct gn_platform_record *platform, bool has_area,
                                 uint64_t limit_bytes, uint64_t leased_bytes);

#endif
