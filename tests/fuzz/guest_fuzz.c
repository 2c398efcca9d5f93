/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL front end against a worker that answers anything: any result, any number where one is
 * asked for, other ones the second time, any bytes in the data area, events in any state, notices
 * of any kind. What a program is told may be wrong, but whoever uses it as the specification says
 * stays inside his own memory: no size that Gantry believed, no pointer.
 *
 * gantryd is played honestly, since a program trusts the one on its own machine, by a thread
 * (gantryd_for_guest.c); the worker by another, which takes its answers off the same input as the
 * program its steps: a program waits for what it asked, so they take turns.
 */
#include "gantryd_for_guest.h"
#include "guest/opencl/callback.h"
#include "opencl_guest.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "fuzz.h"

#define POOL   6u
#define EVENTS 512u
#define LARGE  (1u << 20)

static struct gantryd_for_guest host;
static struct fuzz *input; /* the thread's whose turn it is */
static _Atomic bool honest = true;
static _Atomic int event_error;
static cl_platform_id platform;
static cl_device_id devices[2];
static struct gn_session *session;

/* ---- the worker */

static uint64_t number(struct fuzz *f)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   16,
                                   31,
                                   33,
                                   64,
                                   100,
                                   255,
                                   256,
                                   4096,
                                   65535,
                                   65537,
                                   1 << 20,
                                   INT32_MAX,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   UINT64_C(1) << 40,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 32,
                                   UINT64_MAX,
                                   UINT64_C(0x100000001)};
    uint8_t what = fuzz_u8(f);
    return what < 64 ? odd[what % GN_ARRAY_SIZE(odd)] : what < 224 ? what % 32 : fuzz_u64(f);
}

/* Every place that the message names in the data area, since an output may be there. */
static void fill_outputs(const unsigned char *message, uint32_t n, uint64_t with)
{
    for (uint32_t at = sizeof(struct gn_msg); at + sizeof(struct gn_span) <= n; at += 8) {
        struct gn_span span;
        memcpy(&span, message + at, sizeof span);
        unsigned char *to = gantryd_for_guest_area(&host, span.segment, span.offset, span.bytes);
        for (uint32_t i = 0; to && i < span.bytes && i < 4096; i++)
            to[i] = (unsigned char)(with >> i % 8 * 8);
    }
}

static void answer_honestly(const struct gn_msg *msg, const unsigned char *message, uint32_t n)
{
    uint32_t payload[12] = {0};
    if (msg->op == GN_OP_Devices) {
        fill_outputs(message, n, CL_DEVICE_TYPE_CPU);
        payload[0] = GN_ARRAY_SIZE(devices);
    }
    gn_reply_send(host.view.replies, msg->reply, 0, payload, sizeof payload);
}

static void answer(struct fuzz *f, const struct gn_msg *msg, const unsigned char *message,
                   uint32_t n)
{
    static const int32_t results[] = {-1, -5, -11, -30, -46, 1, 2, INT32_MAX, INT32_MIN};
    uint64_t payload[GN_REPLY_PAYLOAD / 8];
    uint8_t how = fuzz_u8(f);
    int32_t result = how < 224 ? 0 : results[how % GN_ARRAY_SIZE(results)];
    uint64_t first = number(f);
    for (uint32_t i = 0; i < GN_ARRAY_SIZE(payload); i++)
        payload[i] = how & 16 ? number(f) : first;
    fill_outputs(message, n, how & 8 ? number(f) : first);
    gn_reply_send(host.view.replies, msg->reply, result, payload,
                  how & 4 ? fuzz_u8(f) % (GN_REPLY_PAYLOAD + 1) : sizeof payload);
}

static void end_events(void)
{
    for (uint32_t i = 0; i < EVENTS; i++)
        if (gn_event_phase(&host.events[i], NULL) != GN_EVENT_DONE)
            gn_event_finish(&host.events[i],
                            atomic_load_explicit(&event_error, memory_order_relaxed), NULL);
}

