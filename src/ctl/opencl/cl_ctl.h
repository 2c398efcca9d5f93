/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CL_CTL_H
#define GN_CL_CTL_H

#include "ctl/api.h"

/* OpenCL in `gantry`. */
extern const struct gn_ctl_api gn_cl_ctl;

/*
 * The functions of the table, in doctor_loader.c, doctor_bypass.c, doctor_drivers.c and
 * inspect_names.c.
 */
void gn_cl_check_loader(struct gn_doctor *d);
void gn_cl_check_bypass(struct gn_doctor *d);
void gn_cl_check_drivers(struct gn_doctor *d);
const char *gn_cl_kind_name(uint32_t kind);
const char *gn_cl_call_name(uint32_t op);

/* The folder in which an OpenCL loader looks for ICD files by default. */
const char *gn_cl_system_vendors(void);

#endif
