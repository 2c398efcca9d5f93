/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MIGRATED_STRESS_H
#define MIGRATED_STRESS_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdint.h>

#include "must.h"

/* What the kinds of programs share: set once, before a kind is set up. */
extern cl_platform_id platform;
extern cl_device_id device;
extern cl_context context;
extern cl_command_queue queue, unordered;
extern const char source[]; /* kernels add, stir (a, n) and draw */

/* Below n. */
uint32_t dice(uint32_t n);
cl_program build(const char *text, const char *options);
cl_kernel kernel_of(cl_program program, const char *name);

void set_up_cmdbufs(void);
void cmdbuf_step(uint32_t n);

#endif
