/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies the running kernel. gantryd and the guest library call it on any thread to find out
 * whether two processes can share memory. It never caches the id.
 */
#include "base/kernel.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool gn_kernel_id(unsigned char ret[static GN_KERNEL_BYTES])
{
    char text[64];
    const int fd = gn_fd_open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    unsigned byte;
    int i = 0;
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = 0;
    for (const char *at = text; i < GN_KERNEL_BYTES && sscanf(at, "%2x", &byte) == 1; i++) {
        ret[i] = (unsigned char)byte;
        at += at[2] == '-' ? 3 : 2;
    }
    return i == GN_KERNEL_BYTES;
}
