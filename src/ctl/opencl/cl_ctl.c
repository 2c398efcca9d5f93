/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL in `gantry`: the table of its functions. */
#include "ctl/opencl/cl_ctl.h"

#include "backend/opencl/cl_info.h"

const struct gn_ctl_api gn_cl_ctl = {
    .info = &gn_cl_info,
    .check_loader = gn_cl_check_loader,
    .check_bypass = gn_cl_check_bypass,
    .check_drivers = gn_cl_check_drivers,
    .kind_name = gn_cl_kind_name,
    .call_name = gn_cl_call_name,
};
