/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_REFUSALS_H
#define GN_DAEMON_TENANTS_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

/* Keeps refused peers from filling the log and from guessing tokens in a loop. There is one record
 * for each source (a user id, or a hash of an address). The record that was idle longest is reused:
 * memory is bounded, and a source that keeps trying is not forgotten. Pure: time is an argument. */
#define GN_REFUSALS_SOURCES   64
#define GN_REFUSALS_WINDOW_NS UINT64_C(10000000000)
#define GN_REFUSALS_LINES     3 /* log lines for a source in a window */
/* Wrong tokens from a source in a window; after that no token of it is checked. */
#define GN_REFUSALS_TOKENS 20

struct gn_refusals {
    struct gn_refusal {
        uint64_t source, began_ns, last_ns; /* last_ns 0: unused */
        uint32_t n, n_wrong_tokens, n_unlogged;
    } sources[GN_REFUSALS_SOURCES];
};

/* Counts a refusal. Returns true if it should be logged; *ret_more is then the number of earlier
 * refusals of the source that were not logged. */
bool gn_refusals_note(struct gn_refusals *r, uint64_t source, bool wrong_token, uint64_t now_ns,
                      uint32_t *ret_more);

/* Whether a token from this source may be checked now. */
bool gn_refusals_may_try(struct gn_refusals *r, uint64_t source, uint64_t now_ns);

#endif
