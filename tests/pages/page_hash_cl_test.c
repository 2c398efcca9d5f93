/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that hash pages against the C loop, bit for bit, on the first OpenCL device there is;
 * and a whole move over them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/opencl/page_hash_cl.h"
#include "migrate/rounds.h"

/* What every vendor's object begins with. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
};

static struct {
    const cl_icd_dispatch *cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
} dev;

static uint64_t random_state = 7;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static cl_mem buffer_of(const unsigned char *bytes, uint64_t n)
{
    cl_int rc;
    cl_mem mem = clCreateBuffer(dev.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, n,
                                (void *)(uintptr_t)bytes, &rc);
    assert_int_equal(rc, 0);
    return mem;
}

static unsigned char *random_bytes(uint64_t n)
{
    unsigned char *bytes = malloc(n);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(draw() >> 40);
    return bytes;
}

/* Whole pages, last pages of every kind of end, runs that begin anywhere. */
static void both_shapes_equal_the_plain_loop(void **state)
{
    static const uint32_t page_sizes[] = {4096, 16384, 65536};
    static const uint32_t ends[] = {0, 1, 7, 8, 9, 31, 32, 33, 40, 511, 512, 513, 1000, 4088, 4095};
    for (size_t s = 0; s < sizeof page_sizes / sizeof *page_sizes; s++) {
        struct gn_page_hasher h;
        uint32_t page = page_sizes[s];
        assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_NH, page, 0, NULL), 0);
        for (int shape = 0; shape < 2; shape++) {
            struct gn_cl_page_hash *d = NULL;
            struct gn_error err = {0};
            int r = gn_cl_page_hash_create(dev.cl, dev.context, dev.device, h.key, page, shape, &d,
                                           &err);
            if (r)
                fail_msg("%s", err.what);
            for (size_t i = 0; i < 3 * (sizeof ends / sizeof *ends); i++) {
                const size_t e = i / 3, content = i % 3;
                uint64_t n = (uint64_t)(e % 5) * page + ends[e];
                if (n == 0)
                    n = 5 * page;
                uint64_t pages = (n + page - 1) / page, first = e % 2 && pages > 1 ? 1 : 0;
                unsigned char *bytes = random_bytes(n), want[32], *got = calloc(pages, 32);
                if (content)
                    memset(bytes, content == 1 ? 0 : 0xff, n);
                cl_mem mem = buffer_of(bytes, n);
                assert_int_equal(gn_cl_page_hash_run(d, mem, n, first, pages - first, got, NULL),
                                 0);
                /* The next run begins after a trim. */
                gn_cl_page_hash_trim(d);
                for (uint64_t p = first; p < pages; p++) {
                    gn_page_digest(&h, bytes + p * page, n - p * page < page ? n - p * page : page,
                                   want);
                    assert_memory_equal(got + (p - first) * 32, want, 32);
                }
                assert_int_equal(gn_cl_page_hash_run(d, mem, n, 0, pages + 1, got, NULL), -EINVAL);
                assert_int_equal(gn_cl_page_hash_run(d, mem, n, UINT64_MAX, 2, got, NULL), -EINVAL);
                clReleaseMemObject(mem);
                free(bytes);
                free(got);
            }
            gn_cl_page_hash_destroy(d);
        }
        gn_page_hasher_fini(&h);
    }
}

struct moved {
    cl_mem mem;
    uint64_t bytes, read;
    struct gn_cl_page_hash *d;
    unsigned char *there;
};

static int read_mem(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct moved *m = ctx;
    m->read += n;
    return clEnqueueReadBuffer(dev.queue, m->mem, CL_TRUE, offset, n, dst, 0, NULL, NULL) ? -EIO
                                                                                          : 0;
}

static int digest_mem(void *ctx, uint64_t first, uint64_t n, void *ret)
{
    struct moved *m = ctx;
    return gn_cl_page_hash_run(m->d, m->mem, m->bytes, first, n, ret, NULL);
}

static int put(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
               const void *digests)
{
    unsigned char *there = ((struct moved *)ctx)->there + offset;
    if (data)
        memcpy(there, data, n);
    else
        memset(there, 0, n);
    return 0;
}

static void only_changed_pages_cross_the_bus(void **state)
{
    for (int shape = 0; shape < 2; shape++) {
        struct gn_page_hasher h;
        struct gn_rounds *r;
        struct moved m = {.bytes = 3000 * 4096 + 100};
        unsigned char *bytes = random_bytes(m.bytes);
        memset(bytes + 4096 * 10, 0, 4096 * 5);
        m.there = calloc(1, m.bytes);
        m.mem = buffer_of(bytes, m.bytes);
        assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_NH, 4096, 0, NULL), 0);
        assert_int_equal(
            gn_cl_page_hash_create(dev.cl, dev.context, dev.device, h.key, 4096, shape, &m.d, NULL),
            0);
        assert_int_equal(gn_rounds_create(4096, 1, &r, NULL), 0);
        struct gn_round_item item = {.source = {.read = read_mem, .digest = digest_mem, .ctx = &m}};
        assert_int_equal(gn_page_table_create(&h, m.bytes, true, 4, &item.table), 0);
        struct gn_page_sink sink = {.data = put, .ctx = &m};
        struct gn_round_stats s;
        assert_int_equal(gn_rounds_run(r, &(struct gn_round_options){.kind = GN_ROUND_LIVE}, &item,
                                       1, &sink, &s, NULL),
                         0);
        assert_int_equal(m.read, m.bytes);
        assert_int_equal(s.verify.zero, 5);

        m.read = 0;
        const uint64_t at[] = {0, 700 * 4096 + 4095, 1500 * 4096 + 17, m.bytes - 1};
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            bytes[at[i]] ^= 0x40;
            assert_int_equal(clEnqueueWriteBuffer(dev.queue, m.mem, CL_TRUE, at[i], 1,
                                                  bytes + at[i], 0, NULL, NULL),
                             0);
        }
        assert_int_equal(gn_rounds_run(r, &(struct gn_round_options){.kind = GN_ROUND_STOP}, &item,
                                       1, &sink, &s, NULL),
                         0);
        assert_int_equal(m.read, 3 * 4096 + 100);
        assert_memory_equal(m.there, bytes, m.bytes);

        gn_rounds_destroy(r);
        gn_page_table_destroy(item.table);
        gn_cl_page_hash_destroy(m.d);
        gn_page_hasher_fini(&h);
        clReleaseMemObject(m.mem);
        free(m.there);
        free(bytes);
    }
}

