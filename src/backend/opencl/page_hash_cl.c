/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that hash pages, and the code that runs them. Called by a migration's hashing
 * threads; uses a queue of its own on the vGPU's context. Of the program's objects it only reads
 * the buffer that it is given.
 */
#include "backend/opencl/page_hash_cl.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define GROUP_ITEMS 64u
#define ROW_ITEMS   4u    /* fixed: some devices compile code for each work-group size */
#define LEAST_PAGES 4096u /* the least number of digests to allocate room for */
#define TEXT(...)   #__VA_ARGS__

/*
 * PAGE_WORDS: 64-bit words in a page. `bytes` is the buffer's size; its last word is padded with
 * zeros. Words are little-endian. tail_word reads bytes, since a whole word would reach beyond the
 * buffer.
 */
static const char source[] = TEXT(
    ulong product(ulong w, uint k0, uint k1) {
        return (ulong)((uint)w + k0) * (ulong)((uint)(w >> 32) + k1);
    } ulong tail_word(__global const uchar *b, ulong at, ulong bytes) {
        ulong w = 0;
        for (uint i = 0; i < 8 && at + i < bytes; i++)
            w |= (ulong)b[at + i] << (8 * i);
        return w;
    } ulong word_at(__global const ulong *words, ulong i, ulong bytes) {
        return 8 * i + 8 <= bytes ? words[i]
                                  : tail_word((__global const uchar *)words, 8 * i, bytes);
    } ulong words_of(ulong page, ulong bytes) {
        ulong left = (bytes + 7) / 8 - page * PAGE_WORDS;
        return left < PAGE_WORDS ? left : PAGE_WORDS;
    }

    __kernel __attribute__((reqd_work_group_size(ROW_ITEMS, 1, 1))) void by_item(
        __global const ulong *words, ulong bytes, ulong first, ulong n, __global const uint *key,
        __global ulong *out) {
        ulong index = get_global_id(0);
        if (index >= n)
            return;
        ulong page = first + index;
        ulong n_words = words_of(page, bytes);
        __global const ulong *w = words + page * PAGE_WORDS;
        ulong4 a0 = 0;
        ulong4 a1 = 0;
        ulong4 a2 = 0;
        ulong4 a3 = 0;
        uint quads = page * (PAGE_WORDS * 8UL) + n_words * 8 <= bytes ? (uint)(n_words / 4)
                                                                      : (uint)((n_words - 1) / 4);
        for (uint q = 0; q < quads; q++) {
            uint8 x = as_uint8(vload4(q, w));
            __global const uint *k = key + 8 * q;
            uint8 y = x + vload8(0, k);
            a0 += convert_ulong4(y.even) * convert_ulong4(y.odd);
            y = x + vload8(0, k + 2);
            a1 += convert_ulong4(y.even) * convert_ulong4(y.odd);
            y = x + vload8(0, k + 4);
            a2 += convert_ulong4(y.even) * convert_ulong4(y.odd);
            y = x + vload8(0, k + 6);
            a3 += convert_ulong4(y.even) * convert_ulong4(y.odd);
        }
        ulong4 sums = (ulong4)(a0.x + a0.y + a0.z + a0.w, a1.x + a1.y + a1.z + a1.w,
                               a2.x + a2.y + a2.z + a2.w, a3.x + a3.y + a3.z + a3.w);
        for (uint i = 4 * quads; i < n_words; i++) {
            ulong x = word_at(words, page * PAGE_WORDS + i, bytes);
            __global const uint *k = key + 2 * i;
            sums += (ulong4)(product(x, k[0], k[1]), product(x, k[2], k[3]), product(x, k[4], k[5]),
                             product(x, k[6], k[7]));
        }
        vstore4(sums, index, out);
    }

    __kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void by_group(
        __global const ulong *words, ulong bytes, ulong first, ulong n, __global const uint *key,
        __global ulong *out) {
        __local ulong4 part[GROUP_ITEMS];
        uint item = get_local_id(0);
        for (ulong index = get_group_id(0); index < n; index += get_num_groups(0)) {
            ulong page = first + index;
            uint n_words = (uint)words_of(page, bytes);
            ulong4 sums = 0;
            for (uint i = item; i < n_words; i += GROUP_ITEMS) {
                ulong x = word_at(words, page * PAGE_WORDS + i, bytes);
                __global const uint *k = key + 2 * i;
                sums += (ulong4)(product(x, k[0], k[1]), product(x, k[2], k[3]),
                                 product(x, k[4], k[5]), product(x, k[6], k[7]));
            }
            part[item] = sums;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint half_of = GROUP_ITEMS / 2; half_of > 0; half_of /= 2) {
                if (item < half_of)
                    part[item] += part[item + half_of];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (item == 0)
                vstore4(part[0], index, out);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    });

struct gn_cl_page_hash {
    /* set once */
    const cl_icd_dispatch *cl;
    cl_context context;
    uint32_t page_bytes;
    bool by_group;
    size_t row_items, max_groups;

    /* one run at a time */
    pthread_mutex_t lock;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel; /* NULL, with key and out: trimmed */
    cl_mem key, out;
    uint64_t out_pages;
    uint32_t *words; /* of the key; set once */
};

static int say(struct gn_error *err, cl_int rc, const char *what)
{
    int code = rc == CL_MEM_OBJECT_ALLOCATION_FAILURE || rc == CL_OUT_OF_RESOURCES ||
                       rc == CL_OUT_OF_HOST_MEMORY
                   ? ENOMEM
                   : EIO;
    return gn_fail(err, code, "pages will be read and hashed by the processor",
                   "the device cannot hash pages: %s gives %d", what, rc);
}

static int look_at_device(struct gn_cl_page_hash *h, cl_device_id device, int group_shape,
                          struct gn_error *err)
{
    cl_bool little = CL_FALSE, compiler = CL_FALSE;
    cl_device_type type = 0;
    cl_uint units = 1;
    size_t most = 0;
    if (h->cl->clGetDeviceInfo(device, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL) ||
        h->cl->clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler,
                               NULL) ||
        h->cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL) ||
        h->cl->clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL) ||
        h->cl->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL))
        return gn_fail(err, EIO, "pages will be read and hashed by the processor",
                       "the device does not tell what it is");
    if (!little || !compiler)
        return gn_fail(err, ENODEV, "pages will be read and hashed by the processor",
                       "the device %s, so it cannot hash pages",
                       little ? "has no compiler" : "is big-endian");
    h->row_items = most < ROW_ITEMS ? 1 : ROW_ITEMS;
    h->by_group =
        group_shape < 0 ? !(type & CL_DEVICE_TYPE_CPU) && most >= GROUP_ITEMS : group_shape != 0;
    if (h->by_group && most < GROUP_ITEMS)
        return gn_fail(err, ENODEV, "use the other shape",
                       "the device has no work-groups of %u items", GROUP_ITEMS);
    /* Enough to hide the memory's latency, few enough that a group has more than one page to do. */
    h->max_groups = 32 * (size_t)(units ? units : 1);
    return 0;
}

