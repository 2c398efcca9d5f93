/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_BACKEND_H
#define GN_CL_BACKEND_H

#include "backend/backend.h"

/* OpenCL vendors' installable client drivers. */
extern const struct gn_backend_ops gn_cl_backend;

/* Calls found(ctx, library) for each driver that an ICD loader would load, by the same environment
 * variables; .icd files in the order of their names. */
int gn_cl_list_drivers(void (*found)(void *ctx, const char *library), void *ctx,
                       struct gn_error *err);

#endif
