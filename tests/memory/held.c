/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations on modelled buffers, by holds.c's one thread. Commands go to one queue in order;
 * those that give something to compare are waited for.
 */
#include "held.h"
#include "must.h"

#include <CL/cl_ext.h>
#include <string.h>

#define HELD_SEED 2654435761u
#define HELD_MUL  1664525u
#define PIECE     1024u /* pages that one read brings */
#define PIXEL     16u   /* bytes of CL_RGBA, CL_UNSIGNED_INT32 */
#define SUB_PAGES 16u
#define SCRATCH   (1u << 20) /* bytes: a sum of each page of a gibibyte */

static const char source[] = "kernel void grow(global uint *a, uint base, uint seed) {\n"
                             "    uint i = get_global_id(0);\n"
                             "    a[i] = (base + i) * seed;\n"
                             "}\n"
                             "kernel void stir(global uint *a, uint from, uint mul, uint n) {\n"
                             "    uint i = from + get_global_id(0);\n"
                             "    a[i] = a[i] * mul + n;\n"
                             "}\n"
                             "kernel void digest(global const uint *a, global uint *sums) {\n"
                             "    uint p = get_global_id(0), sum = 0;\n"
                             "    for (uint j = 0; j < 1024; j++)\n"
                             "        sum += a[p * 1024 + j];\n"
                             "    sums[p] = sum;\n"
                             "}\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel grow, stir, digest;
static cl_mem scratch; /* results of kernels that only read */
static uint32_t next_base;
static uint32_t words[PIECE * HELD_WORDS];

static cl_kernel kernel(cl_program program, const char *name)
{
    cl_int r;
    cl_kernel k = clCreateKernel(program, name, &r);
    MUST(r);
    return k;
}

void held_open(void)
{
    const char *text = source;
    cl_int r;
    must_open(&device, &context, &queue);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    grow = kernel(program, "grow");
    stir = kernel(program, "stir");
    digest = kernel(program, "digest");
    MUST(clReleaseProgram(program));
    scratch = clCreateBuffer(context, CL_MEM_READ_WRITE, SCRATCH, NULL, &r);
    MUST(r);
}

static void launch(cl_kernel k, size_t n_items)
{
    MUST(clEnqueueNDRangeKernel(queue, k, 1, NULL, &n_items, NULL, 0, NULL, NULL));
}

bool held_make(struct held *h, uint32_t n_pages, cl_mem_flags access)
{
    const size_t bytes = (size_t)n_pages * HELD_PAGE;
    HOLDS(n_pages % 16 == 0 && n_pages * sizeof(cl_uint) <= SCRATCH);
    const cl_buffer_region quarter = {0, bytes / 4};
    const cl_uint seed = HELD_SEED;
    cl_int r;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | access;
    cl_mem mem = clCreateBuffer(context, flags, bytes, NULL, &r);
    if (r == CL_MEM_OBJECT_ALLOCATION_FAILURE)
        return false;
    MUST(r);
    *h = (struct held){.mem = mem, .flags = flags, .n_pages = n_pages};
    h->pages = calloc(n_pages, sizeof *h->pages);
    HOLDS(h->pages);
    h->part = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &quarter, &r);
    MUST(r);
    MUST(clSetKernelArg(grow, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(grow, 1, sizeof next_base, &next_base));
    MUST(clSetKernelArg(grow, 2, sizeof seed, &seed));
    launch(grow, (size_t)n_pages * HELD_WORDS);
    for (uint32_t p = 0; p < n_pages; p++)
        h->pages[p] = (struct held_page){next_base + p * HELD_WORDS, 1, 0};
    next_base += n_pages * HELD_WORDS;
    return true;
}

void held_release(struct held *h)
{
    MUST(clReleaseMemObject(h->part));
    MUST(clReleaseMemObject(h->mem));
    free(h->pages);
    *h = (struct held){0};
}

static void stir_pages(struct held_page *pages, uint32_t n_pages, uint32_t n)
{
    for (uint32_t p = 0; p < n_pages; p++) {
        pages[p].mul *= HELD_MUL;
        pages[p].add = pages[p].add * HELD_MUL + n;
    }
}

