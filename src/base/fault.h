/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_FAULT_H
#define GN_BASE_FAULT_H

/*
 * Named points at which a test kills or holds a process, for moments that a random kill would
 * hardly ever hit. GN_FAULT("name") is empty unless the build has -Dfaults=true. Then the process
 * kills itself with SIGKILL when it reaches, for the n-th time, the point that $GANTRY_FAULT names:
 * "name" or "name:n". At the point that $GANTRY_HOLD names, the thread waits until the process gets
 * SIGCONT. The handler for SIGCONT is installed only when the thread waits, so /proc shows to a
 * test that it does. Any thread.
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

/* Holds this thread alone: the first process of a namespace cannot stop itself. */
static inline void gn_fault_hold(void)
{
    /* system calls of other threads restart */
    struct sigaction go_on = {.sa_handler = gn_fault_go_on, .sa_flags = SA_RESTART};
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
    /* The first process of a namespace cannot be killed from inside it, so it exits. */
    if (gn_fault_is_now("GANTRY_FAULT", name, now))
        (void)kill(getpid(), SIGKILL), _exit(137);
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
