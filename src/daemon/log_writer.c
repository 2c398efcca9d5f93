/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes gantryd's log to stderr (log_writer.h). gn_log() calls write_line() on any
 * thread: it copies the line into a ring under a lock that is never held during a write, so it
 * never blocks. */
#include "daemon/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* PIPE_BUF, so that lines of other processes on the same pipe do not get in between. No line is
 * longer. */
#define PIECE_BYTES 4096u

static struct {
    /* set once */
    pthread_t thread;
    bool runs;
    /* guarded by the lock */
    pthread_mutex_t lock;
    pthread_cond_t more;    /* signalled when there are lines, or at the end */
    pthread_cond_t written; /* signalled when all lines are written */
    bool over, writes;
    size_t at, n; /* the waiting lines: n bytes from at on, in a ring */
    uint64_t n_dropped, n_dropped_told;
    char lines[GN_LOG_WRITER_BYTES];
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static bool put_locked(const char *line, size_t n)
{
    if (n > sizeof w.lines - w.n)
        return false;
    const size_t to = (w.at + w.n) % sizeof w.lines,
                 first = n < sizeof w.lines - to ? n : sizeof w.lines - to;
    memcpy(w.lines + to, line, first);
    memcpy(w.lines, line + first, n - first);
    w.n += n;
    return true;
}

/* Adds a line that tells how many were dropped at this place. */
static void put_dropped_locked(void)
{
    char line[128];
    if (w.n_dropped == w.n_dropped_told)
        return;
    const int n =
        snprintf(line, sizeof line,
                 "gantryd: warn: %llu lines were left out here: stderr did not take them in time\n",
                 (unsigned long long)(w.n_dropped - w.n_dropped_told));
    if (put_locked(line, (size_t)n))
        w.n_dropped_told = w.n_dropped;
}

static void write_line(const char *line, size_t n)
{
    pthread_mutex_lock(&w.lock);
    put_dropped_locked();
    if (w.n_dropped != w.n_dropped_told || !put_locked(line, n))
        w.n_dropped++;
    pthread_cond_signal(&w.more);
    pthread_mutex_unlock(&w.lock);
}

/* Takes as many whole lines as fit into a piece. */
static size_t take_locked(char piece[static PIECE_BYTES])
{
    size_t n = 0;
    if (!w.n) {
        w.at = 0; /* starts at the front again, to touch few pages */
        put_dropped_locked();
    }
    for (size_t i = 0; i < w.n && i < PIECE_BYTES; i++) {
        piece[i] = w.lines[(w.at + i) % sizeof w.lines];
        if (piece[i] == '\n')
            n = i + 1;
    }
    w.at = (w.at + n) % sizeof w.lines;
    w.n -= n;
    return n;
}

/* Writes everything, however long that takes. After an error the rest is lost: there is no other
 * place to report it. */
static void write_all(const char *piece, size_t n)
{
    while (n) {
        const ssize_t m = write(STDERR_FILENO, piece, n);
        if (m > 0) {
            piece += m;
            n -= (size_t)m;
        } else if (m < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (m == 0 || errno != EINTR) {
            return;
        }
    }
}

static void *run(void *unused)
{
    char piece[PIECE_BYTES];
    (void)unused;
    pthread_mutex_lock(&w.lock);
    for (;;) {
        const size_t n = take_locked(piece);
        if (!n) {
            w.writes = false;
            pthread_cond_broadcast(&w.written);
            if (w.over)
                break;
            pthread_cond_wait(&w.more, &w.lock);
            continue;
        }
        w.writes = true;
        pthread_mutex_unlock(&w.lock);
        write_all(piece, n);
        pthread_mutex_lock(&w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    return NULL;
}

int gn_log_writer_start(struct gn_error *err)
{
    sigset_t all, before;
    pthread_condattr_t monotonic;
    sigfillset(&all);
    w.over = false;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w.written, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&w.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return gn_fail(err, rc, NULL, "cannot start the log's thread: %s", strerror(rc));
    w.runs = true;
    gn_log_through(write_line);
    return 0;
}

void gn_log_writer_stop(int timeout_ms)
{
    struct timespec until;
    if (!w.runs)
        return;
    gn_log_through(NULL);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w.lock);
    w.over = true;
    pthread_cond_signal(&w.more);
    int rc = 0;
    while ((w.n || w.writes) && !rc)
        rc = pthread_cond_timedwait(&w.written, &w.lock, &until);
    const bool done = !w.n && !w.writes;
    w.n = 0;
    pthread_mutex_unlock(&w.lock);
    /* A thread that hangs in a write stays until the process ends. */
    if (done)
        pthread_join(w.thread, NULL);
    else
        pthread_detach(w.thread);
    w.runs = false;
}

uint64_t gn_log_writer_dropped(void)
{
    pthread_mutex_lock(&w.lock);
    const uint64_t n = w.n_dropped;
    pthread_mutex_unlock(&w.lock);
    return n;
}
