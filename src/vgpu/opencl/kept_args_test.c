/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An eviction takes the objects out of the arguments of the driver's kernels, by a driver whose
 * kernels keep their arguments.
 */
#include "kept_args.h"
#include "opencl_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ARGS   2u
#define N_MEMS   4u
#define N_PIXELS 8u

/* ---- a simulated driver */

struct memory {
    cl_mem_object_type type;
    int n_refs;
};

static char some_object;
static struct {
    struct memory mems[N_MEMS], pixels[N_PIXELS];
    struct memory *args[2][N_ARGS]; /* of two kernels */
    cl_mem_object_type takes;       /* the only type of image that an argument may have */
    uint32_t n_pixels, n_set;
    bool refuses_images;
} driver;

static cl_kernel kernel_handle(int i)
{
    return (cl_kernel)&driver.args[i];
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)kernel, (void)size, (void)size_ret;
    if (name == CL_KERNEL_NUM_ARGS)
        *(cl_uint *)value = N_ARGS;
    else if (name == CL_KERNEL_CONTEXT)
        *(cl_context *)value = (cl_context)&some_object;
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    struct memory **at = (struct memory **)kernel + index, *now = *(struct memory *const *)value;
    assert_true(index < N_ARGS && size == sizeof(cl_mem));
    if (now && now->type != CL_MEM_OBJECT_BUFFER && now->type != driver.takes)
        return CL_INVALID_ARG_VALUE;
    driver.n_set++;
    if (now)
        now->n_refs++;
    if (*at)
        (*at)->n_refs--;
    *at = now;
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host, cl_int *result)
{
    (void)flags, (void)format, (void)host, (void)result;
    assert_ptr_equal(context, &some_object);
    assert_true(desc->image_width == 1 && desc->image_height == 1);
    if (driver.refuses_images || desc->image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        return NULL;
    assert_true(driver.n_pixels < N_PIXELS);
    struct memory *m = &driver.pixels[driver.n_pixels++];
    *m = (struct memory){desc->image_type, 1};
    return (cl_mem)m;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *result)
{
    (void)context, (void)flags, (void)bytes, (void)host, (void)result;
    return NULL;
}

static cl_int CL_API_CALL release_mem(cl_mem mem)
{
    assert_true(--((struct memory *)mem)->n_refs >= 0);
    return CL_SUCCESS;
}

static struct _cl_icd_dispatch table = {.clGetKernelInfo = kernel_info,
                                        .clSetKernelArg = set_arg,
                                        .clCreateImage = create_image,
                                        .clCreateBuffer = create_buffer,
                                        .clReleaseMemObject = release_mem};

/* ---- a vGPU with a kernel, two buffers, an image and one more object */

static struct gn_opencl_vgpu opencl;
static struct gn_mem_detail details[N_MEMS];
static struct gn_vgpu *v;
static struct gn_vobject *kernel, *mems[N_MEMS];
#define IMAGE 2

static int setup(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    driver.takes = CL_MEM_OBJECT_IMAGE2D;
    opencl = (struct gn_opencl_vgpu){0};
    v = calloc(1, sizeof *v);
    v->driver = &table;
    v->detail = &opencl;
    v->evicts = true;
    pthread_mutex_init(&v->objects.lock, NULL);
    assert_int_equal(gn_kept_args_start(v), 0);
    memset(details, 0, sizeof details);
    details[IMAGE].element_bytes = 4;
    for (uint32_t i = 0; i < N_MEMS; i++) {
        driver.mems[i] = (struct memory){i == IMAGE ? driver.takes : CL_MEM_OBJECT_BUFFER, 1};
        mems[i] = gn_object_put(v, gn_id_make(2 + i, 1), GN_KIND_MEM, &driver.mems[i]);
        mems[i]->detail = &details[i];
    }
    kernel = gn_object_put(v, gn_id_make(1, 1), GN_KIND_KERNEL, kernel_handle(0));
    kernel->detail = gn_kernel_detail_new(v, kernel->driver);
    assert_non_null(kernel->detail);
    return 0;
}

static void free_kernel(struct gn_kernel_detail *k)
{
    gn_kept_args_remove(v, k);
    gn_kernel_detail_free(&table, k);
}

static int teardown(void **state)
{
    (void)state;
    if (kernel->detail)
        free_kernel(kernel->detail);
    free(kernel);
    for (uint32_t i = 0; i < N_MEMS; i++)
        free(mems[i]);
    for (uint32_t i = 0; i < driver.n_pixels; i++)
        assert_int_equal(driver.pixels[i].n_refs, driver.args[0][0] == &driver.pixels[i]);
    free(opencl.kept_args);
    free(v->objects.generations[0]);
    free((void *)atomic_load(&v->objects.chunks[0]));
    free(v);
    return 0;
}

static void set(uint32_t index, const struct gn_vobject *o)
{
    const struct gn_arg arg = {
        .index = (uint16_t)index, .kind = GN_ARG_MEM, .bytes = sizeof(void *), .value = o->id};
    const struct gn_args_SetArg a = {
        .kernel = kernel->driver, .kernel_object = kernel, .args = &arg, .bytes = sizeof arg};
    struct gn_request *r = calloc(1, sizeof *r);
    assert_non_null(r);
    gn_request_init(r, v);
    assert_int_equal(gn_host_SetArg(v, r, &a), CL_SUCCESS);
    gn_request_fini(r);
    free(r);
}

/* As an eviction does. */
static void evict(struct gn_vobject *o)
{
    release_mem(o->driver);
    gn_object_replace_driver(o, NULL);
}

static void test_an_evicted_buffer_is_no_argument(void **state)
{
    (void)state;
    set(0, mems[0]);
    set(1, mems[1]);
    assert_int_equal(driver.mems[0].n_refs, 2);
    evict(mems[0]);
    gn_kept_args_drop(v);
    assert_int_equal(driver.mems[0].n_refs, 0);
    assert_null(driver.args[0][0]);
    assert_ptr_equal(driver.args[0][1], &driver.mems[1]);
    /* Once is enough. */
    assert_int_equal(driver.n_set, 3);
    gn_kept_args_drop(v);
    assert_int_equal(driver.n_set, 3);
}

static void test_a_launch_sets_it_again(void **state)
{
    (void)state;
    set(0, mems[0]);
    evict(mems[0]);
    gn_kept_args_drop(v);
    gn_object_replace_driver(mems[0], &driver.mems[3]);
    set(0, mems[0]);
    assert_ptr_equal(driver.args[0][0], &driver.mems[3]);
    gn_kept_args_drop(v);
    assert_ptr_equal(driver.args[0][0], &driver.mems[3]);
}

static void test_an_evicted_image_makes_room_for_a_pixel(void **state)
{
    static const cl_mem_object_type types[] = {CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE1D};
    const uint32_t n = GN_ARRAY_SIZE(types);
    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        driver.mems[IMAGE] = (struct memory){driver.takes = types[i], 1};
        gn_object_replace_driver(mems[IMAGE], &driver.mems[IMAGE]);
        set(0, mems[IMAGE]);
        evict(mems[IMAGE]);
        gn_kept_args_drop(v);
        assert_int_equal(driver.mems[IMAGE].n_refs, 0);
        assert_int_equal(driver.args[0][0]->type, types[i]);
    }
}