static void launch_stir(cl_mem mem, uint32_t from, uint32_t n_words, uint32_t n)
{
    const cl_uint mul = HELD_MUL;
    MUST(clSetKernelArg(stir, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(stir, 1, sizeof from, &from));
    MUST(clSetKernelArg(stir, 2, sizeof mul, &mul));
    MUST(clSetKernelArg(stir, 3, sizeof n, &n));
    launch(stir, n_words);
}

void held_stir(struct held *h, uint32_t first, uint32_t n_pages, uint32_t n)
{
    launch_stir(h->mem, first * HELD_WORDS, n_pages * HELD_WORDS, n);
    stir_pages(&h->pages[first], n_pages, n);
}

void held_stir_part(struct held *h, uint32_t n)
{
    launch_stir(h->part, 0, h->n_pages / 4 * HELD_WORDS, n);
    stir_pages(h->pages, h->n_pages / 4, n);
}

void held_map(struct held *h, uint32_t page, uint32_t n)
{
    cl_int r;
    uint32_t *at = clEnqueueMapBuffer(queue, h->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                      (size_t)page * HELD_PAGE, HELD_PAGE, 0, NULL, NULL, &r);
    MUST(r);
    for (uint32_t j = 0; j < HELD_WORDS; j++)
        at[j] = at[j] * HELD_MUL + n;
    MUST(clEnqueueUnmapMemObject(queue, h->mem, at, 0, NULL, NULL));
    stir_pages(&h->pages[page], 1, n);
}

void held_sub_buffer(struct held *h, uint32_t page, uint32_t n)
{
    page -= page % SUB_PAGES; /* a multiple of the device's alignment */
    const cl_buffer_region region = {(size_t)page * HELD_PAGE, SUB_PAGES * HELD_PAGE};
    cl_mem parent;
    size_t offset;
    cl_int r;
    cl_mem sub = clCreateSubBuffer(h->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
    MUST(r);
    MUST(clGetMemObjectInfo(sub, CL_MEM_OFFSET, sizeof offset, &offset, NULL));
    MUST(clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &parent, NULL));
    HOLDS(offset == region.origin && parent == h->mem);
    launch_stir(sub, 0, SUB_PAGES * HELD_WORDS, n);
    stir_pages(&h->pages[page], SUB_PAGES, n);
    MUST(clReleaseMemObject(sub));
}

static uint32_t word(const struct held_page *p, uint32_t j)
{
    return (p->base + j) * HELD_SEED * p->mul + p->add;
}

/* Says the first word that differs, and ends the program. at: as the buffer has them. */
static void compare(const struct held *h, uint32_t first, uint32_t n_pages, const uint32_t *at)
{
    for (uint32_t i = 0; i < n_pages; i++, at += HELD_WORDS) {
        const struct held_page *p = &h->pages[first + i];
        uint32_t differs = 0;
        for (uint32_t j = 0; j < HELD_WORDS; j++)
            differs |= at[j] ^ word(p, j);
        for (uint32_t j = 0; differs && j < HELD_WORDS; j++) {
            if (at[j] == word(p, j))
                continue;
            printf("differs: page %u of %u, word %u: %08x, not %08x\n", first + i, h->n_pages, j,
                   at[j], word(p, j));
            exit(1);
        }
    }
}

void held_image(struct held *h, uint32_t page, uint32_t n)
{
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
    const uint32_t n_pixels = HELD_PAGE / PIXEL;
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .buffer = h->mem};
    size_t most, width;
    MUST(clGetDeviceInfo(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, sizeof most, &most, NULL));
    if (page >= most / n_pixels)
        page %= (uint32_t)(most / n_pixels);
    desc.image_width = (size_t)h->n_pages * n_pixels < most ? (size_t)h->n_pages * n_pixels : most;
    cl_int r;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &r);
    MUST(r);
    MUST(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof width, &width, NULL));
    HOLDS(width == desc.image_width);
    /* The page before shows that the image has the buffer's contents. */
    const uint32_t seen = page ? page - 1 : 0;
    const size_t origin[3] = {(size_t)seen * n_pixels}, to[3] = {(size_t)page * n_pixels},
                 region[3] = {n_pixels, 1, 1};
    MUST(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, words, 0, NULL, NULL));
    compare(h, seen, 1, words);
    h->pages[page] = (struct held_page){.base = n, .mul = 1};
    for (uint32_t j = 0; j < HELD_WORDS; j++)
        words[j] = word(&h->pages[page], j);
    MUST(clEnqueueWriteImage(queue, image, CL_TRUE, to, region, 0, 0, words, 0, NULL, NULL));
    MUST(clReleaseMemObject(image));
}

void held_copy(struct held *from, uint32_t page, struct held *to, uint32_t to_page)
{
    if (from == to && page == to_page)
        return;
    MUST(clEnqueueCopyBuffer(queue, from->mem, to->mem, (size_t)page * HELD_PAGE,
                             (size_t)to_page * HELD_PAGE, HELD_PAGE, 0, NULL, NULL));
    to->pages[to_page] = from->pages[page];
}

