/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS module in the place of Gantry's (GANTRY_TLS_MODULE), which is $WATCHED_TLS and does the
 * work: a process that frees a connection that another one has made is ended by a signal. Another
 * thread of that one's may have been in the middle of it at the fork.
 */
#include "link/tls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

extern struct gn_tls_ops gn_tls_module;

static const struct gn_tls_ops *real;
static pid_t maker;

static int start_watched(const struct gn_tls_config *config, int fd, struct gn_tls **ret,
                         struct gn_error *err)
{
    const int rc = real->start(config, fd, ret, err);
    if (!rc)
        (*ret)->ops = &gn_tls_module;
    maker = getpid();
    return rc;
}

static void free_watched(struct gn_tls *t)
{
    if (getpid() != maker)
        abort();
    real->free(t);
}

__attribute__((visibility("default"))) struct gn_tls_ops gn_tls_module;

__attribute__((constructor)) static void load(void)
{
    void *module = dlopen(getenv("WATCHED_TLS"), RTLD_NOW | RTLD_LOCAL);
    real = module ? dlsym(module, "gn_tls_module") : NULL;
    if (!real)
        abort();
    gn_tls_module = *real;
    gn_tls_module.start = start_watched;
    gn_tls_module.free = free_watched;
}
