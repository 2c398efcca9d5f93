/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that the vGPU has received names the vGPU's objects: it goes to the driver with the
 * driver's objects of that moment, and a kernel's argument whose driver's object has been replaced
 * is set again.
 */
#include "opencl_host.h"

#include "vgpu/core/command_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ARGS 3u

/* ---- a simulated driver: its objects are addresses of these */

static char objects[8];
#define OBJECT(i) ((void *)&objects[i])

static struct {
    cl_mem arguments[N_ARGS]; /* of the kernel */
    int n_set, n_launched;
    cl_mem named[2]; /* by the latest migration */
    cl_int refuses;
} driver;

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)kernel, (void)size, (void)size_ret;
    if (name != CL_KERNEL_NUM_ARGS)
        return CL_INVALID_VALUE;
    *(cl_uint *)value = N_ARGS;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    (void)kernel;
    assert_true(index < N_ARGS);
    driver.n_set++;
    if (driver.refuses)
        return driver.refuses;
    if (size == sizeof(cl_mem))
        memcpy(&driver.arguments[index], value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL launch_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dim,
                                        const size_t *offset, const size_t *global,
                                        const size_t *local, cl_uint n, const cl_event *waits,
                                        cl_event *event)
{
    (void)queue, (void)kernel, (void)dim, (void)offset, (void)global, (void)local, (void)n;
    (void)waits, (void)event;
    driver.n_launched++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint n_mems, const cl_mem *mems,
                                  cl_mem_migration_flags flags, cl_uint n, const cl_event *waits,
                                  cl_event *event)
{
    (void)queue, (void)flags, (void)n, (void)waits, (void)event;
    assert_int_equal(n_mems, GN_ARRAY_SIZE(driver.named));
    memcpy(driver.named, mems, sizeof driver.named);
    return CL_SUCCESS;
}

static struct _cl_icd_dispatch table = {.clGetKernelInfo = kernel_info,
                                        .clSetKernelArg = set_arg,
                                        .clEnqueueNDRangeKernel = launch_kernel,
                                        .clEnqueueMigrateMemObjects = migrate};

/* ---- a vGPU with a kernel, two buffers and a queue */

static struct gn_vgpu *v;
static struct gn_vobject *kernel, *buffers[2], *queue;

static int setup(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    v = calloc(1, sizeof *v);
    v->driver = &table;
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->objects.lock, NULL);
    kernel = gn_object_put(v, gn_id_make(1, 1), GN_KIND_KERNEL, OBJECT(0));
    buffers[0] = gn_object_put(v, gn_id_make(2, 1), GN_KIND_MEM, OBJECT(1));
    buffers[1] = gn_object_put(v, gn_id_make(3, 1), GN_KIND_MEM, OBJECT(2));
    queue = gn_object_put(v, gn_id_make(4, 1), GN_KIND_QUEUE, OBJECT(3));
    assert_true(kernel && buffers[0] && buffers[1] && queue);
    kernel->detail = gn_kernel_detail_new(v, kernel->driver);
    assert_non_null(kernel->detail);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gn_kernel_detail_free(&table, kernel->detail);
    free(kernel);
    free(buffers[0]);
    free(buffers[1]);
    free(queue);
    free(v->objects.generations[0]);
    free((void *)atomic_load(&v->objects.chunks[0]));
    free(v);
    return 0;
}

/* Takes a command in, as the ring thread does. */
static struct gn_command *admit(unsigned op, const void *message, uint32_t n_bytes)
{
    const struct gn_request_class *class = &gn_opencl_requests[op];
    struct gn_command *c = gn_command_new(v, class, queue, message, n_bytes);
    assert_non_null(c);
    atomic_fetch_add(&queue->n_refs, 1);
    class->admit(v, c);
    assert_false(c->fault || c->no_memory);
    return c;
}

static int32_t submit(struct gn_command *c)
{
    void *event = NULL;
    const int32_t result = c->class->submit(v, c, queue->driver, 0, NULL, &event);
    gn_command_unref(c);
    return result;
}

struct launch {
    struct gn_wire_Launch w;
    struct gn_arg args[N_ARGS];
};

