/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_FAULT_H
#define GN_BASE_FAULT_H

/*
 * Named points at which a test ends a process that a kill at random would hardly ever hit there, or
 * holds it while something else happens: GN_FAULT("name") is nothing at all, unless the build is
 * made for it (-Dfaults=true). Then the process kills itself, as by kill -9, when it gets for the
 * n-th time to the point that $GANTRY_FAULT names: "name" or "name:n". At the one that $GANTRY_HOLD
 * names the thread stands until the process gets SIGCONT, which it catches as soon as it stands
 * there, and not before: so /proc says to others that it does. Any thread.
 */
#ifdef GN_FAULTS

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline bool gn_fault_is_now(const char *variable, const char *name, int times)
{
    const char *wanted = getenv(variable);
    size_t n = strlen(name);
    if (!wanted || strncmp(wanted, name, n) != 0 || (wanted[n] && wanted[n] != ':'))
        return false;
    return times == (wanted[n] == ':' ? atoi(wanted + n + 1) : 1);
}

static sem_t gn_fault_held;

static inline void gn_fault_go_on(int number)
{
    (void)number;
    sem_post(&gn_fault_held);
}

/* The first process of a namespace cannot be stopped by itself: only this thread is. */
static inline void gn_fault_hold(void)
{
    struct sigaction go_on = {.sa_handler = gn_fault_go_on,
                              .sa_flags = SA_RESTART}; /* its other threads' calls go on */
    sem_init(&gn_fault_held, 0, 0);
    sigaction(SIGCONT, &go_on, NULL);
    while (sem_wait(&gn_fault_held) < 0 && errno == EINTR)
        continue;
}

static inline void gn_fault_at(const char *name, _Atomic int *times)
{
    const int now = atomic_fetch_add_explicit(times, 1, memory_order_relaxed) + 1;
    if (gn_fault_is_now("GANTRY_HOLD", name, now))
        gn_fault_hold();
    if (gn_fault_is_now("GANTRY_FAULT", name, now))
        (void)kill(getpid(), SIGKILL),
            _exit(137); /* the first process of a namespace can't be killed from inside it */
}

#define GN_FAULT(name)                                                                             \
    do {                                                                                           \
        static _Atomic int gn_fault_times_;                                                        \
        gn_fault_at(name, &gn_fault_times_);                                                       \
    } while (0)

#else

#define GN_FAULT(name) ((void)0)

#endif

#endif
