/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_INFO_H
#define GN_CL_INFO_H

#include "backend/api_info.h"

extern const struct gn_api_info gn_cl_info;

#endif
