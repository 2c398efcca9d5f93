/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that changes its memory in every way there is, in an order that depends on nothing but
 * its number of steps, so that its end is the same however often its vGPU was moved meanwhile.
 *
 *     busy all [STEPS]   everything: goes on until a line comes, or for so many steps; prints how
 * many they were, and what memory holds busy home [STEPS]  the same, with buffers in the program's
 * memory where Gantry keeps them there busy still         memory that kernels and the host have
 * written, then nothing: waits for a line busy few           the same, and then only writes that
 * touch FEW pages of it, until a line comes busy sneak         the same, but that when a line comes
 * a kernel writes what it was given as `const`; then waits for another one busy heirs         a
 * line: makes objects of others, and lets go of those others; another one: uses what it has made
 *
 * Memory that Gantry would keep in the program has no contents to move to a worker on the same
 * machine: so buffers are made with (empty) properties otherwise.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

#define PAGE    4096u
#define BYTES   (2u << 20)
#define WORDS   (BYTES / 4)
#define N_BUFS  6u
#define SIDE    256u
#define N_SHORT 8u
#define FEW     16u

static const char source[] =
    "kernel void stir(global uint *a, uint from, uint n) {\n"
    "    uint i = from + get_global_id(0);\n"
    "    a[i] = a[i] * 1664525u + n;\n"
    "}\n"
    "kernel void join(global const uint *a, global uint *b, uint n) {\n"
    "    uint i = get_global_id(0);\n"
    "    b[i] ^= a[i] + n;\n"
    "}\n"
    "kernel void sneak(global const uint *a, uint n) {\n"
    "    ((global uint *)a)[get_global_id(0)] = n;\n"
    "}\n"
    "kernel void draw(write_only image2d_t to, uint n) {\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    write_imageui(to, at, (uint4)(at.x ^ n, at.y + n, n, 7) & 255u);\n"
    "}\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue, other;
static cl_kernel stir, join, draw, sneaks;
static cl_mem bufs[N_BUFS], parts[N_BUFS], images[2], shorts[N_SHORT];
static uint32_t host[WORDS];
static uint64_t seed = 1;
static bool at_home;

static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static cl_mem buffer(cl_mem_flags flags, size_t bytes, void *from)
{
    const cl_mem_properties none[] = {0};
    cl_int r;
    flags |= from ? CL_MEM_COPY_HOST_PTR : 0;
    cl_mem mem = at_home ? clCreateBuffer(context, flags, bytes, from, &r)
                         : clCreateBufferWithProperties(context, none, flags, bytes, from, &r);
    MUST(r);
    return mem;
}

static void launch_stir(cl_kernel k, cl_command_queue q, cl_mem mem, uint32_t from,
                        uint32_t n_items, uint32_t n, cl_event *event)
{
    const size_t size = n_items;
    MUST(clSetKernelArg(k, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(k, 1, sizeof from, &from));
    MUST(clSetKernelArg(k, 2, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &size, NULL, 0, NULL, event));
}

static void build(const char *options, cl_program *ret_program, cl_kernel *ret_stir)
{
    const char *text = source;
    cl_int r;
    *ret_program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(*ret_program, 0, NULL, options, NULL, NULL));
    *ret_stir = clCreateKernel(*ret_program, "stir", &r);
    MUST(r);
}

static void set_up(void)
{
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
    cl_program program;
    cl_int r;
    must_open(&device, &context, &queue);
    other = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &r);
    MUST(r);
    build("", &program, &stir);
    join = clCreateKernel(program, "join", &r);
    MUST(r);
    draw = clCreateKernel(program, "draw", &r);
    MUST(r);
    sneaks = clCreateKernel(program, "sneak", &r);
    MUST(r);
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = i * 2654435761u;
    for (uint32_t b = 0; b < N_BUFS; b++) {
        const cl_buffer_region region = {BYTES / 2, BYTES / 4};
        host[0] = b;
        /* One that only kernels may read, one that the host may not touch, one that lies in the
         * program, and others. */
        const cl_mem_flags flags = b == 1 ? CL_MEM_READ_ONLY : b == 2 ? CL_MEM_HOST_NO_ACCESS : 0;
        if (b == 5)
            bufs[b] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, host, &r);
        else
            bufs[b] = buffer(flags, BYTES, host);
        parts[b] = clCreateSubBuffer(bufs[b], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
        MUST(r);
    }
    for (int i = 0; i < 2; i++) {
        images[i] = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, host, &r);
        MUST(r);
    }
}

static uint64_t sum_of(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * 1099511628211u;
    return sum;
}

