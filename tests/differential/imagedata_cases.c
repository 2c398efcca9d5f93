/* SPDX-License-Identifier: Apache-2.0 */
/* What is in images: written, read, filled, copied and mapped with origins and pitches; by kernels,
 * with samplers. */
#include "difftest.h"

struct shape {
    cl_mem_object_type type;
    size_t width, height, depth, layers; /* as in cl_image_desc */
    size_t origin[3], region[3];
    size_t extent[3]; /* the whole image as a region */
};

static const struct shape shapes[] = {
    {CL_MEM_OBJECT_IMAGE1D, 32, 0, 0, 0, {5, 0, 0}, {9, 1, 1}, {32, 1, 1}},
    {CL_MEM_OBJECT_IMAGE1D_ARRAY, 32, 0, 0, 4, {5, 1, 0}, {9, 2, 1}, {32, 4, 1}},
    {CL_MEM_OBJECT_IMAGE2D, 17, 11, 0, 0, {3, 2, 0}, {7, 5, 1}, {17, 11, 1}},
    {CL_MEM_OBJECT_IMAGE2D_ARRAY, 16, 8, 0, 3, {3, 2, 1}, {7, 5, 2}, {16, 8, 3}},
    {CL_MEM_OBJECT_IMAGE3D, 9, 8, 7, 0, {1, 2, 3}, {5, 4, 3}, {9, 8, 7}},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const struct {
    cl_image_format format;
    size_t bytes;
} pixels[] = {
    {{CL_RGBA, CL_UNORM_INT8}, 4},    {{CL_RGBA, CL_FLOAT}, 16},     {{CL_R, CL_UNSIGNED_INT16}, 2},
    {{CL_RGBA, CL_SIGNED_INT32}, 16}, {{CL_BGRA, CL_UNORM_INT8}, 4},
};
#define N_PIXELS (sizeof(pixels) / sizeof(pixels[0]))

enum { HOST_BYTES = 65536 };
static unsigned char host[HOST_BYTES], back[HOST_BYTES];

static cl_mem make(struct env *env, const struct shape *s, const cl_image_format *format)
{
    cl_image_desc desc = {.image_type = s->type,
                          .image_width = s->width,
                          .image_height = s->height,
                          .image_depth = s->depth,
                          .image_array_size = s->layers};
    note("type %x, %s", s->type, format_names(format));
    return MAKE(clCreateImage, env->context, CL_MEM_READ_WRITE, format, &desc, NULL);
}

static void dump(struct env *env, const char *what, cl_mem image, const struct shape *s,
                 size_t bytes)
{
    memset(back, 0, sizeof(back));
    cl_int code = clEnqueueReadImage(env->queue, image, CL_TRUE, V3(0, 0, 0), s->extent, 0, 0, back,
                                     0, NULL, NULL);
    if (code != CL_SUCCESS)
        note("%s: cannot be read, %s", what, error_name(code));
    else
        note_bytes(what, back, s->extent[0] * s->extent[1] * s->extent[2] * bytes);
}

static void start(struct env *env)
{
    env_init(env);
    if (!env->images)
        case_end("no images");
}

static void read_write(void)
{
    struct env env;
    start(&env);
    for (size_t p = 0; p < N_PIXELS; p++)
        for (size_t i = 0; i < N_SHAPES; i++) {
            const struct shape *s = &shapes[i];
            size_t bytes = pixels[p].bytes;
            cl_event event = NULL;
            cl_mem image = make(&env, s, &pixels[p].format);
            if (!image)
                continue;
            fill_pattern(host, sizeof(host), (unsigned)(p * 10 + i));
            CALL(clEnqueueWriteImage, env.queue, image, CL_FALSE, V3(0, 0, 0), s->extent, 0, 0,
                 host, 0, NULL, &event);
            note_event_end("write", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            /* A part of it, with pitches wider than its rows and slices; a slice pitch only where
             * there are slices. */
            size_t row = (s->region[0] + 3) * bytes;
            bool slices =
                s->type == CL_MEM_OBJECT_IMAGE3D || s->type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
            size_t slice = slices ? row * (s->region[1] + 2) : 0;
            if (s->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
                slice = row;
            CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, s->origin, s->region, row, slice,
                 host + 777 * 16, 0, NULL, NULL);
            dump(&env, "image", image, s, bytes);
            memset(back, 0, sizeof(back));
            CALL(clEnqueueReadImage, env.queue, image, CL_FALSE, s->origin, s->region, row, slice,
                 back, 0, NULL, &event);
            note_event_end("read", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            note_bytes("part", back, 4096);
            CALL(clReleaseMemObject, image);
        }
    env_fini(&env);
}

static void fill_and_copy(void)
{
    static const float color[4] = {0.25f, 0.5f, 0.75f, 1.0f};
    static const unsigned numbers[4] = {1, 20, 300, 4000};
    struct env env;
    cl_event event = NULL;
    start(&env);
    for (size_t p = 0; p < N_PIXELS; p++)
        for (size_t i = 0; i < N_SHAPES; i++) {
            const struct shape *s = &shapes[i];
            size_t bytes = pixels[p].bytes;
            cl_channel_type type = pixels[p].format.image_channel_data_type;
            const void *fill_color = type == CL_UNSIGNED_INT16 || type == CL_SIGNED_INT32
                                         ? (const void *)numbers
                                         : (const void *)color;
            cl_mem image = make(&env, s, &pixels[p].format),
                   other = make(&env, s, &pixels[p].format);
            cl_mem buffer = env_buffer(&env, HOST_BYTES, NULL);
            int zero = 0;
            if (!image || !other)
                continue;
            fill_pattern(host, sizeof(host), (unsigned)(p * 10 + i));
            CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, V3(0, 0, 0), s->extent, 0, 0, host,
                 0, NULL, NULL);
            CALL(clEnqueueWriteImage, env.queue, other, CL_TRUE, V3(0, 0, 0), s->extent, 0, 0,
                 host + 999, 0, NULL, NULL);
            CALL(clEnqueueFillImage, env.queue, image, fill_color, s->origin, s->region, 0, NULL,
                 &event);
            note_event_end("fill", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            dump(&env, "filled", image, s, bytes);
            CALL(clEnqueueCopyImage, env.queue, image, other, V3(0, 0, 0), s->origin, s->region, 0,
                 NULL, &event);
            note_event_end("copy", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            dump(&env, "copied", other, s, bytes);
            CALL(clEnqueueFillBuffer, env.queue, buffer, &zero, 4, 0, HOST_BYTES, 0, NULL, NULL);
            CALL(clEnqueueCopyImageToBuffer, env.queue, image, buffer, s->origin, s->region, 64, 0,
                 NULL, &event);
            note_event_end("to a buffer", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            env_dump_buffer(&env, "buffer", buffer, HOST_BYTES);
            CALL(clEnqueueCopyBufferToImage, env.queue, buffer, other, 32, V3(0, 0, 0), s->region,
                 0, NULL, &event);
            note_event_end("from a buffer", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
            dump(&env, "from the buffer", other, s, bytes);
            CALL(clReleaseMemObject, image);
            CALL(clReleaseMemObject, other);
            CALL(clReleaseMemObject, buffer);
        }
    env_fini(&env);
}

static void map(void)
{
    struct env env;
    start(&env);
    for (size_t i = 0; i < N_SHAPES; i++) {
        const struct shape *s = &shapes[i];
        size_t row = 7, slice = 7; /* a driver may leave them alone */
        cl_event event = NULL;
        cl_mem image = make(&env, s, &pixels[0].format);
        if (!image)
            continue;
        fill_pattern(host, sizeof(host), (unsigned)i);
        CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, V3(0, 0, 0), s->extent, 0, 0, host, 0,
             NULL, NULL);
        bool slices = s->extent[2] > 1 || s->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        unsigned char *ptr =
            MAKE(clEnqueueMapImage, env.queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                 s->origin, s->region, &row, slices ? &slice : NULL, 0, NULL, &event);
        if (!ptr)
            continue;
        info_event_all(event);
        CALL(clReleaseEvent, event);
        note("row pitch %zu, slice pitch %zu", row, slice);
        size_t line = s->type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? slice : row;
        for (size_t z = 0; z < s->region[2]; z++)
            for (size_t y = 0; y < s->region[1]; y++) {
                note_bytes("row", ptr + z * slice + y * line, s->region[0] * 4);
                memset(ptr + z * slice + y * line, (int)(16 * z + y), 8);
            }
        CALL(clEnqueueUnmapMemObject, env.queue, image, ptr, 0, NULL, &event);
        note_event_end("unmap", event);
        CALL(clReleaseEvent, event);
        dump(&env, "image", image, s, 4);
        CALL(clReleaseMemObject, image);
    }
    env_fini(&env);
}

/* Maps `region` of the image, changes it, and shows where it lies: from `base` on, where that is.
 */
static void map_and_write(struct env *env, cl_mem image, cl_map_flags flags, const size_t origin[3],
                          const size_t region[3], bool lines, const unsigned char *base)
{
    size_t row = 7, slice = 7; /* a driver may leave them alone */
    unsigned char *ptr = MAKE(clEnqueueMapImage, env->queue, image, CL_TRUE, flags, origin, region,
                              &row, &slice, 0, NULL, NULL);
    if (!ptr)
        return;
    /* Of an image that the host only writes a driver's own pitch cannot be found out: a map for
     * writing may write. */
    if (flags & CL_MAP_READ)
        note("row pitch %zu, slice pitch %zu", row, slice);
    if (base)
        note("it lies at %zd", ptr - base);
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++) {
            unsigned char *at = ptr + z * slice + y * (lines ? slice : row);
            if (flags & CL_MAP_READ)
                note_bytes("row", at, region[0] * 4);
            memset(at, (int)(16 * z + y + 1), 8);
        }
    CALL(clEnqueueUnmapMemObject, env->queue, image, ptr, 0, NULL, NULL);
    CALL(clFinish, env->queue);
}

/* Images over buffers of each kind, whole and in part, at a buffer's start and inside it. */
static void map_over_buffers(void)
{
    static const cl_mem_flags kinds[] = {CL_MEM_READ_WRITE, CL_MEM_COPY_HOST_PTR,
                                         CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR,
                                         CL_MEM_HOST_WRITE_ONLY};
    static unsigned char memory[HOST_BYTES] __attribute__((aligned(4096)));
    struct env env;
    start(&env);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int inside = 0; inside < 2; inside++)
            for (size_t pitch = 0; pitch <= 512; pitch += 256) {
                const bool given = kinds[k] & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
                const cl_buffer_region region = {4096, 8192};
                const size_t rows = pitch ? 8 : 1;
                const cl_map_flags flags =
                    CL_MAP_WRITE | (kinds[k] == CL_MEM_HOST_WRITE_ONLY ? 0 : CL_MAP_READ);
                note("buffer of flags %x, %s, pitch %zu", (unsigned)kinds[k],
                     inside ? "inside it" : "at its start", pitch);
                fill_pattern(memory, sizeof(memory), (unsigned)k);
                cl_mem buffer = MAKE(clCreateBuffer, env.context, kinds[k], sizeof(memory),
                                     given ? memory : NULL);
                CALL(clEnqueueWriteBuffer, env.queue, buffer, CL_TRUE, 0, sizeof(memory), memory, 0,
                     NULL, NULL);
                cl_mem over = inside ? MAKE(clCreateSubBuffer, buffer, 0,
                                            CL_BUFFER_CREATE_TYPE_REGION, &region)
                                     : buffer;
                cl_image_desc desc = {.image_type = pitch ? CL_MEM_OBJECT_IMAGE2D
                                                          : CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                      .image_width = 60,
                                      .image_height = pitch ? rows : 0,
                                      .image_row_pitch = pitch,
                                      .mem_object = over};
                cl_mem image =
                    over ? MAKE(clCreateImage, env.context, 0, &pixels[0].format, &desc, NULL)
                         : NULL;
                if (image) {
                    const unsigned char *base = kinds[k] & CL_MEM_USE_HOST_PTR ? memory : NULL;
                    info_image_all(image);
                    if (!(flags & CL_MAP_READ))
                        map_and_write(&env, image, CL_MAP_READ, V3(0, 0, 0), V3(60, rows, 1), false,
                                      base);
                    map_and_write(&env, image, flags, V3(0, 0, 0), V3(60, rows, 1), false, base);
                    map_and_write(&env, image, flags, V3(5, rows / 2, 0), V3(9, rows - rows / 2, 1),
                                  false, base);
                    CALL(clReleaseMemObject, image);
                }
                env_dump_buffer(&env, "buffer", buffer, 16384);
                if (inside && over)
                    CALL(clReleaseMemObject, over);
                CALL(clReleaseMemObject, buffer);
            }
    env_fini(&env);
}

/* Images in the program's memory, with pitches of its own and without. */
static void map_used(void)
{
    static unsigned char memory[HOST_BYTES] __attribute__((aligned(4096)));
    struct env env;
    start(&env);
    for (size_t i = 0; i < N_SHAPES; i++)
        for (int pitched = 0; pitched < 2; pitched++) {
            const struct shape *s = &shapes[i];
            const bool lines = s->type == CL_MEM_OBJECT_IMAGE1D_ARRAY,
                       layered = lines || s->depth || s->layers;
            cl_image_desc desc = {.image_type = s->type,
                                  .image_width = s->width,
                                  .image_height = s->height,
                                  .image_depth = s->depth,
                                  .image_array_size = s->layers,
                                  .image_row_pitch = pitched ? 192 : 0,
                                  .image_slice_pitch = !pitched || !layered ? 0
                                                       : lines              ? 192
                                                                            : 1920};
            note("type %x, %s", s->type, pitched ? "pitched" : "packed");
            fill_pattern(memory, sizeof(memory), (unsigned)i);
            cl_mem image = MAKE(clCreateImage, env.context, CL_MEM_USE_HOST_PTR, &pixels[0].format,
                                &desc, memory);
            if (!image)
                continue;
            info_image_all(image);
            map_and_write(&env, image, CL_MAP_READ | CL_MAP_WRITE, V3(0, 0, 0), s->extent, lines,
                          memory);
            map_and_write(&env, image, CL_MAP_READ | CL_MAP_WRITE, s->origin, s->region, lines,
                          memory);
            dump(&env, "image", image, s, 4);
            CALL(clReleaseMemObject, image);
        }
    env_fini(&env);
}

static void by_kernels(void)
{
    static const cl_addressing_mode modes[] = {CL_ADDRESS_CLAMP_TO_EDGE, CL_ADDRESS_CLAMP,
                                               CL_ADDRESS_REPEAT, CL_ADDRESS_MIRRORED_REPEAT};
    struct env env;
    const struct shape *s = &shapes[2];
    size_t global[3] = {17, 11, 1}, n = 24;
    int dims[4] = {0};
    start(&env);
    cl_mem in = make(&env, s, &pixels[0].format), out = make(&env, s, &pixels[0].format);
    cl_mem buffer = env_buffer(&env, 24 * 16, NULL), words = env_buffer(&env, sizeof(dims), dims);
    fill_pattern(host, sizeof(host), 1);
    CALL(clEnqueueWriteImage, env.queue, in, CL_TRUE, V3(0, 0, 0), s->extent, 0, 0, host, 0, NULL,
         NULL);
    cl_sampler sampler =
        MAKE(clCreateSampler, env.context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST);
    cl_kernel copy = env_kernel(&env, "image_copy"), query = env_kernel(&env, "image_dims");
    info_kernel_all(copy);
    CALL(clSetKernelArg, copy, 0, sizeof(in), &in);
    CALL(clSetKernelArg, copy, 1, sizeof(out), &out);
    CALL(clSetKernelArg, copy, 2, sizeof(sampler), &sampler);
    CALL(clEnqueueNDRangeKernel, env.queue, copy, 2, NULL, global, NULL, 0, NULL, NULL);
    dump(&env, "out", out, s, 4);
    CALL(clSetKernelArg, query, 0, sizeof(in), &in);
    CALL(clSetKernelArg, query, 1, sizeof(words), &words);
    CALL(clEnqueueTask, env.queue, query, 0, NULL, NULL);
    env_dump_buffer(&env, "dims", words, sizeof(dims));
    cl_kernel sample = env_kernel(&env, "image_sample");
    float step = 0.0625f;
    CALL(clSetKernelArg, sample, 0, sizeof(in), &in);
    CALL(clSetKernelArg, sample, 1, sizeof(buffer), &buffer);
    CALL(clSetKernelArg, sample, 3, sizeof(step), &step);
    for (int m = 0; m < 4; m++)
        for (cl_filter_mode filter = CL_FILTER_NEAREST; filter <= CL_FILTER_LINEAR; filter++) {
            cl_sampler each = MAKE(clCreateSampler, env.context, CL_TRUE, modes[m], filter);
            CALL(clSetKernelArg, sample, 2, sizeof(each), &each);
            CALL(clEnqueueNDRangeKernel, env.queue, sample, 1, NULL, &n, NULL, 0, NULL, NULL);
            env_dump_buffer(&env, "sampled", buffer, 24 * 16);
            CALL(clReleaseSampler, each);
        }
    /* Wrong kinds of objects for image and sampler arguments. */
    CALL(clSetKernelArg, copy, 0, 4, &in);
    CALL(clSetKernelArg, copy, 2, 4, &sampler);
    CALL(clReleaseKernel, copy);
    CALL(clReleaseKernel, query);
    CALL(clReleaseKernel, sample);
    CALL(clReleaseSampler, sampler);
    CALL(clReleaseMemObject, in);
    CALL(clReleaseMemObject, out);
    CALL(clReleaseMemObject, buffer);
    CALL(clReleaseMemObject, words);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    const struct shape *s = &shapes[2];
    size_t row = 0;
    const size_t *o = V3(0, 0, 0), *r = V3(4, 4, 1);
    float color[4] = {0};
    start(&env);
    cl_mem image = make(&env, s, &pixels[0].format), other = make(&env, s, &pixels[1].format);
    cl_mem buffer = env_buffer(&env, 256, NULL), no_mem = NULL;
    cl_command_queue no_queue = NULL;
    CALL(clEnqueueReadImage, no_queue, image, CL_TRUE, o, r, 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, no_mem, CL_TRUE, o, r, 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, r, 0, 0, NULL, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, V3(18, 1, 1), 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, V3(16, 0, 0), r, 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, V3(4, 4, 0), 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, V3(4, 4, 2), 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, V3(0, 4, 1), 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, r, 3, 0, back, 0, NULL, NULL);
    CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, o, r, 0, 3, back, 0, NULL, NULL);
    CALL(clEnqueueWriteImage, no_queue, image, CL_TRUE, o, r, 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueWriteImage, env.queue, no_mem, CL_TRUE, o, r, 0, 0, back, 0, NULL, NULL);
    CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, o, r, 0, 0, NULL, 0, NULL, NULL);
    CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, V3(16, 0, 0), r, 0, 0, back, 0, NULL,
         NULL);
    CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, o, r, 3, 0, back, 0, NULL, NULL);
    CALL(clEnqueueFillImage, no_queue, image, color, o, r, 0, NULL, NULL);
    CALL(clEnqueueFillImage, env.queue, no_mem, color, o, r, 0, NULL, NULL);
    CALL(clEnqueueFillImage, env.queue, image, NULL, o, r, 0, NULL, NULL);
    CALL(clEnqueueFillImage, env.queue, image, color, V3(16, 0, 0), r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, no_queue, image, image, o, V3(8, 0, 0), r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, env.queue, no_mem, image, o, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, env.queue, image, no_mem, o, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, env.queue, image, other, o, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, env.queue, image, image, o, V3(1, 1, 0), r, 0, NULL, NULL);
    CALL(clEnqueueCopyImage, env.queue, image, image, o, V3(16, 0, 0), r, 0, NULL, NULL);
    CALL(clEnqueueCopyImageToBuffer, no_queue, image, buffer, o, r, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyImageToBuffer, env.queue, no_mem, buffer, o, r, 0, 0, NULL, NULL);
    /* No copy to or from a NULL buffer: PoCL 3.1 crashes. */
    CALL(clEnqueueCopyImageToBuffer, env.queue, image, buffer, o, r, 250, 0, NULL, NULL);
    CALL(clEnqueueCopyImageToBuffer, env.queue, image, buffer, V3(16, 0, 0), r, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferToImage, no_queue, buffer, image, 0, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferToImage, env.queue, buffer, no_mem, 0, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferToImage, env.queue, buffer, image, 250, o, r, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferToImage, env.queue, buffer, image, 0, V3(16, 0, 0), r, 0, NULL, NULL);
    MAKE(clEnqueueMapImage, no_queue, image, CL_TRUE, CL_MAP_READ, o, r, &row, NULL, 0, NULL, NULL);
    MAKE(clEnqueueMapImage, env.queue, no_mem, CL_TRUE, CL_MAP_READ, o, r, &row, NULL, 0, NULL,
         NULL);
    MAKE(clEnqueueMapImage, env.queue, image, CL_TRUE, CL_MAP_READ, o, r, NULL, NULL, 0, NULL,
         NULL);
    MAKE(clEnqueueMapImage, env.queue, image, CL_TRUE, CL_MAP_READ, V3(16, 0, 0), r, &row, NULL, 0,
         NULL, NULL);
    MAKE(clEnqueueMapImage, env.queue, image, CL_TRUE, 1 << 10, o, r, &row, NULL, 0, NULL, NULL);
    CALL(clReleaseMemObject, image);
    CALL(clReleaseMemObject, other);
    CALL(clReleaseMemObject, buffer);
    env_fini(&env);
}

static const struct diff_case imagedata_cases[] = {
    {"read_write", read_write},
    {"fill_and_copy", fill_and_copy},
    {"map", map},
    {"map_over_buffers", map_over_buffers},
    {"map_used", map_used},
    {"by_kernels", by_kernels},
    {"errors", errors},
};
DIFF_FAMILY(imagedata);
