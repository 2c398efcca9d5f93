/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_PLATFORM_H
#define GN_CL_PLATFORM_H

#include <CL/cl_icd.h>

#include "backend/backend.h"

/*
 * An OpenCL vendor platform brought up in this process. The vendor is called through `dispatch`,
 * its own table; calls of extensions through gn_cl_extension. Set once; freed when it is left.
 */
struct gn_cl_platform {
    struct gn_backend_platform base;
    void *library;
    cl_platform_id id;
    const cl_icd_dispatch *dispatch;
    cl_uint n_devices; /* those chosen, in the vendor's order */
    cl_device_id devices[GN_BACKEND_MAX_DEVICES];
    cl_device_type types[GN_BACKEND_MAX_DEVICES]; /* what CL_DEVICE_TYPE is to say */
};

struct gn_cl_platform *gn_cl_platform_of(struct gn_backend_platform *p);

/* A call of an extension, as the vendor's clGetExtensionFunctionAddressForPlatform finds it; NULL:
 * none. */
void *gn_cl_extension(const struct gn_cl_platform *p, const char *name);

#endif
