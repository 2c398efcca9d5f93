/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with objects of every kind. For each line that it reads it asks every query about each
 * of them and prints the answers, a line each, and then "."; at "end" it ends. Whatever happens
 * between two lines, the answers stay.
 *
 *     answers svm | plain     svm: some of its memory is shared virtual memory
 */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

#define MOST     600
#define NAME     64
#define SHOWN    64u
#define ROOM     ((size_t)32 << 10)
#define BINARIES ((size_t)4 << 20)

enum kind { DEVICE, CONTEXT, QUEUE, MEM, SAMPLER, PROGRAM, KERNEL, EVENT, N_KINDS };

static struct object {
    enum kind kind;
    char name[NAME];
    void *handle;
} objects[MOST];
static int n_objects;

static cl_platform_id platform;
static cl_device_id devices[8];
static cl_uint n_devices;
static cl_context context;
static char host[64][65536] __attribute__((aligned(4096)));
static unsigned char room[ROOM];

static void *add(enum kind kind, void *handle, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void *add(enum kind kind, void *handle, const char *format, ...)
{
    va_list ap;
    HOLDS(n_objects < MOST);
    struct object *o = &objects[n_objects++];
    o->kind = kind;
    o->handle = handle;
    va_start(ap, format);
    vsnprintf(o->name, sizeof o->name, format, ap);
    va_end(ap);
    if (!handle) {
        printf("wrong: there is no %s\n", o->name);
        exit(1);
    }
    return handle;
}

/* ---- answers */

static void tell(const char *name, const char *what, cl_uint number, cl_int result,
                 const unsigned char *bytes, size_t n)
{
    uint64_t hash = UINT64_C(1469598103934665603);
    printf("%s %s 0x%x = %d", name, what, number, result);
    if (!result)
        printf(" [%zu]", n);
    for (size_t i = 0; !result && n <= SHOWN && i < n; i++)
        printf(" %02x", bytes[i]);
    for (size_t i = 0; !result && n > SHOWN && i < n; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    if (!result && n > SHOWN)
        printf(" #%llx", (unsigned long long)hash);
    putchar('\n');
}

static void answer(const char *name, const char *what, cl_uint number, cl_int result, size_t n)
{
    tell(name, what, number, result, room, n < ROOM ? n : ROOM);
}

#define ASK(name, what, number, call)                                                              \
    do {                                                                                           \
        size_t n = 0;                                                                              \
        memset(room, 0, 4096);                                                                     \
        cl_int result_ = call;                                                                     \
        answer(name, what, number, result_, n);                                                    \
    } while (0)
#define ASK_ALL(from, to, name, what, call)                                                        \
    for (cl_uint q = from; q <= (to); q++)                                                         \
    ASK(name, what, q, call)

static void ask_device(const struct object *o)
{
    ASK_ALL(0x1000, 0x10ff, o->name, "device", clGetDeviceInfo(o->handle, q, ROOM, room, &n));
    ASK_ALL(0x4000, 0x404f, o->name, "device",
            q == CL_DEVICE_GLOBAL_FREE_MEMORY_AMD ? CL_INVALID_VALUE
                                                  : clGetDeviceInfo(o->handle, q, ROOM, room, &n));
}

static void ask_context(const struct object *o)
{
    static const cl_mem_object_type types[] = {CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                               CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE3D};
    static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    ASK_ALL(0x1080, 0x1090, o->name, "context", clGetContextInfo(o->handle, q, ROOM, room, &n));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            cl_uint count = 0;
            cl_int result = clGetSupportedImageFormats(o->handle, flags[f], types[t],
                                                       ROOM / sizeof(cl_image_format),
                                                       (cl_image_format *)(void *)room, &count);
            answer(o->name, "formats", types[t], result, count * sizeof(cl_image_format));
        }
}

static void ask_mem(const struct object *o)
{
    ASK_ALL(0x1100, 0x1110, o->name, "mem", clGetMemObjectInfo(o->handle, q, ROOM, room, &n));
    ASK_ALL(0x1110, 0x1120, o->name, "image", clGetImageInfo(o->handle, q, ROOM, room, &n));
    ASK_ALL(0x1120, 0x1123, o->name, "pipe", clGetPipeInfo(o->handle, q, ROOM, room, &n));
}

static void ask_binaries(const struct object *o)
{
    static unsigned char bytes[BINARIES];
    size_t sizes[8] = {0}, total = 0;
    unsigned char *pointers[8];
    cl_int result = clGetProgramInfo(o->handle, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL);
    for (cl_uint d = 0; d < n_devices; total += sizes[d], d++)
        pointers[d] = bytes + total;
    HOLDS(total <= BINARIES);
    if (!result)
        result = clGetProgramInfo(o->handle, CL_PROGRAM_BINARIES, sizeof pointers, pointers, NULL);
    tell(o->name, "program", CL_PROGRAM_BINARIES, result, bytes, total);
}

static void ask_program(const struct object *o)
{
    ASK_ALL(0x1160, 0x1170, o->name, "program",
            q == CL_PROGRAM_BINARIES ? CL_INVALID_VALUE
                                     : clGetProgramInfo(o->handle, q, ROOM, room, &n));
    ask_binaries(o);
    for (cl_uint d = 0; d < n_devices; d++) {
        const char *what = d ? "build, second device" : "build";
        ASK(o->name, what, CL_PROGRAM_BUILD_LOG,
            clGetProgramBuildInfo(o->handle, devices[d], CL_PROGRAM_BUILD_LOG, 0, NULL, &n));
        ASK_ALL(0x1180, 0x118f, o->name, what,
                clGetProgramBuildInfo(o->handle, devices[d], q, ROOM, room, &n));
    }
}

static void ask_kernel(const struct object *o)
{
    const size_t sizes[3] = {16, 1, 1};
    cl_uint n_args = 0;
    clGetKernelInfo(o->handle, CL_KERNEL_NUM_ARGS, sizeof n_args, &n_args, NULL);
    ASK_ALL(0x1190, 0x1195, o->name, "kernel", clGetKernelInfo(o->handle, q, ROOM, room, &n));
    for (cl_uint a = 0; a < n_args; a++)
        ASK_ALL(0x1196, 0x119b, o->name, "argument",
                clGetKernelArgInfo(o->handle, a, q, ROOM, room, &n));
    for (cl_uint d = 0; d < n_devices; d++) {
        const char *what = d ? "group, second device" : "group";
        ASK_ALL(0x11b0, 0x11ba, o->name, what,
                clGetKernelWorkGroupInfo(o->handle, devices[d], q, ROOM, room, &n));
        ASK_ALL(
            0x2033, 0x2034, o->name, what,
            clGetKernelSubGroupInfo(o->handle, devices[d], q, sizeof sizes, sizes, ROOM, room, &n));
        ASK_ALL(0x11b8, 0x11ba, o->name, what,
                clGetKernelSubGroupInfo(o->handle, devices[d], q, 0, NULL, ROOM, room, &n));
    }
}

static void ask_event(const struct object *o)
{
    ASK_ALL(0x11d0, 0x11d5, o->name, "event", clGetEventInfo(o->handle, q, ROOM, room, &n));
    ASK_ALL(0x1280, 0x1285, o->name, "times",
            clGetEventProfilingInfo(o->handle, q, ROOM, room, &n));
}

static void ask(const struct object *o)
{
    switch (o->kind) {
    case DEVICE:
        ask_device(o);
        break;
    case CONTEXT:
        ask_context(o);
        break;
    case QUEUE:
        ASK_ALL(0x1090, 0x109f, o->name, "queue",
                clGetCommandQueueInfo(o->handle, q, ROOM, room, &n));
        break;
    case MEM:
        ask_mem(o);
        break;
    case SAMPLER:
        ASK_ALL(0x1150, 0x115f, o->name, "sampler", clGetSamplerInfo(o->handle, q, ROOM, room, &n));
        break;
    case PROGRAM:
        ask_program(o);
        break;
    case KERNEL:
        ask_kernel(o);
        break;
    default:
        ask_event(o);
        break;
    }
}

/* A part made only now of a buffer that may have been made again since: it inherits the same. */
static void ask_new_parts(const struct object *o)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_buffer_region region = {4096, 1024};
    const cl_image_desc line = {
        .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 64, .mem_object = o->handle};
    if (o->kind != MEM || strncmp(o->name, "buffer ", 7) != 0)
        return;
    for (int image = 0; image < 2; image++) {
        cl_int r;
        struct object made = {.kind = MEM};
        made.handle =
            image ? clCreateImage(context, 0, &format, &line, NULL, &r)
                  : clCreateSubBuffer(o->handle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
        snprintf(made.name, sizeof made.name, "new %s of %.40s", image ? "image" : "part", o->name);
        printf("%s: %d\n", made.name, r);
        if (!made.handle)
            continue;
        ask_mem(&made);
        MUST(clReleaseMemObject(made.handle));
    }
}

static void ask_everything(void)
{
    ASK_ALL(0x0900, 0x0910, "platform", "", clGetPlatformInfo(platform, q, ROOM, room, &n));
    ASK_ALL(0x0920, 0x0921, "platform", "", clGetPlatformInfo(platform, q, ROOM, room, &n));
    for (int i = 0; i < n_objects; i++)
        ask(&objects[i]);
    for (int i = 0; i < n_objects; i++)
        ask_new_parts(&objects[i]);
    puts(".");
    fflush(stdout);
}

/* ---- objects */

static void make_devices_and_contexts(void)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    const cl_device_partition_property parts[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id sub[16];
    cl_uint n_sub = 0;
    cl_int r;
    for (cl_uint i = 0; i < n_devices; i++)
        add(DEVICE, devices[i], "device %u", i);
    if (!clCreateSubDevices(devices[0], parts, 16, sub, &n_sub) && n_sub)
        add(DEVICE, sub[0], "part of a device");
    context = add(CONTEXT, clCreateContext(NULL, n_devices, devices, NULL, NULL, &r), "context");
    add(CONTEXT, clCreateContext(properties, 1, devices, NULL, NULL, &r), "context, platform");
    add(CONTEXT, clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, NULL, NULL, &r),
        "context, type");
    if (n_sub) {
        cl_context of_part =
            add(CONTEXT, clCreateContext(NULL, 1, sub, NULL, NULL, &r), "context of a part");
        add(QUEUE, clCreateCommandQueue(of_part, sub[0], 0, &r), "queue of a part");
    }
}

