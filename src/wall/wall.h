/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_H
#define GN_WALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * The walls that confine a worker. A kernel on a CPU device is native code, so a worker may do
 * anything that the program's author wants: the walls limit the damage. docs/threat-model.md lists
 * the guarantees of each.
 *
 * gantryd starts a driver's template with gn_wall_spawn(), which puts it into a process namespace
 * of its own. The template forks its workers with gn_wall_fork(). A worker calls gn_wall_raise()
 * while it has one thread and before any code of the vendor runs. No wall can be taken down again.
 */
enum gn_wall_mode {
    GN_WALL_NONE,      /* only no_new_privs and the right user */
    GN_WALL_AVAILABLE, /* all walls that this machine supports; missing ones are reported */
    GN_WALL_REQUIRED,  /* GN_WALL_MUST, or no worker */
};

/* The walls, as bits. */
#define GN_WALL_PRIVILEGES 1u /* no capability, no way to get one, and not root */
#define GN_WALL_SYSCALLS   2u /* a filter of system calls */
/* Opens only the files that a driver needs and the tenant's own cache. */
#define GN_WALL_FILES 4u
/* A process namespace: no process outside can be seen or signalled, and all processes in it end
 * together. */
#define GN_WALL_PROCESSES 8u
/* A mount namespace: temporary files that no other process sees and that are removed with the
 * worker. */
#define GN_WALL_SCRATCH 16u
#define GN_WALL_NUMBER  32u /* a limit on the number of its processes and threads */
#define GN_WALL_ALL     63u
#define GN_WALL_MUST    (GN_WALL_PRIVILEGES | GN_WALL_SYSCALLS | GN_WALL_FILES | GN_WALL_PROCESSES)

#define GN_WALL_MAX_GROUPS 64

struct gn_wall_plan {
    enum gn_wall_mode mode;
    bool change_user; /* uses uid, gid and groups; otherwise the user does not change */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups;
    gid_t groups[GN_WALL_MAX_GROUPS];
    const char *cache; /* the folder of its kernel cache; NULL: none */
    /* the cache is .../NAME/all of wall/layers.h, which exists; otherwise the worker creates its
     * folder */
    bool layered;
    const char *library; /* the driver's library; NULL: none */
    /* Files that drivers of its API read, and variables that name their kernel cache; each list
     * ends with NULL. NULL: none. */
    const char *const *config_paths, *const *cache_variables;
    uint64_t data_bytes; /* limit on its private memory; 0: none */
    bool shares;         /* it may create shared memory, which no limit counts */
};

struct gn_wall_report {
    uint32_t have; /* GN_WALL_* */
    uint32_t landlock_abi;
};

/* Starts a process that calls exec at once, in a process namespace of its own if possible (with a
 * user namespace around it if the caller is not root). Returns like fork(2). The caller must have
 * one thread. */
pid_t gn_wall_spawn(enum gn_wall_mode mode);

/* Used by a template to fork workers into process namespaces of their own, if possible. */
struct gn_wall_forker {
    int self; /* a pidfd of the template: readable after it has ended */
    bool apart;
};
int gn_wall_forker_init(struct gn_wall_forker *f, enum gn_wall_mode mode);
/* Returns like fork(2). -1 with errno ENOTRECOVERABLE: the template cannot return to its own
 * namespace and must end. */
pid_t gn_wall_fork(struct gn_wall_forker *f);
/* Called in the worker: makes it end when the template ends, at once if it has ended already. */
void gn_wall_follow(const struct gn_wall_forker *f);

/*
 * Confines the calling process, which must have one thread, for good. Sets the environment
 * variables for drivers' caches and temporary files. 0, or -errno if the worker must not continue:
 * it could not become its user, or the mode is GN_WALL_REQUIRED and a wall of GN_WALL_MUST is
 * missing.
 */
int gn_wall_raise(const struct gn_wall_plan *plan, struct gn_wall_report *ret,
                  struct gn_error *err);

/* Memory cgroups (group.c). The limit also applies to swap: as much again with cgroup version 2,
 * both together with version 1. 0 or -errno. */
int gn_wall_group_bound(const char *folder, uint64_t most_bytes);
/* Writes to a file in a cgroup's folder. 0 or -errno. */
int gn_wall_group_write(const char *folder, const char *name, const char *text);

/*
 * A worker's own cgroup. It is created and opened before the walls are raised. Behind them, a
 * thread moves the whole process into it while the driver starts, because the kernel may delay that
 * for milliseconds. A failure is logged, and the worker continues without a cgroup. folder "":
 * none. most_bytes 0: no limit of its own.
 */
struct gn_wall_group {
    int fd; /* -1: none */
    bool started;
    pthread_t thread;
};
void gn_wall_group_make(struct gn_wall_group *g, const char *folder, uint64_t most_bytes);
void gn_wall_group_start(struct gn_wall_group *g);
/* Waits until the process, and all that it allocates from now on, is in the cgroup. */
void gn_wall_group_wait(struct gn_wall_group *g);

/* Writes the names of walls, for messages: "processes, files". */
void gn_wall_names(uint32_t walls, char *ret, size_t n);

#endif
