/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3-128. Compiled once per processor type, with that type's flags and function name; hash.c
 * selects one. Called on any thread.
 */
#include "stream/hash_variant.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(GN_HASH_FOR_AVX512)
#define GN_HASH_VARIANT gn_stream_hash_avx512
#elif defined(GN_HASH_FOR_AVX2)
#define GN_HASH_VARIANT gn_stream_hash_avx2
#else
#define GN_HASH_VARIANT gn_stream_hash_any
#endif

struct gn_stream_hash GN_HASH_VARIANT(const void *bytes, size_t n) {
    XXH128_hash_t h = XXH3_128bits(bytes, n);
    return (struct gn_stream_hash){h.low64, h.high64};
}
