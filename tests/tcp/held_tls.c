/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS module in the place of gantryd's (GANTRY_TLS_MODULE), which is $REAL_TLS and does the work.
 * Handshakes stand still while the file $TLS_HOLD is there; $TLS_HOLD.held is made when one does.
 * $TLS_COUNTS gets a letter for each context that is opened (c) and for each connection that is
 * started (s).
 */
#include "link/tls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern struct gn_tls_ops gn_tls_module;

static const struct gn_tls_ops *real;

static void count(char what)
{
    const char *path = getenv("TLS_COUNTS");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, &what, 1);
    close(fd);
}

static int open_context(const struct gn_tls_config *config, struct gn_tls_context **ret,
                        struct gn_error *err)
{
    count('c');
    return real->open_context(config, ret, err);
}

static int start(const struct gn_tls_config *config, int fd, struct gn_tls **ret,
                 struct gn_error *err)
{
    count('s');
    return real->start(config, fd, ret, err);
}

static int handshake(struct gn_tls *t, struct gn_error *err)
{
    const char *hold = getenv("TLS_HOLD");
    char held[4096];
    while (hold && access(hold, F_OK) == 0) {
        snprintf(held, sizeof held, "%s.held", hold);
        const int fd = open(held, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0)
            close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return real->handshake(t, err);
}

__attribute__((visibility("default"))) struct gn_tls_ops gn_tls_module;

__attribute__((constructor)) static void load(void)
{
    void *module = dlopen(getenv("REAL_TLS"), RTLD_NOW | RTLD_LOCAL);
    real = module ? dlsym(module, "gn_tls_module") : NULL;
    if (!real)
        abort();
    gn_tls_module = *real;
    gn_tls_module.open_context = open_context;
    gn_tls_module.start = start;
    gn_tls_module.handshake = handshake;
}
