/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong wait lists, for every call that takes one; a case each, since drivers crash on some.
 * Launches and tasks are not here: PoCL 3.1 crashes on each of these for them. */
#include "difftest.h"

struct wait_env {
    struct env env;
    cl_mem mem, other, image, other_image;
    cl_event none;
    char host[4096];
};

static void start(struct wait_env *w)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    cl_int code;
    memset(w, 0, sizeof(*w));
    env_init(&w->env);
    w->mem = env_buffer(&w->env, 4096, w->host);
    w->other = env_buffer(&w->env, 4096, w->host);
    if (!w->env.images)
        return;
    w->image = clCreateImage(w->env.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
    w->other_image = clCreateImage(w->env.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
    if (!w->image || !w->other_image)
        case_end("no image");
    name_handle(ARG_MEM, w->image);
    name_handle(ARG_MEM, w->other_image);
}

static void stop(struct wait_env *w)
{
    CALL(clFinish, w->env.queue);
    CALL(clReleaseMemObject, w->mem);
    CALL(clReleaseMemObject, w->other);
    if (w->image) {
        CALL(clReleaseMemObject, w->image);
        CALL(clReleaseMemObject, w->other_image);
    }
    env_fini(&w->env);
}

static struct wait_env w;
static const int pattern[4] = {1, 2, 3, 4};

/* A count without a list, a list without a count, a list that holds NULL. */
#define CASE(name, fn, needs_images, ...)                                                          \
    static void name(void)                                                                         \
    {                                                                                              \
        start(&w);                                                                                 \
        if (needs_images && !w.env.images)                                                         \
            case_end("no images");                                                                 \
        CALL(fn, w.env.queue, __VA_ARGS__, 1, NULL, NULL);                                         \
        CALL(fn, w.env.queue, __VA_ARGS__, 0, &w.none, NULL);                                      \
        CALL(fn, w.env.queue, __VA_ARGS__, 1, &w.none, NULL);                                      \
        stop(&w);                                                                                  \
    }
#define MAP_CASE(name, fn, needs_images, ...)                                                      \
    static void name(void)                                                                         \
    {                                                                                              \
        start(&w);                                                                                 \
        if (needs_images && !w.env.images)                                                         \
            case_end("no images");                                                                 \
        MAKE(fn, w.env.queue, __VA_ARGS__, 1, NULL, NULL);                                         \
        MAKE(fn, w.env.queue, __VA_ARGS__, 0, &w.none, NULL);                                      \
        MAKE(fn, w.env.queue, __VA_ARGS__, 1, &w.none, NULL);                                      \
        stop(&w);                                                                                  \
    }

static size_t pitch;

CASE(read_buffer, clEnqueueReadBuffer, false, w.mem, CL_TRUE, 0, 64, w.host)
CASE(write_buffer, clEnqueueWriteBuffer, false, w.mem, CL_TRUE, 0, 64, w.host)
CASE(read_rect, clEnqueueReadBufferRect, false, w.mem, CL_TRUE, V3(0, 0, 0), V3(0, 0, 0),
     V3(4, 4, 1), 0, 0, 0, 0, w.host)
CASE(write_rect, clEnqueueWriteBufferRect, false, w.mem, CL_TRUE, V3(0, 0, 0), V3(0, 0, 0),
     V3(4, 4, 1), 0, 0, 0, 0, w.host)
CASE(copy_buffer, clEnqueueCopyBuffer, false, w.mem, w.other, 0, 0, 64)
CASE(copy_rect, clEnqueueCopyBufferRect, false, w.mem, w.other, V3(0, 0, 0), V3(0, 0, 0),
     V3(4, 4, 1), 0, 0, 0, 0)
CASE(fill_buffer, clEnqueueFillBuffer, false, w.mem, pattern, 4, 0, 64)
CASE(migrate, clEnqueueMigrateMemObjects, false, 1, &w.mem, 0)
CASE(read_image, clEnqueueReadImage, true, w.image, CL_TRUE, V3(0, 0, 0), V3(8, 8, 1), 0, 0, w.host)
CASE(write_image, clEnqueueWriteImage, true, w.image, CL_TRUE, V3(0, 0, 0), V3(8, 8, 1), 0, 0,
     w.host)
CASE(fill_image, clEnqueueFillImage, true, w.image, pattern, V3(0, 0, 0), V3(8, 8, 1))
CASE(copy_image, clEnqueueCopyImage, true, w.image, w.other_image, V3(0, 0, 0), V3(0, 0, 0),
     V3(8, 8, 1))
CASE(image_to_buffer, clEnqueueCopyImageToBuffer, true, w.image, w.mem, V3(0, 0, 0), V3(8, 8, 1), 0)
CASE(buffer_to_image, clEnqueueCopyBufferToImage, true, w.mem, w.image, 0, V3(0, 0, 0), V3(8, 8, 1))
MAP_CASE(map_buffer, clEnqueueMapBuffer, false, w.mem, CL_TRUE, CL_MAP_READ, 0, 64)
MAP_CASE(map_image, clEnqueueMapImage, true, w.image, CL_TRUE, CL_MAP_READ, V3(0, 0, 0),
         V3(8, 8, 1), &pitch, NULL)

#define BARE_CASE(name, fn)                                                                        \
    static void name(void)                                                                         \
    {                                                                                              \
        start(&w);                                                                                 \
        CALL(fn, w.env.queue, 1, NULL, NULL);                                                      \
        CALL(fn, w.env.queue, 0, &w.none, NULL);                                                   \
        CALL(fn, w.env.queue, 1, &w.none, NULL);                                                   \
        stop(&w);                                                                                  \
    }
BARE_CASE(marker, clEnqueueMarkerWithWaitList)
BARE_CASE(barrier, clEnqueueBarrierWithWaitList)

/* Events of another context. */
static void foreign(void)
{
    cl_int code;
    start(&w);
    cl_context context = clCreateContext(NULL, 1, &w.env.device, NULL, NULL, &code);
    name_handle(ARG_CONTEXT, context);
    cl_event event = MAKE(clCreateUserEvent, context);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL(clEnqueueReadBuffer, w.env.queue, w.mem, CL_TRUE, 0, 64, w.host, 1, &event, NULL);
    CALL(clEnqueueWriteBuffer, w.env.queue, w.mem, CL_TRUE, 0, 64, w.host, 1, &event, NULL);
    CALL(clEnqueueCopyBuffer, w.env.queue, w.mem, w.other, 0, 0, 64, 1, &event, NULL);
    CALL(clEnqueueFillBuffer, w.env.queue, w.mem, pattern, 4, 0, 64, 1, &event, NULL);
    CALL(clEnqueueMarkerWithWaitList, w.env.queue, 1, &event, NULL);
    CALL(clEnqueueBarrierWithWaitList, w.env.queue, 1, &event, NULL);
    CALL(clReleaseEvent, event);
    CALL(clReleaseContext, context);
    stop(&w);
}

static const struct diff_case waitlist_cases[] = {
    {"read_buffer", read_buffer},
    {"write_buffer", write_buffer},
    {"read_rect", read_rect},
    {"write_rect", write_rect},
    {"copy_buffer", copy_buffer},
    {"copy_rect", copy_rect},
    {"fill_buffer", fill_buffer},
    {"migrate", migrate},
    {"read_image", read_image},
    {"write_image", write_image},
    {"fill_image", fill_image},
    {"copy_image", copy_image},
    {"image_to_buffer", image_to_buffer},
    {"buffer_to_image", buffer_to_image},
    {"map_buffer", map_buffer},
    {"map_image", map_image},
    {"marker", marker},
    {"barrier", barrier},
    {"foreign", foreign},
};
DIFF_FAMILY(waitlist);
