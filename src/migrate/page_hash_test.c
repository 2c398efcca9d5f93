/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the hashes against plain implementations, and which contents they distinguish. */
#include "migrate/page_hash.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stream/hash.h"

#define PAGE 4096u

static uint64_t random_state = 1;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void scramble(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(draw() >> 32);
}

static const enum gn_page_hash_kind kinds[] = {GN_PAGE_HASH_XXH3, GN_PAGE_HASH_NH};

static void init(struct gn_page_hasher *h, enum gn_page_hash_kind kind, uint32_t page_bytes,
                 uint64_t seed)
{
    assert_int_equal(gn_page_hasher_init(h, kind, page_bytes, seed, NULL), 0);
}

/* NH as in the paper, one word of 32 bits after the other. */
static void plain_nh(const struct gn_page_hasher *h, const unsigned char *page, size_t n,
                     uint64_t sums[4])
{
    unsigned char padded[GN_PAGE_BYTES_MAX + 8] = {0};
    memcpy(padded, page, n);
    memset(sums, 0, 4 * sizeof *sums);
    for (size_t i = 0; i < (n + 7) / 8 * 2; i += 2) {
        for (size_t p = 0; p < 4; p++) {
            uint32_t a, b;
            memcpy(&a, padded + 4 * i, 4);
            memcpy(&b, padded + 4 * i + 4, 4);
            a += h->key[i + 2 * p];
            b += h->key[i + 1 + 2 * p];
            sums[p] += (uint64_t)a * b;
        }
    }
}

static void equals_its_plain_form(void **state)
{
    static unsigned char page[GN_PAGE_BYTES_MAX + 1];
    struct gn_page_hasher nh, xxh3;
    init(&nh, GN_PAGE_HASH_NH, GN_PAGE_BYTES_MAX, 7);
    init(&xxh3, GN_PAGE_HASH_XXH3, GN_PAGE_BYTES_MAX, 7);
    scramble(page, sizeof page);
    for (unsigned round = 0; round < 300; round++) {
        /* Every length up to some vectors, then random ones; also at odd addresses. */
        size_t n = round < 200 ? round + 1 : 1 + draw() % GN_PAGE_BYTES_MAX;
        const unsigned char *p = page + round % 2;
        uint64_t got[4], want[4];
        gn_page_digest(&nh, p, n, got);
        plain_nh(&nh, p, n, want);
        assert_memory_equal(got, want, sizeof want);

        XXH128_hash_t x = XXH3_128bits(p, n);
        struct gn_stream_hash in_streams = gn_stream_hash(p, n);
        gn_page_digest(&xxh3, p, n, got);
        assert_memory_equal(got, &in_streams, sizeof in_streams);
        assert_int_equal(got[0], x.low64);
        assert_int_equal(got[1], x.high64);
    }
    gn_page_hasher_fini(&nh);
    gn_page_hasher_fini(&xxh3);
}

/* Known answers: a kernel on a device must give the same. */
static void nh_of_a_known_key(void **state)
{
    struct gn_page_hasher h;
    unsigned char page[PAGE];
    uint64_t sums[4];
    init(&h, GN_PAGE_HASH_NH, PAGE, 1);
    memset(page, 0, sizeof page);
    gn_page_digest(&h, page, sizeof page, sums);
    assert_memory_equal(sums, h.zero, sizeof sums);
    for (unsigned i = 0; i < PAGE; i++)
        page[i] = (unsigned char)(i * 31 + (i >> 8));
    gn_page_digest(&h, page, sizeof page, sums);
    assert_true(sums[0] == UINT64_C(0x039fcaa155d507a9) &&
                sums[1] == UINT64_C(0x3c508801187c8b2d) &&
                sums[2] == UINT64_C(0x0ea23d1402f22750) && sums[3] == UINT64_C(0x1862031906f7c10b));
    gn_page_hasher_fini(&h);
}

static void every_changed_bit_is_seen(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        struct gn_page_hasher h;
        unsigned char page[PAGE], was[32], is[32];
        init(&h, kinds[k], PAGE, 3);
        for (unsigned content = 0; content < 2; content++) {
            memset(page, 0, sizeof page);
            if (content)
                scramble(page, sizeof page);
            gn_page_digest(&h, page, sizeof page, was);
            for (unsigned bit = 0; bit < 8 * PAGE; bit++) {
                page[bit / 8] ^= (unsigned char)(1u << bit % 8);
                gn_page_digest(&h, page, sizeof page, is);
                assert_memory_not_equal(was, is, h.digest_bytes);
                page[bit / 8] ^= (unsigned char)(1u << bit % 8);
            }
        }
        gn_page_hasher_fini(&h);
    }
}

/* Typical data of programs: one repeated word, swapped rows. */
static void regular_contents_differ(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        struct gn_page_hasher h;
        uint32_t page[PAGE / 4];
        unsigned char a[32], b[32];
        init(&h, kinds[k], PAGE, 5);
        for (unsigned i = 0; i < PAGE / 4; i++)
            page[i] = 0x3f800000;
        gn_page_digest(&h, page, sizeof page, a);
        assert_memory_not_equal(a, h.zero, h.digest_bytes);

        scramble(page, sizeof page);
        gn_page_digest(&h, page, sizeof page, a);
        for (unsigned i = 0; i < 16; i++) {
            uint32_t was = page[i];
            page[i] = page[256 + i];
            page[256 + i] = was;
        }
        gn_page_digest(&h, page, sizeof page, b);
        assert_memory_not_equal(a, b, h.digest_bytes);
        gn_page_hasher_fini(&h);
    }
}

static void hostile_parameters_are_refused(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2048, 4095, 4097, 6144, 131072, UINT32_MAX};
    struct gn_page_hasher h;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_XXH3, sizes[i], 1, NULL), -EINVAL);
    assert_int_equal(gn_page_hasher_init(&h, (enum gn_page_hash_kind)99, PAGE, 1, NULL), -EINVAL);
}

static void keys_are_drawn_anew(void **state)
{
    unsigned char page[PAGE] = {1}, a[32], b[32];
    struct gn_page_hasher one, two;
    init(&one, GN_PAGE_HASH_NH, PAGE, 0);
    init(&two, GN_PAGE_HASH_NH, PAGE, 0);
    gn_page_digest(&one, page, sizeof page, a);
    gn_page_digest(&two, page, sizeof page, b);
    assert_memory_not_equal(a, b, one.digest_bytes);
    gn_page_hasher_fini(&one);
    gn_page_hasher_fini(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_its_plain_form),          cmocka_unit_test(nh_of_a_known_key),
        cmocka_unit_test(every_changed_bit_is_seen),      cmocka_unit_test(regular_contents_differ),
        cmocka_unit_test(hostile_parameters_are_refused), cmocka_unit_test(keys_are_drawn_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
