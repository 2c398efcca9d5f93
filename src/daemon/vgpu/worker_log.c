/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies lines of workers to gantryd's stderr (worker_log.h): as text, under the worker's name,
 * and a bounded number of them. gantryd's thread; it never waits.
 */
#include "daemon/vgpu/worker_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define MAX_READS  2  /* at once, so that a worker that writes without end delays no other */
#define LAST_READS 16 /* as much as a pipe holds */

static const char name[] = "gantry-worker: ";

static void say(struct gn_worker_log *l)
{
    char text[sizeof l->line + 64];
    const bool ours = l->n >= sizeof name - 1 && memcmp(l->line, name, sizeof name - 1) == 0;
    uint32_t n_dropped;
    if (!gn_line_limit_pass(l->limit, gn_now_ns(), &n_dropped))
        return;
    if (n_dropped)
        gn_log(GN_LOG_WARN, "%u lines of a user's workers were left out here", n_dropped);
    const int n = snprintf(text, sizeof text, "%s%.*s",
                           ours ? "" : "gantry-worker: not in its own words: ", (int)l->n, l->line);
    gn_log_line(text, (size_t)n);
}

static void take(struct gn_worker_log *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            if (!l->cut)
                say(l);
            l->n = 0;
            l->cut = false;
        } else if (!l->cut && bytes[i]) {
            l->line[l->n++] = bytes[i];
            if (l->n == sizeof l->line) {
                say(l);
                l->cut = true;
            }
        }
    }
}

static void copy(struct gn_worker_log *l, int most_reads)
{
    char bytes[4096];
    ssize_t n;
    for (int i = 0; i < most_reads && l->source.fd >= 0; i++) {
        n = read(l->source.fd, bytes, sizeof bytes);
        if (n > 0)
            take(l, bytes, (size_t)n);
        else if (n == 0)
            gn_loop_close(l->loop, &l->source);
        else
            return;
    }
}

void gn_worker_log_drain(struct gn_worker_log *l)
{
    copy(l, LAST_READS);
}

static void ready(struct gn_source *s, uint32_t events)
{
    (void)events;
    copy(gn_container_of(s, struct gn_worker_log, source), MAX_READS);
}

void gn_worker_log_init(struct gn_worker_log *l, struct gn_line_limit *limit)
{
    memset(l, 0, sizeof *l);
    l->limit = limit;
    l->source.fd = -1;
}

int gn_worker_log_open(struct gn_worker_log *l, struct gn_loop *loop, int *ret_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    l->loop = loop;
    l->source.fd = ends[0];
    int rc = gn_loop_add(loop, &l->source, EPOLLIN, ready);
    if (rc) {
        close(ends[0]);
        close(ends[1]);
        l->source.fd = -1;
        return rc;
    }
    *ret_fd = ends[1];
    return 0;
}

void gn_worker_log_close(struct gn_worker_log *l)
{
    gn_worker_log_drain(l);
    if (l->n && !l->cut)
        say(l);
    l->n = 0;
    if (l->source.fd >= 0)
        gn_loop_close(l->loop, &l->source);
}
