/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of contents that are in the driver: what has not been written is not copied out again, and
 * everything else is. */
#include "residency_world.h"

/* All out, and in again. Returns the bytes that have been read for it. */
static size_t cycle(void)
{
    const size_t before = driver.read_bytes;
    const uint64_t copied = gn_residency_evict(v, 0);
    assert_int_equal(driver.n_alive, 0);
    assert_int_equal(driver.read_bytes - before, copied);
    uint64_t in = 0;
    assert_int_equal(gn_residency_bring_in_all(v, &in), CL_SUCCESS);
    return copied;
}

static void test_unchanged_contents_are_not_copied_out_again(void **state)
{
    (void)state;
    assert_int_equal(cycle(), BYTES);
    assert_true(gn_vgpu_has_copies(v));
    for (int i = 0; i < 3; i++)
        assert_int_equal(cycle(), 0);
    check_contents();
}

/* A command that writes its first object, of these. */
static void write_by_command(struct gn_vobject *o, struct gn_vobject *reads)
{
    static const struct gn_request_class class = {.name = "writes", .writes = 2};
    struct gn_command c = {.vgpu = v, .class = &class, .refs = {reads, o}};
    gn_opencl_will_write(v, &c);
}

static void test_what_a_command_writes_is_copied_out(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(0), NULL);
    struct gn_vobject *second = made(4, GN_OP_Buffer, create(NULL, 0, BYTES, 0), NULL);
    struct gn_vobject *const each[] = {buffer, part, image};
    (void)state;
    assert_int_equal(cycle(), 3 * BYTES);
    for (unsigned i = 0; i < GN_ARRAY_SIZE(each); i++) {
        write_by_command(each[i], second);
        ((struct memory *)each[i]->driver)->at[0]++;
        assert_int_equal(cycle(), BYTES);
        assert_int_equal(cycle(), 0);
    }
    assert_int_equal(((struct memory *)buffer->driver)->at[0], 8);
    assert_int_equal(((struct memory *)image->driver)->at[0], 1);
    drop(second);
    drop(image);
}

static void test_what_a_kernel_may_write_is_copied_out(void **state)
{
    struct gn_vobject *reads =
        made(3, GN_OP_Buffer, create(NULL, 0, BYTES, CL_MEM_READ_ONLY), NULL);
    struct gn_writes *of = ((struct gn_mem_detail *)part->detail)->writes;
    (void)state;
    assert_int_equal(cycle(), 2 * BYTES);
    gn_writes_by_kernel(v, ((struct gn_mem_detail *)reads->detail)->writes);
    assert_int_equal(cycle(), 0);
    /* By the part: each time, not only the first one. */
    for (int i = 0; i < 3; i++) {
        gn_writes_by_kernel(v, of);
        memset(((struct memory *)buffer->driver)->at, i, BYTES);
        assert_int_equal(cycle(), BYTES);
        for (unsigned k = 0; k < BYTES; k++)
            assert_int_equal(((struct memory *)buffer->driver)->at[k], i);
        assert_int_equal(cycle(), 0);
    }
    drop(reads);
}

static void test_what_a_map_may_write_is_copied_out(void **state)
{
    const cl_ulong place[6] = {0, 0, 0, 8, 1, 1};
    struct gn_args_MapProbe a = {.mem_object = part, .map_flags = CL_MAP_READ, .place = place};
    (void)state;
    (void)cycle();
    a.mem = part->driver;
    assert_int_equal(gn_host_MapProbe(v, NULL, &a), CL_SUCCESS);
    assert_int_equal(cycle(), 0);
    a.mem = part->driver;
    a.map_flags = CL_MAP_WRITE;
    assert_int_equal(gn_host_MapProbe(v, NULL, &a), CL_SUCCESS);
    assert_int_equal(cycle(), BYTES);
}

static void test_without_leave_nothing_stays_in_host_memory(void **state)
{
    (void)state;
    (void)cycle();
    gn_residency_keep_copies(v, false);
    assert_false(gn_vgpu_has_copies(v));
    assert_int_equal(cycle(), BYTES);
    assert_false(gn_vgpu_has_copies(v));
    assert_int_equal(cycle(), BYTES);
    /* Evicted contents are no copy. */
    evict();
    gn_residency_keep_copies(v, false);
    gn_residency_keep_copies(v, true);
    assert_int_equal(gn_residency_bring_in(buffer), CL_SUCCESS);
    assert_true(gn_vgpu_has_copies(v));
    assert_int_equal(cycle(), 0);
    check_contents();
}

static void test_pinned_memory_has_no_copy(void **state)
{
    (void)state;
    (void)cycle();
    assert_int_equal(gn_residency_pin(part), CL_SUCCESS);
    assert_false(gn_vgpu_has_copies(v));
    (void)gn_residency_evict(v, 0);
    check_contents();
}

/* The copy is not taken for the contents. */
static void test_changed_contents_that_cannot_be_read_stay(void **state)
{
    (void)state;
    (void)cycle();
    write_by_command(buffer, NULL);
    memset(((struct memory *)buffer->driver)->at, 9, BYTES);
    driver.refuses_reads = true;
    assert_int_equal(gn_residency_evict(v, 0), 0);
    assert_int_equal(((struct memory *)buffer->driver)->at[0], 9);
    assert_false(gn_vgpu_has_copies(v) || gn_residency_has_resident(v));
}

/* The driver refuses an object that has a copy: the contents are still there. */
static void test_an_unchanged_buffer_comes_after_a_refusal(void **state)
{
    (void)state;
    (void)cycle();
    assert_int_equal(gn_residency_evict(v, 0), 0);
    driver.refuses_writes = true;
    assert_int_equal(gn_residency_bring_in(buffer), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_false(gn_vgpu_has_copies(v));
    driver.refuses_writes = false;
    assert_int_equal(gn_residency_bring_in(buffer), CL_SUCCESS);
    check_contents();
    assert_int_equal(cycle(), 0);
}

/* A part of the vGPU's memory goes: first what costs no copy. */
static void test_unchanged_contents_leave_first(void **state)
{
    struct gn_vobject *second = made(3, GN_OP_Buffer, create(NULL, 0, BYTES, 0), NULL);
    (void)state;
    (void)cycle();
    write_by_command(buffer, NULL);
    assert_int_equal(gn_residency_evict(v, BYTES), 0);
    assert_true(gn_residency_is_resident(buffer) && !gn_residency_is_resident(second));
    assert_int_equal(gn_residency_evict(v, 0), BYTES);
    drop(second);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unchanged_contents_are_not_copied_out_again),
        TEST(test_what_a_command_writes_is_copied_out),
        TEST(test_what_a_kernel_may_write_is_copied_out),
        TEST(test_what_a_map_may_write_is_copied_out),
        TEST(test_without_leave_nothing_stays_in_host_memory),
        TEST(test_pinned_memory_has_no_copy),
        TEST(test_changed_contents_that_cannot_be_read_stay),
        TEST(test_an_unchanged_buffer_comes_after_a_refusal),
        TEST(test_unchanged_contents_leave_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
