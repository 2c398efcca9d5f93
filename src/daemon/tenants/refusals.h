/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_REFUSALS_H
#define GN_DAEMON_TENANTS_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Keeps those who are refused from filling the log and from trying tokens in a loop. One record a
 * source (a user's number, or a hash of an address), the longest idle one is reused, so the memory
 * is bounded and a source that keeps on is not forgotten. Pure: time is an argument.
 */
#define GN_REFUSALS_SOURCES   64
#define GN_REFUSALS_WINDOW_NS UINT64_C(10000000000)
#define GN_REFUSALS_LINES     3  /* of a source in a window are logged */
#define GN_REFUSALS_TOKENS    20 /* wrong ones of a source in a window: then none is looked at */

struct gn_refusals {
    struct gn_refusal {
        uint64_t source, began_ns, last_ns; /* last_ns 0: unused */
        uint32_t n, n_wrong_tokens, n_unlogged;
    } sources[GN_REFUSALS_SOURCES];
};

/* True when a line is to be written; *ret_more then counts those of the source that were not,
 * before. */
bool gn_refusals_note(struct gn_refusals *r, uint64_t source, bool wrong_token, uint64_t now_ns,
                      uint32_t *ret_more);

/* Whether a token from there is to be looked at now. */
bool gn_refusals_may_try(struct gn_refusals *r, uint64_t source, uint64_t now_ns);

#endif
