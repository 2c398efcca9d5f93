/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token bucket of a bandwidth limit. The sending thread calls it. It never sleeps and never
 * reads the clock.
 */
#include "migrate/pacer.h"

#include "base/checked.h"

#define BURST_NS UINT64_C(10000000)

uint64_t gn_pacer_wait_ns(const struct gn_pacer *p, uint64_t now_ns)
{
    return p->bytes_per_s && p->free_at_ns > now_ns ? p->free_at_ns - now_ns : 0;
}

void gn_pacer_sent(struct gn_pacer *p, uint64_t n, uint64_t now_ns)
{
    __extension__ typedef unsigned __int128 wide;
    if (!p->bytes_per_s)
        return;
    /* An idle line accumulates at most 10 ms of unused rate. */
    uint64_t from = now_ns > BURST_NS ? now_ns - BURST_NS : 0;
    if (from < p->free_at_ns)
        from = p->free_at_ns;
    wide took = ((wide)n * 1000000000u + p->bytes_per_s - 1) / p->bytes_per_s;
    if (took > UINT64_MAX || !gn_add_u64(from, (uint64_t)took, &p->free_at_ns))
        p->free_at_ns = UINT64_MAX;
}