static void *work(void *arg)
{
    struct gn_ring_consumer ring;
    struct gn_lost lost;
    unsigned char message[GN_RING_MAX_BYTES];
    (void)arg;
    gantryd_for_guest_wait(&host);
    gn_lost_init(&lost);
    FUZZ_CHECK(gn_ring_consumer_init(&ring, host.view.requests, GN_SESSION_REQUEST_SLOTS, 0,
                                     (struct gn_waiter){gn_spin_policy_default(), &lost}) == 0);
    for (;;) {
        struct gn_msg msg;
        int n = gn_ring_try_receive(&ring, message);
        if (n == -EAGAIN) {
            end_events();
            gn_ring_release(&ring);
            (void)gn_ring_park(&ring, 1000000);
            continue;
        }
        FUZZ_CHECK(n >= (int)sizeof msg);
        memcpy(&msg, message, sizeof msg);
        if (msg.reply == GN_NO_REPLY)
            continue;
        if (atomic_load_explicit(&honest, memory_order_acquire))
            answer_honestly(&msg, message, (uint32_t)n);
        else
            answer(input, &msg, message, (uint32_t)n);
    }
    return NULL;
}

static void begin(void)
{
    pthread_t thread;
    cl_uint n = 0;
    gantryd_for_guest_start(&host);
    FUZZ_CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    FUZZ_CHECK(gn_clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    FUZZ_CHECK(gn_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &n) == CL_SUCCESS &&
               n == 2);
    session = ((struct gn_object *)platform)->session;
    /* As a worker that tells of them would have been heard. */
    atomic_store_explicit(&((struct gn_cl_device *)devices[0])->command_buffers,
                          CL_MAKE_VERSION(0, 9, 0), memory_order_relaxed);
}

/* ---- the program */

static struct program {
    struct fuzz *f;
    cl_context contexts[POOL];
    cl_command_queue queues[POOL];
    cl_mem mems[POOL];
    cl_program programs[POOL];
    cl_kernel kernels[POOL];
    cl_event events[POOL];
    cl_sampler samplers[POOL];
    cl_command_buffer_khr buffers[POOL];
    void *shared[POOL];
    char *memory; /* LARGE bytes */
} me;

#define PICK(pool) ((pool)[fuzz_u8(me.f) % POOL])

static void CL_CALLBACK told_event(cl_event e, cl_int status, void *data)
{
    (void)e, (void)status, (void)data;
}

static void CL_CALLBACK told_context(const char *text, const void *more, size_t n, void *data)
{
    (void)more, (void)n, (void)data;
    FUZZ_CHECK(strlen(text) < GN_FRAME_MAX_BYTES);
}

/* Puts an object into its pool, letting go of what is there. */
#define KEEP(pool, object, release)                                                                \
    do {                                                                                           \
        __typeof__(&(pool)[0]) at = &PICK(pool);                                                   \
        __typeof__((pool)[0]) new = (object);                                                      \
        if (new) {                                                                                 \
            if (*at)                                                                               \
                release(*at);                                                                      \
            *at = new;                                                                             \
        }                                                                                          \
    } while (0)

/* As programs do: how much is it, room for exactly so much, the value. */
#define ASK(call, object, ...)                                                                     \
    do {                                                                                           \
        size_t size = 0;                                                                           \
        if ((call)(object, __VA_ARGS__, 0, NULL, &size) == CL_SUCCESS && size <= LARGE) {          \
            char *room = malloc(size ? size : 1);                                                  \
            (void)(call)(object, __VA_ARGS__, size, room, fuzz_u8(me.f) & 1 ? &size : NULL);       \
            free(room);                                                                            \
        }                                                                                          \
    } while (0)

static void ask_device(void)
{
    static const cl_device_info names[] = {CL_DEVICE_NAME,
                                           CL_DEVICE_EXTENSIONS,
                                           CL_DEVICE_EXTENSIONS_WITH_VERSION,
                                           CL_DEVICE_TYPE,
                                           CL_DEVICE_EXECUTION_CAPABILITIES,
                                           CL_DEVICE_SVM_CAPABILITIES,
                                           CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                           CL_DEVICE_PARENT_DEVICE,
                                           CL_DEVICE_OPENCL_C_FEATURES};
    uint8_t which = fuzz_u8(me.f);
    if (which & 128)
        ASK(gn_clGetPlatformInfo, platform,
            which & 1 ? CL_PLATFORM_EXTENSIONS_WITH_VERSION : CL_PLATFORM_EXTENSIONS);
    else
        ASK(gn_clGetDeviceInfo, devices[which & 1], names[which / 2 % GN_ARRAY_SIZE(names)]);
}

