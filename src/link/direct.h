/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_DIRECT_H
#define GN_LINK_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The link `direct`: the vGPU is in the program's own process (passthrough), and a message is a
 * call. libgantry-vgpu.so, which lies beside the front end's library and is loaded by it in that
 * mode only, exports this table; nothing else of either is seen by the other. Both are of one
 * build: the version is that of this table.
 */
#define GN_DIRECT_VERSION 3u
#define GN_DIRECT_LIBRARY "libgantry-vgpu.so"
#define GN_DIRECT_SYMBOL  "gn_direct_table"

struct gn_direct;

/* Each call but send, forked and process_ends comes from the one thread that makes the vGPU. */
struct gn_direct_table {
    uint32_t version;
    /* For a vGPU of this API; the name must stay. NULL: no memory. */
    struct gn_direct *(*create)(const char *api);
    /*
     * Takes control_fd, hears there from gantryd what the vGPU is to be, loads the vendor's driver
     * `library` and brings it up. takes_over: a worker has the vGPU. 0, or -errno with a sentence.
     */
    int (*boot)(struct gn_direct *d, const char *library, int control_fd, bool takes_over,
                struct gn_error *err);
    /*
     * After boot: makes the vGPU. When it returns the vGPU serves, and gantryd has been told. One
     * that is taken over has come from its worker by then; that may take as long as the driver
     * takes to have everything anew. 0, or -errno with a sentence: a vGPU that is taken over stays
     * where it is. Why is for the caller to tell gantryd, by a descriptor of its own, unless
     * control_fd has been shut down: then it has been told.
     */
    int (*host)(struct gn_direct *d, struct gn_error *err);
    /* After boot or host has failed. False: some of its threads are there yet, and d stays. */
    bool (*destroy)(struct gn_direct *d);
    /* A whole message, served by the calling thread; any thread. 0; -EPIPE: the vGPU is gone;
     * -EAGAIN, and nothing has been done: it is in another process now and hears the ring, for
     * good. */
    int (*send)(struct gn_direct *d, const void *message, uint32_t n_bytes);
    /* The calling process is a forked child: it has no vGPU, and closes its descriptors. */
    void (*forked)(struct gn_direct *d);
    /*
     * The process ends by exit(). Calls off what goes on without the program's asking (a load, a
     * save, the clearing up after one), lets nothing of the kind begin, and waits until none of the
     * vGPU's threads is in the driver for such. A boot or a host that goes on returns soon after,
     * and is not waited for. The program's own calls are served as before. Any thread; at the
     * latest at until_ns.
     */
    void (*process_ends)(struct gn_direct *d, uint64_t until_ns);
};

#endif
