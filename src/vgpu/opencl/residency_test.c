/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer with a part of it, and images, are evicted and brought in, by a driver that counts and
 * may refuse.
 */
#include "opencl_host.h"
#include "residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES   64u
#define COLUMNS 4u
#define ROWS    8u
#define PIXEL   (BYTES / COLUMNS / ROWS)

/* ---- a simulated driver: its memory objects are these */

struct memory {
    struct memory *parent;
    size_t offset, bytes;
    cl_mem_flags flags;
    cl_mem_object_type type;
    cl_uint levels; /* of an image */
    size_t row_pitch;
    unsigned char at[BYTES];
};

static char some_object;
static struct {
    int n_alive, n_created, n_contexts; /* contexts: references that the vGPU has taken */
    bool refuses_buffers, refuses_parts, refuses_reads, refuses_writes;
} driver;

static struct memory *create(struct memory *parent, size_t offset, size_t bytes, cl_mem_flags flags)
{
    struct memory *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m = (struct memory){.parent = parent,
                         .offset = offset,
                         .bytes = bytes,
                         .flags = flags,
                         .type = CL_MEM_OBJECT_BUFFER};
    driver.n_alive++;
    driver.n_created++;
    return m;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *result)
{
    (void)context;
    assert_null(host);
    *result = driver.refuses_buffers ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
    return driver.refuses_buffers ? NULL : (cl_mem)create(NULL, 0, bytes, flags);
}

static cl_mem CL_API_CALL create_part(cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type,
                                      const void *info, cl_int *result)
{
    const cl_buffer_region *region = info;
    assert_int_equal(type, CL_BUFFER_CREATE_TYPE_REGION);
    *result = driver.refuses_parts ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    return driver.refuses_parts
               ? NULL
               : (cl_mem)create((struct memory *)mem, region->origin, region->size, flags);
}

static struct memory *create_picture(cl_uint levels)
{
    struct memory *m = create(NULL, 0, BYTES, CL_MEM_READ_WRITE);
    m->type = CL_MEM_OBJECT_IMAGE2D;
    m->levels = levels;
    m->row_pitch = COLUMNS * PIXEL;
    return m;
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host, cl_int *result)
{
    (void)context;
    assert_int_equal(host != NULL, (flags & CL_MEM_COPY_HOST_PTR) != 0);
    assert_int_equal(host != NULL, desc->image_row_pitch != 0);
    assert_null(desc->mem_object);
    assert_int_equal(format->image_channel_data_type, CL_UNSIGNED_INT16);
    assert_int_equal(desc->image_type, CL_MEM_OBJECT_IMAGE2D);
    assert_true(desc->image_width == COLUMNS && desc->image_height == ROWS);
    *result = driver.refuses_buffers ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
    if (driver.refuses_buffers)
        return NULL;
    struct memory *m = create_picture(0);
    if (host)
        m->row_pitch = desc->image_row_pitch;
    return (cl_mem)m;
}

