/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers: what the device has, creating them, recording, and what is refused. PoCL 3.1
 * reads through NULL, and is not asked: to a NULL queue in the list of a new buffer; to NULL
 * buffers of a copy of a rectangle or of an image; to a NULL kernel; and to a launch that is not
 * right in any way. It is not asked either where it departs from the specification: what the lists
 * of queues and of properties hold (an address; a size that is no multiple), and places too small
 * for an answer; a property twice; properties of a launch. tests/edges/cmdbufs.c is about these.
 */
#include "cmdbuf.h"

#define NOTHING 0, NULL, NULL, NULL

static void functions(void)
{
    struct env env;
    env_init(&env);
    note("command buffers: %s", command_buffer_version(env.device) ? "yes" : "no");
#define NOTE_FUNCTION(name)                                                                        \
    note(#name ": %s",                                                                             \
         clGetExtensionFunctionAddressForPlatform(env.platform, #name) ? "yes" : "no");
    COMMAND_BUFFER_FUNCTIONS(NOTE_FUNCTION)
    /* Of extensions to it. */
    NOTE_FUNCTION(clGetMutableCommandInfoKHR)
    NOTE_FUNCTION(clUpdateMutableCommandsKHR)
    NOTE_FUNCTION(clRemapCommandBufferKHR)
    NOTE_FUNCTION(clCommandSVMMemcpyKHR)
    NOTE_FUNCTION(clCommandSVMMemFillKHR)
    NOTE_FUNCTION(clCommandBarrierWithWaitListKHR2)
    NOTE_FUNCTION(clcreatecommandbufferkhr)
    NOTE_FUNCTION(clEnqueueCommandBuffer)
    env_fini(&env);
}

static void device(void)
{
    static const struct {
        const char *name;
        cl_device_info param;
    } asked[] = {
        {"CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR", CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR},
        {"CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR",
         CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR},
    };
    struct env env;
    env_init(&env);
    cl_version version = command_buffer_version(env.device);
    note("version %u.%u.%u", CL_VERSION_MAJOR(version), CL_VERSION_MINOR(version),
         CL_VERSION_PATCH(version));
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        cl_bitfield value = 0;
        size_t size = 0;
        note("%s", asked[i].name);
        CALL(clGetDeviceInfo, env.device, asked[i].param, 0, NULL, &size);
        CALL(clGetDeviceInfo, env.device, asked[i].param, sizeof(value), &value, &size);
        note("  = %llx", (unsigned long long)value);
        CALL(clGetDeviceInfo, env.device, asked[i].param, sizeof(value) - 1, &value, NULL);
    }
    env_fini(&env);
}

static void note_infos(cl_command_buffer_khr buffer)
{
    cl_command_buffer_properties_khr properties[8];
    cl_command_queue queue = NULL;
    cl_uint n = 77;
    size_t size = 0;
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR,
         sizeof(properties), properties, NULL);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_NUM_QUEUES_KHR, sizeof(n), &n, &size);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_QUEUES_KHR, sizeof(queue), &queue,
         &size);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_QUEUES_KHR, 0, NULL, &size);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR, sizeof(n), &n,
         &size);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_STATE_KHR, sizeof(n), &n, &size);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_STATE_KHR, sizeof(n), &n, NULL);
    CALL(clGetCommandBufferInfoKHR, buffer, CL_COMMAND_BUFFER_FLAGS_KHR, sizeof(n), &n, &size);
    CALL(clGetCommandBufferInfoKHR, buffer, 0x1299, sizeof(n), &n, &size);
    CALL(clGetCommandBufferInfoKHR, buffer, 0, sizeof(n), &n, &size);
}

