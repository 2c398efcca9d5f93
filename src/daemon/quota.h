/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_QUOTA_H
#define GN_DAEMON_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/bucket.h"

/*
 * What one source has of gantryd at a time, and how often it may have gantryd act. A source is a user of this machine, whatever its
 * processes and tenants, or an address elsewhere. There is one quota for all connections and vGPUs of a source; one that nobody uses is
 * remembered for a while, so that nobody gets a fresh one by coming back. gantryd's thread.
 */
#define GN_QUOTAS_REMEMBERED 64u

struct gn_quotas {
    struct gn_list all; /* those used last first */
    uint32_t n_unused;
    struct gn_bucket lines; /* of all sources together: a source of many numbers has no more than others */
};

struct gn_quota {
    struct gn_list link;
    struct gn_quotas *of;
    uint64_t source;
    uint32_t n_users;                  /* connections, vGPUs */
    struct gn_line_limit lines;        /* about the source */
    struct gn_line_limit worker_lines; /* that its workers write */
};

void gn_quotas_init(struct gn_quotas *qs);
void gn_quotas_fini(struct gn_quotas *qs);

uint64_t gn_quota_source_of_user(uid_t uid);
/* HOST:PORT, as in gn_remote_peer; the port is another one each time, and does not count. */
uint64_t gn_quota_source_of_address(const char *address);

/* That of a source; NULL: no memory. Give it back with gn_quota_put(), which takes NULL, too. */
struct gn_quota *gn_quotas_get(struct gn_quotas *qs, uint64_t source);
struct gn_quota *gn_quota_hold(struct gn_quota *q);
void gn_quota_put(struct gn_quota *q);

/* A line of the log that the source may cause. WARN and above pass the limits of `lines`. */
void gn_quota_log(struct gn_quota *q, enum gn_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
