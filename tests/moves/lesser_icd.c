/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PoCL, with devices that have less: an OpenCL driver in front of it that answers some questions
 * otherwise. $LESSER says which, as words: NUMBER=VALUE, a question's number in hex and what it is
 * answered, with 0 all of it; -NAME, an extension that is left out; noformats: no image formats;
 * nobuild: no program that hashes pages is built, norun: none is run after the first launch, idle:
 * their launches do nothing; strict: an image without host memory has no pitches; binaries:FIFO:
 * a question for a program's binaries waits until all writers of the FIFO have closed it, if it is
 * there. What the devices can really do is PoCL's as ever.
 */
#include "drivers/front_icd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char *words(void)
{
    const char *text = getenv("LESSER");
    return text ? text : "";
}

static void leave_out(char *extensions, const char *name)
{
    const size_t n = strlen(name);
    for (char *at = extensions; (at = strstr(at, name)); at += n)
        if ((at == extensions || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            memset(at, ' ', n);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    const char *at = words();
    char word[128];
    size_t n = 0;
    cl_int result = theirs->clGetDeviceInfo(device, what, size, value, &n);
    if (size_ret)
        *size_ret = n;
    while (!result && value && next_word(&at, word, sizeof word)) {
        char *end;
        if (word[0] == '-' && what == CL_DEVICE_EXTENSIONS) {
            leave_out(value, word + 1);
        } else if (strtoul(word, &end, 16) == what && *end == '=') {
            const unsigned long long answer = strtoull(end + 1, NULL, 0);
            for (size_t i = 0; i < n; i += n < 8 ? n : 8)
                memcpy((char *)value + i, &answer, n < 8 ? n : 8);
        }
    }
    return result;
}

static cl_int CL_API_CALL image_formats(cl_context context, cl_mem_flags flags,
                                        cl_mem_object_type type, cl_uint n,
                                        cl_image_format *formats, cl_uint *ret_n)
{
    if (!strstr(words(), "noformats"))
        return theirs->clGetSupportedImageFormats(context, flags, type, n, formats, ret_n);
    if (ret_n)
        *ret_n = 0;
    return CL_SUCCESS;
}

/* Gantry's own kernels are told by their names. */
static cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id *devices,
                                        const char *options,
                                        void(CL_CALLBACK *done)(cl_program, void *), void *data)
{
    static char text[65536];
    if (strstr(words(), "nobuild") &&
        !theirs->clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof text, text, NULL) &&
        strstr(text, "void by_item("))
        return CL_BUILD_PROGRAM_FAILURE;
    return theirs->clBuildProgram(program, n, devices, options, done, data);
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint n, const cl_event *waits, cl_event *event)
{
    static _Atomic int n_launches;
    char name[32] = "";
    const bool hashes =
        !theirs->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) &&
        (!strcmp(name, "by_item") || !strcmp(name, "by_group"));
    if (hashes && strstr(words(), "norun") && n_launches++)
        return CL_OUT_OF_RESOURCES;
    if (hashes && strstr(words(), "idle"))
        return theirs->clEnqueueMarkerWithWaitList(queue, n, waits, event);
    return theirs->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, n, waits,
                                          event);
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host_ptr, cl_int *ret)
{
    if (!strstr(words(), "strict") || host_ptr || !desc || desc->mem_object ||
        !(desc->image_row_pitch || desc->image_slice_pitch))
        return theirs->clCreateImage(context, flags, format, desc, host_ptr, ret);
    if (ret)
        *ret = CL_INVALID_IMAGE_DESCRIPTOR;
    return NULL;
}

static cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t size,
                                       void *value, size_t *size_ret)
{
    const char *at = words();
    char word[128], byte;
    while (what == CL_PROGRAM_BINARY_SIZES && next_word(&at, word, sizeof word)) {
        if (strncmp(word, "binaries:", 9) != 0)
            continue;
        const int fd = open(word + 9, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            break;
        if (fd < 0) {
            fprintf(stderr, "lesser_icd: %s: %s\n", word + 9, strerror(errno));
            return CL_OUT_OF_HOST_MEMORY;
        }
        while (read(fd, &byte, 1) > 0) {
        }
        close(fd);
    }
    return theirs->clGetProgramInfo(program, what, size, value, size_ret);
}

static void replace_calls(void)
{
    ours.clGetDeviceInfo = device_info;
    ours.clGetSupportedImageFormats = image_formats;
    ours.clBuildProgram = build_program;
    ours.clEnqueueNDRangeKernel = launch;
    ours.clCreateImage = create_image;
    ours.clGetProgramInfo = program_info;
}
