/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TLS_STREAM_H
#define GN_VGPU_MIGRATE_TLS_STREAM_H

#include "link/tcp.h"
#include "stream/stream.h"

/* The end of a stream (stream/stream.h) that goes through TLS. One thread's. */
struct gn_tls_stream {
    struct gn_tcp tcp; /* not owned */
    uint32_t stall_ms; /* nothing moves for so long: -ETIMEDOUT; 0: wait for ever, that is until the
                          connection is found dead */
    uint64_t n_bytes;  /* how many have passed */
};

struct gn_stream_sink gn_far_sink(struct gn_tls_stream *f);
struct gn_stream_source gn_far_source(struct gn_tls_stream *f);

#endif
