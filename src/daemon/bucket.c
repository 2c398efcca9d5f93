/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets and limits on log lines (bucket.h). Called by quota.c, connection_turns.c and
 * worker_log.c on gantryd's thread. Pure, except that it reads the log level; allocates nothing. */
#include "daemon/bucket.h"

#include "base/log.h"

uint64_t gn_bucket_ready_at(const struct gn_bucket *b, const struct gn_bucket_bounds *bounds,
                            uint64_t now_ns)
{
    const uint64_t room_ns = (bounds->burst - 1) * bounds->period_ns;
    return b->full_at_ns > now_ns + room_ns ? b->full_at_ns - room_ns : now_ns;
}

bool gn_bucket_spend(struct gn_bucket *b, const struct gn_bucket_bounds *bounds, uint64_t now_ns)
{
    if (gn_bucket_ready_at(b, bounds, now_ns) > now_ns)
        return false;
    b->full_at_ns = (b->full_at_ns > now_ns ? b->full_at_ns : now_ns) + bounds->period_ns;
    return true;
}

bool gn_line_limit_pass(struct gn_line_limit *l, uint64_t now_ns, uint32_t *ret_dropped)
{
    static const struct gn_bucket_bounds bounds = {GN_LINES_BURST, GN_LINE_PERIOD_NS};
    if (!gn_log_enabled(GN_LOG_DEBUG) && !gn_bucket_spend(&l->bucket, &bounds, now_ns)) {
        l->n_dropped++;
        return false;
    }
    *ret_dropped = l->n_dropped;
    l->n_dropped = 0;
    return true;
}
