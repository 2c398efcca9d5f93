/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CACHES_H
#define GN_DAEMON_CACHES_H

#include <sys/types.h>

#include "base/list.h"
#include "daemon/loop.h"
#include "wall/wall.h"

/*
 * Kernel caches are kept within a bound. A tenant and user has a folder. It is looked through by a process of its own (gantry-worker
 * --trim), as that user, one folder at a time, when its last worker has gone, and every GN_CACHES_EVERY_S while there are workers: but only
 * when the file system has lost enough since the last look that somebody may be filling his folder. gantryd reads none of it. Whoever
 * fills his folder loses what is in it.
 */
#define GN_CACHES_EVERY_S     30u
#define GN_CACHES_LIMIT_BYTES (UINT64_C(1) << 30) /* unless the configuration says another */

struct gn_cache {
    struct gn_list link;
    bool change_user;
    uid_t uid;
    gid_t gid;
    uint32_t n_workers;
    bool due; /* to be looked through */
    char folder[];
};

struct gn_caches {
    struct gn_loop *loop;
    const char *worker; /* gantry-worker */
    uint64_t limit_bytes; /* 0: none, and nothing here is ever done */
    struct gn_list all;
    uint64_t free_bytes;  /* of their file system at the last look; 0: none yet */
    struct gn_source timer;   /* timerfd, armed while there are workers */
    struct gn_source trimmer; /* its socket; fd -1: none runs */
    pid_t pid;                /* of the trimmer; 0: none */
};

/* limit_bytes as above. 0 or -errno. */
int gn_caches_init(struct gn_caches *c, struct gn_loop *loop, const char *worker, uint64_t limit_bytes);
/* Ends the trimmer. */
void gn_caches_fini(struct gn_caches *c);

/* A worker is going to use this folder; NULL when there is none, no limit, or no memory: then it is not looked after. */
struct gn_cache *gn_caches_enter(struct gn_caches *c, const char *folder, bool change_user, uid_t uid, gid_t gid);
/* That worker is gone. NULL is fine. */
void gn_caches_leave(struct gn_caches *c, struct gn_cache *cache);

/* A child of gantryd's has ended. */
void gn_caches_reaped(struct gn_caches *c, pid_t pid);

#endif
