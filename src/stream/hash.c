/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3-128, compiled in: whatever loads this needs no library for it. Bound by memory, not by the processor, with the
 * instructions that every x86-64 has; docs/migration-stream.md has the figures.
 */
#include "stream/hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct gn_stream_hash gn_stream_hash(const void *bytes, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(bytes, n);
    return (struct gn_stream_hash){h.low64, h.high64};
}

bool gn_stream_all_zero(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t head = n < 16 ? n : 16;
    for (size_t i = 0; i < head; i++)
        if (p[i])
            return false;
    /* Sixteen zeros, and everything equals what stands sixteen before it. */
    return n <= 16 || memcmp(p, p + 16, n - 16) == 0;
}
