/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_PROCESS_STAT_H
#define GN_DAEMON_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What /proc tells of a process by its number. The number may belong to another process by the time
 * that the answer is used: the caller holds a pidfd that says whether the first one has ended, or
 * compares start times.
 */
struct gn_process_stat {
    char state;     /* R, S, D, T, t, Z ... */
    unsigned flags; /* the kernel's PF_ */
    uint64_t
        start_ticks; /* of the kernel's clock (sysconf(_SC_CLK_TCK)) since the machine's start */
};

/* 0 or -errno; -ESRCH: there is no such process in this process's namespace. */
int gn_process_stat_read(pid_t pid, struct gn_process_stat *ret);
/* The present time by the same clock. */
uint64_t gn_process_ticks_now(void);
/* Its effective user. 0 or -errno. */
int gn_process_user(pid_t pid, uid_t *ret);
/* The state of its first thread that has not ended, for all of them; 0: it cannot be told. Reads
 * one or two files of /proc. */
char gn_process_state(pid_t pid);
/* One of its threads is stopped, by a signal or by a debugger. False when it cannot be told. */
bool gn_process_is_stopped(pid_t pid);

#endif
