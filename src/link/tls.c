/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads libgantry-tls.so, and runs a client's handshake. Any thread. Loads nothing until
 * a connection asks for TLS.
 */
#include "link/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct gn_tls_ops *ops;

/*
 * Searches relative to the file that contains this code: libgantry-opencl.so, bin/gantryd,
 * libexec/gantry/gantry-worker, or a build directory.
 */
static void *open_module(void)
{
    static const char *const places[] = {"libgantry-tls.so", "../lib/libgantry-tls.so",
                                         "../../lib/libgantry-tls.so", "../link/libgantry-tls.so"};
    Dl_info here;
    char self[4096], path[4200];
    const char *given = getenv("GANTRY_TLS_MODULE");
    if (given && *given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    if (!dladdr((void *)(uintptr_t)open_module, &here) || !here.dli_fname)
        return NULL;
    /* For an executable, dli_fname may be argv[0]. */
    const char *name = here.dli_fname[0] == '/' ? realpath(here.dli_fname, self) : NULL;
    if (!name) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n < 0)
            return NULL;
        self[n] = 0;
    }
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *module;
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        if (access(path, R_OK) == 0 && (module = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
            return module;
    }
    return NULL;
}

const struct gn_tls_ops *gn_tls_load(struct gn_error *err)
{
    pthread_mutex_lock(&lock);
    if (!ops) {
        void *module = open_module();
        const struct gn_tls_ops *found = module ? dlsym(module, "gn_tls_module") : NULL;
        if (found && found->version == GN_TLS_MODULE_VERSION)
            ops = found;
    }
    const struct gn_tls_ops *ret = ops;
    pthread_mutex_unlock(&lock);
    if (!ret)
        gn_fail(err, ENOENT, "install Gantry as a whole, with libssl3",
                "TLS cannot be had: libgantry-tls.so does not load");
    return ret;
}

int gn_tls_connect(const struct gn_tls_config *config, int fd, uint64_t deadline_ns,
                   struct gn_tls **ret, struct gn_error *err)
{
    const struct gn_tls_ops *o = gn_tls_load(err);
    struct gn_tls *t;
    int started = o ? o->start(config, fd, &t, err) : -ENOENT;
    if (started)
        return started;
    for (;;) {
        int rc = o->handshake(t, err);
        uint64_t now = gn_now_ns();
        struct pollfd p = {.fd = fd, .events = rc == GN_TLS_READS ? POLLIN : POLLOUT};
        if (rc == GN_TLS_DONE) {
            *ret = t;
            return 0;
        }
        if (rc > 0 && now >= deadline_ns)
            rc = gn_fail(err, ETIMEDOUT, NULL, "the TLS handshake takes too long");
        if (rc < 0) {
            o->free(t);
            return rc;
        }
        (void)poll(&p, 1, (int)((deadline_ns - now) / 1000000) + 1);
    }
}
