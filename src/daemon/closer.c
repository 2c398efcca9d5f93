/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that only call close() (closer.h). gantryd's thread hands descriptors to them and never
 * waits. A thread starts when there is work and no idle thread, and ends after a while without
 * work. Waiting descriptors are in lists chained by their numbers, so that adding one needs memory
 * for one int per number and no more.
 */
#include "daemon/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define STACK_BYTES (256u << 10)
#define IDLE_NS     UINT64_C(1000000000)
#define CUT_NS      1000000 /* interval of the signal that interrupts a close() */
#define FIRST_ROOM  1024u

struct gn_closer {
    pthread_mutex_t lock;
    pthread_cond_t work; /* signalled when there is work, or at the end */
    pthread_cond_t done; /* signalled when a descriptor was closed or a thread has ended */
    /* guarded by the lock */
    struct gn_list sources; /* sources with work and fewer threads than allowed; served in turns */
    int *next;              /* indexed by descriptor: the next one in its source's list, plus one */
    size_t n_next;
    uint32_t n_threads, n_idle, n_pending;
    bool over, awaited;
    /* set once */
    int news_fd;
};

static void ignore_signal(int signal)
{
    (void)signal; /* the signal alone interrupts a close() that waits */
}

static timer_t make_cutter(bool *ret_there)
{
    timer_t timer = 0;
    struct sigevent each = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    each.sigev_notify_thread_id = gettid();
    *ret_there = timer_create(CLOCK_MONOTONIC, &each, &timer) == 0;
    return timer;
}

static void set_cutter(timer_t timer, bool there, long ns)
{
    const struct itimerspec when = {.it_interval = {.tv_nsec = ns}, .it_value = {.tv_nsec = ns}};
    if (there)
        (void)timer_settime(timer, 0, &when, NULL);
}

static struct timespec in_ns(uint64_t ns)
{
    ns += gn_now_ns();
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

/* Puts the source into the list if a thread may take work from it. */
static void list_locked(struct gn_closer *c, struct gn_closing *s)
{
    if (s->listed || !s->n_waiting || s->n_busy >= GN_CLOSER_A_SOURCE)
        return;
    s->listed = true;
    gn_list_append(&c->sources, &s->link);
}

static struct gn_closing *take_locked(struct gn_closer *c, int *ret_fd)
{
    struct gn_closing *s = gn_list_first(&c->sources, struct gn_closing, link);
    *ret_fd = s->first - 1;
    s->first = c->next[*ret_fd];
    if (!s->first)
        s->last = 0;
    s->n_waiting--;
    s->n_busy++;
    gn_list_remove(&s->link);
    s->listed = false;
    list_locked(c, s);
    return s;
}

static void *run(void *closer);

/* Starts a thread if there is work and no idle thread. If that fails, an existing thread does the
 * work later. */
static void add_thread_locked(struct gn_closer *c)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    if (gn_list_empty(&c->sources) || c->n_idle || c->n_threads == GN_CLOSER_THREADS)
        return;
    sigfillset(&all);
    sigdelset(&all, SIGRTMIN);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attr, run, c) == 0)
        c->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* Returns false after a while without work, or at the end. */
static bool wait_for_work_locked(struct gn_closer *c)
{
    const struct timespec until = in_ns(IDLE_NS);
    int rc = 0;
    c->n_idle++;
    while (gn_list_empty(&c->sources) && !c->over && !rc)
        rc = pthread_cond_timedwait(&c->work, &c->lock, &until);
    c->n_idle--;
    return !gn_list_empty(&c->sources);
}

static void notify_locked(struct gn_closer *c)
{
    pthread_cond_broadcast(&c->done);
    if (c->awaited && c->news_fd >= 0)
        (void)eventfd_write(c->news_fd, 1);
    c->awaited = false;
}

static void *run(void *closer)
{
    struct gn_closer *c = closer;
    bool cuts;
    prctl(PR_SET_NAME, "gantry-close");
    const timer_t cutter = make_cutter(&cuts);
    pthread_mutex_lock(&c->lock);
    while (wait_for_work_locked(c)) {
        int fd;
        struct gn_closing *s = take_locked(c, &fd);
        add_thread_locked(c); /* before close(), from which this thread may not return */
        pthread_mutex_unlock(&c->lock);
        set_cutter(cutter, cuts, CUT_NS);
        (void)close(fd);
        set_cutter(cutter, cuts, 0);
        pthread_mutex_lock(&c->lock);
        s->n_busy--;
        c->n_pending--;
        list_locked(c, s);
        notify_locked(c);
    }
    if (cuts)
        (void)timer_delete(cutter);
    c->n_threads--;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int gn_closer_start(int news_fd, struct gn_closer **ret, struct gn_error *err)
{
    /* without SA_RESTART, so that close() is interrupted */
    struct sigaction interrupt = {.sa_handler = ignore_signal};
    pthread_condattr_t monotonic;
    struct gn_closer *c = calloc(1, sizeof *c);
    if (!c)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    sigemptyset(&interrupt.sa_mask);
    sigaction(SIGRTMIN, &interrupt, NULL);
    gn_list_init(&c->sources);
    c->news_fd = news_fd;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, &monotonic);
    pthread_cond_init(&c->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret = c;
    return 0;
}

bool gn_closer_stop(struct gn_closer *c, int timeout_ms)
{
    int rc = 0;
    const struct timespec until = in_ns((uint64_t)timeout_ms * 1000000u);
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_broadcast(&c->work);
    while (c->n_threads && !rc)
        rc = pthread_cond_timedwait(&c->done, &c->lock, &until);
    const bool hangs = c->n_threads || c->n_pending;
    pthread_mutex_unlock(&c->lock);
    if (hangs)
        return false;
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    free(c->next);
    free(c);
    return true;
}

static bool make_room_locked(struct gn_closer *c, int fd)
{
    size_t n = c->n_next ? c->n_next : FIRST_ROOM;
    if ((size_t)fd < c->n_next)
        return true;
    while (n <= (size_t)fd)
        n *= 2;
    int *grown = realloc(c->next, n * sizeof *grown);
    if (!grown)
        return false;
    c->next = grown;
    c->n_next = n;
    return true;
}

void gn_closer_add(struct gn_closer *c, struct gn_closing *s, int fd)
{
    pthread_mutex_lock(&c->lock);
    /* Without memory for its number the descriptor stays open, and counts as waiting. */
    if (make_room_locked(c, fd)) {
        c->next[fd] = 0;
        if (s->last)
            c->next[s->last - 1] = fd + 1;
        else
            s->first = fd + 1;
        s->last = fd + 1;
        s->n_waiting++;
        list_locked(c, s);
    }
    c->n_pending++;
    add_thread_locked(c);
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

uint32_t gn_closer_pending_of(struct gn_closer *c, const struct gn_closing *s)
{
    pthread_mutex_lock(&c->lock);
    const uint32_t n = s->n_waiting + s->n_busy;
    pthread_mutex_unlock(&c->lock);
    return n;
}

uint32_t gn_closer_pending(struct gn_closer *c)
{
    pthread_mutex_lock(&c->lock);
    const uint32_t n = c->n_pending;
    pthread_mutex_unlock(&c->lock);
    return n;
}

void gn_closer_await(struct gn_closer *c)
{
    pthread_mutex_lock(&c->lock);
    c->awaited = true;
    pthread_mutex_unlock(&c->lock);
}
