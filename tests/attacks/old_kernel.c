/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into gantryd: a kernel before Linux 6.5, which names no socket's peer by a pidfd. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int option,
                                                      void *restrict value, socklen_t *restrict n)
{
    if (level == SOL_SOCKET && option == SO_PEERPIDFD) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_getsockopt, fd, level, option, value, n);
}
