/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of a buffer's pages by the first OpenCL device, both kernels, as a move's rounds ask for
 * them; and by the processor from memory of its own. 256 MiB, the best of five.
 */
#include <CL/cl_icd.h>
#include <stdlib.h>
#include <string.h>

#include "backend/opencl/page_hash_cl.h"
#include "base/clock.h"
#include "pages.h"

#define BYTES   (UINT64_C(256) << 20)
#define PAGES   (BYTES / PAGE)
#define AT_ONCE 4096u /* what a round asks for */
#define TURNS   5u

/* What every vendor's object begins with. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
};

static unsigned char *digests;

static double here(enum gn_page_hash_kind kind, const unsigned char *memory)
{
    struct gn_page_hasher h;
    uint64_t best = UINT64_MAX;
    need(gn_page_hasher_init(&h, kind, PAGE, 0, NULL), "no hasher");
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t t0 = gn_now_ns();
        for (uint64_t i = 0; i < PAGES; i++)
            gn_page_digest(&h, memory + i * PAGE, PAGE, digests + i * GN_PAGE_DIGEST_MAX);
        uint64_t t = gn_now_ns() - t0;
        best = t < best ? t : best;
    }
    gn_page_hasher_fini(&h);
    return (double)best / PAGES;
}

static double there(const cl_icd_dispatch *cl, cl_context context, cl_device_id device, cl_mem mem,
                    int shape, double *ret_build_ms)
{
    struct gn_page_hasher h;
    struct gn_cl_page_hash *d;
    struct gn_error err;
    uint64_t best = UINT64_MAX;
    need(gn_page_hasher_init(&h, GN_PAGE_HASH_NH, PAGE, 0, NULL), "no hasher");
    uint64_t began = gn_now_ns();
    if (gn_cl_page_hash_create(cl, context, device, h.key, PAGE, shape, &d, &err) ||
        gn_cl_page_hash_run(d, mem, BYTES, 0, 1, digests, &err))
        die(err.what);
    *ret_build_ms = (double)(gn_now_ns() - began) / 1e6;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t t0 = gn_now_ns();
        for (uint64_t at = 0; at < PAGES; at += AT_ONCE)
            need(gn_cl_page_hash_run(d, mem, BYTES, at, AT_ONCE, digests + at * GN_PAGE_DIGEST_MAX,
                                     NULL),
                 "the device cannot hash");
        uint64_t t = gn_now_ns() - t0;
        best = t < best ? t : best;
    }
    gn_cl_page_hash_destroy(d);
    gn_page_hasher_fini(&h);
    return (double)best / PAGES;
}

void bench_device(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int rc;
    char name[256] = "";
    double item_ms, group_ms;
    unsigned char *memory = aligned_alloc(PAGE, BYTES);
    digests = malloc(PAGES * GN_PAGE_DIGEST_MAX);
    if (!memory || !digests)
        die("out of memory");
    memset(digests, 0, PAGES * GN_PAGE_DIGEST_MAX);
    for (uint64_t i = 0; i < BYTES / 8; i++)
        ((uint64_t *)memory)[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    need(clGetPlatformIDs(1, &platform, NULL), "no OpenCL platform");
    need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no OpenCL device");
    need(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL),
         "a device without a name");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    need(rc, "no context");
    cl_mem mem =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, BYTES, memory, &rc);
    need(rc, "no buffer");
    const double item = there(platform->dispatch, context, device, mem, 0, &item_ms);
    const double group = there(platform->dispatch, context, device, mem, 1, &group_ms);
    printf("{\"device\": \"%s\", \"item_ns\": %.1f, \"group_ns\": %.1f, \"item_build_ms\": %.1f, "
           "\"group_build_ms\": %.1f, \"nh_ns\": %.1f, "
           "\"xxh3_ns\": %.1f}",
           name, item, group, item_ms, group_ms, here(GN_PAGE_HASH_NH, memory),
           here(GN_PAGE_HASH_XXH3, memory));
    clReleaseMemObject(mem);
    clReleaseContext(context);
    free(memory);
    free(digests);
}