static void create(void)
{
    static const cl_command_buffer_properties_khr empty[] = {0},
                                                  no_flags[] = {CL_COMMAND_BUFFER_FLAGS_KHR, 0, 0};
    struct env env;
    cmdbuf_init(&env);
    cl_command_buffer_khr buffer = MAKE(clCreateCommandBufferKHR, 1, &env.queue, NULL);
    note_infos(buffer);
    CALL(clRetainCommandBufferKHR, buffer);
    note_infos(buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clFinalizeCommandBufferKHR, buffer);
    note_infos(buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    buffer = MAKE(clCreateCommandBufferKHR, 1, &env.queue, empty);
    CALL(clReleaseCommandBufferKHR, buffer);
    buffer = MAKE(clCreateCommandBufferKHR, 1, &env.queue, no_flags);
    CALL(clReleaseCommandBufferKHR, buffer);
    cl_int code = ERRCODE_UNSET;
    buffer = cmdbuf_make(env.queue, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    CALL(clReleaseCommandBufferKHR, buffer);
    buffer = clCreateCommandBufferKHR(1, &env.queue, NULL, NULL);
    note("without a place for the code: %s", buffer ? "made" : "not made");
    code = clReleaseCommandBufferKHR(buffer);
    note("released: %s", error_name(code));
    env_fini(&env);
}

static void create_errors(void)
{
    struct env env;
    cmdbuf_init(&env);
    cl_command_queue twice[2] = {env.queue, env.queue};
    static const cl_command_buffer_properties_khr unknown[] = {0x1234, 1, 0};
    static const cl_command_buffer_properties_khr odd_flag[] = {CL_COMMAND_BUFFER_FLAGS_KHR, 8, 0};
    static const cl_command_buffer_properties_khr high_flag[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                                 (cl_properties)1 << 40, 0};
    MAKE(clCreateCommandBufferKHR, 0, NULL, NULL);
    MAKE(clCreateCommandBufferKHR, 0, &env.queue, NULL);
    MAKE(clCreateCommandBufferKHR, 1, NULL, NULL);
    MAKE(clCreateCommandBufferKHR, 2, twice, NULL);
    MAKE(clCreateCommandBufferKHR, 1, &env.queue, unknown);
    MAKE(clCreateCommandBufferKHR, 1, &env.queue, odd_flag);
    MAKE(clCreateCommandBufferKHR, 1, &env.queue, high_flag);
    cl_command_buffer_khr none = NULL;
    cl_uint n = 0;
    CALL(clRetainCommandBufferKHR, none);
    CALL(clReleaseCommandBufferKHR, none);
    CALL(clFinalizeCommandBufferKHR, none);
    CALL(clGetCommandBufferInfoKHR, none, CL_COMMAND_BUFFER_STATE_KHR, sizeof(n), &n, NULL);
    env_fini(&env);
}

static void finalize(void)
{
    struct env env;
    cl_sync_point_khr point = 77;
    cl_event event = NULL;
    cmdbuf_init(&env);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 0, NULL, &point, NULL);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, &event); /* is still recorded */
    cmdbuf_note_state(buffer);
    CALL(clFinalizeCommandBufferKHR, buffer);
    cmdbuf_note_state(buffer);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 0, NULL, &point, NULL);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_uint zero = 0;
    CALL(clCommandFillBufferKHR, buffer, NULL, mem, &zero, 4, 0, 64, 0, NULL, &point, NULL);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, &event);
    note_event_end("run", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseCommandBufferKHR, buffer);
    env_fini(&env);
}

static void sync_points(void)
{
    struct env env;
    cl_sync_point_khr point = 77, points[4] = {0}, bad[2] = {7, 0};
    cl_mutable_command_khr handle = NULL;
    cl_command_buffer_khr none = NULL;
    cmdbuf_init(&env);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0), other = cmdbuf_make(env.queue, 0);
    CALL(clCommandBarrierWithWaitListKHR, none, NULL, 0, NULL, &point, NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, env.queue, 0, NULL, &point, NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 0, NULL, &point, &handle);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 1, NULL, &point, NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 0, bad, &point, NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 1, bad, &point, NULL);
    for (unsigned i = 0; i < 4; i++) {
        CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, i, i ? points : NULL, &point, NULL);
        points[i] = point;
    }
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 4, points, NULL, NULL);
    bad[0] = points[3] + 2; /* of the command that would be next */
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 1, bad, &point, NULL);
    bad[0] = 0;
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 1, bad, &point, NULL);
    bad[0] = points[0];
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 2, bad, &point, NULL);
    bad[1] = points[0];
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 2, bad, &point, NULL);
    /* Another buffer has points of its own. */
    CALL(clCommandBarrierWithWaitListKHR, other, NULL, 1, points, &point, NULL);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clReleaseCommandBufferKHR, other);
    CALL(clReleaseCommandBufferKHR, buffer);
    env_fini(&env);
}

