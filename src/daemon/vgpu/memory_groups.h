/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_MEMORY_GROUPS_H
#define GN_DAEMON_VGPU_MEMORY_GROUPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/worker_wire.h"

/*
 * Memory cgroups of workers: one for each worker, which bounds the memory of all its processes
 * together, and one above them, so that workers never take all of the machine's memory. They need
 * a gantryd that may make them: a writable memory cgroup (version 1), or a cgroup that was
 * delegated to it (version 2).
 *
 * gantryd's loop must not wait, and the kernel makes the maker and the remover of a group wait for
 * every entry into any group. So a worker makes its group and enters it before it runs any of its
 * program's code (wall/group.c), and a thread removes the group. Bounds are raised and never
 * lowered: to lower one, the kernel would reclaim memory first. Nothing here fails: without groups
 * the other bounds hold.
 */
struct gn_memory_groups {
    bool have, v2;
    char own[GN_WORKER_GROUP_BYTES - 64];  /* gantryd's cgroup */
    char root[GN_WORKER_GROUP_BYTES - 32]; /* in it, of all workers */
    uint32_t last;                         /* number of a worker's */
    /* of the thread that removes groups, which starts with the first one to remove */
    bool runs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* under the lock */
    bool over;
    uint32_t *gone; /* numbers of groups to remove */
    size_t n_gone, room;
};

/* A worker's. */
struct gn_memory_group {
    uint32_t number;     /* 0: none */
    uint64_t most_bytes; /* 0: no bound of its own */
};

/* `self` and `mounts`: /proc/self/cgroup and /sys/fs/cgroup, or a test's. All workers together get
 * 15/16 of the machine's memory, or of the own cgroup's. */
void gn_memory_groups_init(struct gn_memory_groups *g, const char *self, const char *mounts);
/* When no worker is left. Blocks until their groups are gone, for a second at most. */
void gn_memory_groups_fini(struct gn_memory_groups *g);

/* A new group, which a worker makes, and its folder: in ret, of `n` bytes; "" when there is none.
 */
struct gn_memory_group gn_memory_group_name(struct gn_memory_groups *g, uint64_t most_bytes,
                                            char *ret, size_t n);
/* The group of a worker that has made it. */
void gn_memory_group_raise(const struct gn_memory_groups *g, struct gn_memory_group *group,
                           uint64_t most_bytes);
/* Whether the kernel has ended a process in it for want of memory. */
bool gn_memory_group_overflowed(const struct gn_memory_groups *g,
                                const struct gn_memory_group *group);
/* The worker has ended, or there was none: the group is removed as soon as it has no processes. */
void gn_memory_group_remove(struct gn_memory_groups *g, struct gn_memory_group *group);

#endif