static size_t key_bytes(const struct gn_cl_page_hash *h)
{
    return 4 * (h->page_bytes / 4 + 6);
}

/* Makes anew what trim() has released; `out` follows with a run. */
static int prepare(struct gn_cl_page_hash *h, struct gn_error *err)
{
    cl_int rc = CL_SUCCESS;
    if (!h->kernel)
        h->kernel = h->cl->clCreateKernel(h->program, h->by_group ? "by_group" : "by_item", &rc);
    if (rc) {
        h->kernel = NULL;
        return say(err, rc, "clCreateKernel");
    }
    if (!h->key)
        h->key = h->cl->clCreateBuffer(h->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                       key_bytes(h), h->words, &rc);
    if (rc) {
        h->key = NULL;
        return say(err, rc, "clCreateBuffer");
    }
    return 0;
}

static int build(struct gn_cl_page_hash *h, cl_device_id device, const uint32_t *key,
                 struct gn_error *err)
{
    const char *text = source;
    char options[96];
    cl_int rc;

    if (!(h->words = malloc(key_bytes(h))))
        return gn_fail(err, ENOMEM, "free some memory", "no memory for hashing pages");
    memcpy(h->words, key, key_bytes(h));
    h->queue = h->cl->clCreateCommandQueue(h->context, device, 0, &rc);
    if (rc)
        return say(err, rc, "clCreateCommandQueue");
    h->program = h->cl->clCreateProgramWithSource(h->context, 1, &text, NULL, &rc);
    if (rc)
        return say(err, rc, "clCreateProgramWithSource");
    snprintf(options, sizeof options, "-DPAGE_WORDS=%uUL -DGROUP_ITEMS=%u -DROW_ITEMS=%zu",
             h->page_bytes / 8, GROUP_ITEMS, h->row_items);
    rc = h->cl->clBuildProgram(h->program, 1, &device, options, NULL, NULL);
    if (rc)
        return say(err, rc, "clBuildProgram");
    return prepare(h, err);
}

int gn_cl_page_hash_create(const cl_icd_dispatch *cl, cl_context context, cl_device_id device,
                           const uint32_t *key, uint32_t page_bytes, int group_shape,
                           struct gn_cl_page_hash **ret, struct gn_error *err)
{
    if (page_bytes < 64 || page_bytes > 65536 || (page_bytes & (page_bytes - 1)))
        return gn_fail(err, EINVAL, "give a power of two up to 64K",
                       "pages of %u bytes cannot be hashed", page_bytes);
    struct gn_cl_page_hash *h = calloc(1, sizeof *h);
    if (!h)
        return gn_fail(err, ENOMEM, "free some memory", "no memory for hashing pages");
    h->cl = cl;
    h->context = context;
    h->page_bytes = page_bytes;
    pthread_mutex_init(&h->lock, NULL);
    int r = look_at_device(h, device, group_shape, err);
    if (!r)
        r = build(h, device, key, err);
    if (r) {
        gn_cl_page_hash_destroy(h);
        return r;
    }
    *ret = h;
    return 0;
}

