/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens an OpenCL vendor's driver as an ICD loader would, and reads the facts that gantryd needs.
 * Called in probes and workers on the main thread, and in passthrough on the program's thread that
 * makes the vGPU, before other code calls the driver.
 */
#include "backend/opencl/cl_backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/opencl/cl_info.h"
#include "backend/opencl/cl_platform.h"
#include "base/checked.h"

#define MAX_PLATFORMS 32

#ifndef CL_PLATFORM_UNLOADABLE_KHR /* cl_khr_icd 2.0; not in older headers */
#define CL_PLATFORM_UNLOADABLE_KHR 0x0921
#endif

/* The start of every object of an ICD. */
struct icd_object {
    const cl_icd_dispatch *dispatch;
};

static int open_library(const char *library, void **ret, struct gn_error *err)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return gn_fail(err, ENOENT, "install the driver, or remove its .icd file",
                       "cannot load the OpenCL driver %s: %s", library, dlerror());
    *ret = handle;
    return 0;
}

static const cl_icd_dispatch *dispatch_of(cl_platform_id id)
{
    struct icd_object object;
    memcpy(&object, (const void *)id, sizeof object);
    return object.dispatch;
}

/* The driver's platforms. Looks up by name the only entry points that an ICD must export. */
static int platforms_of(void *library, cl_platform_id *ids, cl_uint *ret_n, struct gn_error *err)
{
    cl_api_clGetExtensionFunctionAddress address =
        (cl_api_clGetExtensionFunctionAddress)(uintptr_t)dlsym(library,
                                                               "clGetExtensionFunctionAddress");
    cl_api_clGetPlatformIDs get = NULL;
    cl_uint n = 0;
    if (address)
        get = (cl_api_clGetPlatformIDs)(uintptr_t)address("clIcdGetPlatformIDsKHR");
    if (!get)
        get = (cl_api_clGetPlatformIDs)(uintptr_t)dlsym(library, "clIcdGetPlatformIDsKHR");
    if (!get)
        return gn_fail(err, ENOSYS, NULL,
                       "the OpenCL driver is no installable client driver (cl_khr_icd)");
    cl_int status = get(MAX_PLATFORMS, ids, &n);
    if (status != CL_SUCCESS || n == 0)
        return gn_fail(err, ENODEV, NULL, "the OpenCL driver offers no platform (%d)", status);
    *ret_n = n > MAX_PLATFORMS ? MAX_PLATFORMS : n;
    return 0;
}

static void platform_string(const cl_icd_dispatch *d, cl_platform_id id, cl_platform_info what,
                            char *ret, size_t n)
{
    char text[4096] = "";
    size_t got = 0;
    /* An answer that does not fit leaves the string empty. */
    if (d->clGetPlatformInfo(id, what, sizeof text - 1, text, &got) != CL_SUCCESS)
        text[0] = 0;
    snprintf(ret, n, "%.*s", (int)(n - 1), text);
}

static void device_string(const cl_icd_dispatch *d, cl_device_id id, cl_device_info what, char *ret,
                          size_t n)
{
    char text[4096] = "";
    if (d->clGetDeviceInfo(id, what, sizeof text - 1, text, NULL) != CL_SUCCESS)
        text[0] = 0;
    snprintf(ret, n, "%.*s", (int)(n - 1), text);
}

/* Gantry's own ICD may be installed beside the vendors' ICDs. */
static bool is_gantry(const cl_icd_dispatch *d, cl_platform_id id)
{
    char suffix[64];
    platform_string(d, id, CL_PLATFORM_ICD_SUFFIX_KHR, suffix, sizeof suffix);
    return strcmp(suffix, "GANTRY") == 0;
}

static cl_uint devices_of(const cl_icd_dispatch *d, cl_platform_id id, cl_device_id *ids)
{
    cl_uint n = 0;
    if (d->clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, GN_BACKEND_MAX_DEVICES, ids, &n) != CL_SUCCESS)
        return 0;
    return n > GN_BACKEND_MAX_DEVICES ? GN_BACKEND_MAX_DEVICES : n;
}

static const struct {
    cl_device_type type;
    uint32_t kind;
} kinds[] = {
    {CL_DEVICE_TYPE_CPU, GN_BACKEND_CPU},
    {CL_DEVICE_TYPE_GPU, GN_BACKEND_GPU},
    {CL_DEVICE_TYPE_ACCELERATOR, GN_BACKEND_ACCELERATOR},
    {CL_DEVICE_TYPE_CUSTOM, GN_BACKEND_CUSTOM},
};

static void device_facts(const cl_icd_dispatch *d, cl_device_id id, struct gn_device_facts *ret)
{
    cl_device_type type = 0;
    cl_uint units = 0, clock = 0;
    cl_ulong memory = 0, allocation = 0, local = 0;
    /* A query that fails leaves the zero. */
    (void)d->clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    (void)d->clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    (void)d->clGetDeviceInfo(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof clock, &clock, NULL);
    (void)d->clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    (void)d->clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof allocation, &allocation,
                             NULL);
    (void)d->clGetDeviceInfo(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    *ret = (struct gn_device_facts){.compute_units = units,
                                    .clock_mhz = clock,
                                    .memory_bytes = memory,
                                    .max_allocation_bytes = allocation,
                                    .local_memory_bytes = local};
    for (size_t i = 0; i < GN_ARRAY_SIZE(kinds); i++)
        if (type & kinds[i].type)
            ret->kind |= kinds[i].kind;
    device_string(d, id, CL_DEVICE_NAME, ret->name, sizeof ret->name);
    device_string(d, id, CL_DEVICE_VENDOR, ret->vendor, sizeof ret->vendor);
    device_string(d, id, CL_DEVICE_VERSION, ret->version, sizeof ret->version);
    device_string(d, id, CL_DRIVER_VERSION, ret->driver_version, sizeof ret->driver_version);
}

