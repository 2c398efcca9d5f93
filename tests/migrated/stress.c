/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the device in a random order of operations and compares each result with a
 * model of its own, until a line comes on stdin. It is right only if no migration changes a byte.
 *
 *     stress KIND      KIND: images, svm, events, programs, cmdbufs
 *
 * Says "goes" when everything is made; at the end the number of its steps, then "right", or at the
 * first difference what was wrong.
 */
#include "stress.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char source[] =
    "kernel void add(global uint *a, uint n) { a[get_global_id(0)] += n; }\n"
    "kernel void stir(global uint *a, uint n) { uint i = get_global_id(0); a[i] = a[i] * 1664525u "
    "+ n; }\n"
    "kernel void draw(write_only image2d_t to, uint x, uint y, uint n) {\n"
    "    int2 at = (int2)(x + get_global_id(0), y + get_global_id(1));\n"
    "    write_imageui(to, at, (uint4)(at.x ^ n, at.y + n, n, 7) & 255u);\n"
    "}\n";

cl_platform_id platform;
cl_context context;
cl_device_id device;
cl_command_queue queue, unordered;
static uint64_t seed = 1;

uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

cl_program build(const char *text, const char *options)
{
    cl_int r;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 0, NULL, options, NULL, NULL));
    return program;
}

cl_kernel kernel_of(cl_program program, const char *name)
{
    cl_int r;
    cl_kernel k = clCreateKernel(program, name, &r);
    MUST(r);
    return k;
}

static void launch(cl_command_queue q, cl_kernel k, cl_mem mem, uint32_t n, size_t n_items,
                   cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    MUST(clSetKernelArg(k, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(k, 1, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &n_items, NULL, n_waits, waits, event));
}

static void set_up(void)
{
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueueWithProperties(
        context, device,
        (const cl_queue_properties[]){CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}, &r);
    MUST(r);
    unordered = clCreateCommandQueueWithProperties(
        context, device,
        (const cl_queue_properties[]){CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                      0},
        &r);
    MUST(r);
}

/* ---- images */

#define N_IMAGES 3u

static struct picture {
    cl_mem image;
    size_t size[3];
    uint32_t *model;
} pictures[N_IMAGES];
static uint32_t *some, *got;
static cl_kernel draw;
static cl_mem staged;

static void set_up_images(void)
{
    static const size_t sizes[N_IMAGES][3] = {{1024, 1024, 1}, {999, 1049, 1}, {128, 127, 65}};
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_int r;
    for (uint32_t i = 0; i < N_IMAGES; i++) {
        struct picture *p = &pictures[i];
        memcpy(p->size, sizes[i], sizeof p->size);
        const size_t bytes = p->size[0] * p->size[1] * p->size[2] * 4;
        const cl_image_desc desc = {.image_type = p->size[2] > 1 ? CL_MEM_OBJECT_IMAGE3D
                                                                 : CL_MEM_OBJECT_IMAGE2D,
                                    .image_width = p->size[0],
                                    .image_height = p->size[1],
                                    .image_depth = p->size[2]};
        p->model = calloc(1, bytes);
        HOLDS(p->model);
        p->image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, p->model, &r);
        MUST(r);
    }
    some = malloc(8u << 20);
    got = malloc(8u << 20);
    HOLDS(some && got);
    staged = clCreateBuffer(context, 0, 8u << 20, NULL, &r);
    MUST(r);
    draw = kernel_of(build(source, ""), "draw");
}

static uint32_t *model_row(struct picture *p, const size_t origin[3], size_t y, size_t z)
{
    return p->model + ((origin[2] + z) * p->size[1] + origin[1] + y) * p->size[0] + origin[0];
}

/* What `some` holds, row after row, is what the region holds from now on. */
static void model_region(struct picture *p, const size_t origin[3], const size_t region[3])
{
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            memcpy(model_row(p, origin, y, z), some + (z * region[1] + y) * region[0],
                   region[0] * 4);
}