static cl_command_queue make_queues(void)
{
    const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0},
                              none[] = {0};
    cl_int r;
    cl_command_queue queue = add(
        QUEUE, clCreateCommandQueue(context, devices[0], CL_QUEUE_PROFILING_ENABLE, &r), "queue");
    add(QUEUE,
        clCreateCommandQueue(context, devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &r),
        "queue, out of order");
    add(QUEUE, clCreateCommandQueueWithProperties(context, devices[0], profiling, &r),
        "queue, properties");
    add(QUEUE, clCreateCommandQueueWithProperties(context, devices[0], none, &r),
        "queue, empty list");
    add(QUEUE, clCreateCommandQueueWithProperties(context, devices[n_devices - 1], NULL, &r),
        "queue, no list");
    MUST(clRetainCommandQueue(queue));
    return queue;
}

static void make_parts(cl_mem buffer, cl_mem_flags flags)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_buffer_region region = {4096, 1024};
    const cl_image_desc line = {
        .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 64, .mem_object = buffer};
    cl_int r;
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
    if (part)
        add(MEM, part, "part of buffer 0x%llx", (unsigned long long)flags);
    cl_mem image = clCreateImage(context, 0, &format, &line, NULL, &r);
    if (image)
        add(MEM, image, "image over buffer 0x%llx", (unsigned long long)flags);
}

