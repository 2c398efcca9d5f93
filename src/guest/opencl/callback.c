/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the program's callbacks: on one thread of Gantry's, with signals blocked, in the order of
 * the events, without locks. The watcher thread receives the worker's notices and queues them here.
 * It never runs the program's code itself, since that may wait for anything.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "guest/opencl/callback.h"
#include "opencl_guest.h"
#include "shm/park.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct gn_list link;
    void (*run)(void *);
    void *arg;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle; /* there is a job; there is no job, and none is running */
    struct gn_list jobs;
    uint32_t epoch; /* of the thread; if it differs, a fork has lost the thread */
    pthread_t thread;
    bool ready, runs;           /* the thread exists; a job is running */
    _Atomic bool looks;         /* the thread is awake, or sleeps for GN_PARK_LOOK_NS at most */
    _Atomic uint32_t n_awaited; /* callbacks that the program still expects */
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int wait_locked(pthread_cond_t *c, uint64_t for_ns)
{
    const uint64_t until_ns = gn_now_ns() + for_ns;
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    return pthread_cond_timedwait(c, &callbacks.lock, &until);
}

/*
 * Waits for a job. An expected callback may never come: a watcher is not woken when the program
 * closes its sockets, so this thread checks the sessions at intervals.
 */
static void wait_for_job_locked(void)
{
    bool looks = true;
    while (gn_list_empty(&callbacks.jobs)) {
        /*
         * Stored before the count is read: either this thread sees the new callback, or
         * expect_callback() sees `looks` false.
         */
        atomic_store_explicit(&callbacks.looks, looks, memory_order_seq_cst);
        if (!looks && !atomic_load_explicit(&callbacks.n_awaited, memory_order_seq_cst)) {
            pthread_cond_wait(&callbacks.wake, &callbacks.lock);
        } else if (!looks) {
            looks = true;
        } else if (wait_locked(&callbacks.wake, GN_PARK_LOOK_NS) == ETIMEDOUT) {
            looks = atomic_load_explicit(&callbacks.n_awaited, memory_order_seq_cst) != 0;
            pthread_mutex_unlock(&callbacks.lock);
            if (looks)
                gn_sessions_look();
            pthread_mutex_lock(&callbacks.lock);
        }
    }
    atomic_store_explicit(&callbacks.looks, true, memory_order_relaxed);
}

static void *run_callbacks(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&callbacks.lock);
    callbacks.thread = pthread_self();
    for (;;) {
        wait_for_job_locked();
        struct job *j = gn_list_first(&callbacks.jobs, struct job, link);
        gn_list_remove(&j->link);
        callbacks.runs = true;
        pthread_mutex_unlock(&callbacks.lock);
        j->run(j->arg);
        free(j);
        pthread_mutex_lock(&callbacks.lock);
        callbacks.runs = false;
        if (gn_list_empty(&callbacks.jobs))
            pthread_cond_broadcast(&callbacks.idle);
    }
    return NULL;
}

static int start_locked(void)
{
    const uint32_t epoch = atomic_load_explicit(&gn_epoch, memory_order_relaxed);
    pthread_condattr_t attr;
    if (callbacks.ready && callbacks.epoch == epoch)
        return 0;
    gn_list_init(&callbacks.jobs);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&callbacks.wake, &attr);
    pthread_cond_init(&callbacks.idle, &attr);
    pthread_condattr_destroy(&attr);
    callbacks.runs = false;
    if (gn_thread_start(GN_THREAD_PREFIX "call", run_callbacks, NULL, NULL))
        return -1;
    callbacks.ready = true;
    callbacks.epoch = epoch;
    return 0;
}

void gn_callbacks_forked(void)
{
    pthread_mutex_init(&callbacks.lock, NULL);
    atomic_store_explicit(&callbacks.n_awaited, 0, memory_order_relaxed);
    atomic_store_explicit(&callbacks.looks, false, memory_order_relaxed);
}

/* Announces one more expected callback, which gn_callback_later will deliver. */
static void expect_callback(void)
{
    atomic_fetch_add_explicit(&callbacks.n_awaited, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&callbacks.looks, memory_order_seq_cst))
        return;
    pthread_mutex_lock(&callbacks.lock);
    if (!start_locked())
        pthread_cond_signal(&callbacks.wake);
    pthread_mutex_unlock(&callbacks.lock);
}

