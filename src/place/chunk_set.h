/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_PLACE_CHUNK_SET_H
#define GN_PLACE_CHUNK_SET_H

#include <stdbool.h>
#include <stdint.h>

/* A set of a vGPU's chunks: bit k is chunk k. Plain values; a zeroed struct is the empty set. */
#define GN_PLACE_MAX_SLOTS 1024u
#define GN_CHUNK_WORDS     (GN_PLACE_MAX_SLOTS / 64)

struct gn_chunk_set {
    uint64_t bits[GN_CHUNK_WORDS];
};

static inline bool gn_chunk_has(const struct gn_chunk_set *s, uint32_t k)
{
    return s->bits[k / 64] >> k % 64 & 1;
}

static inline void gn_chunk_add(struct gn_chunk_set *s, uint32_t k)
{
    s->bits[k / 64] |= UINT64_C(1) << k % 64;
}

static inline void gn_chunk_remove(struct gn_chunk_set *s, uint32_t k)
{
    s->bits[k / 64] &= ~(UINT64_C(1) << k % 64);
}

/* Returns the chunks 0 to n - 1. */
static inline struct gn_chunk_set gn_chunk_range(uint32_t n)
{
    struct gn_chunk_set s = {{0}};
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++) {
        const uint32_t here = n > i * 64 ? n - i * 64 : 0;
        s.bits[i] = here >= 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1;
    }
    return s;
}

static inline uint32_t gn_chunk_count(const struct gn_chunk_set *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        n += (uint32_t)__builtin_popcountll(s->bits[i]);
    return n;
}

static inline struct gn_chunk_set gn_chunk_minus(const struct gn_chunk_set *a,
                                                 const struct gn_chunk_set *b)
{
    struct gn_chunk_set s;
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        s.bits[i] = a->bits[i] & ~b->bits[i];
    return s;
}

static inline struct gn_chunk_set gn_chunk_both(const struct gn_chunk_set *a,
                                                const struct gn_chunk_set *b)
{
    struct gn_chunk_set s;
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        s.bits[i] = a->bits[i] & b->bits[i];
    return s;
}

static inline struct gn_chunk_set gn_chunk_either(const struct gn_chunk_set *a,
                                                  const struct gn_chunk_set *b)
{
    struct gn_chunk_set s;
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        s.bits[i] = a->bits[i] | b->bits[i];
    return s;
}

static inline bool gn_chunk_empty(const struct gn_chunk_set *s)
{
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        if (s->bits[i])
            return false;
    return true;
}

/* True if b has all chunks of a. */
static inline bool gn_chunk_within(const struct gn_chunk_set *a, const struct gn_chunk_set *b)
{
    for (uint32_t i = 0; i < GN_CHUNK_WORDS; i++)
        if (a->bits[i] & ~b->bits[i])
            return false;
    return true;
}

/* Returns the first chunk from k on, or GN_PLACE_MAX_SLOTS. */
static inline uint32_t gn_chunk_next(const struct gn_chunk_set *s, uint32_t k)
{
    for (uint32_t i = k / 64; i < GN_CHUNK_WORDS; i++) {
        const uint64_t bits = s->bits[i] & (i == k / 64 ? UINT64_MAX << k % 64 : UINT64_MAX);
        if (bits)
            return i * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return GN_PLACE_MAX_SLOTS;
}

#define gn_chunk_for_each(k, set)                                                                  \
    for (uint32_t k = gn_chunk_next(set, 0); k < GN_PLACE_MAX_SLOTS; k = gn_chunk_next(set, k + 1))

#endif