static void image_step(uint32_t n)
{
    struct picture *p = &pictures[dice(N_IMAGES)];
    size_t origin[3], region[3], row_pitch = 0, slice_pitch = 0;
    cl_int r;
    for (int d = 0; d < 3; d++) {
        origin[d] = dice((uint32_t)p->size[d]);
        region[d] = 1 + dice((uint32_t)(p->size[d] - origin[d]));
    }
    const size_t n_pixels = region[0] * region[1] * region[2];
    for (size_t i = 0; i < n_pixels; i++)
        some[i] = n * 2654435761u + (uint32_t)i;
    switch (dice(6)) {
    case 0:
        MUST(clEnqueueWriteImage(queue, p->image, CL_TRUE, origin, region, 0, 0, some, 0, NULL,
                                 NULL));
        break;
    case 1: /* `some` is written again only after the next whole image has been read */
        MUST(clEnqueueWriteImage(queue, p->image, CL_FALSE, origin, region, 0, 0, some, 0, NULL,
                                 NULL));
        break;
    case 2: {
        const cl_uint colour[4] = {n & 255, n >> 8 & 255, n >> 16 & 255, 7};
        for (size_t i = 0; i < n_pixels; i++)
            some[i] = colour[0] | colour[1] << 8 | colour[2] << 16 | 7u << 24;
        MUST(clEnqueueFillImage(queue, p->image, colour, origin, region, 0, NULL, NULL));
        break;
    }
    case 3:
        MUST(clEnqueueWriteBuffer(queue, staged, CL_FALSE, 0, n_pixels * 4, some, 0, NULL, NULL));
        MUST(clEnqueueCopyBufferToImage(queue, staged, p->image, 0, origin, region, 0, NULL, NULL));
        break;
    case 4: {
        unsigned char *map = clEnqueueMapImage(queue, p->image, CL_TRUE, CL_MAP_WRITE, origin,
                                               region, &row_pitch, &slice_pitch, 0, NULL, NULL, &r);
        MUST(r);
        for (size_t z = 0; z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                memcpy(map + z * slice_pitch + y * row_pitch,
                       some + (z * region[1] + y) * region[0], region[0] * 4);
        MUST(clEnqueueUnmapMemObject(queue, p->image, map, 0, NULL, NULL));
        break;
    }
    default:
        if (p->size[2] > 1)
            return;
        for (size_t y = 0; y < region[1]; y++)
            for (size_t x = 0; x < region[0]; x++) {
                const uint32_t ax = (uint32_t)(origin[0] + x), ay = (uint32_t)(origin[1] + y);
                some[y * region[0] + x] =
                    ((ax ^ n) & 255) | ((ay + n) & 255) << 8 | (n & 255) << 16 | 7u << 24;
            }
        const cl_uint x = (cl_uint)origin[0], y = (cl_uint)origin[1];
        MUST(clSetKernelArg(draw, 0, sizeof p->image, &p->image));
        MUST(clSetKernelArg(draw, 1, sizeof x, &x));
        MUST(clSetKernelArg(draw, 2, sizeof y, &y));
        MUST(clSetKernelArg(draw, 3, sizeof n, &n));
        MUST(clEnqueueNDRangeKernel(queue, draw, 2, NULL, region, NULL, 0, NULL, NULL));
    }
    model_region(p, origin, region);
    MUST(clEnqueueReadImage(queue, p->image, CL_TRUE, (size_t[3]){0}, p->size, 0, 0, got, 0, NULL,
                            NULL));
    HOLDS(!memcmp(got, p->model, p->size[0] * p->size[1] * p->size[2] * 4));
}

/* ---- shared virtual memory */

#define N_SHARED    8u
#define SHARED_MOST 65536u

static struct shared {
    uint32_t *at;
    uint32_t n_words, model; /* every word is the same */
} shared[N_SHARED];
static cl_kernel add;

static void set_up_svm(void)
{
    add = kernel_of(build(source, ""), "add");
}

static void check_shared(const struct shared *s)
{
    MUST(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, s->at, s->n_words * 4u, 0, NULL, NULL));
    for (uint32_t i = 0; i < s->n_words; i++)
        HOLDS(s->at[i] == s->model);
    MUST(clEnqueueSVMUnmap(queue, s->at, 0, NULL, NULL));
}