static void copy_errors(void)
{
    struct env env;
    cl_uint value = 3;
    cl_mem none = NULL;
    cl_command_buffer_khr no_buffer = NULL;
    const size_t *origin = V3(0, 0, 0), *region = V3(4, 4, 1), *empty = V3(0, 4, 1),
                 *far = V3(250, 0, 0);
    cmdbuf_init(&env);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    cl_mem a = env_buffer(&env, 256, NULL), b = env_buffer(&env, 256, NULL);
    CALL(clCommandCopyBufferKHR, no_buffer, NULL, a, b, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, env.queue, a, b, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, none, b, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, none, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 0, 250, 100, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 250, 0, 100, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 0, 0, 0, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, a, 0, 2, 4, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, NULL, origin, region, 0, 0, 0, 0, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, origin, NULL, region, 0, 0, 0, 0, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, origin, origin, NULL, 0, 0, 0, 0, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, origin, origin, empty, 0, 0, 0, 0,
         NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, far, origin, region, 0, 0, 0, 0, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, origin, origin, region, 3, 0, 0, 0,
         NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, b, origin, origin, region, 0, 3, 0, 0,
         NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, a, origin, origin, region, 0, 0, 0, 0,
         NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, none, &value, 4, 0, 16, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, NULL, 4, 0, 16, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 0, 0, 16, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 3, 0, 15, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 4, 2, 16, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 4, 0, 18, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 4, 252, 16, NOTHING);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 4, 0, 0, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

static void image_errors(void)
{
    struct env env;
    static const float color[4] = {1, 0, 1, 0};
    const size_t *origin = V3(0, 0, 0), *region = V3(4, 4, 1), *far = V3(3, 3, 0),
                 *deep = V3(4, 4, 2);
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem none = NULL;
    cmdbuf_init(&env);
    if (!env.images)
        case_end("no images");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    cl_mem mem = env_buffer(&env, 256, NULL);
    cl_mem image = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, none, image, 0, origin, region, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, none, 0, origin, region, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, image, 0, NULL, region, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, image, 0, origin, NULL, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, mem, 0, origin, region, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, image, 250, origin, region, NOTHING);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, mem, image, 0, far, region, NOTHING);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, none, mem, origin, region, 0, NOTHING);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, image, mem, NULL, region, 0, NOTHING);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, image, mem, origin, NULL, 0, NOTHING);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, mem, mem, origin, region, 0, NOTHING);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, image, mem, origin, region, 250, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, none, image, origin, origin, region, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, image, none, origin, origin, region, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, image, image, NULL, origin, region, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, image, image, origin, NULL, region, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, image, image, origin, origin, NULL, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, image, image, origin, origin, region, NOTHING);
    CALL(clCommandCopyImageKHR, buffer, NULL, mem, image, origin, origin, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, none, color, origin, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, image, NULL, origin, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, image, color, NULL, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, image, color, origin, NULL, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, mem, color, origin, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, image, color, far, region, NOTHING);
    CALL(clCommandFillImageKHR, buffer, NULL, image, color, origin, deep, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, image);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void other_contexts(void)
{
    struct env env;
    cl_uint value = 3;
    cmdbuf_init(&env);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    cl_mem mine = env_buffer(&env, 256, NULL);
    cl_context context = MAKE(clCreateContext, NULL, 1, &env.device, NULL, NULL);
    cl_mem mem = MAKE(clCreateBuffer, context, CL_MEM_READ_WRITE, 256, NULL);
    CALL(clCommandFillBufferKHR, buffer, NULL, mem, &value, 4, 0, 16, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, mem, mine, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferKHR, buffer, NULL, mine, mem, 0, 0, 4, NOTHING);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, mem, mine, V3(0, 0, 0), V3(0, 0, 0), V3(4, 1, 1),
         0, 0, 0, 0, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseContext, context);
    CALL(clReleaseMemObject, mine);
    env_fini(&env);
}

#define COUNT_OF(fn, object, param)                                                                \
    count_of(#fn, object, fn(object, param, sizeof(count), &count, NULL))

static cl_uint count;

static void count_of(const char *fn, const void *object, cl_int code)
{
    note("%s(%s) count -> %s %u", fn, handle_name(object), error_name(code), count);
}

/* A recorded command holds what it names. */
static void counts(void)
{
    struct env env;
    cl_uint value = 1;
    size_t n = 16;
    cmdbuf_init(&env);
    cl_kernel kernel = env_kernel(&env, "add");
    cl_mem a = env_buffer(&env, 256, NULL), b = env_buffer(&env, 256, NULL);
    CALL(clSetKernelArg, kernel, 0, sizeof(a), &a);
    CALL(clSetKernelArg, kernel, 1, sizeof(value), &value);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    COUNT_OF(clGetCommandQueueInfo, env.queue, CL_QUEUE_REFERENCE_COUNT);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &value, 4, 0, 64, NOTHING);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 0, 0, 64, NOTHING);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    COUNT_OF(clGetMemObjectInfo, b, CL_MEM_REFERENCE_COUNT);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, kernel, 1, NULL, &n, NULL, NOTHING);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    COUNT_OF(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    CALL(clFinalizeCommandBufferKHR, buffer);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    CALL(clReleaseCommandBufferKHR, buffer);
    COUNT_OF(clGetMemObjectInfo, a, CL_MEM_REFERENCE_COUNT);
    COUNT_OF(clGetMemObjectInfo, b, CL_MEM_REFERENCE_COUNT);
    COUNT_OF(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    COUNT_OF(clGetCommandQueueInfo, env.queue, CL_QUEUE_REFERENCE_COUNT);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

static const struct diff_case cmdbuf_cases[] = {
    {"functions", functions},
    {"device", device},
    {"create", create},
    {"create_errors", create_errors},
    {"finalize", finalize},
    {"sync_points", sync_points},
    {"copy_errors", copy_errors},
    {"image_errors", image_errors},
    {"other_contexts", other_contexts},
    {"counts", counts},
};
DIFF_FAMILY(cmdbuf);