void held_fill(struct held *h, uint32_t page, uint32_t n)
{
    MUST(clEnqueueFillBuffer(queue, h->mem, &n, sizeof n, (size_t)page * HELD_PAGE, HELD_PAGE, 0,
                             NULL, NULL));
    h->pages[page] = (struct held_page){.add = n};
}

void held_query(struct held *h)
{
    const size_t bytes = (size_t)h->n_pages * HELD_PAGE;
    size_t size, part_size, part_offset;
    cl_mem_flags flags;
    cl_mem_object_type type;
    cl_mem parent;
    cl_uint maps;
    MUST(clGetMemObjectInfo(h->mem, CL_MEM_SIZE, sizeof size, &size, NULL));
    MUST(clGetMemObjectInfo(h->mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
    MUST(clGetMemObjectInfo(h->mem, CL_MEM_TYPE, sizeof type, &type, NULL));
    MUST(clGetMemObjectInfo(h->mem, CL_MEM_MAP_COUNT, sizeof maps, &maps, NULL));
    HOLDS(size == bytes && flags == h->flags && type == CL_MEM_OBJECT_BUFFER && !maps);
    MUST(clGetMemObjectInfo(h->part, CL_MEM_SIZE, sizeof part_size, &part_size, NULL));
    MUST(clGetMemObjectInfo(h->part, CL_MEM_OFFSET, sizeof part_offset, &part_offset, NULL));
    MUST(clGetMemObjectInfo(h->part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
    HOLDS(part_size == bytes / 4 && !part_offset && parent == h->mem);
}

void held_digest(struct held *h)
{
    MUST(clSetKernelArg(digest, 0, sizeof h->mem, &h->mem));
    MUST(clSetKernelArg(digest, 1, sizeof scratch, &scratch));
    launch(digest, h->n_pages);
    uint32_t *sums = malloc(h->n_pages * sizeof *sums);
    HOLDS(sums);
    MUST(clEnqueueReadBuffer(queue, scratch, CL_TRUE, 0, h->n_pages * sizeof *sums, sums, 0, NULL,
                             NULL));
    for (uint32_t p = 0; p < h->n_pages; p++) {
        const struct held_page *m = &h->pages[p];
        const uint32_t sum_of_j = HELD_WORDS * (HELD_WORDS - 1) / 2,
                       sum = (HELD_WORDS * m->base + sum_of_j) * HELD_SEED * m->mul +
                             HELD_WORDS * m->add;
        if (sums[p] == sum)
            continue;
        printf("differs: the sum of page %u of %u: %08x, not %08x\n", p, h->n_pages, sums[p], sum);
        exit(1);
    }
    free(sums);
}

void held_compare(struct held *h, uint32_t first, uint32_t n_pages)
{
    while (n_pages) {
        const uint32_t n = n_pages < PIECE ? n_pages : PIECE;
        MUST(clEnqueueReadBuffer(queue, h->mem, CL_TRUE, (size_t)first * HELD_PAGE,
                                 (size_t)n * HELD_PAGE, words, 0, NULL, NULL));
        compare(h, first, n, words);
        first += n;
        n_pages -= n;
    }
}

cl_int held_record(struct held *h, uint32_t page)
{
    static cl_command_buffer_khr buffer;
    static clCommandFillBufferKHR_fn fill;
    const cl_uint pattern = 0;
    if (!buffer) {
        cl_platform_id platform;
        cl_int r;
        MUST(clGetPlatformIDs(1, &platform, NULL));
        clCreateCommandBufferKHR_fn create = __extension__(clCreateCommandBufferKHR_fn)
            clGetExtensionFunctionAddressForPlatform(platform, "clCreateCommandBufferKHR");
        fill = __extension__(clCommandFillBufferKHR_fn)
            clGetExtensionFunctionAddressForPlatform(platform, "clCommandFillBufferKHR");
        HOLDS(create && fill);
        buffer = create(1, &queue, NULL, &r);
        MUST(r);
    }
    return fill(buffer, NULL, h->mem, &pattern, sizeof pattern, (size_t)page * HELD_PAGE, HELD_PAGE,
                0, NULL, NULL, NULL);
}

void held_spoil(struct held *h)
{
    const uint32_t wrong = ~word(&h->pages[h->n_pages - 1], 5);
    MUST(clEnqueueWriteBuffer(queue, h->mem, CL_TRUE,
                              (size_t)(h->n_pages - 1) * HELD_PAGE + 5 * sizeof wrong, sizeof wrong,
                              &wrong, 0, NULL, NULL));
}

void held_wait(void)
{
    MUST(clFinish(queue));
}
