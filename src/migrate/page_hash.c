/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hashes of pages, as plain functions of memory. A round's threads call them for every page
 * that has to be verified, so nothing here locks, allocates or reads the clock, except when a
 * hasher is made.
 */
#include "migrate/page_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "stream/hash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void digest_none(const struct gn_page_hasher *h, const void *page, size_t n, void *ret)
{
}

static void digest_xxh3(const struct gn_page_hasher *h, const void *page, size_t n, void *ret)
{
    struct gn_stream_hash hash = gn_stream_hash(page, n);
    memcpy(ret, &hash, sizeof hash);
}

/*
 * Little-endian words of 64 bits, as on every machine that Gantry builds on; the last one is filled
 * up with zeros.
 */
static uint64_t word_at(const unsigned char *page, size_t n, size_t i)
{
    uint64_t w = 0;
    if (i < n / 8)
        memcpy(&w, page + 8 * i, 8);
    else
        memcpy(&w, page + 8 * i, n - 8 * i);
    return w;
}

static uint64_t nh_product(uint64_t w, const uint32_t *key)
{
    return (uint64_t)(uint32_t)((uint32_t)w + key[0]) * (uint32_t)((uint32_t)(w >> 32) + key[1]);
}

static void nh_words(const struct gn_page_hasher *h, const unsigned char *page, size_t n,
                     size_t from, uint64_t sums[4])
{
    size_t n_words = (n + 7) / 8;
    for (size_t i = from; i < n_words; i++) {
        const uint64_t w = word_at(page, n, i);
        for (unsigned p = 0; p < GN_PAGE_NH_PASSES; p++)
            sums[p] += nh_product(w, h->key + 2 * i + 2 * p);
    }
}

static void digest_nh(const struct gn_page_hasher *h, const void *page, size_t n, void *ret)
{
    uint64_t sums[4] = {0};
    nh_words(h, page, n, 0, sums);
    memcpy(ret, sums, sizeof sums);
}

#if defined(__x86_64__)
/* Four words at once; the plain loop does the rest of a short page. */
__attribute__((target("avx2"))) static void digest_nh_avx2(const struct gn_page_hasher *h,
                                                           const void *page, size_t n, void *ret)
{
    uint64_t sums[4];
    __m256i acc[GN_PAGE_NH_PASSES] = {_mm256_setzero_si256(), _mm256_setzero_si256(),
                                      _mm256_setzero_si256(), _mm256_setzero_si256()};
    size_t n_quads = n / 32;
    for (size_t q = 0; q < n_quads; q++) {
        __m256i w = _mm256_loadu_si256((const __m256i *)((const char *)page + 32 * q));
        for (unsigned p = 0; p < GN_PAGE_NH_PASSES; p++) {
            __m256i x =
                _mm256_add_epi32(w, _mm256_loadu_si256((const __m256i *)(h->key + 8 * q + 2 * p)));
            acc[p] = _mm256_add_epi64(acc[p], _mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)));
        }
    }
    for (unsigned p = 0; p < GN_PAGE_NH_PASSES; p++) {
        uint64_t lanes[4];
        _mm256_storeu_si256((__m256i *)lanes, acc[p]);
        sums[p] = lanes[0] + lanes[1] + lanes[2] + lanes[3];
    }
    nh_words(h, page, n, 4 * n_quads, sums);
    memcpy(ret, sums, sizeof sums);
}
#endif

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* n: a multiple of 8. */
static int fill(unsigned char *key, size_t n, uint64_t seed)
{
    for (size_t done = 0; seed && done < n; done += 8) {
        const uint64_t word = splitmix(&seed);
        memcpy(key + done, &word, 8);
    }
    for (size_t done = 0; !seed && done < n;) {
        const ssize_t got = getrandom(key + done, n - done, 0);
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int gn_page_hasher_init(struct gn_page_hasher *h, enum gn_page_hash_kind kind, uint32_t page_bytes,
                        uint64_t seed, struct gn_error *err)
{
    static const struct {
        void (*digest)(const struct gn_page_hasher *h, const void *page, size_t n, void *ret);
        uint32_t bytes;
    } kinds[] = {[GN_PAGE_HASH_NONE] = {digest_none, 0},
                 [GN_PAGE_HASH_XXH3] = {digest_xxh3, 16},
                 [GN_PAGE_HASH_NH] = {digest_nh, 32}};
    static const unsigned char zeros[GN_PAGE_BYTES_MAX];
    memset(h, 0, sizeof *h);
    if (page_bytes < GN_PAGE_BYTES_MIN || page_bytes > GN_PAGE_BYTES_MAX ||
        (page_bytes & (page_bytes - 1)))
        return gn_fail(err, EINVAL, "give a power of two from 4K to 64K",
                       "pages of %u bytes cannot be tracked", page_bytes);
    if (kind >= sizeof kinds / sizeof *kinds)
        return gn_fail(err, EINVAL, "use xxh3", "unknown page hash %u", (unsigned)kind);
    h->kind = kind;
    h->page_bytes = page_bytes;
    h->digest = kinds[kind].digest;
    h->digest_bytes = kinds[kind].bytes;
#if defined(__x86_64__)
    if (kind == GN_PAGE_HASH_NH && __builtin_cpu_supports("avx2"))
        h->digest = digest_nh_avx2;
#endif

    size_t key_bytes = 4 * (page_bytes / 4 + 2 * (GN_PAGE_NH_PASSES - 1));
    if (kind == GN_PAGE_HASH_NH && !(h->key = malloc(key_bytes)))
        return gn_fail(err, ENOMEM, "free some memory", "no memory for the key of the page hash");
    const int r = h->key ? fill((unsigned char *)h->key, key_bytes, seed) : 0;
    if (r) {
        gn_page_hasher_fini(h);
        return gn_fail(err, -r, "see getrandom(2)", "no random key for the page hash: %s",
                       strerror(-r));
    }
    h->digest(h, zeros, page_bytes, h->zero);
    return 0;
}

void gn_page_hasher_fini(struct gn_page_hasher *h)
{
    free(h->key);
    h->key = NULL;
}
