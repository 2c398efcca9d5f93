/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_HASH_H
#define GN_STREAM_HASH_H

#include "stream/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* What a stream is checked with, and what pages are told apart by: XXH3-128 without a seed. Any
 * thread. */
struct gn_stream_hash gn_stream_hash(const void *bytes, size_t n);

/* Its lower half: a section's checksums. */
static inline uint64_t gn_stream_checksum(const void *bytes, size_t n)
{
    return gn_stream_hash(bytes, n).low;
}

static inline bool gn_stream_hash_equal(struct gn_stream_hash a, struct gn_stream_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/* All n bytes are zero. Costs one look at the first word of a page that is not. */
bool gn_stream_all_zero(const void *bytes, size_t n);

#endif
