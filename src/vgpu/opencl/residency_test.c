/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer with a part of it, and images, are evicted and brought in, by a driver that counts and
 * may refuse.
 */
#include "residency_world.h"

static void test_a_part_goes_and_comes_with_its_buffer(void **state)
{
    (void)state;
    assert_true(gn_residency_has_resident(v));
    evict();
    assert_int_equal(gn_residency_bring_in(part), CL_SUCCESS);
    check_contents();
    const uint64_t incarnation = part->incarnation;
    assert_int_equal(gn_residency_bring_in(buffer), CL_SUCCESS);
    assert_int_equal(part->incarnation, incarnation);
    assert_int_equal(driver.n_alive, 2);
}

static void test_queries_bring_nothing_in(void **state)
{
    cl_mem_flags flags = 0;
    size_t bytes = 0, offset = 0, n = 0;
    struct gn_args_clGetMemObjectInfo a = {.memobj_object = part,
                                           .param_name = CL_MEM_FLAGS,
                                           .param_value_size = sizeof flags,
                                           .param_value = &flags,
                                           .param_value_size_ret = &n};
    (void)state;
    evict();
    assert_int_equal(gn_host_clGetMemObjectInfo(v, NULL, &a), CL_SUCCESS);
    assert_int_equal(flags, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY);
    assert_int_equal(n, sizeof flags);
    a.param_name = CL_MEM_SIZE;
    a.param_value = &bytes;
    assert_int_equal(gn_host_clGetMemObjectInfo(v, NULL, &a), CL_SUCCESS);
    a.param_name = CL_MEM_OFFSET;
    a.param_value = &offset;
    assert_int_equal(gn_host_clGetMemObjectInfo(v, NULL, &a), CL_SUCCESS);
    assert_true(bytes == 8 && offset == 16);
    a.param_value_size = 1;
    assert_int_equal(gn_host_clGetMemObjectInfo(v, NULL, &a), CL_INVALID_VALUE);
    assert_int_equal(driver.n_alive, 0);
}

/* The contents stay in host memory, whichever step the driver refuses. */
static void test_a_refused_buffer_comes_later(void **state)
{
    bool *const steps[] = {&driver.refuses_buffers, &driver.refuses_parts, &driver.refuses_writes};
    (void)state;
    evict();
    for (size_t i = 0; i < GN_ARRAY_SIZE(steps); i++) {
        *steps[i] = true;
        assert_int_equal(gn_residency_bring_in(buffer), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(driver.n_alive, 0);
        *steps[i] = false;
    }
    assert_int_equal(gn_residency_bring_in(buffer), CL_SUCCESS);
    check_contents();
}

static void test_an_unreadable_buffer_stays(void **state)
{
    (void)state;
    driver.refuses_reads = true;
    (void)gn_residency_evict(v, 0);
    driver.refuses_reads = false;
    (void)gn_residency_evict(v, 0);
    check_contents();
    assert_int_equal(driver.n_created, 2);
    assert_false(gn_residency_has_resident(v));
}

static void test_a_pinned_buffer_stays(void **state)
{
    (void)state;
    evict();
    assert_int_equal(gn_residency_pin(part), CL_SUCCESS);
    (void)gn_residency_evict(v, 0);
    check_contents();
}

static void test_nothing_is_evicted_during_a_save(void **state)
{
    uint64_t copied = 0;
    (void)state;
    evict();
    atomic_store(&v->moving, true);
    assert_int_equal(gn_residency_bring_in_all(v, &copied), CL_SUCCESS);
    (void)gn_residency_evict(v, 0);
    check_contents();
}

static void test_an_evicted_buffer_is_released(void **state)
{
    (void)state;
    evict(); /* teardown releases it */
    assert_int_equal(driver.n_contexts, 1);
}

static void test_an_image_is_made_again(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(0), NULL);
    (void)state;
    for (unsigned i = 0; i < BYTES; i++)
        ((struct memory *)image->driver)->at[i] = (unsigned char)i;
    evict();
    assert_null(image->driver);
    driver.refuses_buffers = true;
    assert_int_equal(gn_residency_bring_in(image), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    driver.refuses_buffers = false;
    assert_int_equal(gn_residency_bring_in(image), CL_SUCCESS);
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(((const struct memory *)image->driver)->at[i], i);
    drop(image);
}

static void test_an_image_has_its_pitch_again(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(0), NULL);
    (void)state;
    ((struct memory *)image->driver)->row_pitch = 3 * COLUMNS * PIXEL;
    evict();
    assert_int_equal(gn_residency_bring_in(image), CL_SUCCESS);
    assert_int_equal(((const struct memory *)image->driver)->row_pitch, 3 * COLUMNS * PIXEL);
    assert_int_equal(driver.n_alive, 1);
    drop(image);
}

static void test_queries_bring_no_image_in(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(0), NULL);
    size_t width = 0, pitch = 0, n = 0;
    cl_image_format format = {0};
    struct gn_args_clGetImageInfo a = {.image_object = image,
                                       .param_name = CL_IMAGE_WIDTH,
                                       .param_value_size = sizeof width,
                                       .param_value = &width,
                                       .param_value_size_ret = &n};
    (void)state;
    ((struct memory *)image->driver)->row_pitch = 3 * COLUMNS * PIXEL;
    evict();
    assert_int_equal(gn_host_clGetImageInfo(v, NULL, &a), CL_SUCCESS);
    assert_true(width == COLUMNS && n == sizeof width);
    a.param_name = CL_IMAGE_ROW_PITCH;
    a.param_value = &pitch;
    assert_int_equal(gn_host_clGetImageInfo(v, NULL, &a), CL_SUCCESS);
    assert_int_equal(pitch, 3 * COLUMNS * PIXEL);
    a.param_name = CL_IMAGE_FORMAT;
    a.param_value = &format;
    assert_int_equal(gn_host_clGetImageInfo(v, NULL, &a), CL_SUCCESS);
    assert_true(format.image_channel_order == CL_R && n == sizeof format);
    a.param_value_size = 1;
    assert_int_equal(gn_host_clGetImageInfo(v, NULL, &a), CL_INVALID_VALUE);
    assert_int_equal(driver.n_alive, 0);
    drop(image);
}

