/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that does things later: opens the gates of commands, ends transfers, frees memory
 * late. It starts with the first of them, and never ends: destructors of a program may still wait
 * for a command. Things of one time are done in the order in which they were added.
 */
#include "discrete.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct dg_timer *first;
    bool started;
} timers = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t dg_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *serve(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&timers.lock);
    for (;;) {
        struct dg_timer *t = timers.first;
        if (!t) {
            pthread_cond_wait(&timers.more, &timers.lock);
        } else if (t->due_ns > dg_now_ns()) {
            const struct timespec due = {.tv_sec = (time_t)(t->due_ns / 1000000000u),
                                         .tv_nsec = (long)(t->due_ns % 1000000000u)};
            pthread_cond_timedwait(&timers.more, &timers.lock, &due);
        } else {
            timers.first = t->next;
            pthread_mutex_unlock(&timers.lock);
            t->run(t);
            pthread_mutex_lock(&timers.lock);
        }
    }
    return NULL;
}

static void start_locked(void)
{
    pthread_condattr_t monotonic;
    pthread_t thread;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&timers.more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, serve, NULL)) {
        fprintf(stderr, "discrete: no thread for the device\n");
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_detach(thread);
    timers.started = true;
}

void dg_timer_add(struct dg_timer *t, uint64_t due_ns)
{
    t->due_ns = due_ns;
    pthread_mutex_lock(&timers.lock);
    if (!timers.started)
        start_locked();
    struct dg_timer **link = &timers.first;
    while (*link && (*link)->due_ns <= due_ns)
        link = &(*link)->next;
    t->next = *link;
    *link = t;
    pthread_cond_signal(&timers.more);
    pthread_mutex_unlock(&timers.lock);
}