static void make_memory_of(cl_mem_flags flags, bool parts)
{
    static int next;
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc flat = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 32, .image_height = 32};
    void *bytes = flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ? host[next++ % 64] : NULL;
    cl_int r;
    cl_mem buffer = clCreateBuffer(context, flags, 8192, bytes, &r);
    if (buffer)
        add(MEM, buffer, "buffer 0x%llx", (unsigned long long)flags);
    if (buffer && parts)
        make_parts(buffer, flags);
    cl_mem image = clCreateImage(context, flags, &format, &flat, bytes, &r);
    if (image)
        add(MEM, image, "image 0x%llx", (unsigned long long)flags);
}

static void make_shapes(void)
{
    static const struct {
        const char *name;
        cl_image_desc desc;
    } shapes[] = {
        {"line", {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = 64}},
        {"lines",
         {.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY,
          .image_width = 64,
          .image_array_size = 4,
          .image_row_pitch = 512}},
        {"flat",
         {.image_type = CL_MEM_OBJECT_IMAGE2D,
          .image_width = 16,
          .image_height = 8,
          .image_row_pitch = 128}},
        {"layers",
         {.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY,
          .image_width = 16,
          .image_height = 8,
          .image_array_size = 3}},
        {"volume",
         {.image_type = CL_MEM_OBJECT_IMAGE3D,
          .image_width = 16,
          .image_height = 8,
          .image_depth = 4,
          .image_row_pitch = 128,
          .image_slice_pitch = 2048}},
    };
    const cl_image_format formats[] = {{CL_RGBA, CL_UNORM_INT8}, {CL_R, CL_FLOAT}};
    cl_int r;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int f = 0; f < 2; f++)
            for (int use = 0; use < 2; use++) {
                cl_mem image = clCreateImage(
                    context, use ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR | CL_MEM_READ_ONLY,
                    &formats[f], &shapes[i].desc, host[8 * (int)i + 2 * f + use], &r);
                if (image)
                    add(MEM, image, "%s %d %d", shapes[i].name, f, use);
            }
}

