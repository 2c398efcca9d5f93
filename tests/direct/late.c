/* SPDX-License-Identifier: Apache-2.0 */
#include "late.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct word {
    struct word *next;
    char kind;
    void (*say)(void *arg);
    void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
/* lock */
static struct word *words, **end_of_words = &words;
static char
    let[64]; /* the kinds that may be said; a kind that is not late is in it from the start */
static bool ends, runs;
static pthread_t sayer, listener;
static int fifo = -1, stop[2] = {-1, -1};

static void report(const char *what, char kind)
{
    const char *path = getenv("LATE_REPORT");
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (!f)
        return;
    fprintf(f, "%s %c\n", what, kind);
    fclose(f);
}

bool late_is(char kind)
{
    const char *kinds = getenv("LATE");
    return kinds && strchr(kinds, kind);
}

static bool may_locked(char kind)
{
    return ends || !late_is(kind) || strchr(let, kind);
}

static struct word *next_locked(void)
{
    for (struct word **w = &words; *w; w = &(*w)->next)
        if (may_locked((*w)->kind)) {
            struct word *found = *w;
            *w = found->next;
            if (!*w)
                end_of_words = w;
            return found;
        }
    return NULL;
}

static void *say_them(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct word *w = next_locked();
        if (!w && ends)
            break;
        if (!w) {
            pthread_cond_wait(&wake, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        w->say(w->arg);
        report("said", w->kind);
        free(w);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *listen_to(void *arg)
{
    char kind[2] = {0};
    struct pollfd p[2] = {{.fd = fifo, .events = POLLIN}, {.fd = stop[0], .events = POLLIN}};
    while (poll(p, 2, -1) > 0 && !p[1].revents && read(fifo, kind, 1) == 1) {
        pthread_mutex_lock(&lock);
        if (strlen(let) + 1 < sizeof let)
            strcat(let, kind);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

void late_start(void)
{
    const char *path = getenv("LATE_FIFO");
    /* For writing, too: so it has no end while nobody else has it. */
    fifo = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fifo < 0)
        return;
    if (pipe(stop) || pthread_create(&sayer, NULL, say_them, NULL) ||
        pthread_create(&listener, NULL, listen_to, NULL))
        abort();
    runs = true;
}

void late_end(void)
{
    if (!runs)
        return;
    close(stop[1]);
    pthread_join(listener, NULL);
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(sayer, NULL);
    close(stop[0]);
    close(fifo);
}

void late_say(char kind, void (*say)(void *arg), void *arg)
{
    if (!runs && !late_is(kind)) {
        say(arg);
        return;
    }
    struct word *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *w = (struct word){.kind = kind, .say = say, .arg = arg};
    if (late_is(kind))
        report("asked", kind);
    pthread_mutex_lock(&lock);
    *end_of_words = w;
    end_of_words = &w->next;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
}

void late_stand(char kind)
{
    if (!runs || !late_is(kind) || !pthread_equal(pthread_self(), sayer))
        return;
    report("stands", kind);
    pthread_mutex_lock(&lock);
    while (!may_locked(kind))
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
}
