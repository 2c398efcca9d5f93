/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver with one platform and one device that does nothing but load, for khronos_like.c to be
 * tested on: without a fault it fulfils docs/icd.md as far as `--load-only` looks, and each FAULT
 * breaks one promise. Built once for each.
 */
#include "icd_slots.h"

#include <stdint.h>
#include <string.h>

#define FAULT_NONE      0
#define FAULT_NULL_SLOT 1 /* clFinish is NULL */
#define FAULT_ONE_TAG   2 /* the tag is in clGetPlatformIDs only */
#define FAULT_NO_SETTER 3 /* tagged, but clIcdSetPlatformDispatchDataKHR is not found */
#define FAULT_NO_DATA   4 /* devices made with the platform never get dispatch_data */
#define FAULT_INTERPOSED                                                                           \
    5 /* the table names the exported clGetPlatformInfo, which libOpenCL.so.1 has too              \
       */
#define FAULT_ANY_NAME     6 /* answers for functions that it doesn't have */
#define FAULT_NO_EXTENSION 7 /* cl_khr_icd is not among the extensions */
#define FAULT_NEW_HANDLE   8 /* another handle for the same device each time */
#define FAULT_UNLOADABLE   9 /* lets the loader unload it */

#ifndef FAULT
#define FAULT FAULT_NONE
#endif

#define EXPORT __attribute__((visibility("default")))

struct object {
    cl_icd_dispatch *dispatch;
    void *dispatch_data;
};

static cl_icd_dispatch table;
static struct object platform = {&table, NULL};
static struct object devices[64] = {{&table, NULL}};
static cl_uint next_device;

static cl_int refuse(void)
{
    return CL_INVALID_OPERATION;
}

static cl_int answer(const void *value, size_t bytes, size_t room, void *to, size_t *ret_bytes)
{
    if (to && room < bytes)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, bytes);
    if (ret_bytes)
        *ret_bytes = bytes;
    return CL_SUCCESS;
}

static cl_int answer_string(const char *s, size_t room, void *to, size_t *ret_bytes)
{
    return answer(s, strlen(s) + 1, room, to, ret_bytes);
}

static cl_int get_platform_ids(cl_uint n, cl_platform_id *to, cl_uint *ret_n)
{
    if ((n == 0 && to) || (!to && !ret_n))
        return CL_INVALID_VALUE;
    if (to)
        to[0] = (cl_platform_id)&platform;
    if (ret_n)
        *ret_n = 1;
    return CL_SUCCESS;
}

static cl_int get_platform_info(cl_platform_id id, cl_platform_info name, size_t room, void *to,
                                size_t *ret_bytes)
{
    const cl_bool unloadable = FAULT == FAULT_UNLOADABLE ? CL_TRUE : CL_FALSE;

    if (id != (cl_platform_id)&platform)
        return CL_INVALID_PLATFORM;
    switch (name) {
    case CL_PLATFORM_EXTENSIONS:
        return answer_string(FAULT == FAULT_NO_EXTENSION ? "cl_other" : "cl_khr_icd", room, to,
                             ret_bytes);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return answer_string("FAKE", room, to, ret_bytes);
    case CL_PLATFORM_NAME:
        return answer_string("Fake", room, to, ret_bytes);
    case CL_PLATFORM_UNLOADABLE_KHR:
        return answer(&unloadable, sizeof(unloadable), room, to, ret_bytes);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int get_device_ids(cl_platform_id id, cl_device_type type, cl_uint n, cl_device_id *to,
                             cl_uint *ret_n)
{
    if (type != CL_DEVICE_TYPE_ALL && !(type & CL_DEVICE_TYPE_CPU))
        return CL_DEVICE_NOT_FOUND;
    if (FAULT == FAULT_NEW_HANDLE && to) {
        next_device = (next_device + 1) % 64;
        devices[next_device] = (struct object){&table, platform.dispatch_data};
    }
    if (to)
        to[0] = (cl_device_id)&devices[next_device];
    if (ret_n)
        *ret_n = 1;
    return CL_SUCCESS;
}

static cl_int set_dispatch_data(cl_platform_id id, void *data)
{
    if (id != (cl_platform_id)&platform)
        return CL_INVALID_PLATFORM;
    platform.dispatch_data = data;
    if (FAULT != FAULT_NO_DATA)
        devices[0].dispatch_data = data;
    return CL_SUCCESS;
}

static void *function_for_platform(cl_platform_id id, const char *name)
{
    if (id != (cl_platform_id)&platform || !name)
        return NULL;
    if (FAULT == FAULT_ANY_NAME)
        return (void *)refuse;
#define LOOK(slot)                                                                                 \
    if (strcmp(name, #slot) == 0) {                                                                \
        void *f = *(void **)&table.slot;                                                           \
        return f == (void *)CL_ICD2_TAG_KHR ? (void *)refuse : f;                                  \
    }
    GN_ICD_SLOTS(LOOK, LOOK)
    return NULL;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info name,
                                                         size_t room, void *to, size_t *ret_bytes)
{
    return get_platform_info(id, name, room, to, ret_bytes);
}

EXPORT CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return (void *)get_platform_ids;
    if (strcmp(name, "clGetPlatformInfo") == 0)
        return (void *)get_platform_info;
    if (strcmp(name, "clIcdGetFunctionAddressForPlatformKHR") == 0)
        return (void *)function_for_platform;
    if (strcmp(name, "clIcdSetPlatformDispatchDataKHR") == 0)
        return FAULT == FAULT_NO_SETTER ? NULL : (void *)set_dispatch_data;
    return NULL;
}

static __attribute__((constructor)) void fill(void)
{
    const intptr_t tag = CL_ICD2_TAG_KHR;
    void *f = (void *)refuse;

#define FILL(slot) memcpy(&table.slot, &f, sizeof(f));
    GN_ICD_SLOTS(FILL, FILL)
    table.clGetPlatformInfo = FAULT == FAULT_INTERPOSED ? clGetPlatformInfo : get_platform_info;
    table.clGetDeviceIDs = get_device_ids;
    memcpy(&table.clGetPlatformIDs, &tag, sizeof(tag));
    if (FAULT != FAULT_ONE_TAG)
        memcpy(&table.clUnloadCompiler, &tag, sizeof(tag));
    if (FAULT == FAULT_NULL_SLOT)
        table.clFinish = NULL;
}
