/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts Gantry's threads in a program. The guest library and the vGPU call it, on any thread. A
 * thread names itself: pthread_setname_np() for another thread opens a file for writing, which
 * could get the number of the program's stdout. It never changes the caller's signal mask.
 */
#include "base/thread.h"

#include "base/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct start {
    char name[16];
    void *(*run)(void *);
    void *arg;
};

static void *run_thread(void *arg)
{
    const struct start s = *(struct start *)arg;
    free(arg);
    if (s.name[0])
        prctl(PR_SET_NAME, s.name);
    return s.run(s.arg);
}

int gn_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret)
{
    struct start *s = calloc(1, sizeof *s);
    sigset_t ours, before;
    pthread_t thread;
    if (!s)
        return -ENOMEM;
    if (name)
        strncpy(s->name, name, sizeof s->name - 1);
    s->run = run;
    s->arg = arg;
    gn_signals_of_others(&ours);
    pthread_sigmask(SIG_SETMASK, &ours, &before);
    const int r = pthread_create(ret ? ret : &thread, NULL, run_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        free(s);
    else if (!ret)
        pthread_detach(thread);
    return -r;
}
