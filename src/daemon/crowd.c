/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connections may take of gantryd together, so that nobody keeps others out by holding what there is:
 * descriptors by connections that say nothing, memory by requests that do not end and answers that are not
 * read. Who has a vGPU is left alone. gantryd's only thread.
 */
#include "daemon/crowd.h"

#include <malloc.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"

#define MAX_CONNS      8192
#define MAX_HELD_BYTES (UINT64_C(64) << 20)
#define CROWD          16 /* from so many on, memory that it leaves behind is worth the trouble */
#define LOG_EVERY_NS   UINT64_C(10000000000)

/* A vGPU takes four descriptors more than its connection: there must be some left for it. */
static uint32_t limit(void)
{
    static uint32_t n;
    struct rlimit files;
    if (n == 0) {
        n = MAX_CONNS;
        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < n)
            n = (uint32_t)(files.rlim_cur / 2);
    }
    return n;
}

static void tell(struct gn_daemon *d, const struct gn_conn *c, const char *why)
{
    uint64_t now = gn_now_ns();
    if (d->crowd_told_ns && now - d->crowd_told_ns < LOG_EVERY_NS) {
        d->n_crowd_untold++;
        return;
    }
    gn_log(GN_LOG_WARN, "%s: the connection of %d (\"%s\") is closed (%u others since the last such line)", why, (int)c->pid, c->program,
           d->n_crowd_untold);
    d->crowd_told_ns = now;
    d->n_crowd_untold = 0;
}

/* The oldest that holds a place and has no vGPU; first of those that have not even said who they are. */
static struct gn_conn *idlest(struct gn_daemon *d)
{
    struct gn_conn *found = NULL;
    gn_list_for_each(c, &d->conns, struct gn_conn, link)
    {
        if (c->vgpu || c->socket.fd < 0)
            continue;
        if (!c->greeted)
            return c;
        if (!found)
            found = c;
    }
    return found;
}

bool gn_crowd_evict(struct gn_daemon *d)
{
    struct gn_conn *c = idlest(d);
    if (!c)
        return false;
    tell(d, c, "there are too many connections");
    gn_conn_close(c);
    return true;
}

bool gn_crowd_make_room(struct gn_daemon *d)
{
    return d->n_conns < limit() || gn_crowd_evict(d);
}

void gn_crowd_gone(struct gn_daemon *d)
{
    if (d->n_conns > d->n_crowd_peak)
        d->n_crowd_peak = d->n_conns;
    if (d->n_crowd_peak >= CROWD && d->n_conns < d->n_crowd_peak / 4) {
        (void)malloc_trim(0);
        d->n_crowd_peak = d->n_conns;
    }
}

void gn_crowd_account(struct gn_conn *c)
{
    struct gn_daemon *d = c->daemon;
    size_t now = c->socket.fd < 0 ? 0 : c->n_request + c->writer.queued_bytes;
    d->n_held_bytes += now - c->n_held_bytes;
    c->n_held_bytes = now;
    while (d->n_held_bytes > MAX_HELD_BYTES) {
        struct gn_conn *largest = NULL;
        gn_list_for_each(o, &d->conns, struct gn_conn, link) if (!largest || o->n_held_bytes > largest->n_held_bytes) largest = o;
        if (!largest || !largest->n_held_bytes)
            return;
        tell(d, largest, "requests and answers that nobody ends take too much memory");
        gn_conn_close(largest);
    }
}
