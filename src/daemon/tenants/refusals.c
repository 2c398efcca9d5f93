/* SPDX-License-Identifier: Apache-2.0 */
/* Counts refused peers by source, to limit log lines and token guesses (refusals.h). Called by
 * admission.c on gantryd's thread. Pure: no I/O, no clock. */
#include "daemon/tenants/refusals.h"

static struct gn_refusal *find(struct gn_refusals *r, uint64_t source, uint64_t now_ns)
{
    struct gn_refusal *oldest = &r->sources[0];
    for (int i = 0; i < GN_REFUSALS_SOURCES; i++) {
        struct gn_refusal *it = &r->sources[i];
        if (it->last_ns && it->source == source) {
            if (now_ns - it->began_ns >= GN_REFUSALS_WINDOW_NS) {
                it->began_ns = now_ns;
                it->n = it->n_wrong_tokens = 0;
            }
            return it;
        }
        if (it->last_ns < oldest->last_ns)
            oldest = it;
    }
    *oldest = (struct gn_refusal){.source = source, .began_ns = now_ns};
    return oldest;
}

bool gn_refusals_note(struct gn_refusals *r, uint64_t source, bool wrong_token, uint64_t now_ns,
                      uint32_t *ret_more)
{
    struct gn_refusal *it = find(r, source, now_ns);
    it->last_ns = now_ns;
    it->n++;
    it->n_wrong_tokens += wrong_token;
    if (it->n > GN_REFUSALS_LINES) {
        it->n_unlogged++;
        return false;
    }
    *ret_more = it->n_unlogged;
    it->n_unlogged = 0;
    return true;
}

bool gn_refusals_may_try(struct gn_refusals *r, uint64_t source, uint64_t now_ns)
{
    for (int i = 0; i < GN_REFUSALS_SOURCES; i++)
        if (r->sources[i].last_ns && r->sources[i].source == source)
            return now_ns - r->sources[i].began_ns >= GN_REFUSALS_WINDOW_NS ||
                   r->sources[i].n_wrong_tokens < GN_REFUSALS_TOKENS;
    return true;
}
