/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/breaches.h"

void gn_breaches_note(struct gn_breaches *b, uint64_t pause_ns, uint64_t now_ns)
{
    const uint64_t most = now_ns + GN_BREACHES_MOST * pause_ns;
    b->level_ns = (b->level_ns > now_ns ? b->level_ns : now_ns) + pause_ns;
    if (b->level_ns > most)
        b->level_ns = most;
}

uint64_t gn_breaches_let_in(struct gn_breaches *b, uint64_t pause_ns, uint64_t now_ns)
{
    if (b->level_ns <= now_ns + GN_BREACHES_FREE * pause_ns)
        return now_ns;
    const uint64_t next = b->last_let_ns + pause_ns;
    b->last_let_ns = next > now_ns ? next : now_ns;
    return b->last_let_ns;
}