static uint64_t sum_of_buffer(cl_mem mem, bool readable)
{
    cl_mem by = mem;
    if (!readable) {
        by = buffer(0, BYTES, NULL);
        MUST(clEnqueueCopyBuffer(queue, mem, by, 0, 0, BYTES, 0, NULL, NULL));
    }
    MUST(clEnqueueReadBuffer(queue, by, CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
    if (!readable)
        clReleaseMemObject(by);
    return sum_of(host, BYTES);
}

static void map_some(cl_mem mem, uint32_t at, uint32_t n)
{
    cl_int r;
    uint32_t *map = clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, PAGE, 0,
                                       NULL, NULL, &r);
    MUST(r);
    for (uint32_t i = 0; i < PAGE / 4; i++)
        map[i] += n;
    MUST(clEnqueueUnmapMemObject(queue, mem, map, 0, NULL, NULL));
}

static void touch_image(uint32_t how, uint32_t n)
{
    const size_t origin[3] = {dice(SIDE / 2), dice(SIDE / 2), 0},
                 region[3] = {SIDE / 4, SIDE / 4, 1}, all[2] = {SIDE, SIDE};
    const cl_uint colour[4] = {n & 255, 1, 2, 3};
    switch (how) {
    case 0:
        MUST(clEnqueueWriteImage(queue, images[0], CL_TRUE, origin, region, 0, 0, host, 0, NULL,
                                 NULL));
        break;
    case 1:
        MUST(clEnqueueFillImage(queue, images[0], colour, origin, region, 0, NULL, NULL));
        break;
    case 2:
        MUST(
            clEnqueueCopyImage(queue, images[0], images[1], origin, origin, region, 0, NULL, NULL));
        break;
    case 3:
        MUST(clEnqueueCopyBufferToImage(queue, bufs[0], images[0], PAGE, origin, region, 0, NULL,
                                        NULL));
        break;
    case 4:
        MUST(clEnqueueCopyImageToBuffer(queue, images[1], bufs[3], origin, region, 64, 0, NULL,
                                        NULL));
        break;
    default:
        MUST(clSetKernelArg(draw, 0, sizeof images[1], &images[1]));
        MUST(clSetKernelArg(draw, 1, sizeof n, &n));
        MUST(clEnqueueNDRangeKernel(queue, draw, 2, NULL, all, NULL, 0, NULL, NULL));
    }
}

/* Objects that come and go; what they held goes into what stays. */
static void come_and_go(uint32_t n)
{
    cl_mem *one = &shorts[dice(N_SHORT)];
    if (*one) {
        MUST(clEnqueueCopyBuffer(queue, *one, bufs[4], 0, dice(8) * BYTES / 8, BYTES / 8, 0, NULL,
                                 NULL));
        clReleaseMemObject(*one);
        *one = NULL;
    } else {
        *one = buffer(0, BYTES / 8, NULL);
        MUST(clEnqueueFillBuffer(queue, *one, &n, sizeof n, 0, BYTES / 8, 0, NULL, NULL));
        launch_stir(stir, queue, *one, 0, BYTES / 32, n, NULL);
    }
}

static void build_and_run(uint32_t n)
{
    cl_program program;
    cl_kernel k;
    char options[32];
    snprintf(options, sizeof options, "-DN=%u",
             n % 3); /* a few: so that most are in the driver's cache */
    build(options, &program, &k);
    launch_stir(k, queue, bufs[0], WORDS / 2, WORDS / 4, n, NULL);
    clReleaseKernel(k);
    clReleaseProgram(program);
}

static void step(uint32_t n)
{
    const size_t here[3] = {64, 8, 0}, zero[3] = {0}, region[3] = {256, 16, 1};
    const uint32_t way = dice(15), at = dice(BYTES / PAGE - 4) * PAGE + dice(PAGE / 4) * 4,
                   b = dice(2) ? 3 : 0;
    cl_event event;
    switch (way) {
    case 0:
        launch_stir(stir, queue, bufs[b], 0, WORDS, n, NULL);
        break;
    case 1:
        launch_stir(stir, queue, parts[b], 0, WORDS / 8, n, NULL);
        break;
    case 2: {
        const size_t size = WORDS;
        MUST(clSetKernelArg(join, 0, sizeof(cl_mem), &bufs[1]));
        MUST(clSetKernelArg(join, 1, sizeof(cl_mem), &bufs[2]));
        MUST(clSetKernelArg(join, 2, sizeof n, &n));
        MUST(clEnqueueNDRangeKernel(queue, join, 1, NULL, &size, NULL, 0, NULL, NULL));
        break;
    }
    case 3:
        MUST(clEnqueueWriteBuffer(queue, bufs[4], CL_TRUE, at, PAGE, &host[n % 1000], 0, NULL,
                                  NULL));
        break;
    case 4:
        MUST(clEnqueueFillBuffer(queue, parts[4], &n, sizeof n, at / 8 / 4 * 4, PAGE, 0, NULL,
                                 NULL));
        break;
    case 5:
        MUST(clEnqueueCopyBuffer(queue, bufs[b], bufs[2], at, BYTES - PAGE - at, PAGE, 0, NULL,
                                 NULL));
        break;
    case 6:
        MUST(clEnqueueWriteBufferRect(queue, bufs[4], CL_TRUE, here, zero, region, 1024, 0, 0, 0,
                                      host, 0, NULL, NULL));
        break;
    case 7:
        MUST(clEnqueueCopyBufferRect(queue, bufs[0], bufs[1], zero, here, region, 0, 0, 1024, 0, 0,
                                     NULL, NULL));
        break;
    case 8:
        map_some(bufs[4], at, n);
        break;
    case 9:
        map_some(bufs[5], at, n);
        break;
    case 10:
        launch_stir(stir, queue, bufs[5], 0, WORDS, n, NULL);
        break;
    case 11:
        come_and_go(n);
        break;
    case 12:
        /* Another queue, once what came before is over. */
        MUST(clFinish(queue));
        launch_stir(stir, other, bufs[3], 0, WORDS / 2, n, &event);
        MUST(clEnqueueMarkerWithWaitList(queue, 1, &event, NULL));
        clReleaseEvent(event);
        break;
    case 13:
        if (n % 8 == 0)
            build_and_run(n);
        break;
    default:
        touch_image(dice(6), n);
    }
}

static bool told_to_end(int timeout_ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, timeout_ms) > 0;
}

