/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_PROCESS_STAT_H
#define GN_DAEMON_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Information from /proc about a process by its id. Another process may have the id by the time the
 * answer is used: the caller needs a pidfd to check that the first one has not ended, or compares
 * start times. */
struct gn_process_stat {
    char state;           /* R, S, D, T, t, Z ... */
    unsigned flags;       /* the kernel's PF_ flags */
    uint64_t start_ticks; /* in clock ticks (sysconf(_SC_CLK_TCK)) since the machine's start */
};

/* Returns 0 or -errno; -ESRCH: there is no such process in this namespace. */
int gn_process_stat_read(pid_t pid, struct gn_process_stat *ret);
/* The present time in the same ticks. */
uint64_t gn_process_ticks_now(void);
/* Reads the effective user id. 0 or -errno. */
int gn_process_user(pid_t pid, uid_t *ret);
/* The state of the first thread that has not ended; 0: unknown. Reads one or two files of /proc. */
char gn_process_state(pid_t pid);
/* Whether it is ending, or has ended and was not waited for. False if unknown, for instance for a
 * process of another namespace. */
bool gn_process_is_ending(pid_t pid);
/* Whether one of its threads is stopped, by a signal or a debugger. False if unknown. */
bool gn_process_is_stopped(pid_t pid);

#endif
