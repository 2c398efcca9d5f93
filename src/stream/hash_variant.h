/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_HASH_VARIANT_H
#define GN_STREAM_HASH_VARIANT_H

#include "stream/hash.h"

/* The same result each; the processor must have what the name says. */
struct gn_stream_hash gn_stream_hash_any(const void *bytes, size_t n);
struct gn_stream_hash gn_stream_hash_avx2(const void *bytes, size_t n);
struct gn_stream_hash gn_stream_hash_avx512(const void *bytes, size_t n);

#endif
