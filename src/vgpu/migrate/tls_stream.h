/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TLS_STREAM_H
#define GN_VGPU_MIGRATE_TLS_STREAM_H

#include "link/tcp.h"
#include "stream/stream.h"

/* The end of a stream (stream/stream.h) that goes through TLS. One thread. */
struct gn_tls_stream {
    struct gn_tcp tcp; /* not owned */
    /* -ETIMEDOUT when nothing moves for so long; 0: wait until the connection is found dead */
    uint32_t stall_ms;
    uint64_t n_bytes; /* bytes transferred */
};

struct gn_stream_sink gn_tls_stream_sink(struct gn_tls_stream *f);
struct gn_stream_source gn_tls_stream_source(struct gn_tls_stream *f);

#endif
