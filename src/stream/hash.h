/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_HASH_H
#define GN_STREAM_HASH_H

#include "stream/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* XXH3-128 without a seed: the checksums of a stream and the identity of pages. Any thread. */
struct gn_stream_hash gn_stream_hash(const void *bytes, size_t n);

/* The lower half: the checksum of a section. */
static inline uint64_t gn_stream_checksum(const void *bytes, size_t n)
{
    return gn_stream_hash(bytes, n).low;
}

static inline bool gn_stream_hash_equal(struct gn_stream_hash a, struct gn_stream_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/* Whether all n bytes are zero. On a page that is not, this usually reads only the first word. */
bool gn_stream_all_zero(const void *bytes, size_t n);

#endif
