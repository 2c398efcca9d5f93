/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands with odd arguments, each given three times: with nothing before it, with a wait list
 * that holds an event which is not complete, and without one behind such a command in the same
 * queue. A driver judges arguments when it is given them, so the answers are alike.
 */
#include "difftest.h"

struct pending_env {
    struct env env;
    cl_mem mem, other, sub, image, other_image, ints, volume, lines;
    cl_kernel add, fixed, fresh;
    char host[8192];
    /* of the way that a command is given now */
    cl_event user, blocked;
    cl_uint n_waits;
    const cl_event *waits;
};

static struct pending_env p;

static cl_mem image_of(const cl_image_format *format, const cl_image_desc *desc)
{
    cl_int code;
    cl_mem image = clCreateImage(p.env.context, CL_MEM_READ_WRITE, format, desc, NULL, &code);
    if (!image)
        case_end("no image");
    name_handle(ARG_MEM, image);
    return image;
}

static void start(void)
{
    const cl_image_format bytes = {CL_RGBA, CL_UNORM_INT8}, ints = {CL_RGBA, CL_SIGNED_INT32};
    const cl_image_desc flat = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    const cl_image_desc deep = {
        .image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 8, .image_height = 8, .image_depth = 4};
    const cl_image_desc lines = {
        .image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY, .image_width = 8, .image_array_size = 4};
    const cl_buffer_region region = {1024, 512};
    int k = 1;
    memset(&p, 0, sizeof(p));
    env_init(&p.env);
    p.mem = env_buffer(&p.env, 4096, p.host);
    p.other = env_buffer(&p.env, 4096, p.host);
    p.sub = MAKE(clCreateSubBuffer, p.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region);
    if (p.env.images) {
        p.image = image_of(&bytes, &flat);
        p.other_image = image_of(&bytes, &flat);
        p.ints = image_of(&ints, &flat);
        p.volume = image_of(&bytes, &deep);
        p.lines = image_of(&bytes, &lines);
    }
    p.add = env_kernel(&p.env, "add");
    p.fixed = env_kernel(&p.env, "fixed");
    p.fresh = env_kernel(&p.env, "mul");
    CALL(clSetKernelArg, p.add, 0, sizeof(p.mem), &p.mem);
    CALL(clSetKernelArg, p.add, 1, sizeof(k), &k);
    CALL(clSetKernelArg, p.fixed, 0, sizeof(p.mem), &p.mem);
}

static void stop(void)
{
    cl_mem mems[] = {p.sub, p.mem, p.other, p.image, p.other_image, p.ints, p.volume, p.lines};
    CALL(clFinish, p.env.queue);
    CALL(clReleaseKernel, p.add);
    CALL(clReleaseKernel, p.fixed);
    CALL(clReleaseKernel, p.fresh);
    for (size_t i = 0; i < sizeof(mems) / sizeof(mems[0]); i++)
        if (mems[i])
            CALL(clReleaseMemObject, mems[i]);
    env_fini(&p.env);
}

enum way { FREE, WAITS, BEHIND, N_WAYS };
static const char *const way_names[] = {"with nothing before it", "waiting for an event",
                                        "behind a command that waits"};

static void hold(enum way way)
{
    cl_int code;
    note("  %s", way_names[way]);
    p.user = p.blocked = NULL;
    p.n_waits = 0;
    p.waits = NULL;
    if (way == FREE)
        return;
    p.user = clCreateUserEvent(p.env.context, &code);
    name_handle(ARG_EVENT, p.user);
    if (way == WAITS) {
        p.n_waits = 1;
        p.waits = &p.user;
        return;
    }
    code = clEnqueueMarkerWithWaitList(p.env.queue, 1, &p.user, &p.blocked);
    if (code)
        case_end("no marker");
    name_handle(ARG_EVENT, p.blocked);
}

static void let_go(enum way way, cl_event event)
{
    if (way != FREE)
        CALL(clSetUserEventStatus, p.user, CL_COMPLETE);
    if (event) {
        note_event_end("command", event);
        clReleaseEvent(event);
    }
    CALL(clFinish, p.env.queue);
    if (p.blocked)
        clReleaseEvent(p.blocked);
    if (p.user)
        clReleaseEvent(p.user);
}

#define TRY(fn, ...)                                                                               \
    for (enum way way_ = FREE; way_ < N_WAYS; way_++) {                                            \
        cl_event event_ = NULL;                                                                    \
        hold(way_);                                                                                \
        if (CALL(fn, p.env.queue, __VA_ARGS__, p.n_waits, p.waits, &event_))                       \
            event_ = NULL;                                                                         \
        let_go(way_, event_);                                                                      \
    }