static void test_without_a_pixel_the_image_stays(void **state)
{
    (void)state;
    set(0, mems[IMAGE]);
    evict(mems[IMAGE]);
    driver.refuses_images = true;
    gn_kept_args_drop(v);
    assert_int_equal(driver.mems[IMAGE].n_refs, 1);
    driver.refuses_images = false;
    gn_kept_args_drop(v);
    assert_int_equal(driver.mems[IMAGE].n_refs, 0);
}

static void test_a_released_buffer_is_no_argument(void **state)
{
    (void)state;
    set(0, mems[0]);
    set(1, mems[1]);
    /* Its number is another object's, or none's. */
    atomic_store(&atomic_load(&v->objects.chunks[0])[gn_id_index(mems[0]->id)], NULL);
    release_mem(mems[0]->driver);
    gn_kept_args_drop(v);
    assert_int_equal(driver.mems[0].n_refs, 0);
    assert_int_equal(driver.mems[1].n_refs, 2);
}

static void test_a_clone_has_the_arguments_of_its_source(void **state)
{
    struct gn_kernel_detail *clone = gn_kernel_detail_new(v, kernel_handle(1));
    (void)state;
    assert_non_null(clone);
    set(0, mems[0]);
    gn_kernel_detail_clone(clone, kernel->detail);
    driver.args[1][0] = &driver.mems[0];
    driver.mems[0].n_refs++;
    evict(mems[0]);
    gn_kept_args_drop(v);
    assert_int_equal(driver.mems[0].n_refs, 0);
    assert_null(driver.args[1][0]);
    free_kernel(clone);
}

static void test_a_kernel_that_is_gone_is_left_alone(void **state)
{
    (void)state;
    set(0, mems[0]);
    free_kernel(kernel->detail);
    kernel->detail = NULL;
    evict(mems[0]);
    gn_kept_args_drop(v);
    assert_int_equal(driver.n_set, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_evicted_buffer_is_no_argument),
        TEST(test_a_launch_sets_it_again),
        TEST(test_an_evicted_image_makes_room_for_a_pixel),
        TEST(test_without_a_pixel_the_image_stays),
        TEST(test_a_released_buffer_is_no_argument),
        TEST(test_a_clone_has_the_arguments_of_its_source),
        TEST(test_a_kernel_that_is_gone_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