static struct gn_command *admit_launch(void)
{
    struct launch m = {
        .w = {.msg.op = GN_OP_Launch,
              .kernel = kernel->id,
              .work_dim = 1,
              .args = {0, sizeof m.args, offsetof(struct launch, args)},
              .args_bytes = sizeof m.args},
        .args = {
            {.kind = GN_ARG_MEM, .bytes = sizeof(cl_mem), .value = buffers[0]->id},
            {.index = 1, .kind = GN_ARG_BYTES, .bytes = 4, .value = 7},
            {.index = 2, .kind = GN_ARG_MEM, .bytes = sizeof(cl_mem), .value = buffers[1]->id}}};
    return admit(GN_OP_Launch, &m, sizeof m);
}

static void launch(void)
{
    const int n = driver.n_launched;
    assert_int_equal(submit(admit_launch()), CL_SUCCESS);
    assert_int_equal(driver.n_launched, n + 1);
}

static void test_unchanged_arguments_are_not_set_again(void **state)
{
    (void)state;
    launch();
    assert_int_equal(driver.n_set, N_ARGS);
    for (int i = 0; i < 1000; i++)
        launch();
    assert_int_equal(driver.n_set, N_ARGS);
}

static void test_a_stale_argument_is_set_again(void **state)
{
    (void)state;
    launch();
    gn_object_replace_driver(buffers[1], OBJECT(4));
    launch();
    assert_int_equal(driver.n_set, N_ARGS + 1);
    assert_ptr_equal(driver.arguments[0], OBJECT(1));
    assert_ptr_equal(driver.arguments[2], OBJECT(4));
    launch();
    assert_int_equal(driver.n_set, N_ARGS + 1);
}

/* A driver may give a new object the address of one that it has destroyed. */
static void test_a_stale_argument_at_the_same_address(void **state)
{
    (void)state;
    launch();
    gn_object_replace_driver(buffers[1], OBJECT(2));
    launch();
    assert_int_equal(driver.n_set, N_ARGS + 1);
}

static void test_a_refused_argument_is_set_again(void **state)
{
    (void)state;
    launch();
    gn_object_replace_driver(buffers[0], OBJECT(4));
    driver.refuses = CL_OUT_OF_RESOURCES;
    assert_int_equal(submit(admit_launch()), CL_OUT_OF_RESOURCES);
    driver.refuses = CL_SUCCESS;
    launch();
    assert_ptr_equal(driver.arguments[0], OBJECT(4));
}

static void test_a_launch_is_resolved_when_it_is_submitted(void **state)
{
    (void)state;
    struct gn_command *c = admit_launch();
    gn_object_replace_driver(buffers[0], OBJECT(4));
    assert_int_equal(submit(c), CL_SUCCESS);
    assert_ptr_equal(driver.arguments[0], OBJECT(4));
}

static void test_an_array_is_resolved_when_it_is_submitted(void **state)
{
    struct {
        struct gn_wire_clEnqueueMigrateMemObjects w;
        uint64_t ids[2];
    } m = {.w = {.msg.op = GN_OP_clEnqueueMigrateMemObjects,
                 .mem_objects = {0, sizeof m.ids, sizeof m.w},
                 .num_mem_objects = 2},
           .ids = {buffers[0]->id, buffers[1]->id}};
    (void)state;
    struct gn_command *c = admit(GN_OP_clEnqueueMigrateMemObjects, &m, sizeof m);
    gn_object_replace_driver(buffers[1], OBJECT(4));
    assert_int_equal(submit(c), CL_SUCCESS);
    assert_ptr_equal(driver.named[0], OBJECT(1));
    assert_ptr_equal(driver.named[1], OBJECT(4));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unchanged_arguments_are_not_set_again),
        TEST(test_a_stale_argument_is_set_again),
        TEST(test_a_stale_argument_at_the_same_address),
        TEST(test_a_refused_argument_is_set_again),
        TEST(test_a_launch_is_resolved_when_it_is_submitted),
        TEST(test_an_array_is_resolved_when_it_is_submitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
