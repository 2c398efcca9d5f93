/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_KERNEL_CACHES_H
#define GN_DAEMON_VGPU_KERNEL_CACHES_H

#include <sys/types.h>

#include "daemon/loop.h"

/*
 * Folders of kernel caches, by the user whose programs' kernels lie in them, or by the tenant where
 * a tenant's token, certificate or socket stands for its users: what one has compiled, no other
 * ever runs. Nobody's cache can fill what others need: where gantryd is the superuser and may
 * mount, a cache is a bounded layer of memory above what is kept on the disk (wall/layers.h),
 * shared by its workers. When the last of them has gone, a process of its own copies what is new to
 * the disk. Elsewhere it is a folder on the disk, which its worker makes (wall/cache.c).
 *
 * Caches that nobody has used for GN_CACHE_UNUSED_DAYS are removed. gantryd's thread.
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
    uint64_t swept_ns, told_ns;
    struct gn_source sweeper;
    pid_t sweeper_pid;
};

/* At the start, while gantryd has one thread: in layers, if they can be mounted. */
void gn_caches_init(struct gn_caches *all, bool can_mount);
/*
 * One more worker uses the cache of this name, as this user. ret: its folder, of `n` bytes, which
 * is there if it is layered. NULL and "": there is none, or it cannot be made, which is in the log;
 * the worker goes without.
 */
struct gn_cache *gn_cache_acquire(struct gn_daemon *d, const char *name, uid_t uid, gid_t gid,
                                  bool *ret_layered, char *ret, size_t n);
/* It does so no more. NULL is fine. */
void gn_cache_release(struct gn_daemon *d, struct gn_cache *c);
/* Its new kernels are wanted on the disk soon: another gantryd of this machine may look there. NULL
 * is fine. */
void gn_cache_keep(struct gn_daemon *d, struct gn_cache *c);

/* When a cache is to be closed, 0: none is; and closes those whose time has come. */
uint64_t gn_caches_deadline(const struct gn_daemon *d);
void gn_caches_expire(struct gn_daemon *d, uint64_t now_ns);
/* A child of gantryd's that keeps or sweeps. */
bool gn_caches_know(const struct gn_daemon *d, pid_t pid);
/* At gantryd's end, when there are no workers: closes all of them. Waits some seconds at most. */
void gn_caches_fini(struct gn_daemon *d);

#endif