static void make_memory(bool shared)
{
    static const cl_mem_flags access[] = {0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY,
                                          CL_MEM_WRITE_ONLY};
    static const cl_mem_flags hosts[] = {0, CL_MEM_COPY_HOST_PTR, CL_MEM_ALLOC_HOST_PTR,
                                         CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR,
                                         CL_MEM_USE_HOST_PTR};
    static const cl_mem_flags forbidden[] = {0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY,
                                             CL_MEM_HOST_NO_ACCESS};
    const cl_mem_properties none[] = {0};
    cl_int r;
    for (int a = 0; a < 4; a++)
        for (int h = 0; h < 5; h++)
            for (int f = 0; f < 4; f++)
                make_memory_of(access[a] | hosts[h] | forbidden[f], f == 0);
    make_shapes();
    add(MEM, clCreateBufferWithProperties(context, none, CL_MEM_READ_WRITE, 100, NULL, &r),
        "buffer, properties");
    MUST(clRetainMemObject(objects[n_objects - 1].handle));
    void *memory = shared ? clSVMAlloc(context, CL_MEM_READ_WRITE, 8192, 0) : NULL;
    if (memory)
        add(MEM, clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4096, memory, &r), "buffer, shared");
}

static void make_mapped(cl_command_queue queue)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc flat = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 32, .image_height = 32};
    const size_t origin[3] = {0}, region[3] = {32, 32, 1};
    size_t row, slice;
    cl_int r;
    cl_mem buffer = add(MEM, clCreateBuffer(context, 0, 8192, NULL, &r), "buffer, mapped");
    HOLDS(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &r));
    HOLDS(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 64, 64, 0, NULL, NULL, &r));
    cl_mem image = add(MEM, clCreateImage(context, 0, &format, &flat, NULL, &r), "image, mapped");
    HOLDS(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_WRITE, origin, region, &row, &slice, 0,
                            NULL, NULL, &r));
}

static void make_samplers(void)
{
    const cl_sampler_properties some[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE,
                                          CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_CLAMP, 0};
    const cl_sampler_properties none[] = {0};
    cl_int r;
    add(SAMPLER, clCreateSampler(context, CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR, &r),
        "sampler");
    add(SAMPLER, clCreateSamplerWithProperties(context, some, &r), "sampler, properties");
    add(SAMPLER, clCreateSamplerWithProperties(context, none, &r), "sampler, empty list");
}