static void split_device(void)
{
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_uint n = 0;
    if (gn_clCreateSubDevices(devices[0], how, 0, NULL, &n) != CL_SUCCESS || !n || n > 64)
        return;
    cl_device_id *parts = calloc(n, sizeof *parts);
    cl_uint made = n;
    if (gn_clCreateSubDevices(devices[0], how, n, parts, &made) == CL_SUCCESS) {
        FUZZ_CHECK(made <= n);
        for (cl_uint i = 0; i < made; i++)
            FUZZ_CHECK(gn_clReleaseDevice(parts[i]) == CL_SUCCESS);
    }
    free(parts);
}

static void make_memory(void)
{
    static const cl_mem_flags flags[] = {0,
                                         CL_MEM_READ_WRITE,
                                         CL_MEM_COPY_HOST_PTR,
                                         CL_MEM_USE_HOST_PTR,
                                         CL_MEM_ALLOC_HOST_PTR,
                                         CL_MEM_HOST_WRITE_ONLY,
                                         CL_MEM_HOST_READ_ONLY,
                                         CL_MEM_HOST_NO_ACCESS};
    uint8_t which = fuzz_u8(me.f);
    cl_mem_flags f = flags[which % 8];
    void *from = f & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ? me.memory : NULL;
    const cl_image_format format = {CL_RGBA, which & 8 ? CL_FLOAT : CL_UNORM_INT8};
    cl_image_desc desc = {.image_type = which & 16   ? CL_MEM_OBJECT_IMAGE2D
                                        : which & 32 ? CL_MEM_OBJECT_IMAGE1D_ARRAY
                                        : which & 64 ? CL_MEM_OBJECT_IMAGE3D
                                                     : CL_MEM_OBJECT_IMAGE2D_ARRAY,
                          .image_width = 1u + fuzz_u8(me.f) % 32,
                          .image_height = 4,
                          .image_depth = 2,
                          .image_array_size = 3};
    const cl_buffer_region region = {0, 64};
    cl_mem made;
    if (which & 128)
        made = gn_clCreateImage(PICK(me.contexts), f, &format, &desc, from, NULL);
    else if (which & 64)
        made = gn_clCreateSubBuffer(PICK(me.mems), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
    else
        made = gn_clCreateBuffer(PICK(me.contexts), f, which & 32 ? LARGE : 1u + fuzz_u16(me.f),
                                 from, NULL);
    KEEP(me.mems, made, gn_clReleaseMemObject);
}

static void ask_memory(void)
{
    static const cl_mem_info names[] = {CL_MEM_FLAGS, CL_MEM_SIZE, CL_MEM_HOST_PTR, CL_MEM_OFFSET,
                                        CL_MEM_PROPERTIES};
    cl_mem m = PICK(me.mems);
    cl_context c = PICK(me.contexts);
    cl_uint n = 0;
    ASK(gn_clGetMemObjectInfo, m, names[fuzz_u8(me.f) % GN_ARRAY_SIZE(names)]);
    ASK(gn_clGetImageInfo, m, fuzz_u8(me.f) & 1 ? CL_IMAGE_ROW_PITCH : CL_IMAGE_FORMAT);
    if (gn_clGetSupportedImageFormats(c, 0, CL_MEM_OBJECT_IMAGE2D, 0, NULL, &n) == CL_SUCCESS &&
        n < LARGE / 8) {
        cl_image_format *formats = malloc((n ? n : 1) * sizeof *formats);
        (void)gn_clGetSupportedImageFormats(c, 0, CL_MEM_OBJECT_IMAGE2D, n, n ? formats : NULL, &n);
        free(formats);
    }
}

static void make_program(void)
{
    static const char *source = "__kernel void k(__global int *a) { a[0] = 1; }";
    static const unsigned char code[16] = {1};
    const unsigned char *binaries[2] = {code, code};
    const size_t lengths[2] = {sizeof code, sizeof code};
    cl_int status[2];
    uint8_t which = fuzz_u8(me.f);
    cl_program p = which & 1
                       ? gn_clCreateProgramWithBinary(PICK(me.contexts), 1 + (which >> 1 & 1),
                                                      devices, lengths, binaries, status, NULL)
                       : gn_clCreateProgramWithSource(PICK(me.contexts), 1, &source, NULL, NULL);
    if (which & 4)
        (void)gn_clBuildProgram(p, 0, NULL, "-w", NULL, NULL);
    if (which & 8)
        (void)gn_clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL);
    if (which & 16)
        KEEP(me.programs, gn_clLinkProgram(PICK(me.contexts), 0, NULL, "", 1, &p, NULL, NULL, NULL),
             gn_clReleaseProgram);
    KEEP(me.programs, p, gn_clReleaseProgram);
}

