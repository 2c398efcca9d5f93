/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: the secret that a program presents to be admitted to its tenant. gantryd checks and reads
 * them from files, `gantry` before it sends them; any thread. Prints nothing, and clears its
 * copies.
 */
#include "link/token.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char fix[] = "make one with: openssl rand -hex 32";

int gn_token_check(const char *token, size_t n, struct gn_error *err)
{
    if (n < GN_TOKEN_LEAST || n >= GN_LINK_TOKEN_BYTES)
        return gn_fail(err, EINVAL, fix, "a token has %d to %d characters, not %zu", GN_TOKEN_LEAST,
                       GN_LINK_TOKEN_BYTES - 1, n);
    for (size_t i = 0; i < n; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return gn_fail(err, EINVAL, fix,
                           "a token is one line of printable characters without blanks");
    return 0;
}

int gn_token_read(const char *path, char ret[GN_LINK_TOKEN_BYTES], int *ret_shared,
                  struct gn_error *err)
{
    char text[GN_LINK_TOKEN_BYTES + 16];
    struct stat st;
    ssize_t n = -1;
    int fd = gn_fd_open(path, O_RDONLY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0)
        n = read(fd, text, sizeof text);
    int code = errno;
    gn_fd_close(fd);
    if (n < 0)
        return gn_fail(err, code, "name a file that this user can read",
                       "cannot read the token file %.200s: %s", path, strerror(code));
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    int rc =
        n == 0 ? gn_fail(err, EINVAL, "put a token into it", "the token file %.200s is empty", path)
               : gn_token_check(text, (size_t)n, err);
    if (rc == 0) {
        memset(ret, 0, GN_LINK_TOKEN_BYTES);
        memcpy(ret, text, (size_t)n);
        *ret_shared = (st.st_mode & (S_IRGRP | S_IROTH)) != 0;
    }
    explicit_bzero(text, sizeof text);
    return rc;
}