static void all(long steps)
{
    const size_t zero[3] = {0}, whole[3] = {SIDE, SIDE, 1};
    long n = 0;
    while (steps ? n < steps : !told_to_end(0))
        step((uint32_t)++n);
    printf("%ld\n", n);
    for (uint32_t b = 0; b < N_BUFS; b++)
        printf("buffer %u: %016llx\n", b, (unsigned long long)sum_of_buffer(bufs[b], b != 2));
    for (int i = 0; i < 2; i++) {
        MUST(clEnqueueReadImage(queue, images[i], CL_TRUE, zero, whole, 0, 0, host, 0, NULL, NULL));
        printf("image %d: %016llx\n", i, (unsigned long long)sum_of(host, SIDE * SIDE * 4));
    }
}

/* Each page FEW times over, and no other: by a kernel, by writes, copies and fills. */
/* What memory must hold in the end, where this program knows. */
static uint32_t expected[N_BUFS + 2][WORDS];

static void read_all(void)
{
    const size_t zero[3] = {0}, whole[3] = {SIDE, SIDE, 1};
    for (uint32_t b = 0; b < N_BUFS; b++) {
        (void)sum_of_buffer(bufs[b], b != 2);
        memcpy(expected[b], host, BYTES);
    }
    for (uint32_t i = 0; i < 2; i++)
        MUST(clEnqueueReadImage(queue, images[i], CL_TRUE, zero, whole, 0, 0, expected[N_BUFS + i],
                                0, NULL, NULL));
}

static void compare_all(void)
{
    const size_t zero[3] = {0}, whole[3] = {SIDE, SIDE, 1};
    for (uint32_t b = 0; b < N_BUFS; b++) {
        (void)sum_of_buffer(bufs[b], b != 2);
        HOLDS(!memcmp(expected[b], host, BYTES));
    }
    for (uint32_t i = 0; i < 2; i++) {
        MUST(clEnqueueReadImage(queue, images[i], CL_TRUE, zero, whole, 0, 0, host, 0, NULL, NULL));
        HOLDS(!memcmp(expected[N_BUFS + i], host, SIDE * SIDE * 4));
    }
}

