/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the descriptors and the memory that connections and vGPUs use in gantryd, and closes
 * connections when either runs short (connection_limits.h). Called by connections.c, create.c and
 * the listeners, on gantryd's thread. Never closes a connection that has a vGPU to get descriptors.
 */
#include "daemon/net/connection_limits.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/control.h"

#define MAX_IDLE       8192u
#define MAX_HELD_BYTES (UINT64_C(64) << 20)
#define RESERVE        320u /* one message carries at most 253 descriptors */
#define VGPU_BEGIN_FDS 16u  /* open at the same time while a vGPU is being created */
/* A tenant may exceed its limit by this many vGPUs when their programs have already exited. */
#define MAX_ENDING_VGPUS 32u
/* The peak of connections from which malloc_trim() is worth its cost. */
#define TRIM_CONNS   16
#define GREETING_NS  UINT64_C(1000000000) /* a well-behaved program has greeted within this time */
#define LOG_EVERY_NS UINT64_C(10000000000)

/* The soft limit of open files. Read each time: an operator may change it with prlimit. */
static uint32_t descriptor_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur > UINT32_MAX / 2)
        return UINT32_MAX / 2;
    return (uint32_t)files.rlim_cur;
}

/* Descriptors kept in reserve: at most a third of those that gantryd's own files leave. */
static uint32_t reserve_of(const struct gn_daemon *d, uint32_t files)
{
    const uint32_t part =
        files > d->conn_limits.n_own_fds ? (files - d->conn_limits.n_own_fds) / 3 : 0;
    return part < RESERVE ? part : RESERVE;
}

void gn_conn_limits_init(struct gn_daemon *d)
{
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *e; dir && (e = readdir(dir));)
        d->conn_limits.n_own_fds += e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir);
    if (dir)
        closedir(dir);
}

static uint32_t n_used(const struct gn_daemon *d)
{
    return d->conn_limits.n_own_fds + d->conn_limits.n_fds +
           d->conn_limits.n_vgpus * GN_CONNECTIONS_VGPU_FDS;
}

/* ---- eviction */

static void log_eviction(struct gn_daemon *d, const struct gn_conn *c, const char *why)
{
    uint64_t now = gn_now_ns();
    d->conn_limits.n_evicted++;
    if (d->conn_limits.reported_ns && now - d->conn_limits.reported_ns < LOG_EVERY_NS) {
        d->conn_limits.n_unreported++;
        return;
    }
    gn_log(GN_LOG_WARN,
           "%s: the connection of %d (\"%s\") is closed (%u others since the last such line)", why,
           (int)c->pid, c->program, d->conn_limits.n_unreported);
    d->conn_limits.reported_ns = now;
    d->conn_limits.n_unreported = 0;
}

/* The oldest connection of the user that has not greeted, unless it is younger than GREETING_NS;
 * otherwise the oldest one without a vGPU, except `spared`. NULL: there is none. */
static struct gn_conn *idlest_of(struct gn_quota *q, const struct gn_conn *spared)
{
    struct gn_conn *silent = gn_list_empty(&q->ungreeted)
                                 ? NULL
                                 : gn_list_first(&q->ungreeted, struct gn_conn, ungreeted);
    if (silent && gn_now_ns() - silent->since_ns > GREETING_NS)
        return silent;
    gn_list_for_each(c, &q->conns, struct gn_conn, of_quota)
    {
        if (!c->vgpu && c != spared)
            return c;
    }
    return NULL;
}

/* The connection to evict in this role: it belongs to the user with the most descriptors. */
static struct gn_conn *idlest_in(struct gn_daemon *d, enum gn_role role,
                                 const struct gn_conn *spared)
{
    struct gn_conn *found = NULL;
    gn_list_for_each(q, &d->quotas.all, struct gn_quota, link)
    {
        const bool holds_more = q->role == role && (!found || q->n_fds > found->quota->n_fds);
        struct gn_conn *c = holds_more ? idlest_of(q, spared) : NULL;
        found = c ? c : found;
    }
    return found;
}

static bool evict(struct gn_daemon *d, enum gn_role role, const struct gn_conn *spared)
{
    struct gn_conn *found = NULL;
    for (enum gn_role r = GN_ROLE_PROGRAM; r <= role && !found; r++)
        found = idlest_in(d, r, spared);
    if (!found)
        return false;
    log_eviction(d, found, "there are too many connections");
    gn_conn_close(found);
    return true;
}