/* Room for as much as was told, no more: the classic. */
static void take_binaries(cl_program p)
{
    cl_uint n = 0;
    if (gn_clGetProgramInfo(p, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, NULL) != CL_SUCCESS || !n)
        return;
    FUZZ_CHECK(n <= 2);
    size_t sizes[2] = {0};
    unsigned char *binaries[2] = {NULL};
    if (gn_clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL) ==
        CL_SUCCESS) {
        for (cl_uint i = 0; i < n; i++)
            binaries[i] = sizes[i] <= LARGE ? malloc(sizes[i] ? sizes[i] : 1) : NULL;
        (void)gn_clGetProgramInfo(p, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL);
    }
    for (cl_uint i = 0; i < n; i++)
        free(binaries[i]);
}

static void ask_program(void)
{
    static const cl_program_info names[] = {CL_PROGRAM_SOURCE, CL_PROGRAM_KERNEL_NAMES,
                                            CL_PROGRAM_DEVICES, CL_PROGRAM_BINARY_SIZES};
    cl_program p = PICK(me.programs);
    uint8_t which = fuzz_u8(me.f);
    if (which & 1)
        take_binaries(p);
    else if (which & 2)
        ASK(gn_clGetProgramBuildInfo, p, devices[0], CL_PROGRAM_BUILD_LOG);
    else
        ASK(gn_clGetProgramInfo, p, names[which / 4 % GN_ARRAY_SIZE(names)]);
}

static void make_kernels(void)
{
    cl_program p = PICK(me.programs);
    cl_uint n = 0;
    uint8_t which = fuzz_u8(me.f) % 3;
    if (which == 0) {
        KEEP(me.kernels, gn_clCreateKernel(p, "k", NULL), gn_clReleaseKernel);
    } else if (which == 1) {
        KEEP(me.kernels, gn_clCloneKernel(PICK(me.kernels), NULL), gn_clReleaseKernel);
    } else if (gn_clCreateKernelsInProgram(p, 0, NULL, &n) == CL_SUCCESS && n && n < 64) {
        cl_kernel *all = calloc(n, sizeof *all);
        cl_uint made = n;
        if (gn_clCreateKernelsInProgram(p, n, all, &made) == CL_SUCCESS) {
            FUZZ_CHECK(made <= n);
            for (cl_uint i = 0; i < made; i++)
                FUZZ_CHECK(gn_clReleaseKernel(all[i]) == CL_SUCCESS);
        }
        free(all);
    }
}

static void use_kernel(void)
{
    cl_kernel k = PICK(me.kernels);
    cl_mem m = PICK(me.mems);
    size_t n[3] = {64, 2, 1}, group[3] = {8, 1, 1};
    uint8_t which = fuzz_u8(me.f);
    if (which & 1)
        ASK(gn_clGetKernelArgInfo, k, which >> 4, CL_KERNEL_ARG_TYPE_NAME);
    if (which & 2)
        ASK(gn_clGetKernelWorkGroupInfo, k, devices[0], CL_KERNEL_WORK_GROUP_SIZE);
    if (which & 4)
        ASK(gn_clGetKernelInfo, k, CL_KERNEL_FUNCTION_NAME);
    for (cl_uint i = 0; i < 6; i++) {
        if (which & 16)
            (void)gn_clSetKernelArg(k, i, sizeof m, &m);
        else
            (void)gn_clSetKernelArg(k, i, i * 5, which & 8 ? NULL : me.memory);
    }
    cl_event e = NULL;
    if (gn_clEnqueueNDRangeKernel(PICK(me.queues), k, 1u + which % 3, NULL, n,
                                  which & 32 ? group : NULL, 0, NULL, &e) == CL_SUCCESS)
        KEEP(me.events, e, gn_clReleaseEvent);
}

