/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_STREAM_H
#define GN_MIGRATE_PAGE_STREAM_H

#include "migrate/rounds.h"
#include "stream/stream.h"

/*
 * Writes rounds into a migration stream: a sink for gn_rounds_run. Before a round the caller writes
 * the memories and begins the round in the stream. An item's id is that of its memory in the
 * stream. The engine's page size is the stream's. When a round failed,
 * gn_stream_writer_error tells the reason. The struct is embedded in the caller's; the caller owns
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

#endif