bool gn_conn_limits_evict(struct gn_daemon *d, enum gn_role role)
{
    return evict(d, role, NULL);
}

/*
 * Descriptors that wait to be closed are still open: beyond half of the reserve they count as used.
 */
static uint32_t n_taken(struct gn_daemon *d, uint32_t reserve)
{
    const uint32_t closing = gn_quotas_closing(&d->quotas);
    return n_used(d) + (closing > reserve / 2 ? closing - reserve / 2 : 0);
}

static bool make_room(struct gn_daemon *d, enum gn_role role, uint32_t n_fds,
                      const struct gn_conn *spared)
{
    const bool is_operator = role == GN_ROLE_CONTROL;
    const uint32_t files = descriptor_limit(), reserve = reserve_of(d, files),
                   stay_free = is_operator ? reserve / 2 : reserve;
    while (d->n_conns - d->conn_limits.n_with_vgpus >= MAX_IDLE ||
           n_taken(d, reserve) + n_fds + stay_free > files)
        if (!evict(d, role, spared)) {
            gn_quotas_await(&d->quotas);
            return is_operator;
        }
    return true;
}

bool gn_conn_limits_make_room(struct gn_daemon *d, enum gn_role role, uint32_t n_fds)
{
    return make_room(d, role, n_fds, NULL);
}

/* ---- accounting */

void gn_conn_limits_add(struct gn_conn *c)
{
    struct gn_quota *q = c->quota;
    c->since_ns = gn_now_ns();
    gn_list_append(&q->conns, &c->of_quota);
    gn_list_append(&q->ungreeted, &c->ungreeted);
    if (++q->n_ungreeted > GN_CONNECTIONS_UNGREETED) {
        struct gn_conn *oldest = gn_list_first(&q->ungreeted, struct gn_conn, ungreeted);
        log_eviction(c->daemon, oldest, "a user has too many connections that do not greet");
        gn_conn_close(oldest);
    }
}

void gn_conn_limits_greeted(struct gn_conn *c)
{
    if (gn_list_empty(&c->ungreeted))
        return;
    gn_list_remove(&c->ungreeted);
    c->quota->n_ungreeted--;
}

void gn_conn_limits_closed(struct gn_daemon *d)
{
    if (d->n_conns > d->conn_limits.n_peak)
        d->conn_limits.n_peak = d->n_conns;
    if (d->conn_limits.n_peak >= TRIM_CONNS && d->n_conns < d->conn_limits.n_peak / 4) {
        (void)malloc_trim(0);
        d->conn_limits.n_peak = d->n_conns;
    }
}

static uint32_t count_fds(const struct gn_conn *c)
{
    uint32_t n = 1 + (c->process.fd >= 0) + (c->file_fd >= 0) + (c->late ? 2 : 0) +
                 (c->peer.secure ? 2 : 0); /* tls_shuttle.c */
    for (int i = 0; i < c->reader.n_fds; i++)
        n += c->reader.fds[i] >= 0;
    return n;
}

/* The connection of the user that holds the most memory. */
static struct gn_conn *largest_of(struct gn_quota *q)
{
    struct gn_conn *largest = NULL;
    gn_list_for_each(c, &q->conns, struct gn_conn, of_quota)
    {
        if (!largest || c->held_bytes > largest->held_bytes)
            largest = c;
    }
    return largest;
}

static struct gn_quota *heaviest_quota(struct gn_daemon *d)
{
    struct gn_quota *found = NULL;
    gn_list_for_each(q, &d->quotas.all, struct gn_quota, link)
    {
        if (!found || q->n_bytes > found->n_bytes)
            found = q;
    }
    return found;
}