static void transfer(void)
{
    const size_t origin[3] = {0}, image[3] = {1, 1, 1}, region[3] = {4, 2, 1};
    cl_command_queue q = PICK(me.queues);
    cl_mem m = PICK(me.mems);
    uint8_t which = fuzz_u8(me.f);
    size_t n = which & 64 ? LARGE : 1u + fuzz_u8(me.f);
    cl_event e = NULL, *wanted = which & 32 ? &e : NULL;
    cl_bool waits = which & 8 ? CL_TRUE : CL_FALSE;
    switch (which % 8) {
    case 0:
        (void)gn_clEnqueueReadBuffer(q, m, waits, 0, n, me.memory, 0, NULL, wanted);
        break;
    case 1:
        (void)gn_clEnqueueWriteBuffer(q, m, waits, 0, n, me.memory, 0, NULL, wanted);
        break;
    case 2:
        (void)gn_clEnqueueReadImage(q, m, waits, origin, image, 0, 0, me.memory, 0, NULL, wanted);
        break;
    case 3:
        (void)gn_clEnqueueWriteImage(q, m, waits, origin, image, 0, 0, me.memory, 0, NULL, wanted);
        break;
    case 4:
        (void)gn_clEnqueueReadBufferRect(q, m, waits, origin, origin, region, 0, 0, 0, 0, me.memory,
                                         0, NULL, wanted);
        break;
    case 5:
        (void)gn_clEnqueueCopyBuffer(q, m, PICK(me.mems), 0, 0, n, 0, NULL, wanted);
        break;
    case 6:
        (void)gn_clEnqueueFillBuffer(q, m, "x", 1, 0, n, 0, NULL, wanted);
        break;
    default:
        (void)gn_clEnqueueMarkerWithWaitList(q, 0, NULL, wanted);
    }
    KEEP(me.events, e, gn_clReleaseEvent);
}

static void map(void)
{
    static const cl_map_flags all_flags[] = {
        CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MAP_READ | CL_MAP_WRITE};
    const size_t origin[3] = {0};
    cl_command_queue q = PICK(me.queues);
    cl_mem m = PICK(me.mems);
    uint8_t which = fuzz_u8(me.f);
    size_t region[3] = {1u + fuzz_u8(me.f) % 8, 1u + which / 16 % 4, 1u + which / 64 % 2}, row = 0,
           slice = 0;
    cl_map_flags flags = all_flags[which % 4];
    char *at;
    if (which & 4) {
        at = gn_clEnqueueMapBuffer(q, m, CL_TRUE, flags, 0, region[0], 0, NULL, NULL, NULL);
        if (at)
            memset(at, 1, region[0]);
    } else {
        at = gn_clEnqueueMapImage(q, m, CL_TRUE, flags, origin, region, &row, &slice, 0, NULL, NULL,
                                  NULL);
        size_t bytes = at ? ((struct gn_cl_mem *)m)->element_bytes * region[0] : 0;
        bool lines = at && ((struct gn_cl_mem *)m)->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        for (size_t z = 0; at && z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                memset(at + z * slice + y * (lines ? slice : row), 2, bytes);
    }
    if (at)
        (void)gn_clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL);
}

static void wait_for(void)
{
    uint8_t which = fuzz_u8(me.f);
    cl_event e = PICK(me.events);
    cl_ulong when;
    cl_int status;
    if (which & 1)
        (void)gn_clFinish(PICK(me.queues));
    if ((which & 2) && e)
        (void)gn_clWaitForEvents(1, &e);
    (void)gn_clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    (void)gn_clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof when, &when, NULL);
    if (which & 4)
        (void)gn_clSetEventCallback(e, CL_COMPLETE, told_event, NULL);
}

