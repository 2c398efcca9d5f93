/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_KERNEL_H
#define GN_BASE_KERNEL_H

#include <stdbool.h>

#define GN_KERNEL_BYTES 16

/*
 * The running kernel, told from all others: processes for which it is the same can share memory.
 * Its boot id, which containers see, too. Any thread. False: it cannot be had.
 */
bool gn_kernel_id(unsigned char ret[static GN_KERNEL_BYTES]);

#endif
