/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_KERNEL_H
#define GN_BASE_KERNEL_H

#include <stdbool.h>

#define GN_KERNEL_BYTES 16

/*
 * Sets ret to the id of the running kernel, its boot id, which containers see as well. Processes
 * with the same id can share memory. Any thread. False: the id cannot be read.
 */
bool gn_kernel_id(unsigned char ret[static GN_KERNEL_BYTES]);

#endif
