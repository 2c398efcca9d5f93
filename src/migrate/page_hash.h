/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_HASH_H
#define GN_MIGRATE_PAGE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Digests of a page's content (gMig 3.3.1). Two hashes may decide whether a page is sent:
 *
 * - XXH3, 128 bits: the fastest on a processor, and the one that the migration stream checks pages
 *   with, so one hash serves both.
 * - NH, four Toeplitz sums of 64 bits: a sum of products in any order, so that a GPU's many
 * threads, a processor's vectors and the plain loop here give the same digest, bit for bit (the
 * kernels: backend/opencl/page_hash_cl.c). For any two different contents of a page the probability
 * over the key that their digests agree is at most 2^-128 (Black, Halevi, Krawczyk, Krovetz,
 * Rogaway: UMAC, 1999). All four sums are kept, 32 bytes: folding them would lose that proof. Each
 * hasher draws its own key, so its digests are meaningless to any other hasher.
 *
 * A program that crafts two contents with equal XXH3 digests can corrupt only its own migration.
 */
enum gn_page_hash_kind {
    GN_PAGE_HASH_NONE, /* no verification: every page that may have changed counts as changed */
    GN_PAGE_HASH_XXH3,
    GN_PAGE_HASH_NH,
    GN_PAGE_HASH_OTHER, /* a benchmark's, which sets all of its hasher itself */
};

#define GN_PAGE_BYTES_MIN  4096u
#define GN_PAGE_BYTES_MAX  65536u
#define GN_PAGE_DIGEST_MAX 32u
#define GN_PAGE_NH_PASSES  4u

/* Set once by init, then read by any thread. */
struct gn_page_hasher {
    enum gn_page_hash_kind kind;
    uint32_t page_bytes;   /* a power of two */
    uint32_t digest_bytes; /* 0, 16 or 32 */
    void (*digest)(const struct gn_page_hasher *h, const void *page, size_t n, void *ret);
    uint32_t *key;                          /* NH: page_bytes / 4 + 6 words; NULL for the others */
    unsigned char zero[GN_PAGE_DIGEST_MAX]; /* the digest of a whole page of zeros */
};

/*
 * seed, for NH: 0 draws the key from the system; any other value gives the same key each time, for
 * tests. Returns 0, -EINVAL (page_bytes, kind), -ENOMEM, or getrandom's error.
 */
int gn_page_hasher_init(struct gn_page_hasher *h, enum gn_page_hash_kind kind, uint32_t page_bytes,
                        uint64_t seed, struct gn_error *err);
void gn_page_hasher_fini(struct gn_page_hasher *h);

/*
 * Computes the digest of n bytes, 1 to page_bytes, at any address, and writes h->digest_bytes. A
 * page's n never changes (only a buffer's last page is shorter than page_bytes), so digests of
 * different lengths are never compared.
 */
static inline void gn_page_digest(const struct gn_page_hasher *h, const void *page, size_t n,
                                  void *ret)
{
    h->digest(h, page, n, ret);
}

#endif
