/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses, once, the hash for the processor that this runs on. Any thread. The hash is compiled in:
 * whatever loads this needs no library for it; docs/migration-stream.md has the figures.
 */
#include "stream/hash_variant.h"

#include <stdatomic.h>
#include <string.h>

typedef struct gn_stream_hash hash_function(const void *bytes, size_t n);

static hash_function *choose(void)
{
#ifdef GN_HASH_WIDE
    /* Processors before these lower their clock for wide instructions, which slows whoever else is
     * on them. */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi2"))
        return gn_stream_hash_avx512;
    if (__builtin_cpu_supports("avx2"))
        return gn_stream_hash_avx2;
#endif
    return gn_stream_hash_any;
}

struct gn_stream_hash gn_stream_hash(const void *bytes, size_t n)
{
    static hash_function *_Atomic chosen;
    hash_function *f = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!f) {
        f = choose(); /* the same for all threads that come here at once */
        atomic_store_explicit(&chosen, f, memory_order_relaxed);
    }
    return f(bytes, n);
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
