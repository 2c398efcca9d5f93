/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL driver for tests: one platform with two devices, which answers queries about them and
 * does nothing else. $FAKE_VENDOR makes it misbehave in one of several ways.
 */
#include <CL/cl_icd.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct object {
    const cl_icd_dispatch *dispatch;
};

static bool is(const char *what)
{
    const char *mode = getenv("FAKE_VENDOR");
    return mode && strcmp(mode, what) == 0;
}

static cl_int answer(const void *from, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, n);
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *size_ret)
{
    return answer(text, strlen(text) + 1, size, value, size_ret);
}

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info what, size_t size,
                                        void *value, size_t *size_ret)
{
    switch (what) {
    case CL_PLATFORM_NAME:
        return answer_text("Fake Platform", size, value, size_ret);
    case CL_PLATFORM_VERSION:
        return answer_text("OpenCL 1.2 fake", size, value, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return answer_text(is("gantry") ? "GANTRY" : "FAKE", size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value,
                                      size_t *size_ret);
static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n,
                                     cl_device_id *ids, cl_uint *n_ret);
static void *CL_API_CALL extension(const char *name);

static const cl_icd_dispatch dispatch = {
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = device_ids,
    .clGetDeviceInfo = device_info,
    .clGetExtensionFunctionAddress = extension,
};

static struct object platform = {&dispatch}, devices[2] = {{&dispatch}, {&dispatch}};

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    bool second = (void *)d == &devices[1];
    cl_device_type type =
        second ? CL_DEVICE_TYPE_ACCELERATOR : CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT;
    cl_ulong bytes = 1 << 30;
    cl_uint units = 3;
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer(&type, sizeof type, size, value, size_ret);
    case CL_DEVICE_NAME:
        return answer_text(second ? "Fake Device Two" : "Fake Device One", size, value, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return answer(&bytes, sizeof bytes, size, value, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer(&units, sizeof units, size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n,
                                     cl_device_id *ids, cl_uint *n_ret)
{
    if (is("no-device"))
        return CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; ids && i < n && i < 2; i++)
        ids[i] = (cl_device_id)&devices[i];
    if (n_ret)
        *n_ret = 2;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_ids(cl_uint n, cl_platform_id *ids, cl_uint *n_ret)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    bool in_worker = strncmp(name, "gn-", 3) == 0;
    if (is("crash-in-probe") || (is("crash-in-worker") && in_worker))
        raise(SIGTERM); /* as SIGSEGV, without the noise of a sanitizer */
    while (is("hang-in-probe") || (is("hang-in-worker") && in_worker))
        pause();
    if (is("exit-in-worker") && in_worker)
        _exit(9);
    if (is("fail-in-worker") && in_worker)
        return CL_OUT_OF_HOST_MEMORY;
    if (is("orphan-in-worker") && in_worker && fork() == 0) {
        prctl(PR_SET_NAME, "fake-orphan");
        for (;;)
            pause();
    }
    if (ids && n)
        ids[0] = (cl_platform_id)&platform;
    if (n_ret)
        *n_ret = 1;
    return CL_SUCCESS;
}

static void *CL_API_CALL extension(const char *name)
{
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void *)(uintptr_t)platform_ids : NULL;
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    return is("not-an-icd") ? NULL : extension(name);
}

static void *wait_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t t;
    if (is("thread-on-load") && pthread_create(&t, NULL, wait_for_ever, NULL) != 0)
        abort();
}
