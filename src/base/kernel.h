/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_KERNEL_H
#define GN_BASE_KERNEL_H

#include <stdbool.h>

#define GN_KERNEL_BYTES 16

/* Writes a number that identifies the running kernel: processes with the same number can share
 * memory. It is the boot id, which containers see, too. Any thread. False: it cannot be read. */
bool gn_kernel_id(unsigned char ret[static GN_KERNEL_BYTES]);

#endif