static const char source[] =
    "#ifndef N\n#define N 1\n#endif\n"
    "__attribute__((reqd_work_group_size(4, 1, 1))) kernel void many(global const int *restrict "
    "x, constant float4 *y, local char *z,\n"
    "    read_only image2d_t i, sampler_t t, volatile global float *v) { if (get_global_id(0) == "
    "99) v[0] = x[0] + y[0].x + z[0] + N; }\n"
    "kernel __attribute__((vec_type_hint(float4))) void put(global int *o, int n) { "
    "o[get_global_id(0)] = n + N; }\n";

static cl_program from_source(const char *text, const char *name)
{
    cl_int r;
    return add(PROGRAM, clCreateProgramWithSource(context, 1, &text, NULL, &r), "program, %s",
               name);
}

static cl_program from_binary(cl_program from)
{
    size_t bytes[8] = {0};
    unsigned char *binaries[8];
    cl_int status[8], r;
    MUST(clGetProgramInfo(from, CL_PROGRAM_BINARY_SIZES, sizeof bytes, bytes, NULL));
    for (cl_uint i = 0; i < n_devices; i++)
        HOLDS((binaries[i] = malloc(bytes[i])));
    MUST(clGetProgramInfo(from, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL));
    cl_program p = add(PROGRAM,
                       clCreateProgramWithBinary(context, n_devices, devices, bytes,
                                                 (const unsigned char **)binaries, status, &r),
                       "program, binary");
    for (cl_uint i = 0; i < n_devices; i++)
        free(binaries[i]);
    return p;
}

/* The log of the first device is that of the last build. */
static void expect_log(cl_program p, const char *with, const char *without)
{
    static char log[4096];
    size_t n = 0, again = 0;
    MUST(clGetProgramBuildInfo(p, devices[0], CL_PROGRAM_BUILD_LOG, 0, NULL, &n));
    HOLDS(n <= sizeof log);
    MUST(clGetProgramBuildInfo(p, devices[0], CL_PROGRAM_BUILD_LOG, n, log, &again));
    HOLDS(again == n && strstr(log, with) && !(without && strstr(log, without)));
    HOLDS(clGetProgramBuildInfo(p, devices[0], CL_PROGRAM_BUILD_LOG, n - 1, log, NULL) ==
          CL_INVALID_VALUE);
}

static cl_kernel kernel_of(cl_program p, const char *kernel, const char *name)
{
    cl_int r;
    return add(KERNEL, clCreateKernel(p, kernel, &r), "kernel %s, %s", kernel, name);
}

