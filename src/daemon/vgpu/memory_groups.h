/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_MEMORY_GROUPS_H
#define GN_DAEMON_VGPU_MEMORY_GROUPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/worker_wire.h"

/*
 * Memory cgroups of workers: one for each, which bounds all that its processes have together, of
 * whatever kind, and one above them, so that workers never take all of the machine's memory. There
 * are some where gantryd may make them: with cgroups of version 1 where its own memory cgroup is
 * writable, with version 2 where its own cgroup was delegated to it.
 *
 * gantryd's loop waits for nobody, and the kernel lets the maker and the remover of a group wait
 * for every entry into any group. So a worker makes its group and enters it before it runs any of
 * its program's code (wall/group.c), and a thread removes the group. Bounds are raised and never
 * lowered: the kernel would look for memory to take back first. Nothing here fails: without groups
 * the other bounds hold.
 */
struct gn_memory_groups {
    bool have, v2;
    char own[GN_WORKER_GROUP_BYTES - 64];  /* gantryd's cgroup */
    char root[GN_WORKER_GROUP_BYTES - 32]; /* in it, of all workers */
    uint32_t last;                         /* number of a worker's */
    /* of the thread that removes: it comes with the first group that is to go */
    bool runs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* under the lock */
    bool over;
    uint32_t *gone; /* numbers of groups that it removes */
    size_t n_gone, room;
};

/* A worker's. */
struct gn_memory_group {
    uint32_t number;     /* 0: none */
    uint64_t most_bytes; /* 0: no bound of its own */
};

/* `self` and `mounts`: /proc/self/cgroup and /sys/fs/cgroup, or a test's. All workers together get
 * what is left of the machine's memory, or of the own cgroup's, when a 16th is set aside. */
void gn_memory_groups_init(struct gn_memory_groups *g, const char *self, const char *mounts);
/* When no worker is left. Blocks until their groups are gone, for a second at most. */
void gn_memory_groups_fini(struct gn_memory_groups *g);

/* A group that one more worker is to make, and its folder: in ret, of `n` bytes; "" when there is
 * none. */
struct gn_memory_group gn_memory_group_name(struct gn_memory_groups *g, uint64_t most_bytes,
                                            char *ret, size_t n);
/* Of a worker that has made it. */
void gn_memory_group_raise(const struct gn_memory_groups *g, struct gn_memory_group *group,
                           uint64_t most_bytes);
/* Whether the kernel has ended a process in it for want of memory. */
bool gn_memory_group_overflowed(const struct gn_memory_groups *g,
                                const struct gn_memory_group *group);
/* The worker is over, or there was none. It goes as soon as it has no processes. */
void gn_memory_group_remove(struct gn_memory_groups *g, struct gn_memory_group *group);

#endif
