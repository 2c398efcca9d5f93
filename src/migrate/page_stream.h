/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_STREAM_H
#define GN_MIGRATE_PAGE_STREAM_H

#include "migrate/rounds.h"
#include "stream/stream.h"

/*
 * Rounds into a migration stream: a sink for gn_rounds_run. Before a round the caller writes the
 * memories and the beginning of the round to the stream. An item's cookie is gn_page_stream_cookie
 * of its memory's id in the stream. The engine and the stream use the same page size. If a round
 * fails, gn_stream_writer_error has the reason. Embedded in the caller's struct; the caller owns
 * the writer.
 */
struct gn_page_stream {
    struct gn_stream_writer *writer;
    uint32_t page_bytes;

    uint64_t memory;
    uint32_t n_runs;
    struct gn_stream_run runs[GN_PAGE_GROUP];
};

struct gn_page_sink gn_page_stream_sink(struct gn_page_stream *s, struct gn_stream_writer *writer,
                                        uint32_t page_bytes);

static inline void *gn_page_stream_cookie(uint64_t memory)
{
    return (void *)(uintptr_t)memory;
}

#endif