static cl_kernel make_programs(void)
{
    static const char broken[] = "kernel void q(int) { nonsense }";
    static const char warned[] = "#warning careful\n#ifdef BROKEN\nnonsense\n#endif\n"
                                 "kernel void q(global int *a) { *a = 1; }\n";
    cl_kernel all[8];
    cl_uint n = 0;
    cl_int r;
    (void)from_source(source, "not built");
    cl_program built = from_source(source, "built");
    MUST(clBuildProgram(built, n_devices, devices, "-cl-kernel-arg-info -DN=3", NULL, NULL));
    cl_program again = from_source(source, "built again");
    MUST(clBuildProgram(again, 0, NULL, "-DN=4", NULL, NULL));
    MUST(clBuildProgram(again, 0, NULL, "-DN=5 -cl-mad-enable", NULL, NULL));
    cl_program compiled = from_source(source, "compiled");
    MUST(clCompileProgram(compiled, n_devices, devices, "-cl-kernel-arg-info", 0, NULL, NULL, NULL,
                          NULL));
    cl_program library =
        clLinkProgram(context, n_devices, devices, "-create-library", 1, &compiled, NULL, NULL, &r);
    if (library)
        add(PROGRAM, library, "program, library");
    cl_program linked =
        add(PROGRAM, clLinkProgram(context, n_devices, devices, "", 1, &compiled, NULL, NULL, &r),
            "program, linked");
    cl_program failed = from_source(broken, "failed to build");
    HOLDS(clBuildProgram(failed, 0, NULL, "-w", NULL, NULL));
    failed = from_source(broken, "failed to compile");
    HOLDS(clCompileProgram(failed, 0, NULL, "-w", 0, NULL, NULL, NULL, NULL));
    failed = from_source(warned, "failed to build, then built");
    HOLDS(clBuildProgram(failed, 0, NULL, "-DBROKEN", NULL, NULL));
    expect_log(failed, "nonsense", NULL);
    MUST(clBuildProgram(failed, 0, NULL, "", NULL, NULL));
    expect_log(failed, "careful", "nonsense");
    cl_program part = from_source(warned, "compiled, warnings");
    MUST(clCompileProgram(part, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
    add(PROGRAM, clLinkProgram(context, 0, NULL, "", 1, &part, NULL, NULL, &r),
        "program, linked, warnings");
    cl_program binary = from_binary(built);
    MUST(clBuildProgram(binary, 0, NULL, "", NULL, NULL));
    if (n_devices > 1) {
        cl_program each = from_source(source, "built for each device");
        MUST(clBuildProgram(each, 1, &devices[0], "-DN=6", NULL, NULL));
        MUST(clBuildProgram(each, 1, &devices[1], "-DN=7", NULL, NULL));
        (void)kernel_of(each, "put", "built for each device");
        each = from_source(source, "built for the second device");
        MUST(clBuildProgram(each, 1, &devices[1], "-DN=7", NULL, NULL));
    }
    (void)kernel_of(built, "many", "built");
    (void)kernel_of(again, "put", "built again");
    (void)kernel_of(linked, "put", "linked");
    (void)kernel_of(binary, "put", "binary");
    MUST(clCreateKernelsInProgram(linked, 8, all, &n));
    for (cl_uint i = 0; i < n; i++)
        add(KERNEL, all[i], "kernel %u, in a program", i);
    cl_kernel put = kernel_of(built, "put", "built");
    add(KERNEL, clCloneKernel(put, &r), "kernel put, clone");
    return put;
}

static void make_events(cl_command_queue queue, cl_kernel put)
{
    const size_t global = 64;
    const int number = 5;
    int zero = 0;
    cl_event event = NULL;
    cl_int r;
    cl_mem buffer = clCreateBuffer(context, 0, 4096, NULL, &r);
    MUST(r);
    MUST(clSetKernelArg(put, 0, sizeof buffer, &buffer));
    MUST(clSetKernelArg(put, 1, sizeof number, &number));
    MUST(clEnqueueNDRangeKernel(queue, put, 1, NULL, &global, NULL, 0, NULL, &event));
    add(EVENT, event, "event, launch");
    MUST(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 16, host[0], 0, NULL, &event));
    add(EVENT, event, "event, read");
    MUST(clEnqueueFillBuffer(queue, buffer, &zero, 4, 0, 64, 0, NULL, &event));
    add(EVENT, event, "event, fill");
    MUST(clFinish(queue));
    cl_event failed = add(EVENT, clCreateUserEvent(context, &r), "event, user, failed");
    MUST(clSetUserEventStatus(failed, -7));
    cl_event user = add(EVENT, clCreateUserEvent(context, &r), "event, user");
    MUST(clRetainEvent(user));
    MUST(clEnqueueMarkerWithWaitList(queue, 1, &user, &event));
    add(EVENT, event, "event, marker that waits");
    MUST(clEnqueueNDRangeKernel(queue, put, 1, NULL, &global, NULL, 0, NULL, &event));
    add(EVENT, event, "event, launch behind it");
    MUST(clFlush(queue));
}

int main(int argc, char **argv)
{
    char line[16];
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, devices, &n_devices));
    make_devices_and_contexts();
    cl_command_queue queue = make_queues();
    make_memory(argc > 1 && !strcmp(argv[1], "svm"));
    make_mapped(queue);
    make_samplers();
    make_events(queue, make_programs());
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0)
        ask_everything();
    return 0;
}
