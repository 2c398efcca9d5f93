/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_FAULT_H
#define GN_BASE_FAULT_H

/*
 * Named points at which a test ends a process that a kill at random would hardly ever hit there:
 * GN_FAULT("name") is nothing at all, unless the build is made for it (-Dfaults=true). Then the process kills
 * itself, as by kill -9, when it gets for the n-th time to the point that $GANTRY_FAULT names: "name" or
 * "name:n". Any thread.
 */
#ifdef GN_FAULTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void gn_fault_at(const char *name, _Atomic int *times)
{
    const char *wanted = getenv("GANTRY_FAULT");
    size_t n = strlen(name);
    if (!wanted || strncmp(wanted, name, n) != 0 || (wanted[n] && wanted[n] != ':'))
        return;
    int when = wanted[n] == ':' ? atoi(wanted + n + 1) : 1;
    if (atomic_fetch_add_explicit(times, 1, memory_order_relaxed) + 1 == when)
        (void)kill(getpid(), SIGKILL), _exit(137); /* the first process of a namespace can't be killed from inside it */
}

#define GN_FAULT(name)                                                                                                                     \
    do {                                                                                                                                   \
        static _Atomic int gn_fault_times_;                                                                                                \
        gn_fault_at(name, &gn_fault_times_);                                                                                               \
    } while (0)

#else

#define GN_FAULT(name) ((void)0)

#endif

#endif