static void sneak(void)
{
    const uint32_t n = 7, n_words = PAGE / 4;
    const size_t size = n_words;
    char line[8];
    HOLDS(fgets(line, sizeof line, stdin));
    MUST(clSetKernelArg(sneaks, 0, sizeof bufs[4], &bufs[4]));
    MUST(clSetKernelArg(sneaks, 1, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(queue, sneaks, 1, NULL, &size, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    for (uint32_t i = 0; i < n_words; i++)
        expected[4][i] = n;
    printf("done\n");
    HOLDS(fgets(line, sizeof line, stdin));
}

static void few(void)
{
    for (uint32_t n = 0; !told_to_end(0); n++) {
        const uint32_t page = n % (FEW / 4) * PAGE;
        for (uint32_t i = page / 4; i < (page + PAGE) / 4; i++) {
            expected[0][i] = expected[0][i] * 1664525u + n;
            expected[1][i] = expected[3][i] = host[n % 1000 + i - page / 4];
            expected[4][i] = n;
        }
        launch_stir(stir, queue, bufs[0], page / 4, PAGE / 4, n, NULL);
        MUST(clEnqueueWriteBuffer(queue, bufs[1], CL_TRUE, page, PAGE, &host[n % 1000], 0, NULL,
                                  NULL));
        MUST(clEnqueueCopyBuffer(queue, bufs[1], bufs[3], page, page, PAGE, 0, NULL, NULL));
        MUST(clEnqueueFillBuffer(queue, bufs[4], &n, sizeof n, page, PAGE, 0, NULL, NULL));
        MUST(clFinish(queue));
    }
}

/* What an object was made of is the driver's to keep when the program has let go of it, wherever
 * the object goes meanwhile. */
static void heirs(void)
{
    const char *text = source;
    const size_t half = WORDS / 2;
    const uint32_t n = 7, from = 0;
    const cl_buffer_region region = {BYTES / 2, BYTES / 2};
    char line[8];
    cl_int r;
    cl_context its_context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    cl_program built = clCreateProgramWithSource(its_context, 1, &text, NULL, &r),
               unbuilt = clCreateProgramWithSource(its_context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(built, 0, NULL, "", NULL, NULL));
    cl_kernel cloned = clCreateKernel(built, "stir", &r);
    MUST(r);
    cl_mem whole = clCreateBufferWithProperties(its_context, (const cl_mem_properties[]){0},
                                                CL_MEM_COPY_HOST_PTR, BYTES, host, &r);
    MUST(r);
    MUST(clSetKernelArg(cloned, 2, sizeof n, &n));
    printf("goes\n");
    HOLDS(fgets(line, sizeof line, stdin));

    cl_command_queue its_queue = clCreateCommandQueue(its_context, device, 0, &r);
    MUST(r);
    cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
    MUST(r);
    MUST(clBuildProgram(unbuilt, 0, NULL, "-DN=9", NULL, NULL));
    cl_kernel kernels[3] = {clCloneKernel(cloned, &r)};
    MUST(r);
    kernels[1] = clCreateKernel(built, "stir", &r);
    MUST(r);
    kernels[2] = clCreateKernel(unbuilt, "stir", &r);
    MUST(r);
    MUST(clReleaseKernel(cloned));
    MUST(clReleaseProgram(built));
    MUST(clReleaseProgram(unbuilt));
    MUST(clReleaseMemObject(whole));
    MUST(clReleaseContext(its_context));
    /* Others have their handles now. */
    cl_kernel k;
    cl_program others[2];
    build("-DN=10", &others[0], &k);
    MUST(clReleaseKernel(k));
    build("-DN=11", &others[1], &k);
    printf("let go\n");

    HOLDS(fgets(line, sizeof line, stdin));
    for (int i = 0; i < 3; i++) {
        MUST(clSetKernelArg(kernels[i], 0, sizeof part, &part));
        MUST(clSetKernelArg(kernels[i], 1, sizeof from, &from));
        if (i) /* the clone's stands */
            MUST(clSetKernelArg(kernels[i], 2, sizeof n, &n));
        MUST(clEnqueueNDRangeKernel(its_queue, kernels[i], 1, NULL, &half, NULL, 0, NULL, NULL));
    }
    MUST(clEnqueueReadBuffer(its_queue, part, CL_TRUE, 0, BYTES / 2, host, 0, NULL, NULL));
    for (uint32_t i = 0; i < half; i++) {
        uint32_t is = (i + WORDS / 2) * 2654435761u;
        for (int step = 0; step < 3; step++)
            is = is * 1664525u + n;
        HOLDS(host[i] == is);
    }
    MUST(clReleaseProgram(others[0]));
    MUST(clReleaseProgram(others[1]));
    printf("right\n");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    at_home = strcmp(what, "home") == 0;
    set_up();
    if (at_home || strcmp(what, "all") == 0) {
        const long steps = argc > 2 ? atol(argv[2]) : 0;
        printf("goes\n");
        all(steps);
        return 0;
    }
    if (strcmp(what, "heirs") == 0) {
        heirs();
        return 0;
    }
    for (uint32_t b = 0; b < 4; b++)
        if (b != 1)
            launch_stir(stir, queue, bufs[b], 0, WORDS, b, NULL);
    read_all();
    printf("goes\n");
    if (strcmp(what, "few") == 0)
        few();
    else if (strcmp(what, "sneak") == 0)
        sneak();
    else
        told_to_end(-1);
    compare_all();
    printf("right\n");
    return 0;
}
