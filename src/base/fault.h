/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_FAULT_H
#define GN_BASE_FAULT_H

/*
 * Named points in the code for tests: at GN_FAULT("name") a test can kill a process that a random
 * kill would hardly ever hit there, or hold a thread while another event happens. Compiles to
 * nothing unless the build has -Dfaults=true.
 *
 * The process kills itself, as by kill -9, when it reaches the point in $GANTRY_FAULT for the n-th
 * time: "name" or "name:n". At the point in $GANTRY_HOLD the thread stops until the process
 * receives SIGCONT. The process has a handler for SIGCONT from then on, and not before, so other
 * processes can see in /proc that the thread has stopped. Any thread.
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

/* The first process of a namespace cannot stop itself with a signal, so only this thread waits. */
static inline void gn_fault_hold(void)
{
    struct sigaction go_on = {.sa_handler = gn_fault_go_on,
                              .sa_flags = SA_RESTART}; /* calls of its other threads continue */
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
            _exit(137); /* the first process of a namespace cannot be killed from inside it */
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