#define TRY_MAP(mem, fn, ...)                                                                      \
    for (enum way way_ = FREE; way_ < N_WAYS; way_++) {                                            \
        cl_event event_ = NULL;                                                                    \
        hold(way_);                                                                                \
        void *ptr_ = MAKE(fn, p.env.queue, mem, __VA_ARGS__, p.n_waits, p.waits, &event_);         \
        let_go(way_, ptr_ ? event_ : NULL);                                                        \
        if (ptr_)                                                                                  \
            CALL(clEnqueueUnmapMemObject, p.env.queue, mem, ptr_, 0, NULL, NULL);                  \
        CALL(clFinish, p.env.queue);                                                               \
    }

static void launches(void)
{
    const size_t most = (size_t)1 << 20;
    cl_int code;
    start();
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(0, 0, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(0, 0, 0), V3(1, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 2, NULL, V3(4, 0, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 2, NULL, V3(0, 4, 0), V3(1, 4, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 3, V3(1, 1, 1), V3(4, 4, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, NULL, NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, NULL, V3(1, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(0, 0, 0), V3(most, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(0, 0, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(0, 0, 0), V3(4, 2, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(0, 0, 0), V3(2, 2, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(8, 4, 0), V3(4, 2, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(8, 4, 0), V3(2, 4, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 1, NULL, V3(8, 4, 0), V3(4, 2, 1))
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(8, 4, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.fixed, 2, NULL, V3(7, 4, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.fixed, 1, NULL, V3(8, 4, 0), NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(64, 0, 0), V3(7, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(64, 0, 0), V3(64, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 1, NULL, V3(most, 0, 0), V3(most, 1, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 2, NULL, V3(4096, 4096, 0), V3(4096, 4096, 1))
    TRY(clEnqueueNDRangeKernel, p.add, 0, NULL, V3(64, 1, 1), NULL)
    TRY(clEnqueueNDRangeKernel, p.add, 4, NULL, V3(64, 1, 1), NULL)
    TRY(clEnqueueNDRangeKernel, p.fresh, 1, NULL, V3(64, 1, 1), NULL)
    TRY(clEnqueueNDRangeKernel, p.fresh, 1, NULL, V3(0, 1, 1), NULL)
    TRY(clEnqueueTask, p.add)
    TRY(clEnqueueTask, p.fixed)
    cl_context other = clCreateContext(NULL, 1, &p.env.device, NULL, NULL, &code);
    name_handle(ARG_CONTEXT, other);
    cl_program program =
        clCreateProgramWithSource(other, 1, (const char **)(uintptr_t)&kernels_source, NULL, &code);
    name_handle(ARG_PROGRAM, program);
    CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL);
    cl_kernel foreign = MAKE(clCreateKernel, program, "empty");
    TRY(clEnqueueNDRangeKernel, foreign, 1, NULL, V3(64, 1, 1), NULL)
    CALL(clReleaseKernel, foreign);
    CALL(clReleaseProgram, program);
    CALL(clReleaseContext, other);
    stop();
}

static void buffers(void)
{
    static const int pattern[4] = {1, 2, 3, 4};
    start();
    TRY(clEnqueueReadBuffer, p.mem, CL_FALSE, 0, 0, p.host)
    TRY(clEnqueueReadBuffer, p.mem, CL_FALSE, 4096, 0, p.host)
    TRY(clEnqueueReadBuffer, p.mem, CL_FALSE, 4096, 1, p.host)
    TRY(clEnqueueReadBuffer, p.sub, CL_FALSE, 500, 13, p.host)
    TRY(clEnqueueReadBuffer, p.sub, CL_FALSE, 500, 12, p.host)
    TRY(clEnqueueReadBuffer, p.mem, CL_FALSE, 0, 16, NULL)
    TRY(clEnqueueWriteBuffer, p.mem, CL_FALSE, 0, 0, p.host)
    TRY(clEnqueueWriteBuffer, p.mem, CL_FALSE, 0, 4097, p.host)
    TRY(clEnqueueCopyBuffer, p.mem, p.other, 0, 0, 0)
    TRY(clEnqueueCopyBuffer, p.mem, p.other, 4096, 0, 1)
    TRY(clEnqueueCopyBuffer, p.mem, p.mem, 0, 8, 16)
    TRY(clEnqueueCopyBuffer, p.mem, p.mem, 0, 16, 16)
    TRY(clEnqueueCopyBuffer, p.mem, p.sub, 1024, 0, 16)
    TRY(clEnqueueCopyBuffer, p.mem, p.sub, 0, 512, 16)
    TRY(clEnqueueCopyBuffer, p.mem, p.sub, 0, 0, 16)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 4, 0, 0)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 4, 4096, 4)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 3, 0, 12)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 4, 2, 12)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 4, 0, 6)
    TRY(clEnqueueFillBuffer, p.mem, pattern, 0, 0, 16)
    TRY(clEnqueueFillBuffer, p.mem, NULL, 4, 0, 16)
    TRY(clEnqueueFillBuffer, p.sub, pattern, 4, 0, 512)
    TRY(clEnqueueFillBuffer, p.sub, pattern, 4, 0, 516)
    TRY(clEnqueueMigrateMemObjects, 0, &p.mem, 0)
    TRY(clEnqueueMigrateMemObjects, 1, NULL, 0)
    TRY(clEnqueueMigrateMemObjects, 1, &p.mem, 0x100)
    TRY(clEnqueueMigrateMemObjects, 1, &p.mem, CL_MIGRATE_MEM_OBJECT_HOST)
    TRY_MAP(p.mem, clEnqueueMapBuffer, CL_FALSE, CL_MAP_READ, 0, 0)
    TRY_MAP(p.mem, clEnqueueMapBuffer, CL_FALSE, CL_MAP_READ, 4096, 1)
    TRY_MAP(p.mem, clEnqueueMapBuffer, CL_FALSE, 0x100, 0, 16)
    TRY_MAP(p.mem, clEnqueueMapBuffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, 0,
            16)
    TRY_MAP(p.sub, clEnqueueMapBuffer, CL_FALSE, CL_MAP_READ, 0, 512)
    TRY_MAP(p.sub, clEnqueueMapBuffer, CL_FALSE, CL_MAP_READ, 0, 513)
    TRY(clEnqueueUnmapMemObject, p.mem, p.host)
    stop();
}

static void rectangles(void)
{
    start();
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(0, 4, 1), 0, 0, 0, 0,
        p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(4, 0, 1), 0, 0, 0, 0,
        p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(4, 4, 0), 0, 0, 0, 0,
        p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 4, 0, 0, 0,
        p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 0, 0, 4, 0,
        p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 2), 8, 12, 0,
        0, p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 2), 8, 33, 0,
        0, p.host)
    TRY(clEnqueueReadBufferRect, p.mem, CL_FALSE, V3(0, 600, 0), V3(0, 0, 0), V3(8, 4, 1), 8, 0, 0,
        0, p.host)
    TRY(clEnqueueWriteBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(0, 0, 0), 0, 0, 0,
        0, p.host)
    TRY(clEnqueueWriteBufferRect, p.mem, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 4, 0, 0,
        0, p.host)
    TRY(clEnqueueWriteBufferRect, p.sub, CL_FALSE, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 0, 0, 0,
        0, p.host)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 0, 0), V3(0, 4, 1), 0, 0, 0, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 0), 0, 0, 0, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 4, 0, 0, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 1), 0, 0, 4, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 0, 0), V3(8, 4, 2), 8, 12, 0, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 600, 0), V3(0, 0, 0), V3(8, 4, 1), 8, 0, 8,
        0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, V3(0, 0, 0), V3(0, 600, 0), V3(8, 4, 1), 8, 0, 8,
        0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.mem, V3(0, 0, 0), V3(4, 2, 0), V3(8, 4, 1), 16, 0, 16, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.mem, V3(0, 0, 0), V3(8, 0, 0), V3(8, 4, 1), 16, 0, 16, 0)
    TRY(clEnqueueCopyBufferRect, p.mem, p.other, NULL, V3(0, 0, 0), V3(8, 4, 1), 0, 0, 0, 0)
    stop();
}

