/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_STRICT_DRIVER_H
#define FUZZ_STRICT_DRIVER_H

#include <CL/cl_icd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An OpenCL driver that takes its callers at their word: it reads every byte that it is given,
 * writes every byte that it may, walks every list to its end, and stops the program at a handle
 * that is none of its own, is of another kind, or is gone. What a careful driver would refuse, it
 * refuses too. One thread.
 */
extern cl_icd_dispatch strict_driver; /* filled by strict_driver_start */

#define STRICT_N_DEVICES 2
cl_platform_id strict_platform(void);
cl_device_id strict_device(unsigned i);

/* Before each input: nothing is there. later: commands wait for strict_driver_end. */
void strict_driver_start(bool later);
/* Ends the which-th outstanding command (of those there are) with this status; false: there is
 * none. */
bool strict_driver_end(unsigned which, int status);
/* How many objects have not been released. */
unsigned strict_driver_n_left(void);

#endif
