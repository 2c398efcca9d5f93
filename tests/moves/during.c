/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose memory changes while it is sent ahead of the stop.
 *
 *     during KIND      KIND: plain, deep (3-D, which the host may only write), layers (2-D array);
 *                      "nosvm" behind it: without shared virtual memory
 *
 * It makes a large image and, where the device offers it, an allocation of shared virtual memory,
 * and says "goes". Each line that it reads is one step: write the image's end and free the
 * allocation
 * ("changed"), then allocate again and compare the whole image ("right").
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

#define SVM_BYTES 65536u

static cl_context context;
static cl_command_queue queue;
static cl_mem image;
static size_t size[3];
static cl_mem_flags flags;
static uint32_t *model, *got;

static size_t n_pixels(void)
{
    return size[0] * size[1] * size[2];
}

static void make_image(const char *kind)
{
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D};
    cl_int r;
    /* Rows that are no pages. */
    memcpy(size, (size_t[]){1999, 2099, 1}, sizeof size);
    if (strcmp(kind, "deep") == 0) {
        desc.image_type = CL_MEM_OBJECT_IMAGE3D;
        memcpy(size, (size_t[]){333, 101, 127}, sizeof size);
        desc.image_depth = size[2];
        flags = CL_MEM_HOST_WRITE_ONLY;
    } else if (strcmp(kind, "layers") == 0) {
        desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
        memcpy(size, (size_t[]){501, 300, 28}, sizeof size);
        desc.image_array_size = size[2];
    }
    desc.image_width = size[0];
    desc.image_height = size[1];
    image = clCreateImage(context, flags, &format, &desc, NULL, &r);
    MUST(r);
    model = malloc(n_pixels() * sizeof *model);
    got = malloc(n_pixels() * sizeof *got);
    HOLDS(model && got);
    for (size_t i = 0; i < n_pixels(); i++)
        model[i] = (uint32_t)i * 2654435761u;
    MUST(clEnqueueWriteImage(queue, image, CL_TRUE, (size_t[3]){0}, size, 0, 0, model, 0, NULL,
                             NULL));
}

/* By a write, then by a fill. The image's last rows, or slices, are the last to be sent. */
static void change_end(void)
{
    const size_t d = size[2] > 1 ? 2 : 1;
    size_t origin[3] = {1, 0, 0}, region[3] = {size[0] - 2, size[1], size[2]};
    const cl_uint colour[4] = {1, 2, 3, 4};
    const size_t row = size[0], slice = row * size[1];
    uint32_t *some = malloc(n_pixels() * sizeof *some);
    HOLDS(some);
    origin[d] = size[d] - 8;
    region[d] = 6;
    for (size_t z = 0, i = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            for (size_t x = 0; x < region[0]; x++, i++) {
                some[i] = ~(uint32_t)i;
                model[(origin[2] + z) * slice + (origin[1] + y) * row + origin[0] + x] = some[i];
            }
    MUST(clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, some, 0, NULL, NULL));
    origin[d] = size[d] - 2;
    region[d] = 1;
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            for (size_t x = 0; x < region[0]; x++)
                model[(origin[2] + z) * slice + (origin[1] + y) * row + origin[0] + x] = 0x04030201;
    MUST(clEnqueueFillImage(queue, image, colour, origin, region, 0, NULL, NULL));
    MUST(clFinish(queue));
    free(some);
}

static void compare(void)
{
    const size_t bytes = n_pixels() * sizeof *got;
    cl_int r;
    if (flags & CL_MEM_HOST_WRITE_ONLY) {
        cl_mem by = clCreateBuffer(context, 0, bytes, NULL, &r);
        MUST(r);
        MUST(clEnqueueCopyImageToBuffer(queue, image, by, (size_t[3]){0}, size, 0, 0, NULL, NULL));
        MUST(clEnqueueReadBuffer(queue, by, CL_TRUE, 0, bytes, got, 0, NULL, NULL));
        MUST(clReleaseMemObject(by));
    } else {
        MUST(clEnqueueReadImage(queue, image, CL_TRUE, (size_t[3]){0}, size, 0, 0, got, 0, NULL,
                                NULL));
    }
    HOLDS(!memcmp(got, model, bytes));
}

static void await_line(void)
{
    char line[8];
    HOLDS(fgets(line, sizeof line, stdin));
}

int main(int argc, char **argv)
{
    const bool svm = argc < 3;
    cl_platform_id platform;
    cl_device_id device;
    cl_int r;
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    make_image(argc > 1 ? argv[1] : "plain");
    unsigned char *shared = svm ? clSVMAlloc(context, CL_MEM_READ_WRITE, SVM_BYTES, 0) : NULL;
    HOLDS(shared || !svm);
    printf("goes\n");

    await_line();
    change_end();
    if (shared)
        clSVMFree(context, shared);
    printf("changed\n");

    await_line();
    unsigned char *again = svm ? clSVMAlloc(context, CL_MEM_READ_WRITE, SVM_BYTES, 0) : NULL;
    HOLDS(again == shared); /* else the case is not tried */
    if (again) {
        const unsigned char pattern = 0x5a;
        MUST(clEnqueueSVMMemFill(queue, again, &pattern, 1, SVM_BYTES, 0, NULL, NULL));
        MUST(clFinish(queue));
        HOLDS(again[0] == pattern && again[SVM_BYTES - 1] == pattern);
        clSVMFree(context, again);
    }
    compare();
    printf("right\n");
    return 0;
}