int gn_callback_later(void (*job)(void *), void *arg)
{
    struct job *j = malloc(sizeof *j);
    if (!j)
        return -1;
    gn_list_init(&j->link);
    j->run = job;
    j->arg = arg;
    pthread_mutex_lock(&callbacks.lock);
    int r = start_locked();
    if (!r) {
        gn_list_append(&callbacks.jobs, &j->link);
        pthread_cond_signal(&callbacks.wake);
    }
    pthread_mutex_unlock(&callbacks.lock);
    if (r)
        free(j);
    return r;
}

void gn_callbacks_finish(uint64_t within_ns)
{
    pthread_mutex_lock(&callbacks.lock);
    const bool there = callbacks.ready &&
                       callbacks.epoch == atomic_load_explicit(&gn_epoch, memory_order_relaxed) &&
                       !pthread_equal(pthread_self(), callbacks.thread);
    while (there && (callbacks.runs || !gn_list_empty(&callbacks.jobs)))
        if (wait_locked(&callbacks.idle, within_ns) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&callbacks.lock);
}

/* ---- events */

struct watch {
    struct gn_list link;
    uint64_t cookie;
    struct gn_cl_event *event; /* reference */
    cl_int status;
    void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
    void *user_data;
};

static void run_event_callback(void *arg)
{
    struct watch *w = arg;
    /* Data that the program may read after the callback must have arrived. */
    gn_settle(gn_cl_session_of(&w->event->o));
    w->notify((cl_event)w->event, w->status, w->user_data);
    gn_object_unref(&w->event->o);
    free(w);
}

/*
 * The worker sends the notice of a completion, and then writes it to the event table. The program's
 * callback runs after both. On the callback thread.
 */
static void run_when_event_complete(void *arg)
{
    struct watch *w = arg;
    struct gn_session *s = w->event->o.session;
    int32_t error;
    if (w->status <= CL_COMPLETE)
        (void)gn_event_wait(&s->events[w->event->o.id], &s->waiter, &error);
    run_event_callback(w);
}

static void queue_event_callback(struct watch *w, cl_int status)
{
    atomic_fetch_sub_explicit(&callbacks.n_awaited, 1, memory_order_relaxed);
    w->status = status;
    if (gn_callback_later(run_when_event_complete, w))
        run_event_callback(w);
}

/* The vGPU is lost: every callback that still waits is called with an error. */
static void fail_watches(struct gn_cl_session *s)
{
    for (;;) {
        struct watch *w = NULL;
        pthread_mutex_lock(&s->watch_lock);
        if (!gn_list_empty(&s->watches)) {
            w = gn_list_first(&s->watches, struct watch, link);
            gn_list_remove(&w->link);
        }
        pthread_mutex_unlock(&s->watch_lock);
        if (!w)
            return;
        queue_event_callback(w, CL_OUT_OF_RESOURCES);
    }
}

cl_int CL_API_CALL gn_clSetEventCallback(cl_event event, cl_int type,
                                         void(CL_CALLBACK *pfn_notify)(cl_event, cl_int, void *),
                                         void *user_data)
{
    struct gn_cl_event *e = gn_object_of(event, GN_KIND_EVENT);
    if (!e)
        return CL_INVALID_EVENT;
    if (!pfn_notify || (type != CL_COMPLETE && type != CL_RUNNING && type != CL_SUBMITTED))
        return CL_INVALID_VALUE;
    struct gn_session *session = e->o.session;
    struct gn_cl_session *s = gn_cl_session_of(&e->o);
    struct watch *w = calloc(1, sizeof *w);
    if (!w)
        return CL_OUT_OF_HOST_MEMORY;
    w->event = e;
    w->notify = pfn_notify;
    w->user_data = user_data;
    gn_object_ref(&e->o);
    pthread_mutex_lock(&s->watch_lock);
    uint64_t cookie = w->cookie = ++s->next_cookie;
    gn_list_append(&s->watches, &w->link);
    pthread_mutex_unlock(&s->watch_lock);
    expect_callback();
    gn_send_WatchEvent(session, (cl_uint)e->o.id, type, cookie);
    /* From here on the callback may release the event. */
    if (gn_session_lost(session))
        fail_watches(s);
    return CL_SUCCESS;
}

static void handle_event_notice(struct gn_cl_session *s, const void *payload)
{
    struct gn_session_event heard;
    struct watch *found = NULL;
    memcpy(&heard, payload, sizeof heard);
    pthread_mutex_lock(&s->watch_lock);
    gn_list_for_each(w, &s->watches, struct watch, link)
    {
        if (w->cookie == heard.cookie) {
            gn_list_remove(&w->link);
            found = w;
            break;
        }
    }
    pthread_mutex_unlock(&s->watch_lock);
    if (found)
        queue_event_callback(found, heard.status);
}

