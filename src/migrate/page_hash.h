/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_HASH_H
#define GN_MIGRATE_PAGE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The hashes that detect whether a page has changed (gMig 3.3.1). Two of them decide what is sent:
 *
 * - XXH3, 128 bits: the fastest on a CPU. The migration stream also checks pages with it, so one
 * hash serves both. - NH, four Toeplitz sums of 64 bits: a sum of products in any order, so that
 * the threads of a GPU, CPU vectors and the plain loop here give the same digest, bit for bit (the
 * kernels: backend/opencl/page_hash_cl.c). For any two different contents of a page the probability
 * over the key that their digests are equal is at most 2^-128 (Black, Halevi, Krawczyk, Krovetz,
 * Rogaway: UMAC, 1999). All four sums are stored, 32 bytes: folding them would lose that proof.
 * Each hasher draws its own key; its digests mean nothing to another hasher.
 *
 * A program that constructs two contents with the same XXH3 digest can corrupt only its own
 * migration.
 *
 * XOR256 is the fastest of the paper. It does not distinguish a page of zeros from a page of one
 * repeated word, and does not detect swapped words, so a caller must state that it is for a
 * benchmark.
 */
enum gn_page_hash_kind {
    GN_PAGE_HASH_NONE, /* no verification: every page that may have changed counts as changed */
    GN_PAGE_HASH_XXH3,
    GN_PAGE_HASH_NH,
    GN_PAGE_HASH_XOR256,
};

#define GN_PAGE_BYTES_MIN    4096u
#define GN_PAGE_BYTES_MAX    65536u
#define GN_PAGE_DIGEST_MAX   32u
#define GN_PAGE_NH_PASSES    4u
#define GN_PAGE_NH_KEY_WORDS (GN_PAGE_BYTES_MAX / 4 + 2 * (GN_PAGE_NH_PASSES - 1))

/* Set once by init, then read by any thread. */
struct gn_page_hasher {
    enum gn_page_hash_kind kind;
    uint32_t page_bytes;   /* a power of two */
    uint32_t digest_bytes; /* 0, 16 or 32 */
    void (*digest)(const struct gn_page_hasher *h, const void *page, size_t n, void *ret);
    /* NH: page_bytes / 4 + 6 words; NULL for the other kinds. */
    uint32_t *key;
    unsigned char zero[GN_PAGE_DIGEST_MAX]; /* digest of a whole page of zeros */
};

/*
 * seed, for NH: 0 draws the key from the system; any other value gives the same key each time, for
 * tests. benchmark: accept XOR256, which is refused otherwise. Returns 0, -EINVAL (page_bytes,
 * kind), -EPERM (refused), -ENOMEM, or the error of getrandom.
 */
int gn_page_hasher_init(struct gn_page_hasher *h, enum gn_page_hash_kind kind, uint32_t page_bytes,
                        uint64_t seed, bool benchmark, struct gn_error *err);
void gn_page_hasher_fini(struct gn_page_hasher *h);

/* "none", "xxh3", "nh", "xor256". -EINVAL for any other name. */
int gn_page_hash_named(const char *name, enum gn_page_hash_kind *ret);

/*
 * Writes the digest of n bytes (1 to page_bytes, at any address): h->digest_bytes bytes. The length
 * of a page never changes (only a buffer's last page is shorter than page_bytes), so digests of
 * different lengths are never compared.
 */
static inline void gn_page_digest(const struct gn_page_hasher *h, const void *page, size_t n,
                                  void *ret)
{
    h->digest(h, page, n, ret);
}

#endif
