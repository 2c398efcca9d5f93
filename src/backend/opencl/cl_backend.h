/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_BACKEND_H
#define GN_CL_BACKEND_H

#include "backend/backend.h"

/* OpenCL vendors' installable client drivers. */
extern const struct gn_backend_ops gn_cl_backend;

/* The installed drivers: what the ICD loaders would load, by the same variables; .icd files in the
 * order of their names, which a directory's own order is not. */
int gn_cl_list_drivers(void (*found)(void *ctx, const char *library), void *ctx,
                       struct gn_error *err);

#endif