static void test_an_image_of_levels_stays(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(2), NULL);
    (void)state;
    (void)gn_residency_evict(v, 0);
    assert_non_null(image->driver);
    drop(image);
}

static void test_an_image_with_a_view_stays(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(0), NULL);
    struct gn_vobject *view = made(4, GN_OP_Image, create_picture(0), image);
    (void)state;
    (void)gn_residency_evict(v, 0);
    assert_true(image->driver && view->driver);
    drop(view);
    drop(image);
}

static void check_lease(uint64_t resident, uint64_t pinned)
{
    uint64_t in, stays;
    gn_lease_figures(&v->lease, &in, &stays);
    assert_int_equal(in, resident);
    assert_int_equal(stays, pinned);
}

static void test_as_much_is_evicted_as_is_asked_for(void **state)
{
    struct gn_vobject *second = made(3, GN_OP_Buffer, create(NULL, 0, BYTES, 0), NULL);
    struct gn_vobject *third = made(4, GN_OP_Buffer, create(NULL, 0, BYTES, 0), NULL);
    uint64_t copied = 0;
    (void)state;
    check_lease(3 * BYTES, 0);
    assert_int_equal(gn_residency_evict(v, 3 * BYTES), 0);
    assert_int_equal(gn_residency_evict(v, 2 * BYTES + 1), BYTES);
    check_lease(2 * BYTES, 0);
    assert_true(gn_residency_has_resident(v) && gn_vgpu_has_evicted(v));
    assert_true(!gn_residency_is_resident(buffer) && !gn_residency_is_resident(part));
    assert_true(gn_residency_is_resident(second));
    assert_int_equal(gn_residency_evict(v, 0), 2 * BYTES);
    check_lease(0, 0);
    /* What the driver refuses stays where it is, and the rest comes. */
    driver.refuses_parts = true;
    assert_int_equal(gn_residency_bring_in_all(v, &copied), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    driver.refuses_parts = false;
    assert_int_equal(copied, 2 * BYTES);
    check_lease(2 * BYTES, 0);
    assert_int_equal(gn_residency_bring_in_all(v, &copied), CL_SUCCESS);
    assert_int_equal(copied, 3 * BYTES);
    assert_false(gn_vgpu_has_evicted(v));
    check_lease(3 * BYTES, 0);
    drop(third);
    drop(second);
}

static void test_what_stays_is_counted_as_pinned(void **state)
{
    struct gn_vobject *image = made(3, GN_OP_Image, create_picture(2), NULL);
    struct gn_vobject *second = made(4, GN_OP_Buffer, create(NULL, 0, BYTES, 0), NULL);
    (void)state;
    check_lease(3 * BYTES, BYTES);
    assert_int_equal(gn_residency_pin(second), CL_SUCCESS);
    check_lease(3 * BYTES, 2 * BYTES);
    driver.refuses_reads = true;
    (void)gn_residency_evict(v, 0);
    driver.refuses_reads = false;
    check_lease(3 * BYTES, 3 * BYTES);
    drop(second);
    drop(image);
    check_lease(BYTES, BYTES);
}

static void test_gantryd_says_that_a_vgpu_evicts(void **state)
{
    struct gn_opencl_vgpu other = {0};
    (void)state;
    setenv("GANTRY_EVICT", "sometimes", 1);
    struct gn_vgpu w = {.boot = &boot, .session = &gn_vgpu_session_shm, .detail = &other};
    assert_int_equal(gn_residency_start(&w), 0);
    assert_false(w.evicts || gn_residency_is_on(&w));
    boot.evicts = true;
    assert_int_equal(gn_residency_start(&w), 0);
    assert_true(w.evicts && gn_residency_is_on(&w));
    free(other.residency);
    other.residency = NULL;
    w.evicts = false;
    w.session = &gn_vgpu_session_in_process;
    assert_int_equal(gn_residency_start(&w), 0);
    assert_false(w.evicts || gn_residency_is_on(&w));
    boot.evicts = false;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_part_goes_and_comes_with_its_buffer),
        TEST(test_queries_bring_nothing_in),
        TEST(test_a_refused_buffer_comes_later),
        TEST(test_an_unreadable_buffer_stays),
        TEST(test_a_pinned_buffer_stays),
        TEST(test_nothing_is_evicted_during_a_save),
        TEST(test_an_image_is_made_again),
        TEST(test_an_image_has_its_pitch_again),
        TEST(test_queries_bring_no_image_in),
        TEST(test_an_image_of_levels_stays),
        TEST(test_an_image_with_a_view_stays),
        TEST(test_an_evicted_buffer_is_released),
        TEST(test_as_much_is_evicted_as_is_asked_for),
        TEST(test_what_stays_is_counted_as_pinned),
        TEST(test_gantryd_says_that_a_vgpu_evicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
