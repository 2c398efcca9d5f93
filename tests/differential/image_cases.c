/* SPDX-License-Identifier: Apache-2.0 */
/* Image objects: formats, every kind with and without host memory, queries, errors. */
#include "difftest.h"

static const cl_mem_object_type types[] = {
    CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE1D_BUFFER,
    CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D,
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

static void formats(void)
{
    static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY,
                                         CL_MEM_KERNEL_READ_AND_WRITE};
    static cl_image_format list[512];
    struct env env;
    cl_uint n = 0;
    env_init(&env);
    for (size_t f = 0; f < 4; f++)
        for (size_t t = 0; t < N_TYPES; t++) {
            n = 0;
            CALL(clGetSupportedImageFormats, env.context, flags[f], types[t], 0, NULL, &n);
            if (CALL(clGetSupportedImageFormats, env.context, flags[f], types[t], 512, list, &n) !=
                CL_SUCCESS)
                continue;
            for (cl_uint i = 0; i < n && i < 512; i++)
                note("  %s", format_names(&list[i]));
        }
    CALL(clGetSupportedImageFormats, (cl_context)NULL, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0,
         NULL, &n);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_BUFFER, 0, NULL,
         &n);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_WRITE, 0, 0, NULL, &n);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, list,
         &n);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 2, list,
         &n);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
         NULL);
    CALL(clGetSupportedImageFormats, env.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
         CL_MEM_OBJECT_IMAGE2D, 0, NULL, &n);
    env_fini(&env);
}

static cl_image_desc describe(cl_mem_object_type type, cl_mem buffer)
{
    cl_image_desc desc = {.image_type = type, .image_width = 16};
    if (type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
        type == CL_MEM_OBJECT_IMAGE3D)
        desc.image_height = 8;
    if (type == CL_MEM_OBJECT_IMAGE3D)
        desc.image_depth = 4;
    if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        desc.image_array_size = 3;
    if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
        desc.mem_object = buffer;
    return desc;
}

static void create(void)
{
    static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                         CL_MEM_WRITE_ONLY | CL_MEM_ALLOC_HOST_PTR,
                                         CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR};
    static const cl_image_format pixel[] = {
        {CL_RGBA, CL_UNORM_INT8}, {CL_RGBA, CL_FLOAT}, {CL_R, CL_UNSIGNED_INT16}};
    static char host[65536] __attribute__((aligned(4096)));
    struct env env;
    env_init(&env);
    if (!env.images)
        case_end("no images");
    name_region("host", host, sizeof(host));
    fill_pattern(host, sizeof(host), 2);
    cl_mem buffer = env_buffer(&env, 4096, host);
    for (size_t p = 0; p < 3; p++)
        for (size_t t = 0; t < N_TYPES; t++)
            for (size_t f = 0; f < 4; f++) {
                cl_image_desc desc = describe(types[t], buffer);
                bool from_buffer = types[t] == CL_MEM_OBJECT_IMAGE1D_BUFFER;
                if (from_buffer && f > 0)
                    continue;
                void *ptr = flags[f] & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ? host : NULL;
                note("type %x", types[t]);
                cl_mem image = MAKE(clCreateImage, env.context, flags[f], &pixel[p], &desc, ptr);
                if (!image)
                    continue;
                info_mem_all(image);
                info_image_all(image);
                CALL(clReleaseMemObject, image);
            }
    CALL(clReleaseMemObject, buffer);
    env_fini(&env);
}

static void errors(void)
{
    const cl_image_format good = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_format bad[] = {
        {0, CL_UNORM_INT8}, {CL_RGBA, 0}, {CL_RGB, CL_FLOAT}, {CL_R, CL_UNORM_SHORT_565}};
    static char host[4096];
    struct env env;
    env_init(&env);
    cl_image_desc desc = describe(CL_MEM_OBJECT_IMAGE2D, NULL), wrong;
    MAKE(clCreateImage, (cl_context)NULL, CL_MEM_READ_WRITE, &good, &desc, NULL);
    MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, NULL, &desc, NULL);
    MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &good, NULL, NULL);
    MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &good, &desc, host);
    MAKE(clCreateImage, env.context, CL_MEM_COPY_HOST_PTR, &good, &desc, NULL);
    MAKE(clCreateImage, env.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, &good, &desc, NULL);
    MAKE(clCreateImage, env.context, 1 << 20, &good, &desc, NULL);
    for (size_t i = 0; i < 4; i++)
        MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &bad[i], &desc, NULL);