static int probe(void *library, void (*found)(void *ctx, const struct gn_platform_facts *),
                 void *ctx, struct gn_error *err)
{
    cl_platform_id ids[MAX_PLATFORMS];
    cl_uint n = 0;
    int rc = platforms_of(library, ids, &n, err);
    if (rc)
        return rc;
    struct gn_platform_facts *facts = malloc(sizeof *facts);
    if (!facts)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    for (cl_uint i = 0; i < n; i++) {
        const cl_icd_dispatch *d = dispatch_of(ids[i]);
        cl_device_id devices[GN_BACKEND_MAX_DEVICES];
        if (!d || is_gantry(d, ids[i]))
            continue;
        memset(facts, 0, sizeof *facts);
        facts->index = i;
        facts->n_devices = devices_of(d, ids[i], devices);
        if (facts->n_devices == 0)
            continue;
        platform_string(d, ids[i], CL_PLATFORM_NAME, facts->name, sizeof facts->name);
        platform_string(d, ids[i], CL_PLATFORM_VERSION, facts->version, sizeof facts->version);
        for (cl_uint j = 0; j < facts->n_devices; j++)
            device_facts(d, devices[j], &facts->devices[j]);
        found(ctx, facts);
    }
    free(facts);
    return 0;
}

static cl_device_type shown_type(const cl_icd_dispatch *d, cl_device_id id, uint32_t present_as)
{
    cl_device_type type = 0;
    (void)d->clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (!present_as)
        return type;
    for (size_t i = 0; i < GN_ARRAY_SIZE(kinds); i++) {
        type &= ~kinds[i].type;
        if (present_as & kinds[i].kind)
            type |= kinds[i].type;
    }
    return type;
}

static bool can_leave(const struct gn_backend_platform *base)
{
    const struct gn_cl_platform *p =
        gn_cl_platform_of((struct gn_backend_platform *)(uintptr_t)base);
    cl_bool can = CL_FALSE;
    return p &&
           !p->dispatch->clGetPlatformInfo(p->id, CL_PLATFORM_UNLOADABLE_KHR, sizeof can, &can,
                                           NULL) &&
           can == CL_TRUE;
}

static void leave(struct gn_backend_platform *base)
{
    struct gn_cl_platform *p = gn_cl_platform_of(base);
    if (p && can_leave(base))
        dlclose(p->library);
    free(p);
}

static int bring_up(void *library, uint32_t platform, const struct gn_device_choice *choices,
                    uint32_t n_choices, struct gn_backend_platform **ret, struct gn_error *err)
{
    cl_platform_id ids[MAX_PLATFORMS];
    cl_device_id devices[GN_BACKEND_MAX_DEVICES];
    cl_uint n = 0;
    int rc = platforms_of(library, ids, &n, err);
    if (rc)
        return rc;
    if (platform >= n || !dispatch_of(ids[platform]))
        return gn_fail(err, ENODEV, NULL, "the OpenCL driver no longer has platform %u", platform);
    struct gn_cl_platform *p = calloc(1, sizeof *p);
    if (!p)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    p->base.ops = &gn_cl_backend;
    p->library = library;
    p->id = ids[platform];
    p->dispatch = dispatch_of(p->id);
    cl_uint n_all = devices_of(p->dispatch, p->id, devices);
    for (uint32_t i = 0; i < n_choices; i++) {
        if (choices[i].index >= n_all || p->n_devices == GN_BACKEND_MAX_DEVICES) {
            leave(&p->base);
            return gn_fail(err, ENODEV, NULL, "the OpenCL driver no longer has device %u",
                           choices[i].index);
        }
        p->types[p->n_devices] =
            shown_type(p->dispatch, devices[choices[i].index], choices[i].present_as);
        p->devices[p->n_devices++] = devices[choices[i].index];
    }
    *ret = &p->base;
    return 0;
}

struct gn_cl_platform *gn_cl_platform_of(struct gn_backend_platform *p)
{
    return p->ops == &gn_cl_backend ? gn_container_of(p, struct gn_cl_platform, base) : NULL;
}

void *gn_cl_extension(const struct gn_cl_platform *p, const char *name)
{
    if (p->dispatch->clGetExtensionFunctionAddressForPlatform) {
        void *f = p->dispatch->clGetExtensionFunctionAddressForPlatform(p->id, name);
        if (f)
            return f;
    }
    return p->dispatch->clGetExtensionFunctionAddress
               ? p->dispatch->clGetExtensionFunctionAddress(name)
               : NULL;
}

const struct gn_backend_ops gn_cl_backend = {
    .info = &gn_cl_info,
    .list_drivers = gn_cl_list_drivers,
    .open_library = open_library,
    .probe = probe,
    .bring_up = bring_up,
    .can_leave = can_leave,
    .leave = leave,
};
