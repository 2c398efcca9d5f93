/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the hash variant for this processor, once. Any thread. The hash is compiled in, so no
 * library is needed for it; figures are in docs/migration-stream.md.
 */
#include "stream/hash_variant.h"

#include <stdatomic.h>
#include <string.h>

typedef struct gn_stream_hash hash_function(const void *bytes, size_t n);

static hash_function *choose(void)
{
#ifdef GN_HASH_WIDE
    /*
     * Older processors lower their clock for 512-bit instructions, which slows the other programs
     * on them.
     */
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
        f = choose(); /* several threads may do this at once, with the same result */
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
    /* The first 16 bytes are zero, and each later byte equals the one 16 bytes before it. */
    return n <= 16 || memcmp(p, p + 16, n - 16) == 0;
}