const char *gn_cl_page_hash_shape(const struct gn_cl_page_hash *h)
{
    return h->by_group ? "a work-group a page" : "a work-item a page";
}

static void trim(struct gn_cl_page_hash *h)
{
    if (h->out)
        h->cl->clReleaseMemObject(h->out);
    if (h->key)
        h->cl->clReleaseMemObject(h->key);
    if (h->kernel)
        h->cl->clReleaseKernel(h->kernel);
    h->out = h->key = NULL;
    h->kernel = NULL;
    h->out_pages = 0;
}

void gn_cl_page_hash_trim(struct gn_cl_page_hash *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    trim(h);
    pthread_mutex_unlock(&h->lock);
}

void gn_cl_page_hash_destroy(struct gn_cl_page_hash *h)
{
    if (!h)
        return;
    trim(h);
    if (h->program)
        h->cl->clReleaseProgram(h->program);
    if (h->queue)
        h->cl->clReleaseCommandQueue(h->queue);
    pthread_mutex_destroy(&h->lock);
    free(h->words);
    free(h);
}

static int room_for(struct gn_cl_page_hash *h, uint64_t n_pages, struct gn_error *err)
{
    cl_int rc;
    if (h->out_pages >= n_pages)
        return 0;
    if (n_pages < LEAST_PAGES)
        n_pages = LEAST_PAGES;
    if (h->out)
        h->cl->clReleaseMemObject(h->out);
    h->out_pages = 0;
    h->out = h->cl->clCreateBuffer(h->context, CL_MEM_WRITE_ONLY, n_pages * GN_CL_PAGE_DIGEST_BYTES,
                                   NULL, &rc);
    if (rc) {
        h->out = NULL;
        return say(err, rc, "clCreateBuffer");
    }
    h->out_pages = n_pages;
    return 0;
}

static int run(struct gn_cl_page_hash *h, cl_mem buffer, uint64_t buffer_bytes, uint64_t first,
               uint64_t n_pages, void *ret, struct gn_error *err)
{
    int r = prepare(h, err);
    if (!r)
        r = room_for(h, n_pages, err);
    if (r)
        return r;
    const cl_ulong bytes = buffer_bytes, from = first, n = n_pages;
    const struct {
        size_t n;
        const void *value;
    } args[] = {{sizeof buffer, &buffer}, {sizeof bytes, &bytes},   {sizeof from, &from},
                {sizeof n, &n},           {sizeof h->key, &h->key}, {sizeof h->out, &h->out}};
    for (cl_uint i = 0; i < GN_ARRAY_SIZE(args); i++) {
        cl_int rc = h->cl->clSetKernelArg(h->kernel, i, args[i].n, args[i].value);
        if (rc)
            return say(err, rc, "clSetKernelArg");
    }
    size_t groups = n_pages < h->max_groups ? (size_t)n_pages : h->max_groups;
    size_t local = h->by_group ? GROUP_ITEMS : h->row_items;
    size_t global = h->by_group ? groups * local : ((size_t)n_pages + local - 1) / local * local;
    cl_event over = NULL;
    cl_int status = CL_QUEUED;
    cl_int rc = h->cl->clEnqueueNDRangeKernel(h->queue, h->kernel, 1, NULL, &global, &local, 0,
                                              NULL, &over);
    if (rc)
        return say(err, rc, "clEnqueueNDRangeKernel");
    rc = h->cl->clEnqueueReadBuffer(h->queue, h->out, CL_TRUE, 0, n_pages * GN_CL_PAGE_DIGEST_BYTES,
                                    ret, 1, &over, NULL);
    /* A launch may fail after it was accepted; the digests read then are those of an earlier
     * run. */
    const cl_int reported = h->cl->clGetEventInfo(over, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                  sizeof status, &status, NULL);
    h->cl->clReleaseEvent(over);
    if (!rc && (reported || status != CL_COMPLETE))
        return say(err, reported ? reported : status, "the kernel's end");
    return rc ? say(err, rc, "clEnqueueReadBuffer") : 0;
}

int gn_cl_page_hash_run(struct gn_cl_page_hash *h, cl_mem buffer, uint64_t buffer_bytes,
                        uint64_t first, uint64_t n_pages, void *ret, struct gn_error *err)
{
    uint64_t all = buffer_bytes / h->page_bytes + (buffer_bytes % h->page_bytes != 0);
    if (!gn_range_ok(first, n_pages, all))
        return gn_fail(err, EINVAL, "hash only what is there",
                       "pages are to be hashed that lie beyond their buffer");
    if (n_pages == 0)
        return 0;
    pthread_mutex_lock(&h->lock);
    int r = run(h, buffer, buffer_bytes, first, n_pages, ret, err);
    pthread_mutex_unlock(&h->lock);
    return r;
}