static void svm_step(uint32_t n)
{
    struct shared *s = &shared[dice(N_SHARED)];
    const uint32_t way = dice(5);
    if (!s->at || way == 0) {
        if (s->at) {
            check_shared(s);
            MUST(clFinish(queue));
            clSVMFree(context, s->at);
        }
        s->n_words = 1 + dice(SHARED_MOST / 4);
        s->at = clSVMAlloc(context, CL_MEM_READ_WRITE, s->n_words * 4u, 0);
        HOLDS(s->at);
        s->model = n;
        MUST(clEnqueueSVMMemFill(queue, s->at, &n, sizeof n, s->n_words * 4u, 0, NULL, NULL));
    } else if (way == 1) {
        const size_t size = s->n_words;
        MUST(clSetKernelArgSVMPointer(add, 0, s->at));
        MUST(clSetKernelArg(add, 1, sizeof n, &n));
        MUST(clEnqueueNDRangeKernel(queue, add, 1, NULL, &size, NULL, 0, NULL, NULL));
        s->model += n;
    } else if (way == 2) {
        MUST(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, s->at, s->n_words * 4u, 0, NULL, NULL));
        for (uint32_t i = 0; i < s->n_words; i++)
            s->at[i] = ~n;
        MUST(clEnqueueSVMUnmap(queue, s->at, 0, NULL, NULL));
        s->model = ~n;
    } else if (way == 3) {
        static uint32_t mine[SHARED_MOST / 4];
        for (uint32_t i = 0; i < s->n_words; i++)
            mine[i] = n ^ 0x5a5a5a5au;
        MUST(clEnqueueSVMMemcpy(queue, CL_TRUE, s->at, mine, s->n_words * 4u, 0, NULL, NULL));
        s->model = n ^ 0x5a5a5a5au;
    }
    check_shared(s);
}

/* ---- events */

static _Atomic uint32_t n_called;
static cl_kernel stir;
static cl_mem words;
#define N_WORDS 4096u

static void CL_CALLBACK called(cl_event event, cl_int status, void *ctx)
{
    (void)event;
    (void)ctx;
    if (status == CL_COMPLETE)
        atomic_fetch_add(&n_called, 1);
}

static uint32_t model_word;

static void set_up_events(void)
{
    cl_int r;
    const uint32_t zero = 0;
    stir = kernel_of(build(source, ""), "stir");
    words = clCreateBufferWithProperties(context, (const cl_mem_properties[]){0}, 0, N_WORDS * 4,
                                         NULL, &r);
    MUST(r);
    MUST(clEnqueueFillBuffer(queue, words, &zero, sizeof zero, 0, N_WORDS * 4, 0, NULL, NULL));
}

/* A chain of kernels on a queue that keeps no order, each behind the one before, all behind an
 * event of the program's. */
static void event_step(uint32_t n)
{
    static uint32_t read[N_WORDS];
    cl_event events[10], user, done;
    cl_ulong times[4];
    cl_int r, status;
    const uint32_t before = atomic_load(&n_called), length = 1 + dice(9);
    const bool fails = dice(8) == 0;
    user = clCreateUserEvent(context, &r);
    MUST(r);
    events[0] = user;
    for (uint32_t i = 1; i <= length; i++) {
        launch(unordered, stir, words, n + i, N_WORDS, 1, &events[i - 1], &events[i]);
        MUST(clSetEventCallback(events[i], CL_COMPLETE, called, NULL));
    }
    MUST(clEnqueueMarkerWithWaitList(queue, 1, &events[length], &done));
    MUST(clFlush(unordered));
    MUST(clGetEventInfo(events[length], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                        NULL));
    HOLDS(status >= CL_SUBMITTED); /* whatever happens to its vGPU */
    if (dice(2))
        usleep(dice(20000));
    MUST(clSetUserEventStatus(user, fails ? -7 : CL_COMPLETE));
    r = clWaitForEvents(1, &events[length]);
    HOLDS(r == (fails ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS));
    MUST(clGetEventInfo(events[length], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                        NULL));
    HOLDS(fails ? status < 0 : status == CL_COMPLETE);
    if (!fails) {
        MUST(clWaitForEvents(1, &done));
        for (int i = 0; i < 4; i++)
            MUST(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + (cl_uint)i,
                                         sizeof *times, &times[i], NULL));
        HOLDS(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
        for (uint32_t i = 1; i <= length; i++)
            model_word = model_word * 1664525u + n + i;
        while (atomic_load(&n_called) != before + length)
            usleep(100);
    } else {
        MUST(clFinish(unordered));
        (void)clFinish(queue); /* tells that the marker failed, or not */
    }
    for (uint32_t i = 0; i <= length; i++)
        MUST(clReleaseEvent(events[i]));
    MUST(clReleaseEvent(done));
    MUST(clEnqueueReadBuffer(queue, words, CL_TRUE, 0, sizeof read, read, 0, NULL, NULL));
    for (uint32_t i = 0; i < N_WORDS; i++)
        HOLDS(read[i] == model_word);
}

/* ---- programs */

