/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_H
#define GN_WALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Confines workers. A kernel on a CPU device is native code, so a worker may run any code that its
 * program's author wants: these walls limit the things that it can reach. docs/threat-model.md
 * describes each wall.
 *
 * gantryd starts a driver's template with gn_wall_spawn, in a process namespace of its own. The
 * template forks its workers with gn_wall_fork. A worker raises the walls around itself with
 * gn_wall_raise, while it has one thread and before any of the vendor's code has run. No wall can
 * be lowered again.
 */
enum gn_wall_mode {
    GN_WALL_NONE,      /* no_new_privs and the right user only */
    GN_WALL_AVAILABLE, /* the walls that this machine can have; missing ones are reported */
    GN_WALL_REQUIRED,  /* all of GN_WALL_MUST, or no worker */
};

/* Raised walls, as bits. */
#define GN_WALL_PRIVILEGES 1u /* no capability, no way to get one, not the superuser */
#define GN_WALL_SYSCALLS   2u /* a filter of system calls */
/* Only files that a driver needs and the tenant's own cache can be opened. */
#define GN_WALL_FILES 4u
/*
 * A process namespace: other processes can be neither seen nor signalled, and all in it end
 * together.
 */
#define GN_WALL_PROCESSES 8u
/* A mount namespace: temporary files that no other process sees and that end with the worker. */
#define GN_WALL_SCRATCH 16u
#define GN_WALL_NUMBER  32u /* the number of processes and threads is bounded */
#define GN_WALL_ALL     63u
#define GN_WALL_MUST    (GN_WALL_PRIVILEGES | GN_WALL_SYSCALLS | GN_WALL_FILES | GN_WALL_PROCESSES)

#define GN_WALL_MAX_GROUPS 64

struct gn_wall_plan {
    enum gn_wall_mode mode;
    bool change_user; /* uid, gid and groups are valid; otherwise the worker keeps gantryd's user */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups;
    gid_t groups[GN_WALL_MAX_GROUPS];
    const char *cache; /* the folder of its kernel cache; NULL: none */
    /*
     * True: the cache is .../NAME/all of wall/layers.h, which exists. False: the worker makes its
     * folder.
     */
    bool layered;
    const char *library; /* the driver's path; NULL: none */
    /*
     * Files that the drivers of its API read, and the environment variables that name their kernel
     * cache; each list ends with NULL. NULL: none.
     */
    const char *const *config_paths, *const *cache_variables;
    uint64_t data_bytes; /* maximum of private memory in bytes; 0: no limit */
    bool shares;         /* may make shared memory, which only a memory cgroup counts */
};

struct gn_wall_report {
    uint32_t have; /* GN_WALL_* */
    uint32_t landlock_abi;
};

/*
 * Starts a process that must call exec at once, in a process namespace of its own if possible
 * (within a user namespace unless the caller is the superuser). Returns as fork(2) does: the pid, 0
 * in the child, or -1 and errno. The caller must have one thread.
 */
pid_t gn_wall_spawn(enum gn_wall_mode mode);

/* For the template: forks a worker into a process namespace of its own, if possible. */
struct gn_wall_forker {
    int self; /* a pidfd of the template: readable when it has ended */
    bool apart;
};
int gn_wall_forker_init(struct gn_wall_forker *f, enum gn_wall_mode mode);
/*
 * Returns as fork(2) does. -1 and ENOTRECOVERABLE: the template cannot return to its own namespace
 * and must end.
 */
pid_t gn_wall_fork(struct gn_wall_forker *f);
/* In the worker: makes it end with the template, at once if the template has ended already. */
void gn_wall_follow(const struct gn_wall_forker *f);

/*
 * Confines the calling process, which must have one thread, for good. Sets the environment
 * variables that name drivers' caches and temporary files. Returns 0, or -errno if the worker must
 * not continue: it could not change its user, or the mode is GN_WALL_REQUIRED and a wall of
 * GN_WALL_MUST is missing.
 */
int gn_wall_raise(const struct gn_wall_plan *plan, struct gn_wall_report *ret,
                  struct gn_error *err);

/*
 * Memory cgroups (group.c). The limit applies to memory and to swap: with version 2 to each, with
 * version 1 to both together. Returns 0 or -errno.
 */
int gn_wall_group_bound(const char *folder, uint64_t most_bytes);
/* Writes to a file in a cgroup's folder. Returns 0 or -errno. */
int gn_wall_group_write(const char *folder, const char *name, const char *text);

/*
 * A worker's own cgroup. It is made and opened before the walls are raised. Then a thread of the
 * worker enters it for the whole process while the driver starts, because the kernel may block for
 * milliseconds. A failure is logged, and the worker continues without. folder "": no cgroup.
 * most_bytes 0: no limit of its own.
 */
struct gn_wall_group {
    int fd; /* -1: none */
    bool started;
    pthread_t thread;
};
void gn_wall_group_make(struct gn_wall_group *g, const char *folder, uint64_t most_bytes);
void gn_wall_group_start(struct gn_wall_group *g);
/* Waits until the worker, with all that it allocates from now on, is in the cgroup. */
void gn_wall_group_wait(struct gn_wall_group *g);

/* Formats the names of walls for a sentence: "processes, files". */
void gn_wall_names(uint32_t walls, char *ret, size_t n);

#endif
