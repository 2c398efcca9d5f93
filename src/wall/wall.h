/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_H
#define GN_WALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * What stands between a worker and everybody else. A kernel on a CPU device is native code, so a
 * worker may do whatever its program's author wants: these walls say what that can reach.
 * docs/threat-model.md says what each holds.
 *
 * gantryd starts a driver's template with gn_wall_spawn, which gives it processes of its own; the
 * template forks its workers with gn_wall_fork; a worker, single-threaded still and before any of
 * the vendor's code has run, raises the walls around itself with gn_wall_raise. None of it can be
 * taken down again.
 */
enum gn_wall_mode {
    GN_WALL_NONE,      /* no_new_privs and the right user, and that is all */
    GN_WALL_AVAILABLE, /* what this machine can have; what is missing is told */
    GN_WALL_REQUIRED,  /* GN_WALL_MUST or no worker */
};

/* What was raised, as bits. */
#define GN_WALL_PRIVILEGES 1u /* no capability, no way to any, not the superuser */
#define GN_WALL_SYSCALLS   2u /* a filter of system calls */
#define GN_WALL_FILES      4u /* nothing opens but what a driver needs and the tenant's own cache */
#define GN_WALL_PROCESSES                                                                          \
    8u /* a process namespace: nobody else can be seen or signalled, and all in it end together */
#define GN_WALL_SCRATCH                                                                            \
    16u /* a mount namespace: temporary files that nobody else sees and that end with the worker   \
         */
#define GN_WALL_NUMBER 32u /* the number of its processes and threads is bounded */
#define GN_WALL_ALL    63u
#define GN_WALL_MUST   (GN_WALL_PRIVILEGES | GN_WALL_SYSCALLS | GN_WALL_FILES | GN_WALL_PROCESSES)

#define GN_WALL_MAX_GROUPS 64

struct gn_wall_plan {
    enum gn_wall_mode mode;
    bool change_user; /* uid, gid and groups hold; else it stays whom it is */
    uid_t uid;
    gid_t gid;
    uint32_t n_groups;
    gid_t groups[GN_WALL_MAX_GROUPS];
    const char *cache; /* the folder of its kernel cache; NULL: none */
    bool layered; /* the cache is .../NAME/all of wall/layers.h, which is there; else the worker
                     makes its folder */
    const char *library; /* the driver's; NULL: none */
    /* What its API's drivers read, and variables that name their kernel cache; each ends with NULL.
     * NULL: none. */
    const char *const *config_paths, *const *cache_variables;
    uint64_t data_bytes; /* of private memory that it may have; 0: no bound */
    bool shares;         /* it may make shared memory, which no bound counts */
};

struct gn_wall_report {
    uint32_t have; /* GN_WALL_* */
    uint32_t landlock_abi;
};

/*
 * Starts a process that is to call exec at once, in a process namespace of its own where that can
 * be had (with a user namespace around it when the caller is not the superuser). As fork(2): the
 * pid, 0 in the child, -1 and errno. The caller has one thread.
 */
pid_t gn_wall_spawn(enum gn_wall_mode mode);

/* The template's side: a worker in a process namespace of its own, where that can be had. */
struct gn_wall_forker {
    int self; /* a pidfd of the template: readable when it has ended */
    bool apart;
};
int gn_wall_forker_init(struct gn_wall_forker *f, enum gn_wall_mode mode);
/* As fork(2). When the template cannot go back to its own namespace afterwards it must end: -1 and
 * ENOTRECOVERABLE. */
pid_t gn_wall_fork(struct gn_wall_forker *f);
/* In the worker: ends with the template from now on, and ends now if that is gone already. */
void gn_wall_follow(const struct gn_wall_forker *f);

/*
 * Confines the calling process, which has one thread, for good. Sets the environment's variables
 * that name drivers' caches and temporary files. 0, or -errno when the worker may not go on: the
 * right user could not be taken, or the mode is GN_WALL_REQUIRED and something of GN_WALL_MUST is
 * missing.
 */
int gn_wall_raise(const struct gn_wall_plan *plan, struct gn_wall_report *ret,
                  struct gn_error *err);

/*
 * Memory cgroups (group.c). The bound on memory holds for swap, too: with version 2 as much again,
 * with version 1 for both together. 0 or -errno.
 */
int gn_wall_group_bound(const char *folder, uint64_t most_bytes);
/* Writes to a file in a cgroup's folder. 0 or -errno. */
int gn_wall_group_write(const char *folder, const char *name, const char *text);

/*
 * A worker's own. It is made and opened before the walls are raised. A thread of the worker enters
 * it behind them, for the whole process, while the driver starts: the kernel lets it wait for
 * milliseconds. A failure is logged, and the worker goes on without. folder "": there is none.
 * most_bytes 0: no bound of its own.
 */
struct gn_wall_group {
    int fd; /* -1: none */
    bool started;
    pthread_t thread;
};
void gn_wall_group_make(struct gn_wall_group *g, const char *folder, uint64_t most_bytes);
void gn_wall_group_start(struct gn_wall_group *g);
/* The worker and all that it makes from now on are in it. */
void gn_wall_group_wait(struct gn_wall_group *g);

/* Names of walls, for a sentence: "processes, files". */
void gn_wall_names(uint32_t walls, char *ret, size_t n);

#endif