static cl_int CL_API_CALL release_mem(cl_mem mem)
{
    assert_non_null(mem);
    driver.n_alive--;
    free(mem);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL mem_info(cl_mem mem, cl_mem_info name, size_t size, void *value,
                                   size_t *size_ret)
{
    const struct memory *m = (const struct memory *)mem;
    (void)size, (void)size_ret;
    assert_non_null(mem);
    if (name == CL_MEM_TYPE)
        *(cl_mem_object_type *)value = m->type;
    else if (name == CL_MEM_FLAGS)
        *(cl_mem_flags *)value = m->flags;
    else if (name == CL_MEM_SIZE)
        *(size_t *)value = m->bytes;
    else if (name == CL_MEM_OFFSET)
        *(size_t *)value = m->offset;
    else if (name == CL_MEM_CONTEXT)
        *(cl_context *)value = (cl_context)&some_object;
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL image_info(cl_mem mem, cl_image_info name, size_t size, void *value,
                                     size_t *size_ret)
{
    (void)size_ret;
    memset(value, 0, size);
    if (name == CL_IMAGE_FORMAT)
        *(cl_image_format *)value = (cl_image_format){CL_R, CL_UNSIGNED_INT16};
    else if (name == CL_IMAGE_WIDTH)
        *(size_t *)value = COLUMNS;
    else if (name == CL_IMAGE_HEIGHT)
        *(size_t *)value = ROWS;
    else if (name == CL_IMAGE_ROW_PITCH)
        *(size_t *)value = ((const struct memory *)mem)->row_pitch;
    else if (name == CL_IMAGE_NUM_MIP_LEVELS)
        *(cl_uint *)value = ((const struct memory *)mem)->levels;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL context_info(cl_context context, cl_context_info name, size_t size,
                                       void *value, size_t *size_ret)
{
    (void)context, (void)size;
    if (size_ret)
        *size_ret = sizeof(cl_device_id);
    if (value && name == CL_CONTEXT_NUM_DEVICES)
        *(cl_uint *)value = 1;
    else if (value)
        *(cl_device_id *)value = (cl_device_id)&some_object;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_context(cl_context context)
{
    (void)context;
    driver.n_contexts++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    (void)context;
    driver.n_contexts--;
    return CL_SUCCESS;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *result)
{
    (void)context, (void)device, (void)properties, (void)result;
    return (cl_command_queue)&some_object;
}

static cl_int CL_API_CALL queue_done(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocks, size_t at,
                                      size_t bytes, void *to, cl_uint n, const cl_event *waits,
                                      cl_event *event)
{
    (void)queue, (void)blocks, (void)n, (void)waits, (void)event;
    memcpy(to, ((const struct memory *)mem)->at + at, bytes);
    return driver.refuses_reads ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                       size_t at, size_t bytes, const void *from, cl_uint n,
                                       const cl_event *waits, cl_event *event)
{
    (void)queue, (void)blocks, (void)n, (void)waits, (void)event;
    if (driver.refuses_writes)
        return CL_OUT_OF_RESOURCES;
    memcpy(((struct memory *)mem)->at + at, from, bytes);
    return CL_SUCCESS;
}

/* Copies the rows of a box of the image, which lie without padding in host memory. */
static void copy_box(struct memory *m, const size_t *origin, const size_t *region,
                     unsigned char *host, bool out)
{
    const size_t n = region[0] * PIXEL;
    for (size_t y = 0; y < region[1]; y++) {
        unsigned char *row = m->at + ((origin[1] + y) * COLUMNS + origin[0]) * PIXEL;
        memcpy(out ? host + y * n : row, out ? row : host + y * n, n);
    }
}

static cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                     const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n, const cl_event *waits,
                                     cl_event *event)
{
    (void)queue, (void)blocks, (void)row, (void)slice, (void)n, (void)waits, (void)event;
    copy_box((struct memory *)mem, origin, region, to, true);
    return driver.refuses_reads ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                      const size_t *origin, const size_t *region, size_t row,
                                      size_t slice, const void *from, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    (void)queue, (void)blocks, (void)row, (void)slice, (void)n, (void)waits, (void)event;
    copy_box((struct memory *)mem, origin, region, (unsigned char *)(uintptr_t)from, false);
    return driver.refuses_writes ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static struct _cl_icd_dispatch table = {.clCreateBuffer = create_buffer,
                                        .clCreateSubBuffer = create_part,
                                        .clReleaseMemObject = release_mem,
                                        .clCreateImage = create_image,
                                        .clGetMemObjectInfo = mem_info,
                                        .clGetImageInfo = image_info,
                                        .clEnqueueReadImage = read_image,
                                        .clEnqueueWriteImage = write_image,
                                        .clGetContextInfo = context_info,
                                        .clRetainContext = retain_context,
                                        .clReleaseContext = release_context,
                                        .clCreateCommandQueue = create_queue,
                                        .clReleaseCommandQueue = queue_done,
                                        .clFinish = queue_done,
                                        .clEnqueueReadBuffer = read_buffer,
                                        .clEnqueueWriteBuffer = write_buffer};

/* ---- a vGPU with a buffer and a part of it */

static struct gn_vgpu_boot boot;
static struct gn_counters counters;
static struct gn_opencl_vgpu opencl;
static struct gn_vgpu *v;
static struct gn_vobject *buffer, *part;

static struct gn_vobject *made(uint32_t index, uint16_t op, struct memory *m,
                               struct gn_vobject *source)
{
    struct gn_request *r = calloc(1, sizeof *r);
    union {
        struct gn_msg msg;
        struct gn_wire_Buffer buffer;
        struct gn_wire_Image image;
    } w = {0};
    struct gn_vobject *o = gn_object_put(v, gn_id_make(index, 1), GN_KIND_MEM, m);
    struct gn_mem_detail *detail = calloc(1, sizeof *detail);
    assert_true(r && o && detail);
    w.msg.op = op;
    if (op == GN_OP_Image)
        w.image.properties.segment = GN_SPAN_NULL;
    else
        w.buffer.properties.segment = GN_SPAN_NULL;
    gn_request_init(r, v);
    memcpy(r->bytes, &w, sizeof w);
    if (source)
        r->held[r->n_held++] = source;
    detail->borrowed = source != NULL;
    detail->element_bytes = m->type == CL_MEM_OBJECT_BUFFER ? 0 : PIXEL;
    if (!source) {
        assert_int_equal(gn_lease_charge(&v->lease, BYTES, false, true), 0);
        o->charged_bytes = BYTES;
        assert_non_null(detail->charge = gn_mem_charge_keep(o));
    }
    o->detail = detail;
    gn_residency_made(o, r);
    free(r);
    return o;
}

static int setup(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    opencl = (struct gn_opencl_vgpu){0};
    v = calloc(1, sizeof *v);
    v->boot = &boot;
    v->session = &gn_vgpu_session_shm;
    v->driver = &table;
    v->detail = &opencl;
    v->counters = &counters;
    assert_int_equal(gn_lease_init(&v->lease, -1, &counters), 0);
    v->lease.leased_bytes = 100 * BYTES;
    pthread_mutex_init(&v->objects.lock, NULL);
    setenv("GANTRY_EVICT", "always", 1);
    assert_int_equal(gn_residency_start(v), 0);
    assert_true(v->evicts);
    buffer = made(1, GN_OP_Buffer, create(NULL, 0, BYTES, CL_MEM_READ_WRITE), NULL);
    part = made(2, GN_OP_clCreateSubBuffer,
                create(buffer->driver, 16, 8, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY), buffer);
    memset(((struct memory *)buffer->driver)->at, 7, BYTES);
    return 0;
}

static void drop(struct gn_vobject *o)
{
    gn_residency_gone(o);
    if (o->driver)
        release_mem(o->driver);
    gn_mem_charge_end(((struct gn_mem_detail *)o->detail)->charge);
    free(o->detail);
    free(o);
}

static int teardown(void **state)
{
    (void)state;
    drop(part);
    drop(buffer);
    assert_int_equal(driver.n_alive, 0);
    assert_int_equal(driver.n_contexts, 0);
    assert_int_equal(v->lease.used_bytes, 0);
    for (unsigned i = 0; i < GN_ARRAY_SIZE(v->lease.part_bytes); i++)
        assert_int_equal(v->lease.part_bytes[i], 0);
    close(v->lease.wake_fd);
    free(opencl.residency);
    free(v->objects.generations[0]);
    free((void *)atomic_load(&v->objects.chunks[0]));
    free(v);
    return 0;
}

static void check_contents(void)
{
    const struct memory *m = buffer->driver, *p = part->driver;
    assert_true(m && p);
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(m->at[i], 7);
    assert_ptr_equal(p->parent, m);
    assert_int_equal(p->offset, 16);
    assert_int_equal(p->bytes, 8);
}

static void evict(void)
{
    (void)gn_residency_evict(v, 0);
    assert_true(!buffer->driver && !part->driver);
    assert_int_equal(driver.n_alive, 0);
    assert_false(gn_residency_has_resident(v));
}

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
    a.image_object = buffer;
    assert_int_equal(gn_host_clGetImageInfo(v, NULL, &a), CL_INVALID_MEM_OBJECT);
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