static void images(void)
{
    static const float colour[4] = {0, 0, 0, 0};
    size_t row = 0, slice = 0;
    start();
    if (!p.env.images)
        case_end("no images");
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 0), V3(0, 8, 1), 0, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 8, 0), 0, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(1, 0, 0), V3(8, 8, 1), 0, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 1), V3(8, 8, 1), 0, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 8, 2), 0, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 8, 1), 16, 0, p.host)
    TRY(clEnqueueReadImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 8, 1), 0, 16, p.host)
    TRY(clEnqueueReadImage, p.volume, CL_FALSE, V3(0, 0, 0), V3(8, 8, 2), 0, 16, p.host)
    /* No region that leaves an array of lines, nor an empty one mapped: PoCL 3.1 reads what is
     * behind it. */
    TRY(clEnqueueWriteImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 0, 1), 0, 0, p.host)
    TRY(clEnqueueWriteImage, p.image, CL_FALSE, V3(0, 8, 0), V3(8, 1, 1), 0, 0, p.host)
    TRY(clEnqueueWriteImage, p.image, CL_FALSE, V3(0, 0, 0), V3(8, 8, 1), 16, 0, p.host)
    TRY(clEnqueueFillImage, p.image, colour, V3(0, 0, 0), V3(0, 8, 1))
    TRY(clEnqueueFillImage, p.image, colour, V3(1, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueFillImage, p.image, colour, V3(0, 0, 0), V3(8, 8, 2))
    TRY(clEnqueueFillImage, p.image, NULL, V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueFillImage, p.image, colour, V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.other_image, V3(0, 0, 0), V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.other_image, V3(0, 0, 0), V3(0, 0, 0), V3(0, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.other_image, V3(1, 0, 0), V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.other_image, V3(0, 0, 0), V3(0, 1, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.ints, V3(0, 0, 0), V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.image, p.image, V3(0, 0, 0), V3(1, 1, 0), V3(4, 4, 1))
    TRY(clEnqueueCopyImage, p.image, p.image, V3(0, 0, 0), V3(4, 4, 0), V3(4, 4, 1))
    TRY(clEnqueueCopyImage, p.image, p.volume, V3(0, 0, 0), V3(0, 0, 3), V3(8, 8, 1))
    TRY(clEnqueueCopyImage, p.volume, p.image, V3(0, 0, 0), V3(0, 0, 0), V3(8, 8, 2))
    TRY(clEnqueueCopyImageToBuffer, p.image, p.mem, V3(0, 0, 0), V3(8, 8, 1), 0)
    TRY(clEnqueueCopyImageToBuffer, p.image, p.mem, V3(0, 0, 0), V3(8, 8, 1), 4000)
    TRY(clEnqueueCopyImageToBuffer, p.image, p.mem, V3(0, 0, 0), V3(9, 8, 1), 0)
    TRY(clEnqueueCopyImageToBuffer, p.image, p.mem, V3(0, 0, 0), V3(0, 8, 1), 0)
    TRY(clEnqueueCopyBufferToImage, p.mem, p.image, 0, V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyBufferToImage, p.mem, p.image, 4000, V3(0, 0, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyBufferToImage, p.mem, p.image, 0, V3(0, 1, 0), V3(8, 8, 1))
    TRY(clEnqueueCopyBufferToImage, p.mem, p.image, 0, V3(0, 0, 0), V3(8, 0, 1))
    TRY_MAP(p.image, clEnqueueMapImage, CL_FALSE, CL_MAP_READ, V3(0, 0, 0), V3(9, 8, 1), &row,
            &slice)
    TRY_MAP(p.image, clEnqueueMapImage, CL_FALSE, 0x100, V3(0, 0, 0), V3(8, 8, 1), &row, &slice)
    TRY_MAP(p.image, clEnqueueMapImage, CL_FALSE, CL_MAP_WRITE, V3(0, 0, 0), V3(8, 8, 1), &row,
            &slice)
    stop();
}

static void shared(void)
{
    cl_device_svm_capabilities offered = 0;
    const int pattern = 7;
    const size_t sizes[1] = {128};
    start();
    if (clGetDeviceInfo(p.env.device, CL_DEVICE_SVM_CAPABILITIES, sizeof(offered), &offered,
                        NULL) ||
        !offered)
        case_end("no SVM");
    char *a = clSVMAlloc(p.env.context, CL_MEM_READ_WRITE, 4096, 0);
    const void *pointers[1] = {a};
    name_region("a", a, 4096);
    TRY(clEnqueueSVMMemcpy, CL_FALSE, a, p.host, 4096)
    TRY(clEnqueueSVMMemcpy, CL_FALSE, a, a + 64, 64)
    TRY(clEnqueueSVMMemcpy, CL_FALSE, a, a + 32, 64)
    TRY(clEnqueueSVMMemcpy, CL_FALSE, a, p.host, 0)
    TRY(clEnqueueSVMMemFill, a, &pattern, 4, 4096)
    TRY(clEnqueueSVMMemFill, a, &pattern, 3, 63)
    TRY(clEnqueueSVMMemFill, a + 1, &pattern, 4, 64)
    TRY(clEnqueueSVMMap, CL_FALSE, CL_MAP_READ, a, 4096)
    TRY(clEnqueueSVMMap, CL_FALSE, 1 << 10, a, 4096)
    TRY(clEnqueueSVMMap, CL_FALSE, 0, a, 4096)
    TRY(clEnqueueSVMMap, CL_FALSE, CL_MAP_READ, a, 0)
    TRY(clEnqueueSVMUnmap, a)
    TRY(clEnqueueSVMMigrateMem, 1, pointers, sizes, 0)
    TRY(clEnqueueSVMMigrateMem, 1, pointers, NULL, 1 << 10)
    note_bytes("a", a, 4096);
    stop();
    CALL_VOID(clSVMFree, p.env.context, a);
}

static const struct diff_case pending_cases[] = {
    {"launches", launches}, {"buffers", buffers}, {"rectangles", rectangles},
    {"images", images},     {"shared", shared},
};
DIFF_FAMILY(pending);
