/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_DIRECT_H
#define GN_LINK_DIRECT_H

#include <stdint.h>

#include "base/error.h"

/*
 * The link `direct`: the vGPU is in the program's own process (passthrough), and a message is a call. libgantry-vgpu.so, which lies
 * beside the front end's library and is loaded by it in that mode only, exports this table; nothing else of either is seen by
 * the other. Both are of one build: the version is that of this table.
 */
#define GN_DIRECT_VERSION 1u
#define GN_DIRECT_LIBRARY "libgantry-vgpu.so"
#define GN_DIRECT_SYMBOL  "gn_direct_table"

struct gn_direct;

struct gn_direct_table {
    uint32_t version;
    /*
     * Makes the vGPU that gantryd describes on control_fd, which is taken, with the vendor's driver `library`. When it returns the
     * vGPU serves, and gantryd has been told. 0, or -errno with a sentence.
     */
    int (*open)(const char *library, int control_fd, struct gn_direct **ret, struct gn_error *err);
    /*
     * The same, of a vGPU that a worker has: takes it over, and returns when it may be sent to, or with a failure when it stays where
     * it is. May take as long as the driver takes to have everything anew. Why it failed is for the caller to tell gantryd, by a
     * descriptor of his own, unless control_fd has been shut down: then it has been told.
     */
    int (*take_over)(const char *library, int control_fd, struct gn_direct **ret, struct gn_error *err);
    /* A whole message, served by the calling thread; any thread. 0; -EPIPE: the vGPU is gone; -EAGAIN, and nothing has been done: it
     * is in another process now and hears the ring, for good. */
    int (*send)(struct gn_direct *d, const void *message, uint32_t n_bytes);
    /* The calling process is a forked child: it has no vGPU, and closes its descriptors. */
    void (*forked)(struct gn_direct *d);
};

#endif