static void share(void)
{
    void **at = &PICK(me.shared);
    uint8_t which = fuzz_u8(me.f);
    cl_context c = PICK(me.contexts);
    cl_command_queue q = PICK(me.queues);
    if (*at && (which & 1)) {
        /* A context is remembered by what it allocated from, and lives as long. */
        gn_clSVMFree(me.contexts[0], *at);
        *at = NULL;
    } else if (!*at && c && c == me.contexts[0]) {
        *at = gn_clSVMAlloc(c, CL_MEM_READ_WRITE, 4096, 0);
    }
    if (*at) {
        memset(*at, 3, 4096);
        (void)gn_clEnqueueSVMMemcpy(q, CL_TRUE, *at, me.memory, 4096, 0, NULL, NULL);
        (void)gn_clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, *at, 4096, 0, NULL, NULL);
    }
}

/* What comes unasked, in memory of exactly its size; and words of shared memory. */
static void disturb(void)
{
    uint8_t which = fuzz_u8(me.f);
    struct gn_event_entry *e = &host.events[fuzz_u8(me.f)];
    if (which & 1) {
        size_t n = fuzz_u8(me.f);
        const uint8_t *bytes = fuzz_bytes(me.f, &n);
        uint8_t *frame = malloc(n ? n : 1);
        memcpy(frame, bytes, n);
        uint16_t op = which >> 4;
        if (op != GN_SESSION_WANT)
            gn_callback_frame(session, op, frame, (uint32_t)n);
        free(frame);
    }
    if (which & 2) {
        atomic_store_explicit(&e->word, fuzz_u32(me.f), memory_order_relaxed);
        e->error = (int32_t)fuzz_u32(me.f);
        e->end_ns = fuzz_u64(me.f);
    }
    if (which & 4)
        atomic_store_explicit(&event_error, (int32_t)fuzz_u8(me.f) - 128, memory_order_relaxed);
    if (which & 8)
        gn_reply_send(host.view.replies, fuzz_u32(me.f), 0, "late", 4);
}

static void make_context(void)
{
    uint8_t which = fuzz_u8(me.f);
    KEEP(me.contexts,
         gn_clCreateContext(NULL, 1 + (which & 1), devices, which & 2 ? told_context : NULL, NULL,
                            NULL),
         gn_clReleaseContext);
}

static void make_queue(void)
{
    KEEP(me.queues, gn_clCreateCommandQueue(PICK(me.contexts), devices[0], fuzz_u8(me.f) & 3, NULL),
         gn_clReleaseCommandQueue);
}

static void make_others(void)
{
    uint8_t which = fuzz_u8(me.f);
    if (which & 1)
        KEEP(me.samplers,
             gn_clCreateSampler(PICK(me.contexts), CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST,
                                NULL),
             gn_clReleaseSampler);
    if (which & 2)
        KEEP(me.events, gn_clCreateUserEvent(PICK(me.contexts), NULL), gn_clReleaseEvent);
    if (which & 4)
        (void)gn_clSetUserEventStatus(PICK(me.events), CL_COMPLETE);
}

