/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_STOPPED_PROCESSES_H
#define GN_DAEMON_MIGRATE_STOPPED_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct gn_migration;
struct gn_vgpu_record;

/*
 * Migrations need answers of programs and workers, and a process that is stopped (SIGSTOP, a
 * debugger) gives none. A request that needs the program's answer is refused while the program is
 * stopped. A process that is stopped in the middle of a migration aborts it when it has been
 * stopped for the drain's timeout.
 */
struct gn_stop_watch {
    pid_t pid;         /* the process that was seen to be stopped; 0: none was */
    uint64_t since_ns; /* and since when */
    uint64_t look_ns;  /* when to look again */
};

/* -EBUSY: the program of v is stopped by a signal. 0: it is not, or it is on another machine. A
 * stop by a debugger does not count here: strace stops a program thousands of times a second. */
int gn_refuse_stopped_program(const struct gn_vgpu_record *v, struct gn_error *err);

/* The same of its worker, by a signal or a debugger. */
int gn_refuse_stopped_worker(const struct gn_vgpu_record *v, struct gn_error *err);

/* When to look at the processes that m waits for; UINT64_MAX: it waits for none. */
uint64_t gn_migration_next_look(const struct gn_migration *m);
/* Looks at them. True, with the reason: one of them has been stopped for the drain's timeout. */
bool gn_migration_awaits_stopped(struct gn_migration *m, uint64_t now_ns, struct gn_error *err);

#endif
