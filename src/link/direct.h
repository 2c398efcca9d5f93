/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_DIRECT_H
#define GN_LINK_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The link `direct`, for passthrough: the vGPU is in the program's own process, and a message is a
 * function call. libgantry-vgpu.so exports this table and no other symbol. The front end's library
 * loads it from its own directory, in that mode only. Both libraries come from one build; the
 * version is that of this table.
 */
#define GN_DIRECT_VERSION 3u
#define GN_DIRECT_LIBRARY "libgantry-vgpu.so"
#define GN_DIRECT_SYMBOL  "gn_direct_table"

struct gn_direct;

/* All calls except send, forked and process_ends come from the thread that creates the vGPU. */
struct gn_direct_table {
    uint32_t version;
    /* For a vGPU of this API; the string must stay valid. NULL: out of memory. */
    struct gn_direct *(*create)(const char *api);
    /*
     * Owns control_fd. Receives the description of the vGPU from gantryd over it, loads the
     * vendor's driver `library` and initializes it. takes_over: the vGPU exists in a worker and is
     * to be migrated from it. 0, or -errno and err.
     */
    int (*boot)(struct gn_direct *d, const char *library, int control_fd, bool takes_over,
                struct gn_error *err);
    /*
     * After boot: creates the vGPU. On return the vGPU serves requests and gantryd knows it. A vGPU
     * that is taken over from a worker has been migrated by then, which takes as long as the driver
     * needs to recreate its objects. 0, or -errno and err; on failure a vGPU that was to be taken
     * over stays in its worker. The caller reports a failure to gantryd over its own connection,
     * unless control_fd was shut down: then gantryd knows already.
     */
    int (*host)(struct gn_direct *d, struct gn_error *err);
    /*
     * After boot or host has failed. False: some of its threads still run, and d stays allocated.
     */
    bool (*destroy)(struct gn_direct *d);
    /*
     * Serves one whole message on the calling thread. Any thread. 0; -EPIPE: the vGPU is gone;
     * -EAGAIN: the vGPU has permanently moved to another process, which reads the request ring; the
     * message was not served.
     */
    int (*send)(struct gn_direct *d, const void *message, uint32_t n_bytes);
    /* In a forked child: closes the descriptors. The child has no vGPU. */
    void (*forked)(struct gn_direct *d);
    /*
     * Called when the process runs exit(). Cancels the vGPU's background work (loading, saving, the
     * cleanup after saving), starts no more of it, and waits until no thread of the vGPU is inside
     * the driver for such work, but not beyond until_ns (CLOCK_MONOTONIC). A boot or host in
     * progress returns soon afterwards; this call does not wait for it. Calls of the program are
     * still served. Any thread.
     */
    void (*process_ends)(struct gn_direct *d, uint64_t until_ns);
};

#endif