static cl_int CL_API_CALL no_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                    const size_t *offset, const size_t *global, const size_t *local,
                                    cl_uint n, const cl_event *waits, cl_event *event)
{
    return CL_OUT_OF_RESOURCES;
}

/* A launch that was taken, and did not end well. */
static cl_int CL_API_CALL ended_badly(cl_event event, cl_event_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    memcpy(value, &(const cl_int){-9999}, sizeof(cl_int));
    return CL_SUCCESS;
}

static cl_int CL_API_CALL no_build(cl_program program, cl_uint n, const cl_device_id *devices,
                                   const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                   void *data)
{
    return CL_BUILD_PROGRAM_FAILURE;
}

/* Each is said, and no digest is believed. */
static void a_driver_that_fails(void **state)
{
    cl_icd_dispatch table = *dev.cl;
    struct gn_page_hasher h;
    struct gn_cl_page_hash *d = NULL;
    struct gn_error err = {0};
    unsigned char digests[3 * 32], *bytes = random_bytes(3 * 4096);
    cl_mem mem = buffer_of(bytes, 3 * 4096);
    assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_NH, 4096, 0, NULL), 0);
    assert_int_equal(
        gn_cl_page_hash_create(&table, dev.context, dev.device, h.key, 4096, -1, &d, NULL), 0);
    assert_int_equal(gn_cl_page_hash_run(d, mem, 3 * 4096, 0, 3, digests, NULL), 0);
    table.clEnqueueNDRangeKernel = no_launch;
    assert_int_equal(gn_cl_page_hash_run(d, mem, 3 * 4096, 0, 3, digests, &err), -ENOMEM);
    assert_non_null(strstr(err.what, "clEnqueueNDRangeKernel"));
    table.clEnqueueNDRangeKernel = dev.cl->clEnqueueNDRangeKernel;
    table.clGetEventInfo = ended_badly;
    assert_int_equal(gn_cl_page_hash_run(d, mem, 3 * 4096, 0, 3, digests, &err), -EIO);
    assert_non_null(strstr(err.what, "-9999"));
    table.clGetEventInfo = dev.cl->clGetEventInfo;
    assert_int_equal(gn_cl_page_hash_run(d, mem, 3 * 4096, 0, 3, digests, NULL), 0);
    gn_cl_page_hash_destroy(d);
    d = NULL;
    table.clBuildProgram = no_build;
    assert_int_equal(
        gn_cl_page_hash_create(&table, dev.context, dev.device, h.key, 4096, -1, &d, &err), -EIO);
    assert_non_null(strstr(err.what, "clBuildProgram"));
    assert_null(d);
    gn_page_hasher_fini(&h);
    clReleaseMemObject(mem);
    free(bytes);
}

static void what_cannot_be_is_refused(void **state)
{
    struct gn_cl_page_hash *d = NULL;
    uint32_t key[4096 / 4 + 6] = {0};
    assert_int_equal(gn_cl_page_hash_create(dev.cl, dev.context, dev.device, key, 0, 0, &d, NULL),
                     -EINVAL);
    assert_int_equal(
        gn_cl_page_hash_create(dev.cl, dev.context, dev.device, key, 4097, 0, &d, NULL), -EINVAL);
    assert_int_equal(
        gn_cl_page_hash_create(dev.cl, dev.context, dev.device, key, 131072, 0, &d, NULL), -EINVAL);
    assert_null(d);
    gn_cl_page_hash_destroy(NULL);
    gn_cl_page_hash_trim(NULL);
}

int main(void)
{
    cl_platform_id platform;
    cl_int rc = clGetPlatformIDs(1, &platform, NULL);
    if (rc || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &dev.device, NULL)) {
        fprintf(stderr, "no OpenCL device\n");
        return 77;
    }
    dev.cl = platform->dispatch;
    dev.context = clCreateContext(NULL, 1, &dev.device, NULL, NULL, &rc);
    if (!rc)
        dev.queue = clCreateCommandQueue(dev.context, dev.device, 0, &rc);
    if (rc)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_shapes_equal_the_plain_loop),
        cmocka_unit_test(only_changed_pages_cross_the_bus),
        cmocka_unit_test(a_driver_that_fails),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clReleaseCommandQueue(dev.queue);
    clReleaseContext(dev.context);
    return failed;
}