static cl_program from_binary(cl_program program)
{
    size_t bytes = 0;
    cl_int r, status;
    MUST(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL));
    unsigned char *binary = malloc(bytes);
    HOLDS(binary && bytes);
    if (dice(2))
        usleep(dice(20000));
    MUST(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
    cl_program again = clCreateProgramWithBinary(context, 1, &device, &bytes,
                                                 (const unsigned char **)&binary, &status, &r);
    MUST(r);
    MUST(status);
    MUST(clBuildProgram(again, 0, NULL, "", NULL, NULL));
    free(binary);
    return again;
}

static cl_program linked(const char *options)
{
    static const char *const texts[] = {
        "uint more(uint a);\nkernel void grow(global uint *a, uint n) { a[get_global_id(0)] = "
        "more(n); }\n",
        "uint more(uint a) { return a + N; }\n"};
    cl_program parts[2];
    cl_int r;
    for (int i = 0; i < 2; i++) {
        parts[i] = clCreateProgramWithSource(context, 1, (const char **)&texts[i], NULL, &r);
        MUST(r);
        MUST(clCompileProgram(parts[i], 0, NULL, options, 0, NULL, NULL, NULL, NULL));
    }
    cl_program whole = clLinkProgram(context, 0, NULL, "", 2, parts, NULL, NULL, &r);
    MUST(r);
    for (int i = 0; i < 2; i++)
        MUST(clReleaseProgram(parts[i]));
    return whole;
}

/* The size, the text and the text once more, whatever happens in between. */
static void ask_log(cl_program program)
{
    char log[2][4096];
    size_t bytes = 0, reported = 0;
    MUST(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes));
    HOLDS(bytes <= sizeof log[0]);
    for (int i = 0; i < 2; i++) {
        usleep(dice(20000));
        MUST(
            clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log[i], &reported));
        HOLDS(reported == bytes);
    }
    HOLDS(!memcmp(log[0], log[1], bytes) && strstr(log[0], "nonsense"));
}

static void program_step(uint32_t n)
{
    static const char text[] =
        "kernel void grow(global uint *a, uint n) { a[get_global_id(0)] = n + N; }\n";
    static uint32_t read[64];
    const uint32_t which = dice(4); /* a few: so that most are in the driver's cache */
    char options[48], said[48];
    cl_int r;
    snprintf(options, sizeof options, "-DN=%u -cl-kernel-arg-info", which);
    cl_program program = dice(3) ? build(text, options) : linked(options);
    if (dice(3) == 0) {
        cl_program again = from_binary(program);
        MUST(clReleaseProgram(program));
        program = again;
    }
    cl_kernel k = kernel_of(program, "grow");
    MUST(clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof said, said, NULL));
    HOLDS(!strcmp(said, "grow"));
    cl_mem mem = clCreateBuffer(context, 0, sizeof read, NULL, &r);
    MUST(r);
    launch(queue, k, mem, n, 64, 0, NULL, NULL);
    MUST(clReleaseProgram(program));
    MUST(clReleaseKernel(k));
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof read, read, 0, NULL, NULL));
    MUST(clReleaseMemObject(mem));
    for (uint32_t i = 0; i < 64; i++)
        HOLDS(read[i] == n + which);
    /* One that does not build says why, as often as it is asked. */
    if (dice(4) == 0) {
        const char *bad = "kernel void grow(int) { nonsense }";
        cl_build_status status;
        program = clCreateProgramWithSource(context, 1, &bad, NULL, &r);
        MUST(r);
        HOLDS(clBuildProgram(program, 0, NULL, "", NULL, NULL) == CL_BUILD_PROGRAM_FAILURE);
        usleep(dice(20000));
        MUST(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                                   NULL));
        HOLDS(status == CL_BUILD_ERROR);
        ask_log(program);
        MUST(clReleaseProgram(program));
    }
}

static void nothing(void)
{
}

static const struct {
    const char *name;
    void (*set_up)(void);
    void (*step)(uint32_t n);
} kinds[] = {
    {"images", set_up_images, image_step},    {"svm", set_up_svm, svm_step},
    {"events", set_up_events, event_step},    {"programs", nothing, program_step},
    {"cmdbufs", set_up_cmdbufs, cmdbuf_step},
};

int main(int argc, char **argv)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    uint32_t n = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 2 || strcmp(argv[1], kinds[i].name) != 0)
            continue;
        set_up();
        kinds[i].set_up();
        printf("goes\n");
        while (poll(&end, 1, 0) == 0)
            kinds[i].step(++n);
        printf("%u steps\nright\n", n);
        return 0;
    }
    fprintf(stderr, "usage: stress images|svm|events|programs|cmdbufs\n");
    return 2;
}
