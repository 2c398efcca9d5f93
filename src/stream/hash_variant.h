/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_HASH_VARIANT_H
#define GN_STREAM_HASH_VARIANT_H

#include "stream/hash.h"

/* All return the same hash. The processor must support the named instructions. */
struct gn_stream_hash gn_stream_hash_any(const void *bytes, size_t n);
struct gn_stream_hash gn_stream_hash_avx2(const void *bytes, size_t n);
struct gn_stream_hash gn_stream_hash_avx512(const void *bytes, size_t n);

#endif
