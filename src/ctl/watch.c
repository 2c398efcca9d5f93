/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the progress of moves while a command waits for them: a thread sends `ls` to gantryd ten
 * times a second on a connection of its own. gantryd answers from the counters of the moving vGPUs
 * and asks no worker. The first request is sent after LOOK_NS, so a short move causes none.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "link/link.h"

#define LOOK_NS     100000000
#define PATIENCE_MS 1000 /* for a reply; limits how long gn_ctl_watch_end() can block */
#define MOST        64   /* maximum number of vGPUs that are summed up */

struct gn_ctl_watch {
    const struct gn_ctl_args *args;
    const char *vgpu;
    pthread_t thread;
    pthread_mutex_t lock; /* also protects the output */
    pthread_cond_t wake;
    bool ends;
    struct gn_progress progress;
};

/* Reads the moving vGPUs. False: gantryd cannot be asked; the watch ends. */
static bool look(const struct gn_ctl_watch *w, struct gn_link **link, struct gn_moving *all,
                 unsigned *ret_n)
{
    struct gn_error ignored;
    json_t *reply = NULL, *v;
    size_t i;
    *ret_n = 0;
    if (!*link) {
        if (gn_link_connect_control(w->args->connect, GN_ROLE_VIEW, link, &ignored))
            return false;
        gn_link_set_patience(*link, PATIENCE_MS);
    }
    if (gn_client_ask_on(*link, "{\"version\":1,\"request\":\"ls\"}", &reply, &ignored))
        return false;
    json_array_foreach(json_object_get(reply, "vgpus"), i, v)
    {
        struct gn_moving m;
        if (*ret_n < MOST && gn_moving_read(v, &m) &&
            (!w->vgpu || !strncasecmp(m.id, w->vgpu, strlen(w->vgpu))))
            all[(*ret_n)++] = m;
    }
    json_decref(reply);
    return true;
}

static void *watch(void *arg)
{
    struct gn_ctl_watch *w = arg;
    struct gn_link *link = NULL;
    struct gn_moving all[MOST];
    char text[GN_PROGRESS_BYTES];
    unsigned n;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&w->lock);
        const bool known = look(w, &link, all, &n);
        pthread_mutex_lock(&w->lock);
        if (!known)
            break;
        if (!w->ends && gn_progress_look(&w->progress, all, n, gn_now_ns(), text)) {
            fputs(text, stderr);
            fflush(stderr);
        }
    }
    pthread_mutex_unlock(&w->lock);
    if (link)
        gn_link_close(link);
    return NULL;
}

struct gn_ctl_watch *gn_ctl_watch_start(const struct gn_ctl_args *args, const char *vgpu)
{
    struct gn_ctl_watch *w = args->json || args->quiet ? NULL : calloc(1, sizeof *w);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (!w)
        return NULL;
    w->args = args;
    w->vgpu = vgpu;
    gn_progress_init(&w->progress, args->command, isatty(STDERR_FILENO), gn_now_ns());
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* Signals go to the main thread only. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        free(w);
        return NULL;
    }
    return w;
}

void gn_ctl_watch_hold(struct gn_ctl_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    fputs(gn_progress_erase(&w->progress), stderr);
    fflush(stderr);
}

void gn_ctl_watch_go_on(struct gn_ctl_watch *w)
{
    if (w)
        pthread_mutex_unlock(&w->lock);
}

void gn_ctl_watch_end(struct gn_ctl_watch *w)
{
    if (!w)
        return;
    gn_ctl_watch_hold(w);
    w->ends = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
