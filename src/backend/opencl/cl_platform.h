/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_PLATFORM_H
#define GN_CL_PLATFORM_H

#include <CL/cl_icd.h>

#include "backend/backend.h"

/*
 * An OpenCL vendor platform in this process. The vendor is called through its own table,
 * `dispatch`, and through gn_cl_extension for calls of extensions. Constant until `leave` frees it.
 */
struct gn_cl_platform {
    struct gn_backend_platform base;
    void *library;
    cl_platform_id id;
    const cl_icd_dispatch *dispatch;
    cl_uint n_devices; /* the chosen devices, in the vendor's order */
    cl_device_id devices[GN_BACKEND_MAX_DEVICES];
    cl_device_type types[GN_BACKEND_MAX_DEVICES]; /* CL_DEVICE_TYPE as programs see it */
};

struct gn_cl_platform *gn_cl_platform_of(struct gn_backend_platform *p);

/* An extension's function from the vendor's clGetExtensionFunctionAddressForPlatform; NULL:
 * none. */
void *gn_cl_extension(const struct gn_cl_platform *p, const char *name);

#endif
