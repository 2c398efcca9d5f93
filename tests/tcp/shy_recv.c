/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: whatever has just come over tcp is followed by nothing, once. So what is there already
 * is found by whoever looks a second time, as if it had come a moment later.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

static _Thread_local bool has_had;

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, struct msghdr *, int);
    int domain = 0;
    socklen_t n = sizeof domain;
    if (!real) {
        void *f = dlsym(RTLD_NEXT, "recvmsg");
        memcpy(&real, &f, sizeof real);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) || domain != AF_INET ||
        !(flags & MSG_DONTWAIT))
        return real(fd, msg, flags);
    if (has_had) {
        has_had = false;
        errno = EAGAIN;
        return -1;
    }
    const ssize_t got = real(fd, msg, flags);
    has_had = got > 0;
    return got;
}
