/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink that writes a round's pages into a migration stream; called on the thread that runs the
 * round. The runs of a group go out together: changed pages lie scattered, and a section with a
 * system call for each would cost more than hashing it.
 */
#include "migrate/page_stream.h"

static int put_data(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                    const void *digests)
{
    struct gn_page_stream *s = ctx;
    s->memory = id;
    s->runs[s->n_runs++] = (struct gn_stream_run){
        .first_page = offset / s->page_bytes,
        .n_pages = (uint32_t)((n + s->page_bytes - 1) / s->page_bytes),
        .bytes = data,
        .hashes = digests,
    };
    return 0;
}

static int flush(void *ctx)
{
    struct gn_page_stream *s = ctx;
    uint32_t n = s->n_runs;
    s->n_runs = 0;
    return n ? gn_stream_put_pages(s->writer, s->memory, s->runs, n) : 0;
}

struct gn_page_sink gn_page_stream_sink(struct gn_page_stream *s, struct gn_stream_writer *writer,
                                        uint32_t page_bytes)
{
    *s = (struct gn_page_stream){.writer = writer, .page_bytes = page_bytes};
    return (struct gn_page_sink){.data = put_data, .flush = flush, .ctx = s};
}
