/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of the sources of connections: created on the first connection, shared by all
 * connections and vGPUs of a source, and remembered for a while after the last one ends (quota.h).
 * Also limits the log lines that a source causes, and passes its descriptors to the closer thread.
 * Called by connections.c, connection_limits.c, create.c and others on gantryd's thread; never
 * blocks.
 */
#include "daemon/net/quota.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int gn_quotas_init(struct gn_quotas *qs, int news_fd, struct gn_error *err)
{
    memset(qs, 0, sizeof *qs);
    gn_list_init(&qs->all);
    return gn_closer_start(news_fd, &qs->closer, err);
}

static bool is_in_use(struct gn_quota *q)
{
    return q->n_users || gn_closer_pending_of(q->of->closer, &q->closing);
}

static void free_quota(struct gn_quota *q)
{
    gn_list_remove(&q->link);
    q->of->n_unused--;
    free(q);
}

void gn_quotas_fini(struct gn_quotas *qs, int timeout_ms)
{
    if (!gn_closer_stop(qs->closer, timeout_ms))
        return;
    gn_list_for_each(q, &qs->all, struct gn_quota, link) free_quota(q);
}

uint32_t gn_quotas_closing(struct gn_quotas *qs)
{
    return gn_closer_pending(qs->closer);
}

void gn_quotas_await(struct gn_quotas *qs)
{
    gn_closer_await(qs->closer);
}

void gn_quotas_close(struct gn_quotas *qs, int fd)
{
    gn_closer_add(qs->closer, &qs->nobodys, fd);
}

void gn_quota_close(struct gn_quota *q, int *fd)
{
    if (*fd >= 0)
        gn_closer_add(q->of->closer, &q->closing, *fd);
    *fd = -1;
}

static void close_unused_fd(struct gn_fd_sink *sink, int fd)
{
    gn_quota_close(gn_container_of(sink, struct gn_quota, sink), &fd);
}

bool gn_quota_is_stuck(struct gn_quota *q)
{
    return gn_closer_pending_of(q->of->closer, &q->closing) > GN_QUOTA_MOST_CLOSING;
}

uint64_t gn_quota_source_of_user(uid_t uid)
{
    return uid;
}

uint64_t gn_quota_source_of_address(const char *address)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const char *port = strrchr(address, ':');
    for (const char *p = address; *p && p != port; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return hash | UINT64_C(1) << 63;
}

static void insert_first(struct gn_list *head, struct gn_list *entry)
{
    gn_list_append(head->next, entry);
}

static struct gn_quota *find(struct gn_quotas *qs, uint64_t source, enum gn_role role)
{
    gn_list_for_each(q, &qs->all, struct gn_quota, link)
    {
        if (q->source == source && q->role == role)
            return q;
    }
    return NULL;
}

static void forget_oldest(struct gn_quotas *qs)
{
    for (struct gn_list *at = qs->all.prev; at != &qs->all; at = at->prev) {
        struct gn_quota *q = gn_container_of(at, struct gn_quota, link);
        if (!is_in_use(q)) {
            free_quota(q);
            return;
        }
    }
}

struct gn_quota *gn_quotas_get(struct gn_quotas *qs, uint64_t source, enum gn_role role)
{
    struct gn_quota *q = find(qs, source, role);
    if (!q) {
        q = calloc(1, sizeof *q);
        if (!q)
            return NULL;
        q->sink.take = close_unused_fd;
        q->of = qs;
        q->source = source;
        q->role = role;
        gn_list_init(&q->link);
        gn_list_init(&q->conns);
        gn_list_init(&q->ungreeted);
        gn_list_init(&q->turn[0]);
        gn_list_init(&q->turn[1]);
        for (int kind = 0; kind < GN_TURNS; kind++)
            gn_list_init(&q->waiting[kind]);
        qs->n_unused++;
    }
    gn_list_remove(&q->link);
    insert_first(&qs->all, &q->link);
    return gn_quota_hold(q);
}

struct gn_quota *gn_quota_hold(struct gn_quota *q)
{
    if (q && q->n_users++ == 0)
        q->of->n_unused--;
    return q;
}

void gn_quota_put(struct gn_quota *q)
{
    if (!q || --q->n_users)
        return;
    if (++q->of->n_unused > GN_QUOTAS_REMEMBERED)
        forget_oldest(q->of);
}

void gn_quota_log(struct gn_quota *q, enum gn_log_level level, const char *fmt, ...)
{
    char text[768], more[64] = "";
    static const struct gn_bucket_bounds all = {4 * GN_LINES_BURST, GN_LINE_PERIOD_NS / 4};
    uint32_t n = 0;
    const uint64_t now = gn_now_ns();
    va_list ap;
    if (!gn_log_enabled(level))
        return;
    if (level <= GN_LOG_WARN && !gn_line_limit_pass(&q->lines, now, &n))
        return;
    if (level <= GN_LOG_WARN && !gn_log_enabled(GN_LOG_DEBUG) &&
        !gn_bucket_spend(&q->of->lines, &all, now)) {
        q->lines.n_dropped += n + 1;
        return;
    }
    if (n)
        snprintf(more, sizeof more, " (%u lines about this user were left out before)", n);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    gn_log(level, "%s%s", text, more);
}