void gn_conn_limits_account(struct gn_conn *c)
{
    struct gn_daemon *d = c->daemon;
    const bool open = c->socket.fd >= 0, has_vgpu = open && c->vgpu;
    /* GN_CONNECTIONS_VGPU_FDS covers the descriptors of a connection that has a vGPU. */
    const uint32_t fds = open && !c->vgpu ? count_fds(c) : 0;
    const size_t bytes = open ? c->n_request + c->writer.queued_bytes + c->reader.capacity : 0;
    d->conn_limits.n_with_vgpus += has_vgpu - c->counts_as_vgpus;
    c->counts_as_vgpus = has_vgpu;
    d->conn_limits.n_fds += fds - c->held_fds;
    c->quota->n_fds += fds - c->held_fds;
    c->held_fds = fds;
    d->conn_limits.n_bytes += bytes - c->held_bytes;
    c->quota->n_bytes += bytes - c->held_bytes;
    c->held_bytes = bytes;
    while (d->conn_limits.n_bytes > MAX_HELD_BYTES) {
        struct gn_quota *q = heaviest_quota(d);
        struct gn_conn *largest = q && q->n_bytes ? largest_of(q) : NULL;
        if (!largest)
            return;
        log_eviction(d, largest, "unfinished requests and unread answers use too much memory");
        gn_conn_close(largest);
    }
}

/* ---- vGPUs */

/* How many vGPUs the descriptor limit allows, over all tenants. */
static uint32_t n_places(const struct gn_daemon *d)
{
    const uint32_t files = descriptor_limit(),
                   own = reserve_of(d, files) + d->conn_limits.n_own_fds;
    return files > own ? (files - own) / GN_CONNECTIONS_VGPU_FDS : 0;
}

static uint32_t places_left(const struct gn_daemon *d)
{
    const uint32_t places = n_places(d);
    return places > d->conn_limits.n_vgpus ? places - d->conn_limits.n_vgpus : 0;
}

void gn_conn_limits_describe(const struct gn_daemon *d, struct gn_control_status *ret)
{
    ret->n_descriptors = n_used(d);
    ret->descriptor_limit = descriptor_limit();
    ret->vgpu_places = n_places(d);
    ret->n_refused_vgpus = d->conn_limits.n_refused_vgpus;
    ret->n_evicted = d->conn_limits.n_evicted;
}

/* The tenant's vGPUs, less those that have lost their program for good. */
static uint32_t n_living(const struct gn_daemon *d, const struct gn_tenant *t)
{
    uint32_t n = 0;
    gn_list_for_each(v, (struct gn_list *)(uintptr_t)&d->vgpus, struct gn_vgpu_record, link) n +=
        v->tenant == t && (v->conn || v->return_by_ns);
    return n;
}

/* The asking connection is never evicted to make room for its own vGPU: the attach is refused
 * instead. */
static int check_vgpu(const struct gn_conn *asker, const struct gn_tenant *t, struct gn_error *err)
{
    struct gn_daemon *d = asker->daemon;
    const uint32_t most = t->rules.vgpus, left = places_left(d);
    char fix[160];
    snprintf(fix, sizeof fix,
             "end some of its programs, or ask for more: gantry tenant set %.63s --vgpus N",
             t->rules.name);
    if (most && t->n_vgpus >= most &&
        (t->n_vgpus >= most + MAX_ENDING_VGPUS || n_living(d, t) >= most))
        return gn_fail(err, EDQUOT, fix, "the tenant \"%s\" has %u vGPU%s, and may have no more",
                       t->rules.name, most, most == 1 ? "" : "s");
    if (!most && t->n_vgpus >= left && left)
        return gn_fail(
            err, EDQUOT, fix,
            "the tenant \"%s\" has %u vGPU%s, and there is room for %u more of all tenants",
            t->rules.name, t->n_vgpus, t->n_vgpus == 1 ? "" : "s", left);
    if (!left || !make_room(d, GN_ROLE_PROGRAM, VGPU_BEGIN_FDS, asker))
        return gn_fail(
            err, EMFILE,
            "end some programs, or raise gantryd's limit of open files (LimitNOFILE, ulimit -n)",
            "gantryd has no descriptors left for another vGPU: it may have %u open",
            descriptor_limit());
    return 0;
}

int gn_conn_limits_admit_vgpu(struct gn_conn *c, struct gn_tenant *t, struct gn_error *err)
{
    const int rc = check_vgpu(c, t, err);
    if (!rc)
        return 0;
    t->n_refused_vgpus++;
    c->daemon->conn_limits.n_refused_vgpus++;
    gn_quota_log(c->quota, GN_LOG_WARN, "no vGPU for \"%s\" (%d): %s", c->program, (int)c->pid,
                 err->what);
    return rc;
}