static void make_command_buffer(void)
{
    const cl_command_buffer_properties_khr flags[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                      CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    cl_command_queue q = PICK(me.queues);
    uint8_t which = fuzz_u8(me.f);
    KEEP(me.buffers, gn_clCreateCommandBufferKHR(1, &q, which & 1 ? flags : NULL, NULL),
         gn_clReleaseCommandBufferKHR);
}

static void record_command(void)
{
    const size_t origin[3] = {0}, region[3] = {4, 2, 1}, n[3] = {64, 2, 1}, group[3] = {8, 1, 1};
    cl_command_buffer_khr b = PICK(me.buffers);
    cl_mem m = PICK(me.mems), other = PICK(me.mems);
    uint8_t which = fuzz_u8(me.f);
    cl_sync_point_khr waits[4] = {1, which, 3, 1}, point = 0;
    const cl_uint n_waits = which >> 3 & 3;
    const cl_sync_point_khr *list = n_waits ? waits : NULL;
    switch (which % 8) {
    case 0:
        (void)gn_clCommandBarrierWithWaitListKHR(b, NULL, n_waits, list, &point, NULL);
        break;
    case 1:
        (void)gn_clCommandCopyBufferKHR(b, NULL, m, other, 0, 0, 64, n_waits, list, &point, NULL);
        break;
    case 2:
        (void)gn_clCommandCopyBufferRectKHR(b, NULL, m, other, origin, origin, region, 0, 0, 0, 0,
                                            n_waits, list, NULL, NULL);
        break;
    case 3:
        (void)gn_clCommandCopyBufferToImageKHR(b, NULL, m, other, 0, origin, region, n_waits, list,
                                               &point, NULL);
        break;
    case 4:
        (void)gn_clCommandCopyImageToBufferKHR(b, NULL, m, other, origin, region, 0, n_waits, list,
                                               &point, NULL);
        break;
    case 5:
        (void)gn_clCommandCopyImageKHR(b, NULL, m, other, origin, origin, region, n_waits, list,
                                       &point, NULL);
        break;
    case 6:
        (void)gn_clCommandFillBufferKHR(b, NULL, m, "xyzw", 4, 0, 64, n_waits, list, &point, NULL);
        break;
    default:
        (void)gn_clCommandNDRangeKernelKHR(b, NULL, NULL, PICK(me.kernels), 1u + which / 64 % 3,
                                           NULL, n, which & 32 ? group : NULL, n_waits, list,
                                           &point, NULL);
    }
}

static void run_commands(void)
{
    cl_command_buffer_khr b = PICK(me.buffers);
    cl_command_queue q = PICK(me.queues);
    uint8_t which = fuzz_u8(me.f);
    cl_event e = NULL, after = PICK(me.events);
    if (which & 1)
        (void)gn_clFinalizeCommandBufferKHR(b);
    for (int i = 0; i < 1 + (which >> 6); i++) {
        (void)gn_clEnqueueCommandBufferKHR(
            which & 2 ? 1 : 0, which & 2 ? &q : NULL, b, which & 4 && after ? 1 : 0,
            which & 4 && after ? &after : NULL, which & 8 ? &e : NULL);
        KEEP(me.events, e, gn_clReleaseEvent);
        e = NULL;
    }
    ASK(gn_clGetCommandBufferInfoKHR, b, CL_COMMAND_BUFFER_QUEUES_KHR + which / 16 % 5);
}

static void (*const steps[])(void) = {
    make_context, make_queue,   make_memory, make_program, make_kernels,        make_others,
    ask_device,   split_device, ask_memory,  ask_program,  use_kernel,          transfer,
    map,          wait_for,     share,       disturb,      make_command_buffer, record_command,
    run_commands};

#define RELEASE(pool, release)                                                                     \
    for (uint32_t i = 0; i < POOL; i++)                                                            \
        if (pool[i])                                                                               \
            release(pool[i]);

static void let_go(void)
{
    for (uint32_t i = 0; i < POOL; i++)
        if (me.shared[i])
            gn_clSVMFree(me.contexts[0], me.shared[i]);
    RELEASE(me.buffers, gn_clReleaseCommandBufferKHR)
    RELEASE(me.events, gn_clReleaseEvent)
    RELEASE(me.kernels, gn_clReleaseKernel)
    RELEASE(me.programs, gn_clReleaseProgram)
    RELEASE(me.mems, gn_clReleaseMemObject)
    RELEASE(me.samplers, gn_clReleaseSampler)
    RELEASE(me.queues, gn_clReleaseCommandQueue)
    RELEASE(me.contexts, gn_clReleaseContext)
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    if (!session)
        begin();
    me = (struct program){.f = &f, .memory = malloc(LARGE)};
    memset(me.memory, 5, LARGE);
    input = &f;
    atomic_store_explicit(&event_error, 0, memory_order_relaxed);
    /* Something to begin with. */
    me.contexts[0] = gn_clCreateContext(NULL, 1, devices, told_context, NULL, NULL);
    me.contexts[1] = gn_clCreateContext(NULL, 2, devices, NULL, NULL, NULL);
    me.queues[0] =
        gn_clCreateCommandQueue(me.contexts[0], devices[0], CL_QUEUE_PROFILING_ENABLE, NULL);
    atomic_store_explicit(&honest, false, memory_order_release);
    while (f.left)
        steps[fuzz_u8(&f) % GN_ARRAY_SIZE(steps)]();
    atomic_store_explicit(&honest, true, memory_order_release);
    atomic_store_explicit(&event_error, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < POOL; i++)
        if (me.queues[i])
            (void)gn_clFinish(me.queues[i]);
    let_go();
    free(me.memory);
    return 0;
}
