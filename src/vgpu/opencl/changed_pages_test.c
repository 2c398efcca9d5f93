/* SPDX-License-Identifier: Apache-2.0 */
/* On a device that hashes, only changed pages of a buffer are copied out again. The digests here
 * are sums. */
#define PAGES 40u
#define TAIL  100u
#define BYTES (PAGES * 4096u + TAIL)
#include "residency_world.h"

#include "backing.h"
#include "device_digest.h"

#include <errno.h>

#define DIGEST_BYTES 32u
#define ALL_DIGESTS  ((PAGES + 1) * DIGEST_BYTES)

/* ---- in place of device_digest.c */

struct gn_device_digests {
    cl_context context;
};

static struct {
    int n_alive, n_runs, n_rests;
    bool fails;
} hashing;

bool gn_device_digests_forced(void)
{
    return false;
}

struct gn_device_digests *gn_device_digests_new(struct gn_vgpu *of, cl_context context)
{
    struct gn_device_digests *d = malloc(sizeof *d);
    (void)of;
    assert_non_null(d);
    d->context = context;
    hashing.n_alive++;
    return d;
}

void gn_device_digests_free(struct gn_device_digests *d)
{
    hashing.n_alive -= d != NULL;
    free(d);
}

void gn_device_digests_trim(struct gn_device_digests *d)
{
    (void)d;
    hashing.n_rests++;
}

void gn_device_digests_ready(struct gn_device_digests *d, const struct gn_page_hasher *hasher)
{
    (void)d;
    assert_int_equal(hasher->kind, GN_PAGE_HASH_NH);
}

int gn_device_digests_of(struct gn_device_digests *d, cl_mem mem, uint64_t mem_bytes,
                         uint64_t first, uint64_t n, void *ret)
{
    const struct memory *m = (const struct memory *)mem;
    unsigned char *to = ret;
    assert_true(d->context == (cl_context)&some_object);
    hashing.n_runs++;
    memset(ret, 0, n * DIGEST_BYTES);
    for (uint64_t i = first * 4096; i < mem_bytes && i < (first + n) * 4096; i++)
        to[(i / 4096 - first) * DIGEST_BYTES] += m->at[i];
    return hashing.fails ? -EIO : 0;
}

/* ---- */

static int open_all(void **state)
{
    memset(&hashing, 0, sizeof hashing);
    return setup(state);
}

static int close_all(void **state)
{
    const int rc = teardown(state);
    assert_int_equal(hashing.n_alive, 0);
    return rc;
}

/* Out and in. Returns the bytes of contents that came out; `digests`: with so many of digests. */
static size_t cycle(size_t digests)
{
    const size_t before = driver.read_bytes;
    uint64_t in = 0;
    const uint64_t copied = gn_residency_evict(v, 0);
    const size_t contents = driver.read_bytes - before;
    assert_int_equal(driver.n_alive, 0);
    assert_int_equal(copied, contents + digests);
    assert_int_equal(gn_residency_bring_in_all(v, &in), CL_SUCCESS);
    return contents;
}

static void change(struct gn_vobject *o, size_t at)
{
    gn_writes_may_change(((struct gn_mem_detail *)o->detail)->writes);
    ((struct memory *)o->driver)->at[at]++;
}

static void check_changed(const size_t *at, unsigned n)
{
    const struct memory *m = buffer->driver;
    size_t n_changed = 0;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(m->at[at[i]], 8);
    for (size_t i = 0; i < BYTES; i++)
        n_changed += m->at[i] != 7;
    assert_int_equal(n_changed, n);
}

static void test_changed_pages_alone_are_copied(void **state)
{
    const size_t at[] = {0, 4096 + 17, 30 * 4096 + 4095, PAGES * 4096 + TAIL - 1};
    (void)state;
    assert_int_equal(cycle(ALL_DIGESTS), BYTES);
    assert_int_equal(cycle(0), 0);
    change(buffer, at[0]);
    change(part, at[1] % 8 + 16); /* a write through the part; the part begins there */
    ((struct memory *)buffer->driver)->at[at[1]]++;
    assert_int_equal(cycle(ALL_DIGESTS), 2 * 4096);
    change(buffer, at[3]);
    assert_int_equal(cycle(ALL_DIGESTS), TAIL);
    change(buffer, at[2]);
    assert_int_equal(cycle(ALL_DIGESTS), 4096);
    /* A mark, and nothing has changed. */
    gn_writes_may_change(((struct gn_mem_detail *)buffer->detail)->writes);
    assert_int_equal(cycle(ALL_DIGESTS), 0);
    assert_int_equal(cycle(0), 0);
    check_changed(at, GN_ARRAY_SIZE(at));
    assert_true(hashing.n_rests >= 6);
}

static void test_scattered_pages_are_copied_in_one_go(void **state)
{
    const size_t at[] = {4096, 15 * 4096, 30 * 4096};
    (void)state;
    (void)cycle(ALL_DIGESTS);
    for (unsigned i = 0; i < GN_ARRAY_SIZE(at); i++)
        change(buffer, at[i]);
    assert_int_equal(cycle(ALL_DIGESTS), BYTES);
    check_changed(at, GN_ARRAY_SIZE(at));
}

static void test_a_device_that_fails_to_hash(void **state)
{
    const size_t at[] = {4096, 4097, 4098};
    (void)state;
    (void)cycle(ALL_DIGESTS);
    hashing.fails = true;
    change(buffer, at[0]);
    assert_int_equal(cycle(0), BYTES);
    /* There is nothing to compare with. */
    hashing.fails = false;
    change(buffer, at[1]);
    assert_int_equal(cycle(ALL_DIGESTS), BYTES);
    change(buffer, at[2]);
    assert_int_equal(cycle(ALL_DIGESTS), 4096);
    check_changed(at, GN_ARRAY_SIZE(at));
}

static void test_write_only_memory_is_not_hashed(void **state)
{
    struct gn_vobject *o = made(3, GN_OP_Buffer, create(NULL, 0, BYTES, CL_MEM_WRITE_ONLY), NULL);
    (void)state;
    assert_int_equal(cycle(ALL_DIGESTS), 2 * BYTES);
    change(o, 5);
    assert_int_equal(cycle(0), BYTES);
    assert_int_equal(((struct memory *)o->driver)->at[5], 1);
    drop(o);
}

/* No more of the device is taken than the vGPU has: the smallest object that is large enough goes
 * whole. */
static void test_a_full_device(void **state)
{
    (void)state;
    v->lease.leased_bytes = v->lease.used_bytes + GN_BACKING_HASH_BYTES - 1;
    assert_int_equal(cycle(0), BYTES);
    assert_int_equal(hashing.n_runs, 0);
    v->lease.leased_bytes++;
    change(buffer, 0);
    assert_int_equal(cycle(ALL_DIGESTS), BYTES);
    change(buffer, 1);
    assert_int_equal(cycle(ALL_DIGESTS), 4096);
}

static void test_without_leave_nothing_is_hashed(void **state)
{
    (void)state;
    gn_residency_keep_copies(v, false);
    assert_int_equal(cycle(0), BYTES);
    assert_int_equal(hashing.n_runs, 0);
    check_contents();
    evict();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(test_changed_pages_alone_are_copied),
        TEST(test_scattered_pages_are_copied_in_one_go),
        TEST(test_a_device_that_fails_to_hash),
        TEST(test_write_only_memory_is_not_hashed),
        TEST(test_a_full_device),
        TEST(test_without_leave_nothing_is_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
