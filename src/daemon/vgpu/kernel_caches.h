/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_KERNEL_CACHES_H
#define GN_DAEMON_VGPU_KERNEL_CACHES_H

#include <sys/types.h>

#include "daemon/loop.h"

/*
 * Folders of kernel caches: one for each user, or for each tenant where a token, a certificate or
 * a tenant's socket stands for its users. No user runs kernels that another one has compiled.
 *
 * No cache can fill the disk for others: where gantryd is the superuser and may mount, a cache is
 * a bounded layer of memory above a folder on the disk (wall/layers.h), shared by its workers.
 * When the last of them has ended, a process of its own, the keeper, copies new kernels to the
 * disk. Elsewhere the cache is a folder on the disk, which its worker makes (wall/cache.c). Caches
 * that are unused for GN_CACHE_UNUSED_DAYS are removed. gantryd's thread.
 */
#define GN_CACHE_LAYER_BYTES   (UINT64_C(512) << 20)
#define GN_CACHE_LAYER_ENTRIES 65536u
#define GN_CACHE_KEPT_MIB      "512"
#define GN_CACHE_UNUSED_DAYS   "30"

struct gn_daemon;
struct gn_cache;

struct gn_caches {
    bool layered; /* set at the start */
    bool ready;   /* where they are mounted is */
    struct gn_list all;
    uint32_t generation, n_keepers;
    uint64_t swept_ns, reported_ns;
    struct gn_source sweeper;
    pid_t sweeper_pid;
};

/* At gantryd's start, while it has one thread. layers: caches may be layers, if those can be
 * mounted. */
void gn_caches_init(struct gn_caches *all, bool can_mount);
/*
 * One more worker uses the cache of this name, as this user. ret: its folder, of `n` bytes, which
 * is there if it is layered. NULL and "": there is none, or it cannot be made, which is in the log;
 * the worker goes without.
 */
struct gn_cache *gn_cache_acquire(struct gn_daemon *d, const char *name, uid_t uid, gid_t gid,
                                  bool *ret_layered, char *ret, size_t n);
/* One worker less uses it. NULL: ignored. */
void gn_cache_release(struct gn_daemon *d, struct gn_cache *c);
/* Copies its new kernels to the disk soon, where another gantryd of this machine may look. NULL:
 * ignored. */
void gn_cache_keep(struct gn_daemon *d, struct gn_cache *c);

/* When the next cache is to be closed, 0: none is; and closes those that are due. */
uint64_t gn_caches_deadline(const struct gn_daemon *d);
void gn_caches_expire(struct gn_daemon *d, uint64_t now_ns);
/* A child of gantryd's that keeps or sweeps. */
bool gn_caches_know(const struct gn_daemon *d, pid_t pid);
/* At gantryd's end, when there are no workers: closes all of them. Waits some seconds at most. */
void gn_caches_fini(struct gn_daemon *d);

#endif
