/* SPDX-License-Identifier: Apache-2.0 */
/* Copies workers' lines to gantryd's stderr, as text, under their own name, and no more than a few. */
#include "daemon/worker_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BURST       64u
#define NS_PER_LINE UINT64_C(200000000)
#define MAX_READS   16 /* at once, so that a worker who never stops keeps nobody waiting */

static const char name[] = "gantry-worker: ";

static bool may_say(struct gn_worker_log *l)
{
    uint64_t now = gn_now_ns(), more = (now - l->since_ns) / NS_PER_LINE;
    if (more) {
        l->left = more > BURST - l->left ? BURST : l->left + (unsigned)more;
        l->since_ns = now;
    }
    if (gn_log_enabled(GN_LOG_DEBUG))
        return true;
    if (!l->left) {
        l->n_dropped++;
        return false;
    }
    l->left--;
    return true;
}

static void say(struct gn_worker_log *l)
{
    char text[sizeof l->line + 64];
    const bool ours = l->n >= sizeof name - 1 && memcmp(l->line, name, sizeof name - 1) == 0;
    if (!may_say(l))
        return;
    const int n = snprintf(text, sizeof text, "%s%.*s", ours ? "" : "gantry-worker: not in its own words: ", (int)l->n, l->line);
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

void gn_worker_log_drain(struct gn_worker_log *l)
{
    char bytes[4096];
    ssize_t n;
    for (int i = 0; i < MAX_READS && l->source.fd >= 0; i++) {
        n = read(l->source.fd, bytes, sizeof bytes);
        if (n > 0)
            take(l, bytes, (size_t)n);
        else if (n == 0)
            gn_loop_close(l->loop, &l->source);
        else
            return;
    }
}

static void ready(struct gn_source *s, uint32_t events)
{
    (void)events;
    gn_worker_log_drain(gn_container_of(s, struct gn_worker_log, source));
}

void gn_worker_log_init(struct gn_worker_log *l)
{
    memset(l, 0, sizeof *l);
    l->source.fd = -1;
}

int gn_worker_log_open(struct gn_worker_log *l, struct gn_loop *loop, int *ret_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    l->loop = loop;
    l->source.fd = ends[0];
    l->left = BURST;
    l->since_ns = gn_now_ns();
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
    if (l->n_dropped)
        gn_log(GN_LOG_WARN, "%u lines of a worker were left out", l->n_dropped);
    l->n_dropped = 0;
    if (l->source.fd >= 0)
        gn_loop_close(l->loop, &l->source);
}