/* ---- contexts */

struct context_listener {
    struct gn_list link;
    struct gn_cl_context *context;
};

struct context_notice {
    struct gn_cl_context *context; /* reference */
    char text[];
};

static void run_context_callback(void *arg)
{
    struct context_notice *n = arg;
    n->context->notify(n->text, NULL, 0, n->context->user_data);
    gn_object_unref(&n->context->o);
    free(n);
}

void gn_context_listen(struct gn_cl_context *c)
{
    struct gn_cl_session *s = gn_cl_session_of(&c->o);
    struct context_listener *l = malloc(sizeof *l);
    if (!l)
        return;
    l->context = c;
    pthread_mutex_lock(&s->watch_lock);
    gn_list_append(&s->contexts, &l->link);
    pthread_mutex_unlock(&s->watch_lock);
}

void gn_context_deaf(struct gn_cl_context *c)
{
    struct gn_cl_session *s = gn_cl_session_of(&c->o);
    pthread_mutex_lock(&s->watch_lock);
    gn_list_for_each(l, &s->contexts, struct context_listener, link)
    {
        if (l->context == c) {
            gn_list_remove(&l->link);
            free(l);
        }
    }
    pthread_mutex_unlock(&s->watch_lock);
}

/*
 * Queues a text, with its terminating NUL, for the callback of the context with this id, if the
 * context still exists.
 */
static void notify_context(struct gn_cl_session *s, uint64_t id, const char *text, size_t bytes)
{
    struct context_notice *notice = malloc(sizeof *notice + bytes);
    if (!notice)
        return;
    notice->context = NULL;
    memcpy(notice->text, text, bytes);
    pthread_mutex_lock(&s->watch_lock);
    gn_list_for_each(l, &s->contexts, struct context_listener, link)
    {
        /* A context with no references left is not revived. */
        _Atomic uint32_t *n_refs = &l->context->o.n_refs;
        uint32_t refs = atomic_load_explicit(n_refs, memory_order_relaxed);
        while (l->context->o.id == id && refs && !notice->context)
            if (atomic_compare_exchange_weak_explicit(n_refs, &refs, refs + 1, memory_order_acquire,
                                                      memory_order_relaxed))
                notice->context = l->context;
    }
    pthread_mutex_unlock(&s->watch_lock);
    if (!notice->context)
        free(notice);
    else if (gn_callback_later(run_context_callback, notice))
        run_context_callback(notice);
}

/* The payload may be unaligned. */
static void handle_context_notice(struct gn_cl_session *s, const void *payload, uint32_t n)
{
    struct gn_session_context head;
    const char *text = (const char *)payload + sizeof head;
    if (n < sizeof head)
        return;
    memcpy(&head, payload, sizeof head);
    if (!head.text_bytes || head.text_bytes > n - sizeof head || text[head.text_bytes - 1])
        return;
    notify_context(s, head.cookie, text, head.text_bytes);
}

/* One by one, without the lock: contexts may be released and created meanwhile. */
static void notify_of_loss(struct gn_cl_session *s)
{
    const char *why = atomic_load_explicit(&s->session->lost_why, memory_order_acquire);
    char text[256];
    const int n = snprintf(text, sizeof text, "the vGPU is lost: %s",
                           why ? why : "its worker or gantryd has ended");
    uint64_t reported = 0;
    for (;;) {
        uint64_t next = UINT64_MAX;
        pthread_mutex_lock(&s->watch_lock);
        gn_list_for_each(l, &s->contexts, struct context_listener, link)
        {
            if (l->context->o.id > reported && l->context->o.id < next)
                next = l->context->o.id;
        }
        pthread_mutex_unlock(&s->watch_lock);
        if (next == UINT64_MAX)
            return;
        notify_context(s, next, text, (size_t)n + 1);
        reported = next;
    }
}

void gn_callback_frame(struct gn_session *session, uint16_t op, const void *payload, uint32_t n)
{
    struct gn_cl_session *s = session->detail;
    if (!s)
        return;
    if (op == GN_SESSION_EVENT && n == sizeof(struct gn_session_event)) {
        handle_event_notice(s, payload);
    } else if (op == GN_SESSION_CONTEXT) {
        handle_context_notice(s, payload, n);
    } else if (!payload) {
        fail_watches(s);
        if (gn_session_lost(session))
            notify_of_loss(s);
    }
}
