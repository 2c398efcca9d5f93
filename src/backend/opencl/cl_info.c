/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's constants for processes that load no driver (backend/api_info.h). */
#include "backend/opencl/cl_info.h"

#include <stddef.h>

static const char *const config_paths[] = {"/etc/OpenCL", NULL};
static const char *const cache_variables[] = {"POCL_CACHE_DIR", NULL};

const struct gn_api_info gn_cl_info = {
    .name = "opencl",
    .title = "OpenCL",
    .front_end = "libgantry-opencl.so",
    .install_hint = "install an OpenCL driver, for instance pocl-opencl-icd",
    .only_own = "the only ICD file where loaders look is Gantry's own",
    .only_own_hint = "name the vendors' ICD files in OCL_ICD_VENDORS, or install an OpenCL driver",
    .where_drivers = "OpenCL drivers are found where OpenCL's loaders find them (OCL_ICD_VENDORS).",
    .config_paths = config_paths,
    .cache_variables = cache_variables,
};