#define WRONG(change)                                                                              \
    do {                                                                                           \
        wrong = desc;                                                                              \
        change;                                                                                    \
        note(#change);                                                                             \
        cl_mem made_wrong =                                                                        \
            MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &good, &wrong, NULL);              \
        if (made_wrong)                                                                            \
            CALL(clReleaseMemObject, made_wrong);                                                  \
    } while (0)
    WRONG(wrong.image_width = 0);
    WRONG(wrong.image_height = 0);
    WRONG(wrong.image_width = 1 << 24);
    WRONG(wrong.image_row_pitch = 64);
    WRONG(wrong.image_type = CL_MEM_OBJECT_BUFFER);
    WRONG(wrong.image_type = 0);
    /* No mip levels or samples: PoCL 3.1 ends the process. */
    WRONG((wrong.image_type = CL_MEM_OBJECT_IMAGE3D, wrong.image_depth = 0));
    WRONG((wrong.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY, wrong.image_array_size = 0));
#undef WRONG
    wrong = desc;
    wrong.image_row_pitch = 63; /* with host memory a pitch counts, and must hold a row */
    MAKE(clCreateImage, env.context, CL_MEM_COPY_HOST_PTR, &good, &wrong, host);
    wrong.image_row_pitch = 66;
    MAKE(clCreateImage, env.context, CL_MEM_COPY_HOST_PTR, &good, &wrong, host);
    const cl_mem_properties unknown[] = {0x7777, 1, 0}, empty[] = {0};
    MAKE(clCreateImageWithProperties, env.context, unknown, CL_MEM_READ_WRITE, &good, &desc, NULL);
    MAKE(clCreateImageWithProperties, (cl_context)NULL, NULL, CL_MEM_READ_WRITE, &good, &desc,
         NULL);
    cl_mem image =
        MAKE(clCreateImageWithProperties, env.context, NULL, CL_MEM_READ_WRITE, &good, &desc, NULL);
    if (image) {
        info_mem_all(image);
        CALL(clReleaseMemObject, image);
    }
    image = MAKE(clCreateImageWithProperties, env.context, empty, CL_MEM_READ_WRITE, &good, &desc,
                 NULL);
    if (image) {
        info_mem_all(image);
        CALL(clReleaseMemObject, image);
    }
    size_t size = 0;
    CALL(clGetImageInfo, (cl_mem)NULL, CL_IMAGE_WIDTH, sizeof(size), &size, NULL);
    cl_mem buffer = env_buffer(&env, 64, NULL);
    CALL(clGetImageInfo, buffer, CL_IMAGE_WIDTH, sizeof(size), &size, NULL);
    CALL(clReleaseMemObject, buffer);
    env_fini(&env);
}

/* Images laid over buffers: one-dimensional, and two-dimensional with a pitch. */
static void from_buffer(void)
{
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    static char host[4096];
    unsigned char pixels[64];
    struct env env;
    env_init(&env);
    if (!env.images)
        case_end("no images");
    fill_pattern(host, sizeof(host), 3);
    cl_mem buffer = env_buffer(&env, sizeof(host), host);
    cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 256, .mem_object = buffer};
    cl_mem image = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    if (image) {
        info_mem_all(image);
        info_image_all(image);
        CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, V3(8, 0, 0), V3(16, 1, 1), 0, 0, pixels,
             0, NULL, NULL);
        note_bytes("pixels", pixels, sizeof(pixels));
        memset(pixels, 0xee, sizeof(pixels));
        CALL(clEnqueueWriteImage, env.queue, image, CL_TRUE, V3(4, 0, 0), V3(16, 1, 1), 0, 0,
             pixels, 0, NULL, NULL);
        env_dump_buffer(&env, "buffer", buffer, 256);
        CALL(clReleaseMemObject, image);
    }
    cl_image_desc flat = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                          .image_width = 16,
                          .image_height = 8,
                          .image_row_pitch = 256,
                          .mem_object = buffer};
    image = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &flat, NULL);
    if (image) {
        info_image_all(image);
        CALL(clEnqueueReadImage, env.queue, image, CL_TRUE, V3(0, 2, 0), V3(16, 1, 1), 0, 0, pixels,
             0, NULL, NULL);
        note_bytes("pixels", pixels, sizeof(pixels));
        CALL(clReleaseMemObject, image);
    }
    desc.image_width = 4096;
    MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    CALL(clReleaseMemObject, buffer);
    env_fini(&env);
}

static const struct diff_case image_cases[] = {
    {"formats", formats},
    {"create", create},
    {"errors", errors},
    {"from_buffer", from_buffer},
};
DIFF_FAMILY(image);
